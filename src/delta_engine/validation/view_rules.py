"""What is wrong with declared views, alone, together, and next to the tables and functions of a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from delta_engine.models import Function, Table
from delta_engine.models.views import SchemaMode, View, repeated_view_columns
from delta_engine.sql.function_bodies import call_cycles
from delta_engine.sql.view_queries import (
    query_doubt,
    query_problem,
    read_columns,
    read_functions,
    read_relations,
    returned_columns,
)
from delta_engine.validation.governance_rules import TagsWithinLimits, rights_problems
from delta_engine.validation.rules import ALLOWED_IN_NAMES, Problem, name_problem

PRIVILEGES: Final = frozenset({"ALL PRIVILEGES", "APPLY TAG", "MANAGE", "SELECT"})
"""The privileges of views (docs: "Unity Catalog privileges reference")."""


def view_problems(view: View) -> Iterator[Problem]:
    """Yield what is wrong with one view: names, query, documented columns, mode, tags and rights."""
    for name in (view.catalog_name, view.schema_name, view.view_name, *view.renamed_from):
        if problem := name_problem(name):
            yield Problem(f"its name {name!r} {problem}", ALLOWED_IN_NAMES)
    if view.view_name.lower() in map(str.lower, view.renamed_from):
        yield Problem("it was renamed from its own name", "Remove the name from renamed_from.")
    if problem_of_query := query_problem(view.query):
        yield Problem(*problem_of_query)
    for reason, fix, column in repeated_view_columns(view.columns):
        yield Problem(reason, fix, column)
    yield from _mode_problems(view)
    yield from TagsWithinLimits().problems(view.tags)
    for documented in view.columns:
        for problem_of_tags in TagsWithinLimits().problems(documented.tags):
            yield problem_of_tags._replace(column=documented.name)
    yield from rights_problems(view, PRIVILEGES)


def view_doubts(view: View) -> Iterator[str]:
    """Yield why a view may fail, or show something else than one expects; the platform knows more."""
    if query_problem(view.query) is not None:
        return
    if doubt := query_doubt(view.query):
        yield doubt
    reads = read_columns(view.query, {})
    for key in sorted(reads.spread if reads else ()):
        if view.schema_mode is not SchemaMode.EVOLUTION:
            yield (
                f"its query returns every column of {key} by *: the view keeps the columns that {key} has now, and "
                "fails when one of them is dropped or renamed. Write the columns, or schema_mode: evolution"
            )


def column_problems(view: View, relations: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Yield the documented columns that a query does not return, as far as its text or declared models tell.

    Args:
        relations: the columns of declared tables and views, by key.
    """
    returned = returned_columns(view.query, relations) if query_problem(view.query) is None else None
    if returned is None:
        return
    names = {name.lower() for name in returned}
    for column in view.columns:
        if column.key not in names:
            reason = f"it documents column {column.name!r}, which its query does not return"
            yield Problem(reason, f"Its columns are {', '.join(returned)}.", column.name)


def circle_problems(views: Iterable[View]) -> Iterator[tuple[View, Problem]]:
    """Yield the views that read themselves, each alone or in a circle, with the problem of the circle."""
    by_key = {view.key: view for view in views}
    reads = {
        key: {name.key for name in read_relations(view.query) or ()} & {*by_key}
        for key, view in by_key.items()
    }
    for circle in call_cycles(reads):
        reason = "it reads itself" if len(circle) == 1 else f"{' and '.join(circle)} read each other"
        yield by_key[circle[0]], Problem(reason, "Remove one of the reads.")


def name_problems(views: Iterable[View], tables: Iterable[Table]) -> Iterator[tuple[View, Problem]]:
    """Yield the views that have the name of a table, or a former name of another view."""
    views = tuple(views)
    declared = {table.key for table in tables}
    keys = {view.key for view in views}
    for view in views:
        if view.key in declared:
            reason = "there is a table of this name: tables and views share their names"
            yield view, Problem(reason, "Rename one of the two.")
        for former in view.former_names:
            if former.key in keys - {view.key} or former.key in declared:
                reason = f"it was renamed from {former}, which is declared"
                yield view, Problem(reason, "Remove the name from renamed_from, or that model.")


def relation_columns(tables: Iterable[Table], views: Iterable[View]) -> Mapping[str, Sequence[str]]:
    """Return the columns of declared tables and views by key, without views whose columns are unknown."""
    columns: dict[str, Sequence[str]] = {
        table.key: [column.name for column in table.columns] for table in tables
    }
    waiting = {view.key: view for view in views}
    while waiting:
        settled = {
            key: returned
            for key, view in waiting.items()
            if {name.key for name in read_relations(view.query) or ()}.isdisjoint(waiting)
            and (returned := returned_columns(view.query, columns)) is not None
        }
        if not settled:
            break
        columns |= settled
        waiting = {key: view for key, view in waiting.items() if key not in settled}
    return columns


def functions_read(view: View, functions: Mapping[str, Function]) -> Sequence[Function]:
    """Return the declared functions that a view calls, sorted by name; `functions` is by key."""
    called = sorted(name.key for name in read_functions(view.query))
    return [functions[key] for key in called if key in functions]


def _mode_problems(view: View) -> Iterator[Problem]:
    """Yield comments that the platform takes away: a view that evolves has those of its query (docs: "COMMENT ON")."""
    if view.schema_mode is SchemaMode.EVOLUTION:
        for column in view.columns:
            if column.comment:
                reason = (
                    "its schema_mode is evolution: the platform replaces the comments of its columns by those of the "
                    "columns that the query reads"
                )
                fix = "Write schema_mode: type evolution, or comment the columns of the table."
                yield Problem(reason, fix, column.name)
                return
