"""Names the views of others that a plan breaks, in its schemas. Only a dropped function that one calls is refused.

What becomes of declared views, and of dropped ones, the plan itself knows (`view_rules`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from delta_engine.actions import Drop, TablePlan
from delta_engine.errors import StatementError, UnsafePlanError
from delta_engine.models import (
    FunctionLanguage,
    FunctionName,
    QualifiedName,
    SchemaName,
    Securable,
    SecurableName,
    View,
    ViewName,
)
from delta_engine.sql.function_bodies import called_by
from delta_engine.sql.view_queries import LostRead, lost_reads, read_relations
from delta_engine.state.view_definitions import ViewDefinitionReader
from delta_engine.telemetry.visible import counted
from delta_engine.validation.gone_parts import GoneParts, gone_parts
from delta_engine.validation.rules import plan_refusal

_MOST_WARNINGS: Final = 20


@dataclass(frozen=True, slots=True)
class ProjectNames:
    """What a project has.

    Args:
        models: the models of a run.
        recorded: the names of all that is recorded.
        is_partial: whether the run leaves models out. Its plan is refused if it breaks recorded views among them.
    """

    models: Sequence[Securable]
    recorded: Sequence[SecurableName] = ()
    is_partial: bool = False

    @property
    def schemas(self) -> set[SchemaName]:
        """The schemas of the project, also those without tables and those that the run leaves out."""
        return {*_schemas((*(model.qualified_name for model in self.models), *self.recorded))}

    @property
    def judged(self) -> set[str]:
        """The keys of the views that the plan itself judges."""
        judged = {name.key for name in self.recorded if self.is_partial and isinstance(name, ViewName)}
        for model in self.models:
            if isinstance(model, View) and read_relations(model.query) is not None:
                judged |= {name.key for name in (model.qualified_name, *model.former_names)}
        return judged


def view_warnings(reader: ViewDefinitionReader, plan: TablePlan, project: ProjectNames) -> Iterator[str]:
    """Yield which views of others read what a plan drops or renames. A plan that does neither needs no query."""
    gone = gone_parts(plan)
    if not gone:
        return
    try:
        views = _views_of_others(reader, gone.names, plan, project)
    except StatementError as error:
        yield f"the views of the same schemas cannot be read: {error.first_line}"
        return
    warnings = [
        line for name, query in views.items() if query is not None for line in _of_view(name, query, gone)
    ]
    yield from warnings[:_MOST_WARNINGS]
    if len(warnings) > _MOST_WARNINGS:
        yield f"{len(warnings) - _MOST_WARNINGS} further views may break"
    if unseen := sum(query is None for query in views.values()):
        yield f"{counted(unseen, 'view')} of the same schemas may break, too: you may not read their definitions"


def lost_calls(
    reader: ViewDefinitionReader, plan: TablePlan, project: ProjectNames
) -> Iterator[UnsafePlanError]:
    """Yield the dropped functions that views of others call; a plan without such a drop needs no query."""
    drops = plan.of_kind(Drop, FunctionName.kind)
    try:
        views = _views_of_others(reader, [drop.name for drop in drops], plan, project) if drops else {}
    except StatementError as error:
        for drop in drops:
            reason = f"it would be dropped, and the views that may call it cannot be read: {error.first_line}"
            yield plan_refusal(drop, reason, "Keep it, or sync as a principal that may read these views.")
        return
    for view, query in views.items():
        home = FunctionName(*view.parts)
        called = {name.key for name in called_by(home, FunctionLanguage.SQL, query or "")}
        for drop in drops:
            if drop.name.key in called:
                reason = f"it would be dropped, and view {view} calls it"
                yield plan_refusal(drop, reason, "Change the view first, or declare the function again.")


def _views_of_others(
    reader: ViewDefinitionReader, names: Iterable[SecurableName], plan: TablePlan, project: ProjectNames
) -> Mapping[QualifiedName, str | None]:
    """Return the queries of the views in the schemas of names and of the project.

    Those that the plan drops or knows are left out; None stands for a query that you may not see.
    """
    judged = project.judged | {drop.name.key for drop in plan.of_kind(Drop, ViewName.kind)}
    views = reader.read({*_schemas(names)} | project.schemas)
    return {view: query for view, query in views.items() if view.key not in judged}


def _schemas(names: Iterable[SecurableName]) -> Iterator[SchemaName]:
    for name in names:
        yield from (place for place in (name, *name.parents) if isinstance(place, SchemaName))


def _of_view(view: QualifiedName, query: str, gone: GoneParts) -> Iterator[str]:
    home = SchemaName(view.catalog, view.schema)
    lost: Mapping[str, Set[str]] = {key: {*columns} for key, columns in gone.columns.items()}
    try:
        reads = lost_reads(query, home, {*gone.tables}, lost)
    except ValueError as error:
        text = query.lower()
        if any(name.table in text for name in gone.names):
            yield f"view {view} may break: {error}"
        return
    yield from (_described(view, read, gone) for read in reads)


def _described(view: QualifiedName, read: LostRead, gone: GoneParts) -> str:
    change = gone.change(read.table, read.column)
    if read.column is None:
        return f"view {view} breaks: it reads {read.table}, which the plan {change}"
    verb = "breaks: it reads" if read.is_sure else "may break: it reads a column of this name, perhaps"
    return f"view {view} {verb} {read.table}.{read.column}, which the plan {change}"
