"""Facets of one value that tables and schemas have: the clause of ALTER that sets it, and how it is described."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.fakes.unity_catalog.cursor import Cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFacet:
    """A facet of one value.

    Args:
        clause: the clause of ALTER TABLE and ALTER SCHEMA, as docs/statements.md has it.
        parse: returns the value of the clause; None where another clause comes next.
        describe: returns the value as descriptions have it.
    """

    clause: str
    parse: Callable[[Cursor], str | None]
    describe: Callable[[str | None], str | None] = lambda value: value


def _owner(cursor: Cursor) -> str | None:
    return cursor.name() if cursor.take("SET", "OWNER", "TO") or cursor.take("OWNER", "TO") else None


def _optimization(cursor: Cursor) -> str | None:
    settings = ("ENABLE", "DISABLE", "INHERIT")
    settings_named = (
        setting.lower() for setting in settings if cursor.take(setting, "PREDICTIVE", "OPTIMIZATION")
    )
    return next(settings_named, None)


def _described_optimization(setting: str | None) -> str:
    return setting.upper() if setting in ("enable", "disable") else "ENABLE (inherited from METASTORE main)"


VALUE_FACETS: Mapping[str, ValueFacet] = {
    "owner": ValueFacet(clause="OWNER TO", parse=_owner),
    "predictive_optimization": ValueFacet(
        clause="ENABLE, DISABLE, INHERIT PREDICTIVE OPTIMIZATION",
        parse=_optimization,
        describe=_described_optimization,
    ),
}
"""By the field of the states."""
