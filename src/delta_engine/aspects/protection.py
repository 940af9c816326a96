"""What a table's own row filter and masks mean for changes of its data.

They hide stored values from the engine, too. Databricks also refuses to read the history and former versions of such
a table, whichever column has the mask (`ROW_LEVEL_SECURITY_COLUMN_MASK_FEATURE_NOT_SUPPORTED`,
`FGAC_TIME_TRAVEL_NOT_SUPPORTED.PER_TABLE_RLS_CM`), so no change of its rows could be verified. Policies (ABAC) are not
part of a table: `validation.protected_data` asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from delta_engine.aspects.comparison import Comparison
from delta_engine.models import Table
from delta_engine.state.states import RelationKind, TableState

_APPEND_ONLY: Final = "delta.appendOnly"

HISTORY_HIDDEN: Final = "it has a row filter or a mask, and Databricks shows no history of such a table"
"""Why versions, authors and renames are unknown."""

PROTECTED: Final = "it has a row filter or a mask, so the engine may not see all values or read its history"
"""Why no statement computes values of such a table."""

_UNPROTECT: Final = (
    "Drop the row filter and the masks first, with consent, and declare them again afterwards. Or replace them with "
    "policies (ABAC) that exclude the engine's principal."
)

PROTECTED_BY_MODEL: Final = (
    "its model has a row filter or a mask, so the engine could not see all values or read its history"
)
"""Why no statement computes values of a table that the same plan protects."""

_PROTECT_LATER: Final = (
    "Sync the new values first, and declare the row filter and the masks with a later sync. Or, to hide the values "
    "from the start, sync without using, and fill the columns by UPDATE."
)


def protections(table: Table | TableState) -> Iterator[str]:
    """Yield the row filter and the masks of a table as text."""
    if table.row_filter is not None:
        yield "a row filter"
    yield from (f"a mask on {column.name}" for column in table.columns if column.mask is not None)


def is_protected(table: Table | TableState) -> bool:
    """Whether a table has a row filter, or a mask on any column."""
    return any(protections(table))


def write_obstacle(comparison: Comparison) -> tuple[str, str] | None:
    """Return why no statement writes existing rows of a table, and the fix; None if the engine may write them all."""
    observed = comparison.observed
    if observed.relation is not RelationKind.TABLE:
        return f"the table is {observed.relation.value}", "Change it where it is computed."
    if obstacle := protection(comparison):
        return obstacle
    if observed.table_properties.get(_APPEND_ONLY, "").lower() == "true":
        return "the table is append-only", f"Unset {_APPEND_ONLY} first."
    return None


def protection(comparison: Comparison) -> tuple[str, str] | None:
    """Return why no statement computes values of a table, and the fix; None if neither side is protected."""
    if is_protected(comparison.observed):
        return PROTECTED, _UNPROTECT
    return (PROTECTED_BY_MODEL, _PROTECT_LATER) if is_protected(comparison.desired) else None
