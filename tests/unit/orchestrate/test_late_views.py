"""Views of `information_schema` that lag after a run: what they do not show yet is neither deleted nor drift."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest

from delta_engine.actions.drift_policy import DriftHandling, DriftPolicy
from delta_engine.actions.policy import NO_POLICY, DestructiveKind, Policy
from delta_engine.aspects.column_masks import SetColumnMask
from delta_engine.aspects.row_filters import SetRowFilter
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.document import records_of
from delta_engine.deployment.resources import without_resources
from delta_engine.drift.drifted_resources import DriftRefusal
from delta_engine.errors import CatalogReadError, InvalidModelError, StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import Column, RowFilter, Securable, Table
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.orchestrator import Orchestrator, find_drift, plan_revert
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
from delta_engine.orchestrate.undoing import plan_undo
from delta_engine.plan_files.document import Options
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders.late_views import (
    ADDRESS,
    DROPS,
    HIDING_VIEWS,
    KEY,
    KEYED,
    OTHER,
    SETS_BY_HAND,
    VIEW,
    after_each,
    allowing,
    be_killed_after,
    be_killed_before_the_second_read,
    drifted,
    free_to_drop,
    free_to_unhide,
    freeze,
    hiding,
    hiding_now,
    is_now,
    lag,
    let_hours_pass,
    noting,
    records_in,
    refuse,
    replace_by_hand,
    show_of_dropped_table,
    showing_on,
    statuses,
    sync_unverified,
    under,
)
from tests.builders.models import orders
from tests.fakes.faulty import Faulty

FIRST_COMMIT = datetime(2026, 1, 1, 0, 1, tzinfo=timezone.utc)  # the fake catalog's


def without_comments(rows: Sequence[Row]) -> Sequence[Row]:
    return [{**row, "comment": ""} for row in rows]


def with_an_old_column(rows: Sequence[Row]) -> Sequence[Row]:
    return [{**row, "column_name": "old"} for row in rows]


LAGS = {
    "a table": ("tables", lambda _: ()),
    "a comment": ("tables", without_comments),
    "a key": ("table_constraints", lambda _: ()),
    "the columns": ("columns", with_an_old_column),
}


@pytest.mark.parametrize("what", LAGS)
def test_what_a_view_does_not_show_yet_is_no_drift(what: str, runner: Faulty, engine: Orchestrator) -> None:
    engine.sync_tables([KEYED])
    lag(runner, *LAGS[what])
    assert drifted(engine, KEYED) == {}


@pytest.mark.parametrize("what", ["a table", "a comment", "a key"])
def test_a_plan_does_not_repeat_what_a_view_does_not_show_yet(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    engine.sync_tables([KEYED])
    lag(runner, *LAGS[what])
    planned = plan_unlocked(engine, [KEYED])
    assert not planned.plan
    assert not planned.refusals


NOT_DONE = {
    "a key": (replace(KEYED, primary_key=None), "DROP CONSTRAINT"),
    "a comment": (replace(KEYED, comment=""), "COMMENT ON TABLE"),
}


@pytest.mark.parametrize("what", NOT_DONE)
def test_a_plan_does_what_a_run_has_not_done_though_a_view_shows_it(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    """The view does not show yet what was applied before. That looks like what the run was to do."""
    engine = allowing(engine, DestructiveKind.DROP_CONSTRAINT)
    engine.sync_tables([KEYED])
    after, statement = NOT_DONE[what]
    runner.refused[statement] = StatementError("reset", sql=statement, error_class="INTERNAL_ERROR")
    with pytest.raises(ApplyFailedError):
        engine.sync_tables([after])
    del runner.refused[statement]
    lag(runner, *LAGS[what])
    engine.sync_tables([after])
    table = runner.catalog.tables["dev.silver.orders"].state
    assert (table.primary_key, table.table_comment) == (after.primary_key, after.comment)
    runner.changed.clear()
    assert drifted(engine, after) == {}


def test_a_plan_drops_the_key_of_a_table_that_waits_for_its_rename_though_a_view_shows_it_gone(
    runner: Faulty, engine: Orchestrator
) -> None:
    engine = allowing(engine, DestructiveKind.DROP_CONSTRAINT)
    engine.sync_tables([KEYED])
    after = replace(KEYED, table_name="sales", renamed_from=("orders",), primary_key=None)
    runner.refused["RENAME TO"] = StatementError("reset", sql="RENAME TO", error_class="INTERNAL_ERROR")
    with pytest.raises(ApplyFailedError):
        engine.sync_tables([after])
    del runner.refused["RENAME TO"]
    lag(runner, *LAGS["a key"])
    engine.sync_tables([after])
    assert runner.catalog.tables["dev.silver.sales"].state.primary_key is None
    runner.changed.clear()
    assert drifted(engine, after) == {}


def test_a_table_that_a_model_renames_is_readable(runner: Faulty, engine: Orchestrator) -> None:
    engine.sync_tables([KEYED])
    renamed = replace(KEYED, table_name="sales", renamed_from=("orders",))
    lag(runner, *LAGS["the columns"])
    assert drifted(engine, renamed, OTHER) == {}


def test_a_table_that_is_not_recorded_is_readable(runner: Faulty, engine: Orchestrator) -> None:
    engine.sync_tables([KEYED])
    lag(runner, *LAGS["the columns"])
    assert drifted(replace(engine, deployment=Deployment.unrecorded()), KEYED) == {}


@pytest.mark.parametrize("model", [KEYED, replace(KEYED, table_name="sales", renamed_from=("orders",))])
def test_a_new_table_that_was_forgotten_is_adopted_as_it_is_itself(
    model: Table, runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_now(monkeypatch, FIRST_COMMIT + timedelta(minutes=10))
    engine.sync_tables([KEYED])
    with open_run(engine, "state rm") as run:
        run.recorder.save_edited(without_resources(run.recorder.state, [KEY]))
    lag(runner, "table_constraints")
    keyless, sent = replace(model, primary_key=None), len(runner.catalog.statements)
    engine.sync_tables([keyless])
    runner.changed.clear()
    assert drifted(engine, keyless) == {}
    assert not [sql for sql in runner.catalog.statements[sent:] if sql.startswith("CREATE TABLE")]


@pytest.mark.parametrize(
    ("age", "is_read_again"), [(timedelta(minutes=59), True), (timedelta(hours=2), False)]
)
def test_an_unrecorded_table_is_read_again_only_if_it_is_new_and_a_sync_adopts_it(
    age: timedelta,
    is_read_again: bool,
    runner: Faulty,
    engine: Orchestrator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine.sync_tables([KEYED])
    is_now(monkeypatch, FIRST_COMMIT + age)
    unrecorded = replace(engine, deployment=Deployment.unrecorded())
    assert len(described(statements_of_drift(runner, unrecorded, KEYED))) == 1
    runner.catalog.questions.clear()
    unrecorded.sync_tables([KEYED])
    assert len(described(runner.catalog.questions)) == (2 if is_read_again else 1)


def test_a_view_that_is_not_shown_yet_is_not_deleted(runner: Faulty, engine: Orchestrator) -> None:
    engine.sync_tables([KEYED, VIEW])
    lag(runner, "tables")
    assert drifted(engine, KEYED, VIEW) == {}


def test_a_table_that_waits_for_its_rename_is_found_under_its_old_name(
    runner: Faulty, engine: Orchestrator
) -> None:
    engine.sync_tables([KEYED])
    lag(runner, "tables")
    renamed = replace(KEYED, table_name="sales", renamed_from=("orders",))
    assert drifted(engine, renamed) == {}


@pytest.mark.parametrize("what", ["a table", "the columns"])
def test_a_table_that_no_model_declares_any_more_is_not_deleted(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    other = orders(name="other")
    engine.sync_tables([KEYED, other])
    lag(runner, *LAGS[what])
    assert drifted(engine, other) == {}


@pytest.mark.parametrize(
    ("statement", "kinds"),
    [
        (f"DROP TABLE {ADDRESS}", ["table_deleted"]),
        (f"ALTER TABLE {ADDRESS} DROP CONSTRAINT pk", ["primary_key"]),
        (f"COMMENT ON TABLE {ADDRESS} IS 'theirs'", ["table_comment"]),
    ],
)
def test_what_the_table_itself_confirms_is_drift(
    statement: str, kinds: list[str], runner: Faulty, engine: Orchestrator
) -> None:
    engine.sync_tables([KEYED])
    runner.catalog.by_hand(statement)
    assert drifted(engine, KEYED) == {KEY: kinds}


def test_what_another_principal_changed_shows_beside_a_view_that_lags(
    runner: Faulty, engine: Orchestrator
) -> None:
    engine.sync_tables([KEYED])
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} ADD COLUMNS (theirs INT)")
    lag(runner, "tables")
    assert drifted(engine, KEYED) == {KEY: ["column_added"]}


def statements_of_drift(runner: Faulty, engine: Orchestrator, *models: Table) -> list[str]:
    runner.catalog.questions.clear()
    report_drift(engine, models)
    return [*runner.catalog.questions]


def described(statements: Sequence[str]) -> list[str]:
    return [sql for sql in statements if sql.endswith("AS JSON")]


def test_tables_are_read_again_only_if_they_look_changed(runner: Faulty, engine: Orchestrator) -> None:
    others = [orders(name=f"other{number}") for number in range(5)]
    engine.sync_tables([KEYED, *others])
    asked = statements_of_drift(runner, engine, KEYED, *others)
    lag(runner, "table_constraints")
    again = statements_of_drift(runner, engine, KEYED, *others)[len(asked) :]
    assert described(again) == ["DESCRIBE TABLE EXTENDED `dev`.`silver`.`orders` AS JSON"]
    assert len(again) < 20


def test_views_are_believed_when_the_last_run_is_long_over(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.sync_tables([KEYED])
    let_hours_pass(monkeypatch)
    lag(runner, "table_constraints")
    assert drifted(engine, KEYED) == {KEY: ["primary_key"]}


def test_a_table_that_cannot_be_read_alone_is_as_the_views_show_it(
    runner: Faulty, engine: Orchestrator
) -> None:
    engine.sync_tables([KEYED])
    lag(runner, "tables")
    runner.refused["AS JSON"] = StatementError("no", sql="", error_class="INSUFFICIENT_PERMISSIONS")
    assert drifted(engine, KEYED) == {KEY: ["table_deleted"]}


def giving_no_answer(monkeypatch: pytest.MonkeyPatch, *tables: Table) -> None:
    """Let direct reads of some tables be throttled."""
    read = UnityCatalogReader.snapshot_directly

    def snapshot_directly(reader: UnityCatalogReader, models: Sequence[Securable]) -> CatalogState:
        asked = {str(model.qualified_name) for model in models}
        return read(reader, models) if asked.isdisjoint(map(_name, tables)) else refuse(reader, models)

    monkeypatch.setattr(UnityCatalogReader, "snapshot_directly", snapshot_directly)


def _name(table: Table) -> str:
    return str(table.qualified_name)


@pytest.mark.parametrize("policy", [NO_POLICY, DROPS])
def test_a_retired_table_that_gives_no_answer_is_neither_dropped_nor_forgotten(
    policy: Policy, runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = orders(name="other")
    engine.sync_tables([KEYED, other])
    lag(runner, "tables")
    engine = under(policy, engine)
    with monkeypatch.context() as patch:
        giving_no_answer(patch, KEYED)
        planned = plan_unlocked(engine, [other])
        engine.sync_tables([other])
    assert not planned.plan
    (warning,) = planned.warnings
    assert "dev.silver.orders" in warning
    assert "throttled" in warning
    runner.changed.clear()
    assert drifted(engine, KEYED, other) == {}
    loaded = engine.deployment.peek()
    assert loaded is not None
    assert KEY in records_of(loaded.state)


def test_a_declared_table_that_gives_no_answer_is_reported_as_unreadable(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.sync_tables([KEYED])
    lag(runner, "tables")
    giving_no_answer(monkeypatch, KEYED)
    assert drifted(engine, KEYED) == {KEY: ["table_unreadable"]}


def test_a_view_that_gives_no_answer_is_noted(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.sync_tables([KEYED, VIEW])
    lag(runner, "tables", lambda rows: [row for row in rows if row["table_name"] != "recent"])
    monkeypatch.setattr(UnityCatalogReader, "snapshot_directly", refuse)
    report = report_drift(engine, [KEYED, VIEW])
    assert not [*report.findings()]
    (note,) = report.notes
    assert "view dev.silver.recent" in note


@pytest.mark.parametrize("work", [plan_unlocked, Orchestrator.sync_tables])
def test_nothing_is_planned_for_a_declared_table_that_gives_no_answer(
    work: Callable[..., object], runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.sync_tables([KEYED])
    lag(runner, "tables")
    giving_no_answer(monkeypatch, KEYED)
    with pytest.raises(StatementError, match="throttled"):
        work(engine, [KEYED])


def test_no_deletion_is_accepted_of_a_table_that_gives_no_answer(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.sync_tables([KEYED])
    lag(runner, "tables")
    giving_no_answer(monkeypatch, KEYED)
    with open_run(engine, "drift") as run, pytest.raises(CatalogReadError, match="throttled"):
        find_drift(run, [KEYED])


def test_a_table_is_found_under_its_old_name_when_its_new_name_was_taken_until_just_now(
    runner: Faulty, engine: Orchestrator
) -> None:
    """Another principal drops a view between the two reads."""
    engine.sync_tables([KEYED])
    runner.catalog.by_hand("CREATE VIEW `dev`.`silver`.`sales` AS SELECT 1 AS id")

    def dropped_behind(rows: Sequence[Row]) -> Sequence[Row]:
        runner.changed.clear()
        runner.catalog.by_hand("DROP VIEW `dev`.`silver`.`sales`")
        return rows

    lag(runner, "tables", dropped_behind)
    renamed = replace(KEYED, table_name="sales", renamed_from=("orders",))
    assert drifted(engine, renamed) == {}


def test_a_table_keeps_its_old_name_if_a_new_table_of_its_new_name_is_dropped_between_two_reads(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_now(monkeypatch, FIRST_COMMIT + timedelta(minutes=10))
    engine.sync_tables([KEYED])
    runner.catalog.by_hand("CREATE TABLE `dev`.`silver`.`sales` (`id` bigint NOT NULL) USING DELTA")
    read = UnityCatalogReader.snapshot_directly

    def dropped_before(reader: UnityCatalogReader, models: Sequence[Securable]) -> CatalogState:
        if "dev.silver.sales" in runner.catalog.tables:
            runner.catalog.by_hand("DROP TABLE `dev`.`silver`.`sales`")
        return read(reader, models)

    monkeypatch.setattr(UnityCatalogReader, "snapshot_directly", dropped_before)
    with pytest.raises(InvalidModelError, match="both tables exist"):
        engine.sync_tables([replace(KEYED, table_name="sales", renamed_from=("orders",))])
    assert "dev.silver.orders" in runner.catalog.tables


@pytest.mark.parametrize("is_replaced", [True, False])
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_filter_or_mask_that_was_soon_changed_is_no_drift_when_its_view_shows_it(
    what: str, is_replaced: bool, runner: Faulty, engine: Orchestrator
) -> None:
    """The table told of it at once when it was set, and its view shows it later."""
    free = free_to_unhide(runner, engine)
    view = HIDING_VIEWS[what]
    before, after = hiding(what, "hidden"), hiding(what, "other") if is_replaced else KEYED
    shown: list[Row] = []
    engine.sync_tables([before])
    lag(runner, view, noting(shown))
    drifted(engine, before)
    lag(runner, view)
    free.sync_tables([after])
    lag(runner, view, showing_on(shown))
    assert shown
    assert drifted(engine, after) == {}


MASKED = hiding("mask", "hidden")


FILTERED_TOO = replace(MASKED, row_filter=RowFilter("dev.silver.other", ("id",)))


@pytest.mark.parametrize(
    ("models", "statement", "kind"),
    [
        ([MASKED, FILTERED_TOO], "DROP ROW FILTER", "row_filter"),
        ([FILTERED_TOO, MASKED, FILTERED_TOO], "DROP ROW FILTER", "row_filter"),
        ([FILTERED_TOO], "SET ROW FILTER dev.silver.hidden ON (id)", "row_filter"),
        ([MASKED, hiding("mask", "other")], "ALTER COLUMN id SET MASK dev.silver.hidden", "column_mask"),
        ([MASKED, hiding("mask", "other")], "ALTER COLUMN id DROP MASK", "column_mask"),
    ],
)
def test_less_protection_is_drift_right_after_a_run(
    models: Sequence[Table], statement: str, kind: str, runner: Faulty, engine: Orchestrator
) -> None:
    """Tables tell of their filters and masks, so that no earlier one is expected."""
    engine = free_to_unhide(runner, engine)
    for model in models:
        engine.sync_tables([model])
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} {statement}")
    assert drifted(engine, models[-1]) == {KEY: [kind]}
    with pytest.raises(DriftRefusal):
        engine.sync_tables([models[-1]])


SYNCS = {
    "verified": lambda engine, model: engine.sync_tables([model]),
    "unverified": sync_unverified,
    "killed": be_killed_before_the_second_read,
}


def shown_late(
    runner: Faulty, engine: Orchestrator, what: str, before: Table, after: Table, sync: str
) -> None:
    """Sync a model, and let the view of filters or masks show it on, also after a sync of another one."""
    engine.sync_tables([before])
    freeze(runner, engine, before, HIDING_VIEWS[what])
    SYNCS[sync](engine, after)


@pytest.mark.parametrize("has_run_between", [False, True])
@pytest.mark.parametrize("comment", ["Orders", "Orders, again"])
@pytest.mark.parametrize("what", HIDING_VIEWS)
@pytest.mark.parametrize("other", [None, "other"])
@pytest.mark.parametrize("sync", SYNCS)
def test_a_model_that_goes_back_to_what_a_view_shows_late_is_applied(
    sync: str,
    other: str | None,
    what: str,
    comment: str,
    has_run_between: bool,
    runner: Faulty,
    engine: Orchestrator,
) -> None:
    """The filter or mask that the view shows was removed or replaced: the plan sets it again."""
    engine = free_to_unhide(runner, engine)
    before = hiding(what, "hidden")
    after = hiding(what, other) if other else KEYED
    shown_late(runner, engine, what, before, after, sync)
    if has_run_between:
        engine.sync_tables([replace(after, comment="in between")])
        assert drifted(engine, after) == {}
    back = replace(before, comment=comment)
    engine.sync_tables([back])
    assert hiding_now(runner) == (before.row_filter, before.columns[0].mask)
    runner.changed.clear()
    assert drifted(engine, back) == {}
    statement = "DROP ROW FILTER" if what == "row filter" else "ALTER COLUMN id DROP MASK"
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} {statement}")
    assert [*drifted(engine, back)] == [KEY]


@pytest.mark.parametrize("sync", SYNCS)
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_the_undo_of_a_removal_that_a_view_shows_late_sets_it_again(
    what: str, sync: str, runner: Faulty, engine: Orchestrator
) -> None:
    engine = free_to_unhide(runner, engine)
    before = hiding(what, "hidden")
    shown_late(runner, engine, what, before, KEYED, sync)
    with open_run(engine, "undo") as run:
        planned = plan_undo(engine, run.recorder.state, Options())
    assert [type(action) for align in planned.plan.align_tables for action in align.actions] == [
        SetRowFilter if what == "row filter" else SetColumnMask
    ]


TAGGED_AND_GRANTED = orders(
    Column("id", "bigint", tags={"unit": "one"}),
    tags={"team": "one"},
    grants={"analysts": ("SELECT",)},
)


CHANGED_SINCE = {
    "another value": replace(TAGGED_AND_GRANTED, tags={"team": "two"}),
    "no tag": replace(TAGGED_AND_GRANTED, tags={}),
    "no tag of the column": replace(TAGGED_AND_GRANTED, columns=(Column("id", "bigint"),)),
    "no grant": replace(TAGGED_AND_GRANTED, grants={}),
}


@pytest.mark.parametrize("has_run_between", [False, True])
@pytest.mark.parametrize("change", CHANGED_SINCE)
@pytest.mark.parametrize("sync", SYNCS)
def test_a_model_that_goes_back_to_a_tag_or_grant_that_a_view_shows_late_is_applied(
    sync: str, change: str, has_run_between: bool, runner: Faulty, engine: Orchestrator
) -> None:
    before = TAGGED_AND_GRANTED
    engine.sync_tables([before])
    freeze(runner, engine, before, "table_tags", "column_tags", "table_privileges")
    after = CHANGED_SINCE[change]
    SYNCS[sync](engine, after)
    if has_run_between:
        engine.sync_tables([replace(after, comment="in between")])
    assert drifted(engine, after) == {}
    engine.sync_tables([before])
    runner.changed.clear()
    table = runner.catalog.tables["dev.silver.orders"].state
    assert (dict(table.tags), dict(table.grants)) == ({"team": "one"}, {"analysts": ("SELECT",)})
    assert dict(table.columns[0].tags) == {"unit": "one"}
    assert drifted(engine, before) == {}


BACK_AND_FORTH: dict[str, Sequence[str | None]] = {
    "another value, and none": ("two", None),
    "none, and another value": (None, "two"),
    "two other values": ("two", "three"),
}


@pytest.mark.parametrize("between", BACK_AND_FORTH.values(), ids=BACK_AND_FORTH)
def test_a_tag_that_goes_back_to_what_a_view_shows_after_two_changes_is_set(
    between: Sequence[str | None], runner: Faulty, engine: Orchestrator
) -> None:
    before, *after = (replace(KEYED, tags={"team": tag} if tag else {}) for tag in ("one", *between, "one"))
    engine.sync_tables([before])
    freeze(runner, engine, before, "table_tags")
    for model in after:
        engine.sync_tables([model])
        assert runner.catalog.tables["dev.silver.orders"].state.tags == model.tags
        assert drifted(engine, model) == {}


@pytest.mark.parametrize("sync", SYNCS)
def test_a_key_that_a_run_added_and_no_view_shows_yet_is_dropped_again(
    sync: str, runner: Faulty, engine: Orchestrator
) -> None:
    """The table tells of its keys itself."""
    without = replace(KEYED, primary_key=None)
    engine.sync_tables([without])
    freeze(runner, engine, without, "table_constraints", "key_column_usage")
    SYNCS[sync](engine, KEYED)
    engine.sync_tables([without])
    assert runner.catalog.tables["dev.silver.orders"].state.primary_key is None


@pytest.mark.parametrize("sync", SYNCS)
def test_an_owner_that_a_model_takes_back_is_set_while_the_view_shows_it_late(
    sync: str, runner: Faulty, engine: Orchestrator
) -> None:
    before = replace(KEYED, owner="one")
    engine.sync_tables([before])
    freeze(runner, engine, before, "tables")
    SYNCS[sync](engine, replace(KEYED, owner="two"))
    engine.sync_tables([before])
    assert runner.catalog.tables["dev.silver.orders"].state.owner == "one"


@pytest.mark.parametrize("sync", ["unverified", "killed"])
def test_a_view_that_shows_a_renamed_table_without_its_tag_and_then_with_the_former_one_is_late(
    sync: str, runner: Faulty, engine: Orchestrator
) -> None:
    engine.sync_tables([replace(KEYED, tags={"team": "one"})])
    after = replace(KEYED, table_name="sales", renamed_from=("orders",), tags={"team": "two"})
    shown: list[Row] = []
    lag(runner, "table_tags", noting(shown))
    SYNCS[sync](engine, after)
    drifted(engine, after)
    lag(runner, "table_tags")
    with open_run(engine, "drift") as run:
        record_statuses(run, [after])
    assert drifted(engine, after) == {}
    lag(runner, "table_tags", lambda _: [{**row, "tag_value": "one"} for row in shown])
    assert drifted(engine, after) == {}


TWO_TAGS = replace(KEYED, tags={"team": "one", "gone": "soon"}, owner="one")


ONE_TAG = replace(TWO_TAGS, tags={"team": "one"})


BESIDES_A_TAG = {
    "a new name": replace(ONE_TAG, table_name="sales", renamed_from=("orders",)),
    "a column with a tag": replace(
        ONE_TAG, columns=(*KEYED.columns, Column("unit", "string", tags={"kind": "code"}))
    ),
    "an owner": replace(ONE_TAG, owner="two"),
}


@pytest.mark.parametrize("sync", SYNCS)
@pytest.mark.parametrize("change", BESIDES_A_TAG)
def test_what_a_run_changed_besides_a_tag_is_no_drift_while_views_lag(
    change: str, sync: str, runner: Faulty, engine: Orchestrator
) -> None:
    """A run that could not read the table again does not know all that is late."""
    engine.sync_tables([TWO_TAGS])
    freeze(runner, engine, TWO_TAGS, "table_tags", "column_tags")
    if change != "a new name":
        freeze(runner, engine, TWO_TAGS, "tables")
    after = BESIDES_A_TAG[change]
    SYNCS[sync](engine, after)
    assert drifted(engine, after) == {}
    runner.changed.clear()
    engine.sync_tables([after])
    assert statuses(engine)[after.key] == "healthy"


@pytest.mark.parametrize("sync", SYNCS)
def test_a_tag_of_a_new_table_that_no_view_shows_yet_is_removed_again(
    sync: str, runner: Faulty, engine: Orchestrator
) -> None:
    lag(runner, "table_tags")
    SYNCS[sync](engine, ONE_TAG)
    engine.sync_tables([replace(ONE_TAG, tags={})])
    assert dict(runner.catalog.tables["dev.silver.orders"].state.tags) == {}


@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_filter_or_mask_of_a_dropped_table_is_no_drift_of_a_new_one(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    """The view still shows it under the name that both have."""
    engine = free_to_unhide(runner, engine)
    show_of_dropped_table(what, runner, engine)
    engine.sync_tables([KEYED])
    assert drifted(engine, KEYED) == {}
    runner.changed.clear()
    assert drifted(engine, KEYED) == {}


@pytest.mark.parametrize("is_settled", [True, False])
@pytest.mark.parametrize("late", ["row filter", "mask", "tag", "second read"])
def test_a_table_that_replaced_one_which_a_view_showed_late_is_kept(
    late: str, is_settled: bool, runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a sync without its model drops it, nor an undo of the creation of the other table."""
    engine = free_to_drop(runner, engine)
    model = replace(KEYED, tags={"team": "one"}) if late == "tag" else KEYED
    if late in HIDING_VIEWS:
        show_of_dropped_table(late, runner, engine)
    elif late == "tag":
        lag(runner, "table_tags")
    if late == "second read":
        sync_unverified(engine, model, OTHER)
    else:
        engine.sync_tables([model, OTHER])
    runner.changed.clear()
    let_hours_pass(monkeypatch)
    if is_settled:
        engine.sync_tables([model, OTHER])
    replace_by_hand(runner)
    undo = plan_undo(engine, records_in(engine), Options())
    assert [str(drop.name) for drop in undo.plan.drop_tables] == ["dev.silver.other"]
    engine.sync_tables([OTHER])
    assert "dev.silver.orders" in runner.catalog.tables


@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_table_whose_id_a_filter_or_mask_hides_is_kept(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    engine = free_to_drop(runner, engine)
    sync_unverified(engine, KEYED, OTHER)
    replace_by_hand(runner)
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} {SETS_BY_HAND[what]}")
    engine.sync_tables([OTHER])
    assert "dev.silver.orders" in runner.catalog.tables


@pytest.mark.parametrize("part", ["ADD CONSTRAINT positive CHECK (id > 0)", "CLUSTER BY (id)"])
def test_what_a_person_adds_to_a_new_table_before_its_second_read_is_of_others(
    part: str, runner: Faulty, engine: Orchestrator
) -> None:
    """A table tells of these itself: no view shows them late."""
    sql = f"ALTER TABLE {ADDRESS} {part}"
    with after_each("CREATE TABLE", partial(runner.catalog.by_hand, sql), runner):
        engine.sync_tables([KEYED])
    assert statuses(engine)["dev.silver.orders"] == "healthy"
    assert len(drifted(engine, KEYED)) == 1


@pytest.mark.parametrize("is_recent", [False, True], ids=["hours ago", "just now"])
@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_what_a_person_sets_on_a_table_that_a_killed_run_created_stays(
    what: str, is_recent: bool, runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = free_to_unhide(runner, engine)
    tagged = replace(KEYED, tags={"team": "one"})
    be_killed_after("CREATE TABLE", runner, engine, tagged)
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} {SETS_BY_HAND[what]}")
    if not is_recent:
        let_hours_pass(monkeypatch)
    engine.sync_tables([tagged])
    assert statuses(engine)["dev.silver.orders"] == "healthy"
    assert drifted(engine, tagged) == {}


@pytest.mark.parametrize("what", HIDING_VIEWS)
def test_a_revert_sets_no_filter_or_mask_of_a_dropped_table_whose_name_a_killed_run_used(
    what: str, runner: Faulty, engine: Orchestrator
) -> None:
    engine = free_to_unhide(runner, engine)
    tagged = replace(KEYED, tags={"team": "one"})
    show_of_dropped_table(what, runner, engine)
    be_killed_after("CREATE TABLE", runner, engine, tagged)
    engine.sync_tables([tagged])
    runner.changed.clear()
    runner.catalog.by_hand(f"COMMENT ON TABLE {ADDRESS} IS 'theirs'")
    with open_run(engine, "drift --revert") as run:
        plan = plan_revert(run, [tagged]).plan
    assert [type(action) for align in plan.align_tables for action in align.actions] == [SetTableComment]


def test_tags_and_grants_of_others_are_not_late(runner: Faulty, engine: Orchestrator) -> None:
    engine.sync_tables([TAGGED_AND_GRANTED])
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} SET TAGS ('theirs' = 'x')")
    runner.catalog.by_hand(f"GRANT MODIFY ON TABLE {ADDRESS} TO `writers`")
    engine.sync_tables([CHANGED_SINCE["no tag"]])
    assert statuses(engine)["dev.silver.orders"] == "healthy"


def test_a_filter_that_another_principal_removes_during_a_run_is_set_again_by_the_next(
    runner: Faulty, engine: Orchestrator
) -> None:
    """The second read cannot tell it from a late view. A plan counts on neither."""
    engine = free_to_unhide(runner, engine)
    filtered = hiding("row filter", "hidden")
    sql = f"ALTER TABLE {ADDRESS} DROP ROW FILTER"
    with after_each("CREATE TABLE", partial(runner.catalog.by_hand, sql), runner):
        engine.sync_tables([filtered])
    assert hiding_now(runner) == (None, None)
    engine.sync_tables([filtered])
    assert hiding_now(runner) == (filtered.row_filter, None)


def record_current_statuses(engine: Orchestrator, models: Sequence[Table]) -> None:
    with open_run(engine, "state sync") as run:
        record_statuses(run, models)


def showing(tag: str) -> Callable[[Sequence[Row]], Sequence[Row]]:
    return lambda rows: [{**row, "tag_value": tag} for row in rows]


@pytest.mark.parametrize("between", [record_current_statuses, Orchestrator.sync_tables])
def test_a_value_between_two_others_is_no_drift_while_its_view_lags(
    between: Callable[..., object], runner: Faulty, engine: Orchestrator
) -> None:
    one, two = replace(KEYED, tags={"team": "one"}), replace(KEYED, tags={"team": "two"})
    lag(runner, "table_tags")
    engine.sync_tables([one])
    engine.sync_tables([two])
    between(engine, [two])
    lag(runner, "table_tags", showing("one"))
    assert drifted(engine, two) == {}
    record_current_statuses(engine, [two])
    lag(runner, "table_tags")  # older than what it has shown: somebody removed the tag
    assert drifted(engine, two) == {KEY: ["table_tag"]}
    runner.changed.clear()
    assert drifted(engine, two) == {}
    engine.sync_tables([two])
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} SET TAGS ('team' = 'one')")
    assert drifted(engine, two) == {KEY: ["table_tag"]}


def test_what_was_late_hours_ago_is_not_expected_of_a_table_that_is_created_again(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = replace(KEYED, tags={"team": "one"}), replace(KEYED, tags={"team": "two"})
    lag(runner, "table_tags")
    engine.sync_tables([one])
    let_hours_pass(monkeypatch)
    runner.catalog.by_hand(f"DROP TABLE {ADDRESS}")
    record_current_statuses(engine, [one])
    replace(engine, drift_policy=DriftPolicy(handling=DriftHandling.REVERT)).sync_tables([two])
    runner.changed.clear()
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} SET TAGS ('team' = 'one')")
    assert drifted(engine, two) == {KEY: ["table_tag"]}


def test_a_clock_that_goes_back_during_a_run_hides_no_deletion(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that is younger than its apply would look like a DROP that was begun."""
    at = FIRST_COMMIT + timedelta(days=1)
    is_now(monkeypatch, at)
    tagged = replace(KEYED, tags={"team": "one"})
    engine.sync_tables([KEYED])
    send = runner.catalog.run

    def sent(sql: str) -> Sequence[Row]:
        if "SET TAGS" in sql:
            is_now(monkeypatch, at - timedelta(seconds=2))
        return send(sql)

    lag(runner, "table_tags")
    with monkeypatch.context() as patch:
        patch.setattr(runner.catalog, "run", sent)
        engine.sync_tables([tagged])
    runner.catalog.by_hand(f"DROP TABLE {ADDRESS}")
    assert drifted(engine, tagged) == {KEY: ["table_deleted"]}
