"""Names the views of the same schemas that a plan breaks. It refuses none: a view is not the engine's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.columns import ColumnDrop
from delta_engine.aspects.table_names import RenameTable
from delta_engine.errors import StatementError
from delta_engine.models import QualifiedName, SchemaName
from delta_engine.sql.views import LostRead, lost_reads
from delta_engine.state.view_definitions import ViewDefinition, ViewReader
from delta_engine.telemetry.visible import counted

_MOST_WARNINGS: Final = 20


def view_warnings(reader: ViewReader, plan: TablePlan) -> Iterator[str]:
    """Yield which views read what a plan drops or renames. A plan that does neither needs no query."""
    tables, columns = _gone_tables(plan), _gone_columns(plan)
    if not tables and not columns:
        return
    names = [QualifiedName.of_key(key) for key in (*tables, *columns)]
    try:
        views = reader.read({SchemaName(name.catalog, name.schema) for name in names})
    except StatementError as error:
        yield f"the views of the same schemas cannot be read: {error.first_line}"
        return
    warnings = [line for view in views for line in _of_view(view, tables, columns)]
    yield from warnings[:_MOST_WARNINGS]
    if len(warnings) > _MOST_WARNINGS:
        yield f"{len(warnings) - _MOST_WARNINGS} further views may break"
    if unseen := sum(view.query is None for view in views):
        yield f"{counted(unseen, 'view')} of the same schemas may break, too: you may not see their definitions"


def _of_view(
    view: ViewDefinition, tables: Mapping[str, str], columns: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    if view.query is None:
        return
    home = SchemaName(view.name.catalog, view.name.schema)
    lost: Mapping[str, Set[str]] = {key: {*gone} for key, gone in columns.items()}
    try:
        reads = lost_reads(view.query, home, {*tables}, lost)
    except ValueError as error:
        text = view.query.lower()
        if any(QualifiedName.of_key(key).table in text for key in (*tables, *columns)):
            yield f"view {view.name} may break: {error}"
        return
    yield from (_described(view, read, tables, columns) for read in reads)


def _described(
    view: ViewDefinition,
    read: LostRead,
    tables: Mapping[str, str],
    columns: Mapping[str, Mapping[str, str]],
) -> str:
    if read.column is None:
        return f"view {view.name} breaks: it reads {read.table}, which the plan {tables[read.table]}"
    verb = "breaks: it reads" if read.is_sure else "may break: it reads a column of this name, perhaps"
    return f"view {view.name} {verb} {read.table}.{read.column}, which the plan {columns[read.table][read.column]}"


def _gone_tables(plan: TablePlan) -> dict[str, str]:
    """Return the keys of tables that are gone after the plan, with what it does to them."""
    renamed = {
        rename.observed.key: f"renames to {rename.desired.table}"
        for align in plan.align_tables
        for rename in align.of_type(RenameTable)
    }
    return {**{drop.table.key: "drops" for drop in plan.drop_tables}, **renamed}


def _gone_columns(plan: TablePlan) -> dict[str, Mapping[str, str]]:
    """Return the columns that are gone after the plan, by table key, with what it does to them."""
    found = {_present_key(align): _gone_in(align) for align in plan.align_tables}
    return {key: gone for key, gone in found.items() if gone}


def _gone_in(align: AlignTable) -> Mapping[str, str]:
    dropped = {drop.observed.key: "drops" for drop in align.of_type(ColumnDrop)}
    return {
        **dropped,
        **{old.lower(): f"renames to {new}" for old, new in renamed_columns(align).items()},
    }


def _present_key(align: AlignTable) -> str:
    return next((rename.observed.key for rename in align.of_type(RenameTable)), align.table.key)
