"""The doctor: checks that everything is there that an environment needs, as the identity that runs it.

Each probe stands alone and returns checks; `examination.examine` runs them all. Nothing that they write stays.
"""

from __future__ import annotations

from delta_engine.orchestrate.doctor.examination import examine

__all__ = ["examine"]
