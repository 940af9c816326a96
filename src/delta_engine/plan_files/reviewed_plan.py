"""A plan file that nothing speaks against: what a run may do, and how it is remembered."""

from __future__ import annotations

from dataclasses import dataclass

from delta_engine.execute.action_runner import ScriptLine


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedPlan:
    """A plan file that was held against the present.

    Args:
        checksum: its checksum, by which it is remembered.
        script: its statements.
    """

    checksum: str
    script: tuple[ScriptLine, ...]
