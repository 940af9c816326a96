"""What is wrong with declared views, alone, together, and next to the tables and functions of a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from delta_engine.actions import Align, BrokenView, Drop, Keep, TablePlan
from delta_engine.actions.policy import DestructiveKind, NeededConsent, Policy
from delta_engine.aspects.view_definition import AlterViewQuery, SetViewColumnComments
from delta_engine.aspects.view_needs import circles, view_changes
from delta_engine.aspects.view_sides import relation_columns, widened_columns
from delta_engine.errors import InvalidModelError, UnsafePlanError, unknown
from delta_engine.models import QualifiedName, Securable, Table, ViewName, of_kind, subject
from delta_engine.models.repetitions import repeated
from delta_engine.models.views import SchemaMode, View, repeated_view_columns
from delta_engine.sql.missing_columns import missing_columns
from delta_engine.sql.view_queries import (
    query_doubt,
    query_problem,
    read_columns,
    read_relations,
    returned_columns,
    retyped_columns,
)
from delta_engine.state.states import CatalogState
from delta_engine.validation.governance_rules import TagsWithinLimits, rights_problems
from delta_engine.validation.rules import (
    Problem,
    circle_refusals,
    consent,
    model_refusal,
    of_each,
    of_each_alignment,
    plan_refusal,
    unfit_names,
)

PRIVILEGES: Final = frozenset({"ALL PRIVILEGES", "APPLY TAG", "MANAGE", "SELECT"})
"""The privileges of views (docs: "Unity Catalog privileges reference")."""
_WAY_OUT_OF_CONVERSIONS: Final = (
    "Write the new values to another column, let the view read that column, and drop the old column."
)
_WAY_OUT_OF_TYPES: Final = "Write schema_mode: type evolution, which adopts new types."


class ViewsFit:
    """Names, query, documented columns, tags, owner and grants of a view are ones that Unity Catalog can take."""

    @of_each(View)
    def check(self, model: View) -> Iterator[Problem]:
        """Refuse what fails on every platform."""
        yield from unfit_names(model.catalog_name, model.schema_name, model.view_name, *model.renamed_from)
        if model.view_name.lower() in map(str.lower, model.renamed_from):
            yield Problem("it was renamed from its own name", "Remove the name from renamed_from.")
        if problem_of_query := query_problem(model.query):
            yield Problem(*problem_of_query)
        for reason, fix, column in repeated_view_columns(model.columns):
            yield Problem(reason, fix, column)
        yield from _mode_problems(model)
        yield from TagsWithinLimits().of_model(model)
        yield from rights_problems(model, PRIVILEGES)


class DocumentedColumnsExist:
    """The documented columns of a view are among those that its query returns."""

    about: ClassVar = (View,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse other names, as far as queries and declared models tell which columns there are."""
        views = of_kind(View, models)
        relations = relation_columns(of_kind(Table, models), views) if views else {}
        for view in views:
            for reason, way_out, column, _ in column_problems(view, relations):
                yield model_refusal(view, reason, way_out, column)


class QueriesFindTheirColumns:
    """The query of a view names columns that declared tables and views have, and returns no column twice."""

    about: ClassVar = (View,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse what fails for sure, with the line of the query; the platform sees the rest."""
        views = of_kind(View, models)
        relations = relation_columns(of_kind(Table, models), views) if views else {}
        for view in views:
            for reason, way_out, *_ in query_column_problems(view, relations):
                yield model_refusal(view, reason, way_out)


class NoCircularViews:
    """No view reads itself, alone or in a circle."""

    about: ClassVar = (View,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse each circle at its first view by name."""
        yield from circle_refusals(
            of_kind(View, models), lambda view: read_relations(view.query) or (), "read"
        )


class ViewNamesAreFree:
    """A view shares its name with no table, and its old name with no declared table or view."""

    about: ClassVar = (View,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse shared names: tables and views of a schema share them."""
        for view, (reason, way_out, *_) in name_problems(of_kind(View, models), of_kind(Table, models)):
            yield model_refusal(view, reason, way_out)


class ViewsKeepWhatTheyRead:
    """A plan drops, renames or retypes what a declared view reads only if the view survives it, or changes as well."""

    def check(self, plan: TablePlan, _policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse the plan with file and line of the view."""
        for broken in plan.broken_views:
            yield UnsafePlanError(
                _loss(broken),
                **subject(broken.name),
                location=broken.declared_at,
                way_out=_way_out(broken),
            )


class ViewsFindAnOrder:
    """The changes of views have an order in which every view resolves after every statement."""

    def check(self, plan: TablePlan, _policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse changes that wait for each other."""
        changes = {change.name.key: change for change in view_changes(plan)}
        for key, others in circles(plan):
            reason = f"its change and those of {', '.join(others)} wait for each other"
            fix = "Expand, then contract: sync the new columns first, then the views, then remove the old columns."
            yield plan_refusal(changes[key], reason, fix)


class NoUnallowedViewReplacements:
    """Comments of columns need consent in Spark's session catalog, which has to replace the view.

    The replacement loses properties that others set.
    """

    @of_each_alignment
    def check(self, align: Align[Any], policy: Policy) -> Iterator[Problem]:
        """Refuse CREATE OR REPLACE VIEW without consent."""
        kind = DestructiveKind.REPLACE_VIEW
        actions: tuple[AlterViewQuery | SetViewColumnComments, ...] = (
            *align.of_type(AlterViewQuery),
            *align.of_type(SetViewColumnComments),
        )
        if any(action.replaces for action in actions) and not policy.allows(kind, align.name):
            reason = "the view would be replaced, because only that sets comments of its columns here"
            needed = (NeededConsent(kind=kind, securable=align.name),)
            yield Problem(reason, f"Allow it: {consent(kind, align.name)}", needed=needed)


def cast_types(plan: TablePlan, models: Sequence[Securable], observed: CatalogState) -> Iterator[str]:
    """Yield the views that cast columns which the plan widens back to their former types (docs: "CREATE VIEW").

    Without a mode, a view has the platform's default, COMPENSATION. Views that a partial run leaves out count, too.
    """
    widened = widened_columns(plan)
    views = {view.key: view for view in of_kind(View, models) if widened}
    relations = relation_columns(of_kind(Table, models), views.values())
    undeclared = {change.name.key for kind in (Keep, Drop) for change in plan.of_kind(kind, ViewName.kind)}
    for key, state in sorted(observed.views.items()):
        view = views.get(key) or View(*QualifiedName.of_key(key).parts, state.query or "")
        mode = view.schema_mode or state.schema_mode or SchemaMode.COMPENSATION
        if not state.exists or key in undeclared or mode is not SchemaMode.COMPENSATION:
            continue
        for table, column in sorted(widened):
            if retyped_columns(view.query, relations, {table: frozenset({column})}):
                yield (
                    f"view {view.qualified_name} returns {table}.{column}, whose type the plan widens, and keeps the "
                    "types of its own columns (schema_mode compensation): a query of it may fail at values that do "
                    f"not fit. {_WAY_OUT_OF_TYPES}"
                )


def _loss(broken: BrokenView) -> str:
    names = ", ".join(f"{broken.relation}.{column}" for column in broken.columns)
    by_star = " by *" if broken.is_by_star else ""
    if broken.is_retyped:
        return f"its schema_mode is binding, so it fails after {names} changes its type"
    if broken.is_converted:
        return f"it reads {names}, which the plan converts: between two statements, no column has this name"
    if broken.renamed_to:
        return f"it reads {broken.relation}, which the plan renames to {broken.renamed_to}"
    if broken.is_counted:
        return f"it needs a certain number of columns of {broken.relation}, which the plan changes"
    if not broken.columns:
        return f"it reads {broken.relation}, which the plan drops"
    return (
        f"it reads {names}{by_star}, which the plan drops or renames, and the plan does not change its query"
    )


def _way_out(broken: BrokenView) -> str:
    if broken.is_retyped or broken.is_converted:
        way_out = _WAY_OUT_OF_TYPES if broken.is_retyped else _WAY_OUT_OF_CONVERSIONS
        return way_out if broken.is_selected else f"Also select the view. {way_out}"
    if not broken.is_selected:
        return "Also select the view, and change its query in the same plan."
    if broken.is_by_star:
        return "Replace * with the columns, or write schema_mode: evolution, which adopts changed columns."
    return "Change its query in the same plan, or declare again what it reads."


def view_doubts(view: View) -> Iterator[str]:
    """Yield why a view may fail, or show something else than one expects; the platform knows more."""
    if query_problem(view.query) is not None:
        return
    if doubt := query_doubt(view.query):
        yield doubt
    reads = read_columns(view.query, {})
    for key in sorted(reads.spread if reads else ()):
        if not view.evolves:
            yield (
                f"its query returns every column of {key} by *: the view keeps the current columns of {key}, and "
                "fails after a column is dropped or renamed. Write the columns, or schema_mode: evolution"
            )


def column_problems(view: View, relations: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Yield the documented columns that a query does not return, as far as its text or declared models tell.

    Args:
        relations: the columns of declared tables and views, by key.
    """
    returned = returned_columns(view.query, relations) if query_problem(view.query) is None else None
    if returned is not None:
        yield from unreturned(view, returned)


def unreturned(view: View, returned: Sequence[str]) -> Iterator[Problem]:
    """Yield the documented columns that are not among those that a query returns."""
    names = {name.lower() for name in returned}
    for column in view.columns:
        if column.key not in names:
            reason = f"it documents column {column.name!r}, which its query does not return"
            yield Problem(reason, f"Its columns are {', '.join(returned)}.", column.name)


def query_column_problems(view: View, relations: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Yield the columns that a query names and nothing has that it reads, and one that it returns twice.

    Args:
        relations: the columns of declared tables and views, by key.
    """
    if query_problem(view.query) is not None:
        return
    if names := repeated(returned_columns(view.query, relations) or ()):
        reason = f"its query returns column {names[0]!r} twice, including those of *"
        yield Problem(reason, "Write the columns, or exclude one: * EXCEPT (…).")
    for column in missing_columns(view.query, relations):
        _, way_out = unknown("column", column.name, column.present)
        place = f"line {column.line} of {view.query_file or 'its query'}"
        owners = " and ".join(column.relations) or "what it reads"
        verb = "do" if len(column.relations) > 1 else "does"
        reason = f"{place} names column {column.name!r}, which {owners} {verb} not have"
        yield Problem(reason, f"{way_out} Correct the name, or declare the column.")


def name_problems(views: Iterable[View], tables: Iterable[Table]) -> Iterator[tuple[View, Problem]]:
    """Yield the views that have the name of a table, or a former name of another view."""
    views = tuple(views)
    declared = {table.key for table in tables}
    keys = {view.key for view in views}
    for view in views:
        if view.key in declared:
            reason = "a table has this name, and tables and views share a namespace"
            yield view, Problem(reason, "Rename one of them.")
        for former in view.former_names:
            if former.key in keys - {view.key} or former.key in declared:
                reason = f"it was renamed from {former}, which is declared"
                yield view, Problem(reason, "Remove the name from renamed_from, or that model.")


def _mode_problems(view: View) -> Iterator[Problem]:
    """Yield comments that the platform takes away: a view that evolves has those of its query (docs: "COMMENT ON")."""
    if view.evolves:
        for column in view.columns:
            if column.comment:
                reason = (
                    "its schema_mode is evolution: the platform replaces the comments of its columns with the comments "
                    "of the columns that the query reads"
                )
                fix = "Write schema_mode: type evolution, or comment the columns of the table."
                yield Problem(reason, fix, column.name)
                return
