"""A conformance run in which something goes wrong: the report says so, the rest goes on, and everything is dropped."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError, ConfigError, InvalidModelError, StatementError
from delta_engine.orchestrate.conformance.run import ConformanceRun
from delta_engine.orchestrate.conformance.statement_log import StatementLog
from delta_engine.report.conformance_report import CheckStatus, Holds, RunOutcome
from delta_engine.report.json_documents import report_json
from tests.conformance_platform import TARGET, USER, ConformancePlatform
from tests.conformance_runs import LOCATION, RUN_ID, Clock, Rig, group_of, probe_of, refusing


@dataclass
class DeafPlatform(ConformancePlatform):
    """Accepts some statements without doing anything.

    Args:
        ignored: how the ignored statements begin.
    """

    ignored: tuple[str, ...] = ()

    def run(self, sql: str) -> Sequence[Row]:
        return () if self.ignored and sql.startswith(self.ignored) else super().run(sql)


@dataclass
class LateCatalog(ConformancePlatform):
    """Shows a view as it was when a clock began, until some seconds have passed.

    Args:
        view: the view.
        seconds: how late it is.
        clock: the clock.
    """

    view: str = "table_tags"
    seconds: float = 0.0
    clock: Clock = field(default_factory=Clock)

    def run(self, sql: str) -> Sequence[Row]:
        rows = super().run(sql)
        is_asked = re.search(rf"information_schema\.{self.view}$", sql, re.MULTILINE)
        is_late = is_asked and self.clock.now < self.seconds
        return () if is_late else rows


def test_a_refused_statement_fails_its_group_alone() -> None:
    rig = Rig()
    rig.platform.faults = [refusing(lambda sql: "ADD CONSTRAINT" in sql and "CHECK" in sql)]
    report = rig.run()
    assert report.outcome is RunOutcome.FAILED
    checks = group_of(report, "CHECK constraints")
    assert [step.status for step in checks.steps] == [CheckStatus.REFUSED]
    assert "ask ann" in checks.steps[0].differences[0]
    assert {g.status for g in report.groups if g is not checks} == {CheckStatus.AGREED}
    (refused,) = [one for one in report.statements_of("CHECK constraints, step 1") if one.error]
    assert refused.error is not None
    assert (refused.error.condition, refused.error.sql_state) == ("INSUFFICIENT_PERMISSIONS", "42501")
    assert rig.platform.leftovers() == []


def test_a_table_that_is_read_otherwise_than_written_is_a_difference() -> None:
    rig = Rig(platform=DeafPlatform(ignored=("COMMENT ON TABLE",)))
    report = rig.run()
    assert report.outcome is RunOutcome.FAILED
    columns = group_of(report, "columns")
    assert columns.status is CheckStatus.DIFFERENT
    assert "table comment" in " ".join(columns.steps[1].differences)
    assert "written 'Changed'" in " ".join(columns.steps[1].differences)
    assert rig.clock.waits
    assert rig.platform.leftovers() == []


def test_a_view_that_is_late_is_looked_at_again() -> None:
    platform = LateCatalog(view="table_tags", seconds=15)
    rig = Rig(platform=platform, clock=platform.clock)
    report = rig.run()
    assert report.outcome is RunOutcome.AGREED
    assert group_of(report, "tags").steps[0].repeats == 1
    assert group_of(report, "columns").steps[0].repeats == 0


def test_the_lag_of_a_view_is_measured() -> None:
    rig = Rig()
    platform = LateCatalog(view="column_masks", seconds=0, clock=rig.clock)
    rig.platform = platform

    def begin_to_lag(sql: str) -> None:
        if sql.startswith("CREATE TABLE") and "_lag`" in sql:
            platform.seconds = rig.clock.now + 13

    platform.faults = [begin_to_lag]
    lag = probe_of(rig.run(), "lag of views")
    assert lag.holds is Holds.NO
    assert "column_masks: shown by read 4, after 18.0 s" in lag.findings
    assert "tables: shown by read 1, after 0.0 s" in lag.findings


def test_a_view_that_never_shows_a_change_is_not_waited_for_for_ever() -> None:
    rig = Rig()
    platform = LateCatalog(view="column_masks", seconds=0, clock=rig.clock)
    rig.platform = platform

    def begin_to_lag(sql: str) -> None:
        if sql.startswith("CREATE TABLE") and "_lag`" in sql:
            platform.seconds = float("inf")

    platform.faults = [begin_to_lag]
    report = rig.run()
    lag = probe_of(report, "lag of views")
    assert "column_masks: not shown after 10 reads and 54.0 s" in lag.findings
    assert report.outcome is RunOutcome.AGREED


def test_what_cannot_be_dropped_is_named() -> None:
    rig = Rig()
    rig.platform.faults = [refusing(lambda sql: sql.startswith("DROP TABLE") and "_tags`" in sql)]
    report = rig.run()
    assert report.outcome is RunOutcome.FAILED
    assert report.clean_up.left == (f"DROP TABLE `dev`.`scratch`.`delta_engine_conformance_{RUN_ID}_tags`",)
    assert rig.platform.leftovers() == [f"{TARGET}.delta_engine_conformance_{RUN_ID}_tags"]


def test_tables_are_dropped_though_they_cannot_be_listed() -> None:
    rig = Rig()

    def is_clean_up(sql: str) -> bool:
        is_dropping = bool(rig.progress) and rig.progress[-1].what == "dropping what was created"
        return is_dropping and "information_schema" in sql

    rig.platform.faults = [refusing(is_clean_up)]
    report = rig.run()
    assert any(one.error for one in report.statements_of("clean-up"))
    assert report.outcome is RunOutcome.AGREED
    assert rig.platform.leftovers() == []


def test_a_table_whose_create_had_no_answer_is_dropped() -> None:
    rig = Rig()

    def lose_the_answer(sql: str) -> None:
        if sql.startswith("CREATE TABLE") and "_part`" in sql:
            rig.platform.catalog.run(sql)
            raise ConnectionResetError("the connection is gone")

    rig.platform.faults = [lose_the_answer]
    report = rig.run()
    assert group_of(report, "a part of a table").status is CheckStatus.REFUSED
    assert rig.platform.leftovers() == []


def test_what_needs_a_function_is_skipped_where_none_can_be_made() -> None:
    rig = Rig()
    rig.platform.faults = [refusing(lambda sql: sql.startswith("CREATE FUNCTION"))]
    report = rig.run()
    for name in ("row filters", "column masks"):
        group = group_of(report, name)
        assert (group.status, group.steps) == (CheckStatus.SKIPPED, ())
        assert group.reason == "CREATE FUNCTION was refused: ask ann"
    assert report.outcome is RunOutcome.AGREED


def test_a_create_function_that_fails_otherwise_is_a_finding() -> None:
    rig = Rig()
    rig.platform.faults = [
        refusing(lambda sql: sql.startswith("CREATE FUNCTION"), "PARSE_SYNTAX_ERROR", sql_state="42601")
    ]
    report = rig.run(("row filters", "column masks"))
    for name in ("row filters", "column masks"):
        group = group_of(report, name)
        assert group.status is CheckStatus.REFUSED
        assert group.steps[0].differences == ("CREATE FUNCTION was refused: ask ann",)
    assert report.outcome is RunOutcome.FAILED


def test_a_function_whose_create_had_no_answer_is_dropped() -> None:
    rig = Rig()
    lost: list[str] = []

    def lose_the_answer(sql: str) -> None:
        if sql.startswith("CREATE FUNCTION") and sql not in lost:
            lost.append(sql)
            rig.platform.run(sql)
            raise ConnectionResetError("the connection is gone")

    rig.platform.faults = [lose_the_answer]
    report = rig.run(("row filters",))
    filters = group_of(report, "row filters")
    assert filters.status is CheckStatus.REFUSED
    assert filters.steps[0].differences == ("CREATE FUNCTION had no answer: the connection is gone",)
    assert rig.platform.leftovers() == []


def test_schemas_are_skipped_where_none_can_be_made() -> None:
    rig = Rig()
    rig.platform.faults = [refusing(lambda sql: sql.startswith("CREATE SCHEMA"))]
    report = rig.run()
    group = group_of(report, "schemas")
    assert group.status is CheckStatus.SKIPPED
    assert "ask ann" in group.reason
    assert not [one for one in report.statements if one.sql.startswith("DROP SCHEMA")]


def test_a_create_schema_that_fails_otherwise_is_a_finding() -> None:
    rig = Rig()
    rig.platform.faults = [
        refusing(lambda sql: sql.startswith("CREATE SCHEMA"), "PARSE_SYNTAX_ERROR", sql_state="42601")
    ]
    report = rig.run()
    group = group_of(report, "schemas")
    assert group.status is CheckStatus.REFUSED
    assert group.steps[0].differences == ("ask ann",)
    assert report.outcome is RunOutcome.FAILED


def test_a_schema_that_cannot_be_read_is_a_finding() -> None:
    rig = Rig()
    rig.platform.faults = [refusing(lambda sql: sql.startswith("SELECT") and f"{RUN_ID}_schema" in sql)]
    group = group_of(rig.run(), "schemas")
    assert group.status is CheckStatus.DIFFERENT
    assert [step.differences for step in group.steps] == [("a read was refused: ask ann",)]


def test_a_schema_that_differs_fails_the_run() -> None:
    rig = Rig(platform=DeafPlatform(ignored=("COMMENT ON SCHEMA",)))
    report = rig.run()
    assert group_of(report, "schemas").status is CheckStatus.DIFFERENT
    assert report.outcome is RunOutcome.FAILED


def test_the_files_of_an_external_table_are_named() -> None:
    report = Rig().run(("external tables",))
    assert report.clean_up.files == (f"<external location>/delta_engine_conformance_{RUN_ID}_external",)
    assert report.outcome is RunOutcome.AGREED
    assert Rig(external_location="").run(("columns",)).clean_up.files == ()


def test_external_tables_need_a_location() -> None:
    group = group_of(Rig(external_location="").run(), "external tables")
    assert group.status is CheckStatus.SKIPPED
    assert "--external-location" in group.reason


def test_a_table_that_cannot_be_read_stops_its_group_alone() -> None:
    rig = Rig()
    reads_types = r"DESCRIBE TABLE EXTENDED .*_types`"
    rig.platform.faults = [
        refusing(lambda sql: bool(re.match(reads_types, sql)), "INTERNAL_ERROR", sql_state="XX000")
    ]
    report = rig.run()
    types = group_of(report, "type widening")
    assert [step.differences for step in types.steps] == [("a read was refused: ask ann",)]
    assert types.status is CheckStatus.DIFFERENT
    assert {group.status for group in report.groups if group is not types} == {CheckStatus.AGREED}
    assert rig.platform.leftovers() == []


def test_a_read_without_an_answer_is_made_again() -> None:
    rig = Rig()
    losses = [ConnectionResetError("the connection is gone")]

    def lose(sql: str) -> None:
        if "DESCRIBE TABLE EXTENDED" in sql and losses:
            raise losses.pop()

    rig.platform.faults = [lose]
    report = rig.run()
    assert report.outcome is RunOutcome.AGREED
    assert len(group_of(report, "columns").steps) == 3
    assert group_of(report, "columns").steps[0].repeats == 1
    (lost,) = [one for one in report.statements if one.error and "connection" in one.error.message]
    assert lost.error is not None
    assert lost.error.message == "no answer: ConnectionResetError: the connection is gone"


@pytest.mark.parametrize("statement", [12, 60, 105, 200, 245, 300])
def test_ctrl_c_ends_the_run_and_drops_everything(statement: int) -> None:
    rig = Rig()
    sent: list[str] = []

    def interrupt(sql: str) -> None:
        sent.append(sql)
        if len(sent) == statement:
            os.kill(os.getpid(), signal.SIGINT)

    rig.platform.faults = [interrupt]
    report = rig.run()
    assert report.outcome is RunOutcome.STOPPED
    assert len(report.statements) < 345
    assert report.clean_up.dropped
    assert rig.platform.leftovers() == []
    agreed = [group for group in report.groups if group.status is CheckStatus.AGREED]
    assert all(group.steps for group in agreed)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class KilledError(BaseException):
    """The process is gone: nothing that comes after it happens."""


@pytest.mark.parametrize("statement", [60, 200, 300])
def test_what_a_killed_run_left_is_named_by_the_next(statement: int) -> None:
    first = Rig(run_id="deadbeef")
    sent: list[str] = []

    def kill(sql: str) -> None:
        sent.append(sql)
        if len(sent) >= statement:
            raise KilledError

    first.platform.faults = [kill]
    with pytest.raises(KilledError):
        first.run()
    left = first.platform.leftovers()
    assert left
    first.platform.faults = []
    second = Rig(platform=first.platform, run_id="00c0ffee")
    report = second.run()
    assert report.outcome is RunOutcome.AGREED
    assert set(left) <= {*second.platform.leftovers()}, "nothing of an earlier run is dropped unasked"
    for sql in report.clean_up.earlier:
        second.platform.run(sql)
    assert second.platform.leftovers() == []


def test_tables_of_others_are_left_alone() -> None:
    rig = Rig()
    rig.platform.run(f"CREATE TABLE {TARGET}.orders (id bigint) USING delta")
    rig.platform.run(f"CREATE TABLE {TARGET}.delta_engine_conformance_results (id bigint) USING delta")
    report = rig.run()
    assert report.clean_up.earlier == ()
    assert rig.platform.leftovers() == [f"{TARGET}.orders", f"{TARGET}.delta_engine_conformance_results"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("dev", "does not name a schema"),
        ("dev.silver.orders", "does not name a schema"),
        ("dev.information_schema", "the platform reserves it"),
        ("system.access", "the platform reserves it"),
        ("dev.gone", "schema dev.gone does not exist"),
    ],
)
def test_a_run_does_not_begin_without_its_schema(target: str, message: str) -> None:
    rig = Rig()
    with pytest.raises(ConfigError, match=message):
        rig.prepared(target)
    assert rig.platform.leftovers() == []


def test_a_run_does_not_begin_in_a_missing_catalog() -> None:
    with pytest.raises(CatalogReadError, match="catalog 'gone' does not exist"):
        Rig().prepared("gone.scratch")


def test_a_run_does_not_begin_where_it_may_not_look() -> None:
    rig = Rig()
    rig.platform.faults = [refusing(lambda sql: "schemata" in sql)]
    with pytest.raises(ConfigError, match="cannot be read: ask ann"):
        rig.prepared()


def test_a_run_does_not_begin_with_a_location_that_is_none() -> None:
    with pytest.raises(InvalidModelError, match="location"):
        Rig(external_location="somewhere").prepared()


def test_no_more_statements_are_sent_than_allowed() -> None:
    rig = Rig(platform=DeafPlatform(ignored=("COMMENT ON", "ALTER TABLE")))
    report = rig.run()
    assert len(report.statements) < 400
    assert report.outcome is RunOutcome.FAILED
    assert rig.platform.leftovers() == []


def test_no_step_begins_when_the_time_is_over() -> None:
    rig = Rig()

    def slow(sql: str) -> None:
        rig.clock.now += 4

    rig.platform.faults = [slow]
    report = rig.run()
    assert rig.clock.now < 15 * 60
    skipped = [step for group in report.groups for step in group.steps if step.status is CheckStatus.SKIPPED]
    assert skipped
    assert skipped[0].differences == ("the 10 minutes of the run were over",)
    assert report.outcome is RunOutcome.FAILED
    assert {probe.holds for probe in report.probes} == {Holds.NOT_ASKED}
    assert rig.platform.leftovers() == []


def test_what_cannot_be_read_back_for_want_of_statements_does_not_agree() -> None:
    rig = Rig()
    prepared = rig.prepared()
    while rig.log.has_room(60):
        rig.backend.runner.run("SELECT current_user()")
    run = ConformanceRun(backend=rig.backend, log=rig.log, prepared=prepared, control=rig.control)
    report = run.run()
    assert report.outcome is RunOutcome.FAILED
    statuses = {group.status for group in report.groups if group.steps and group.name != "schemas"}
    assert statuses <= {CheckStatus.NOT_READ_BACK, CheckStatus.SKIPPED}
    assert CheckStatus.NOT_READ_BACK in statuses
    assert rig.platform.leftovers() == []


def test_the_log_refuses_what_goes_beyond() -> None:
    log = StatementLog(Clock().seconds)
    runner = log.through(ConformancePlatform())
    ask = partial(runner.run, "SELECT current_user()")
    while not log.used_up(1):
        ask()
    with pytest.raises(StatementError, match="may not send more than 354 statements"):
        ask()
    log.release_kept()
    ask()


def test_a_report_has_no_secrets() -> None:
    rig = Rig()
    token = "dapi" + "0" * 32
    rig.platform.faults = [
        refusing(lambda sql: "CLUSTER BY (" in sql, message=f"{USER} at {LOCATION} with Bearer {token}")
    ]
    text = report_json(rig.run())
    for secret in (token, USER, "bucket/scratch"):
        assert secret not in text
    assert "<current user> at <external location>" in text


def test_progress_is_told() -> None:
    rig = Rig()
    rig.run()
    assert [one.done for one in rig.progress] == list(range(len(rig.progress)))
    assert rig.progress[-1].done + 1 == rig.progress[-1].total
    assert rig.progress[-1].what == "dropping what was created"
