"""Asks the platform whether it takes the queries that a plan gives to views, before anything runs.

The platform analyses a query of what exists. So it is asked about queries alone that read nothing which the plan
changes, at a cost of one DESCRIBE QUERY each, which returns the columns and runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, NamedTuple

from delta_engine.actions import Align, Create, Keep, TablePlan
from delta_engine.aspects.view_definition import AlterViewQuery
from delta_engine.aspects.view_needs import view_changes
from delta_engine.aspects.view_sides import readers_of, renames
from delta_engine.backends.error_conditions import is_refused_query
from delta_engine.backends.sql_runner import SqlRunner, query_each
from delta_engine.errors import RefusedError, StatementError
from delta_engine.models import FunctionName, QualifiedName, Securable, View, ViewName, of_kind
from delta_engine.models.repetitions import repeated
from delta_engine.sql.view_queries import read_functions, read_relations
from delta_engine.sql.views import sql_describe_query
from delta_engine.state.states import CatalogState
from delta_engine.validation.rules import Problem, plan_refusal
from delta_engine.validation.view_rules import unreturned

_READ: Final = (QualifiedName.kind, ViewName.kind, FunctionName.kind)
"""The kinds of what queries read."""


class _Asked(NamedTuple):
    """A query that a plan gives to a view.

    Args:
        is_settled: whether the plan changes nothing at all that the query may read.
    """

    change: Create[Any] | Align[Any]
    view: View
    is_settled: bool


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """Analyses queries of views on the platform, several at a time."""

    runner: SqlRunner
    _: KW_ONLY
    parallelism: int = 4

    def judge(
        self, plan: TablePlan, models: Sequence[Securable], observed: CatalogState
    ) -> tuple[list[RefusedError], list[str]]:
        """Return why the platform refuses queries of a plan, and warnings about those that it could not judge."""
        refusals: list[RefusedError] = []
        warnings: list[str] = []
        queries = [*_asked(plan, models, observed)] if view_changes(plan) else []
        for asked, problem in query_each(self._problem, queries, self.parallelism) if queries else ():
            if isinstance(problem, str):
                warnings.append(f"view {asked.view.qualified_name}: {problem}")
            elif problem is not None:
                refusals.append(plan_refusal(asked.change, *problem))
        return refusals, warnings

    def _problem(self, asked: _Asked) -> Problem | str | None:
        """Return why the platform refuses a query, a warning about it, or nothing."""
        try:
            rows = self.runner.run(sql_describe_query(asked.view.query))
        except StatementError as error:
            if not is_refused_query(error):
                return f"its query could not be analysed: {error.first_line}"
            if not asked.is_settled:
                return f"its query may fail: {error.first_line}"
            fix = f"Correct {asked.view.query_file or 'the query'}, or declare what it reads. With -t, select that too."
            return Problem(f"its query cannot run: {error.first_line}", fix)
        columns = [str(row["col_name"]) for row in rows]
        if not asked.is_settled:
            return None
        if twice := repeated(columns):
            return Problem(f"its query returns column {twice[0]!r} twice", "Rename one of them.")
        missing = next(unreturned(asked.view, columns), None)
        return missing and missing._replace(column=None)  # the reason names it


def _asked(plan: TablePlan, models: Sequence[Securable], observed: CatalogState) -> Iterator[_Asked]:
    """Yield the queries that a plan sets and that read, as far as the models tell, nothing that it changes."""
    changed = {*_changed(plan)}
    reached = changed | {view.key for view in readers_of(changed, of_kind(View, models))}
    listed = {key.rpartition(".")[0] for key in (*observed.tables, *observed.views)}
    for change, view in _set_queries(plan):
        relations, others = read_relations(view.query), changed - {view.key}
        read = {name.key for name in (*(relations or ()), *read_functions(view.query))}
        if reached.isdisjoint(read - {view.key}) and (relations is not None or not others):
            # a view of others may follow what the plan changes
            is_known = all(
                key.rpartition(".")[0] in listed and key not in observed.other_views for key in read
            )
            yield _Asked(change, view, is_settled=is_known or not others)


def _set_queries(plan: TablePlan) -> Iterator[tuple[Create[Any] | Align[Any], View]]:
    for change in view_changes(plan):
        if isinstance(change, Create):
            yield change, change.desired
        else:
            yield from ((change, action.desired) for action in change.of_type(AlterViewQuery))


def _changed(plan: TablePlan) -> Iterator[str]:
    """Yield the keys of the tables, views and functions that a plan changes, also their former ones."""
    for change in plan.changes:
        if change.name.kind in _READ and not isinstance(change, Keep):
            yield change.name.key
    yield from (rename.observed.key for rename in renames(plan))
