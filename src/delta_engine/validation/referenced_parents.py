"""Checks new foreign keys against existing parent tables outside the run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from delta_engine.actions import TablePlan
from delta_engine.compile.keys import TableChange, added_foreign_keys, changes_of
from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, ForeignKey, Table
from delta_engine.models.types import is_same_type
from delta_engine.sql.text import sql_data_type
from delta_engine.state.states import CatalogState, TableState


def unfit_parents(
    plan: TablePlan, models: Mapping[str, Table], state: CatalogState
) -> Iterator[InvalidModelError]:
    """Yield the foreign keys that their parents refuse; parents outside the snapshot are not checked."""
    changes: tuple[TableChange, ...] = (*plan.create_tables, *plan.align_tables)
    added = ((change.table.key, key) for change in changes for key in added_foreign_keys(changes_of(change)))
    for table, key in added:
        parent = state.tables.get(key.references.lower())
        if parent is None or key.references.lower() in models:
            continue
        model = models[table]
        for reason, column, way_out in _problems(key, parent, _columns(model, state)):
            yield InvalidModelError(
                f"foreign key ({', '.join(key.columns)}) {reason}",
                table=str(model.qualified_name),
                column=column,
                location=model.declared_at,
                way_out=way_out,
            )


def _columns(model: Table, state: CatalogState) -> Mapping[str, Column]:
    """Return the known columns of a table after the plan."""
    observed = {column.key: column for column in state.tables[model.qualified_name.key].columns}
    return observed | {column.key: column for column in model.columns}


def _problems(
    key: ForeignKey, parent: TableState, own: Mapping[str, Column]
) -> Iterator[tuple[str, str | None, str]]:
    """Yield the reason, the column and the way out."""
    if not parent.exists:
        yield (
            f"references {key.references}, which does not exist (or is not visible to you) and is not in this run",
            None,
            "Select that table as well, declare it, or create it first.",
        )
        return
    there = parent.primary_key
    if there is None or [*map(str.lower, there.columns)] != [*map(str.lower, key.referenced_columns)]:
        found = f"the primary key ({', '.join(there.columns)})" if there else "no primary key"
        yield (
            f"references ({', '.join(key.referenced_columns)}) of {key.references}, which is not in this run and has "
            f"{found}",
            None,
            "Select that table as well if its model has another key, or reference the key that it has.",
        )
        return
    others = {column.key: column for column in parent.columns}
    for name, referenced in zip(key.columns, key.referenced_columns, strict=True):
        column, other = own[name.lower()], others[referenced.lower()]
        if not is_same_type(column.data_type, other.data_type):
            yield (
                f"has {name} of type {sql_data_type(column.data_type)}, and {key.references}.{other.name}, which is "
                f"not in this run, is {sql_data_type(other.data_type)}",
                name,
                "Select that table as well if its model has the same type, or give both the same type.",
            )
