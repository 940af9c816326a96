"""Names the views of the same schemas that a plan breaks. It refuses none: a view is not the engine's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final

from delta_engine.actions import TablePlan
from delta_engine.errors import StatementError
from delta_engine.models import SchemaName
from delta_engine.sql.views import LostRead, lost_reads
from delta_engine.state.view_definitions import ViewDefinition, ViewDefinitionReader
from delta_engine.telemetry.visible import counted
from delta_engine.validation.gone_parts import GoneParts, gone_parts

_MOST_WARNINGS: Final = 20


def view_warnings(reader: ViewDefinitionReader, plan: TablePlan) -> Iterator[str]:
    """Yield which views read what a plan drops or renames. A plan that does neither needs no query."""
    gone = gone_parts(plan)
    if not gone:
        return
    try:
        views = reader.read({SchemaName(name.catalog, name.schema) for name in gone.names})
    except StatementError as error:
        yield f"the views of the same schemas cannot be read: {error.first_line}"
        return
    warnings = [line for view in views for line in _of_view(view, gone)]
    yield from warnings[:_MOST_WARNINGS]
    if len(warnings) > _MOST_WARNINGS:
        yield f"{len(warnings) - _MOST_WARNINGS} further views may break"
    if unseen := sum(view.query is None for view in views):
        yield f"{counted(unseen, 'view')} of the same schemas may break, too: you may not see their definitions"


def _of_view(view: ViewDefinition, gone: GoneParts) -> Iterator[str]:
    if view.query is None:
        return
    home = SchemaName(view.name.catalog, view.name.schema)
    lost: Mapping[str, Set[str]] = {key: {*columns} for key, columns in gone.columns.items()}
    try:
        reads = lost_reads(view.query, home, {*gone.tables}, lost)
    except ValueError as error:
        text = view.query.lower()
        if any(name.table in text for name in gone.names):
            yield f"view {view.name} may break: {error}"
        return
    yield from (_described(view, read, gone) for read in reads)


def _described(view: ViewDefinition, read: LostRead, gone: GoneParts) -> str:
    change = gone.change(read.table, read.column)
    if read.column is None:
        return f"view {view.name} breaks: it reads {read.table}, which the plan {change}"
    verb = "breaks: it reads" if read.is_sure else "may break: it reads a column of this name, perhaps"
    return f"view {view.name} {verb} {read.table}.{read.column}, which the plan {change}"
