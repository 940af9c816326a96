"""The probes about views: what the engine assumes of them, and no document confirms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_refused_query
from delta_engine.errors import StatementError
from delta_engine.models import Table, View, ViewColumn, of_kind
from delta_engine.sql.text import sql_path
from delta_engine.sql.view_queries import is_same_query, without_names
from delta_engine.sql.views import sql_alter_view_query, sql_create_view, sql_describe_query
from delta_engine.state.view_descriptions import read_view
from delta_engine.state.view_states import ViewState
from delta_engine.tools.conformance.probe import Answer, Probe, attempted, described, of_scratch
from delta_engine.tools.conformance.report import Holds
from delta_engine.tools.conformance.rounds import Rounds
from delta_engine.tools.conformance.scratch_tables import scratch_view
from delta_engine.tools.conformance.statement_log import error_form

_KEPT: Final = frozenset({"query", "schema_mode", "comment", "owner", "grants"})
"""What the documentation or Spark says that a view keeps when its query changes."""


@of_scratch(View, "view_rights")
def _altered(rounds: Rounds, view: View, before: ViewState) -> Answer:
    """Set the query of a view that has everything again, and compare the view before and after."""
    rounds.backend.runner.run(sql_alter_view_query(view.qualified_name, view.query))
    after = rounds.backend.reader.snapshot_directly([view]).views[view.key]
    lost = [field.name for field in fields(ViewState) if field.compare and _differ(before, after, field.name)]
    lost = [part for part in lost if part != "query" or not is_same_query(before.query, after.query)]
    return Holds.NO if {*lost} & _KEPT else Holds.YES, [f"lost: {', '.join(lost) or 'nothing'}"]


def _differ(before: ViewState, after: ViewState, field: str) -> bool:
    return bool(getattr(before, field) != getattr(after, field))


@of_scratch(View, "view")
def _inherited(rounds: Rounds, _view: View, state: ViewState) -> Answer:
    """Read the comments of a view that returns every column of a table."""
    shown = {column.key: column.comment for column in state.columns}
    models = (model for walk in rounds.walks for step in walk.group.steps for model in step)
    below = [
        table for table in of_kind(Table, models) if table.key == rounds.objects.place.qualified("viewed").key
    ]
    comments = {column.key: column.comment for column in below[-1].columns if column.comment}
    findings = [f"{key}: {shown.get(key)!r}" for key in comments]
    return Holds.YES if comments.items() <= shown.items() else Holds.NO, findings


@of_scratch(View, "view")
def _by_position(rounds: Rounds, view: View, _state: ViewState) -> Answer:
    """Let a view read by position, rename a column below it, and query it."""
    tables = rounds.reader.existing([rounds.objects.place.qualified("viewed")])
    if not tables:
        return Holds.CANNOT_TELL, ["there is no table below the scratch view"]
    bridged = without_names(f"SELECT key FROM {tables[0]}", tables[0], ("key", "label", "more"))
    if bridged is None:
        return Holds.CANNOT_TELL, ["the query cannot read by position"]
    table, name = rounds.backend.addressing.table(tables[0]), sql_path(view.qualified_name.parts)
    statements = (
        sql_alter_view_query(view.qualified_name, bridged),
        f"SELECT * FROM {name}",
        f"ALTER TABLE {table} RENAME COLUMN `id` TO `key`",
        f"SELECT * FROM {name}",
    )
    for sql in statements:
        if refusal := attempted(rounds, sql):
            return Holds.NO, [f"{sql}: {described(refusal)}"]
    return Holds.YES, ["the view could be queried before and after the rename"]


def _evolving_list(rounds: Rounds) -> Answer:
    """Create a view with a list of columns and WITH SCHEMA EVOLUTION, and read its mode and its comments."""
    place = rounds.objects.place
    model = scratch_view(
        place, "view_list", "SELECT 1 AS a", ViewColumn("a", "Listed"), schema_mode="type evolution"
    )
    sql = sql_create_view(model).replace("WITH SCHEMA TYPE EVOLUTION", "WITH SCHEMA EVOLUTION")
    rounds.objects.created.add(model.qualified_name)
    if refusal := attempted(rounds, sql):
        return Holds.NO, [described(refusal)]
    attempted(rounds, f"SELECT * FROM {sql_path(model.qualified_name.parts)}")
    state = read_view(rounds.backend.runner, model.qualified_name)
    mode = state.schema_mode.value if state.schema_mode else "not shown"
    findings = [f"schema mode: {mode}", f"comments: {[column.comment for column in state.columns]}"]
    is_kept = [column.comment for column in state.columns] == ["Listed"]
    return Holds.YES if is_kept else Holds.NO, findings


@of_scratch(View, "view_comments")
def _two_descriptions(rounds: Rounds, view: View, planned: ViewState) -> Answer:
    """Compare how a view was read last, from `information_schema` and its listing, with how it describes itself."""
    lines = [*_contradictions(planned, read_view(rounds.backend.runner, view.qualified_name))]
    return Holds.NO if lines else Holds.YES, lines or ["both agree"]


def _contradictions(planned: ViewState, applied: ViewState) -> Iterator[str]:
    if not is_same_query(planned.query, applied.query):
        yield f"its query as for a plan: {planned.query}; as after an apply: {applied.query}"
    for part in ("schema_mode", "comment"):
        if _differ(planned, applied, part):
            yield f"{part} as for a plan: {getattr(planned, part)}; as after an apply: {getattr(applied, part)}"
    if planned.schema_mode is None:
        yield "its schema mode is not shown"


@of_scratch(View, "view")
def _described_query(rounds: Rounds, view: View, _state: ViewState) -> Answer:
    """Describe a query that returns two columns of one name, and one that reads a column which is missing."""
    name, run = sql_path(view.qualified_name.parts), rounds.backend.runner.run
    try:
        rows = run(sql_describe_query(f"SELECT 1 AS a, v.*, 2 AS a FROM {name} AS v"))
    except StatementError as error:
        return Holds.NO, [described(error_form(error))]
    columns = [str(row.get("col_name")) for row in rows]
    findings = [f"columns: {', '.join(columns)}"]
    try:
        run(sql_describe_query(f"SELECT missing_column FROM {name}"))
    except StatementError as error:
        findings.append(described(error_form(error)))
        is_known = [columns[0], columns[-1]] == ["a", "a"] and is_refused_query(error)
        return Holds.YES if is_known else Holds.NO, findings
    return Holds.NO, [*findings, "a missing column is accepted"]


VIEW_PROBES: Final = (
    Probe(
        name="altered view",
        question="What does a view lose when ALTER VIEW … AS gives it a query?",
        assumption="Comments of columns, and perhaps tags. The engine sets all again in the same step either way.",
        ask=_altered,
        needs=(Feature.VIEWS, Feature.TAGS, Feature.GRANTS, Feature.OWNERS),
    ),
    Probe(
        name="inherited comments",
        question="Which comments do columns of a view show that return columns of a table?",
        assumption="The comments of the table, so that undeclared comments are not drift.",
        ask=_inherited,
        needs=(Feature.VIEWS, Feature.COLUMN_RENAMES),
    ),
    Probe(
        name="columns by position",
        question="Can a view be queried while a column is renamed that it reads by position?",
        assumption="Yes, so that the view never fails while a column is renamed.",
        ask=_by_position,
        needs=(Feature.VIEWS, Feature.COLUMN_RENAMES),
    ),
    Probe(
        name="list of an evolving view",
        question="What does a view follow that has a list of columns and WITH SCHEMA EVOLUTION?",
        assumption="It follows only types, and keeps the comments of the list.",
        ask=_evolving_list,
        needs=(Feature.VIEWS,),
    ),
    Probe(
        name="two descriptions of a view",
        question="Do the views of information_schema and DESCRIBE … AS JSON report the same of a view?",
        assumption="Yes, with the schema mode in listings or in DESCRIBE … AS JSON.",
        ask=_two_descriptions,
        needs=(Feature.VIEWS, Feature.VIEW_COLUMN_COMMENTS),
    ),
    Probe(
        name="described query",
        question="Does DESCRIBE QUERY return the columns of a query, and refuse one that cannot run?",
        assumption="It returns all names as col_name, even duplicates, and refuses with a SQLSTATE of class 42.",
        ask=_described_query,
        needs=(Feature.VIEWS,),
    ),
)
