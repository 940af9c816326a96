"""The tables and columns that a plan drops or renames: what readers of them lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.columns import ColumnDrop
from delta_engine.aspects.table_names import RenameTable
from delta_engine.models import QualifiedName


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneParts:
    """What is gone after a plan, with what the plan does to it: `drops` or `renames to b`.

    Args:
        tables: by table key.
        columns: by table key and by name in lower case.
    """

    tables: Mapping[str, str]
    columns: Mapping[str, Mapping[str, str]]

    def __bool__(self) -> bool:
        return bool(self.tables or self.columns)

    @property
    def names(self) -> Sequence[QualifiedName]:
        """The tables that are gone or lose columns."""
        return [QualifiedName.of_key(key) for key in dict.fromkeys((*self.tables, *self.columns))]

    def change(self, table: str, column: str | None) -> str:
        """Return what the plan does to a column, or to a table (None)."""
        return self.tables[table] if column is None else self.columns[table][column]


def gone_parts(plan: TablePlan) -> GoneParts:
    """Return what a plan drops or renames."""
    renamed = {
        rename.observed.key: f"renames to {rename.desired.table}"
        for align in plan.align_tables
        for rename in align.of_type(RenameTable)
    }
    gone_columns = {_present_key(align): _gone_in(align) for align in plan.align_tables}
    return GoneParts(
        tables={**{drop.table.key: "drops" for drop in plan.drop_tables}, **renamed},
        columns={key: gone for key, gone in gone_columns.items() if gone},
    )


def _gone_in(align: AlignTable) -> Mapping[str, str]:
    dropped = {drop.observed.key: "drops" for drop in align.of_type(ColumnDrop)}
    return {
        **dropped,
        **{old.lower(): f"renames to {new}" for old, new in renamed_columns(align).columns.items()},
    }


def _present_key(align: AlignTable) -> str:
    return next((rename.observed.key for rename in align.of_type(RenameTable)), align.table.key)
