"""What the engine does not manage under a name of a kind that it manages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unmanaged:
    """A procedure, a materialized view or a policy that grants privileges, with the reason, such as `it is a …`."""

    reason: str
