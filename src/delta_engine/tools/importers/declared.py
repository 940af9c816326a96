"""What is wanted of sources, and what they declare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_engine.errors import RefusedError
from delta_engine.models import Securable


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read of sources.

    Args:
        home: the catalog and the schema of names that lack them.
        environment: the environment whose server is meant.
        with_checks: whether quality rules become checks.
    """

    home: tuple[str | None, str | None] = (None, None)
    environment: str = ""
    with_checks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What sources declare.

    Args:
        models: with stand-ins for variables.
        refusals: what is left out, with the reasons.
        notes: what else to say.
    """

    models: Sequence[Securable]
    refusals: Sequence[RefusedError] = ()
    notes: Sequence[str] = ()
