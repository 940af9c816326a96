"""A conformance run in which something goes wrong: the report has it, the rest goes on, and everything is dropped."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from delta_engine.backends.capabilities import DATABRICKS, Feature
from delta_engine.backends.sql_runner import Row
from delta_engine.drift.synchronizing import NOT_SHOWN_YET
from delta_engine.errors import CatalogReadError, ConfigError, InvalidModelError, StatementError
from delta_engine.report.json_documents import report_json
from delta_engine.tools.conformance.report import CheckStatus, ConformanceReport, Holds, RunOutcome
from delta_engine.tools.conformance.run import ConformanceRun
from delta_engine.tools.conformance.statement_log import (
    KEPT_FOR_DROPS,
    MOST_STATEMENTS,
    StatementLog,
)
from tests.builders.conformance_runs import LOCATION, RUN_ID, Clock, Rig, group_of, refusing
from tests.builders.worlds import Kill
from tests.fakes.conformance_platform import TARGET, USER, ConformancePlatform

PREFIX = f"delta_engine_conformance_{RUN_ID}"
FORBIDDEN = ("INSUFFICIENT_PERMISSIONS", "42501")
UNPARSED = ("PARSE_SYNTAX_ERROR", "42601")
LOST = ConnectionResetError("the connection is gone")


@dataclass
class DeafPlatform(ConformancePlatform):
    """Accepts some statements without doing anything."""

    ignored: tuple[str, ...] = ()

    def run(self, sql: str) -> Sequence[Row]:
        return () if self.ignored and sql.startswith(self.ignored) else super().run(sql)


@dataclass
class LateCatalog(ConformancePlatform):
    """Shows an empty view until a clock has reached some seconds."""

    view: str = "table_tags"
    seconds: float = 0.0
    clock: Clock = field(default_factory=Clock)

    def run(self, sql: str) -> Sequence[Row]:
        rows = super().run(sql)
        is_asked = re.search(rf"information_schema\.{self.view}$", sql, re.MULTILINE)
        return () if is_asked and self.clock.now < self.seconds else rows


def others_agree(report: ConformanceReport, *failed: str) -> bool:
    """Return whether all groups but some agree."""
    return {group.status for group in report.groups if group.name not in failed} == {CheckStatus.AGREED}


@pytest.mark.parametrize(
    ("feature", "statement", "groups"),
    [
        (Feature.COLUMN_RENAMES, "RENAME COLUMN", {"columns", "fields", "types and data changes", "views"}),
        (Feature.TABLE_RENAMES, "_former` RENAME TO", {"renamed tables"}),
        (Feature.REPARTITIONING, "CREATE OR REPLACE TABLE", {"partitioning"}),
    ],
)
def test_what_a_catalog_lacks_is_not_supported_and_fails_nothing(
    feature: Feature, statement: str, groups: set[str]
) -> None:
    rig = Rig(capabilities=replace(DATABRICKS, refused_in={"dev": {feature: "it lacks that"}}))
    rig.platform.faults = [
        refusing(lambda sql: statement in sql and "VIEW" not in sql, "UNSUPPORTED_OPERATION")
    ]
    report = rig.run()
    left_out = {
        group.name: group.reason for group in report.groups if group.status is CheckStatus.NOT_SUPPORTED
    }
    assert left_out == dict.fromkeys(groups, f"{feature.value}: it lacks that")
    assert others_agree(report, *groups)
    assert report.outcome is RunOutcome.AGREED


FUNCTIONS = ["row filters", "column masks"]
BY_GROUPS = "CREATE FUNCTION .*_(row|value)`"
NO_FUNCTIONS = "the run could not create functions: ask ann; ask ann"
NO_POLICIES = "the run could not create functions and policies: ask ann"
NO_REGION = f"{NO_POLICIES}; it depends on function dev.scratch.{PREFIX}_region, which failed"
NO_FUNCTION = "CREATE FUNCTION was refused: ask ann"
NO_SCHEMA = "the run could not create a separate schema: ask ann"
NO_CHECK = f"{PREFIX}_checks: ask ann"
NO_READ = "a read was refused: ask ann"
NO_TYPES = (
    f"table dev.scratch.{PREFIX}_types: it cannot be read: ask ann. Run it again. If it persists, repair the table or "
    "the access to its files, or remove its model."
)
SCHEMA_READ = rf"(?s)SELECT.*{RUN_ID}_schema"
TYPES_READ = "DESCRIBE TABLE EXTENDED .*_types`"


@pytest.mark.parametrize(
    ("refused", "error", "groups", "status", "line"),
    [
        (".*ADD CONSTRAINT.*CHECK", FORBIDDEN, ["CHECK constraints"], CheckStatus.REFUSED, NO_CHECK),
        (BY_GROUPS, FORBIDDEN, FUNCTIONS, CheckStatus.SKIPPED, NO_FUNCTION),
        (BY_GROUPS, UNPARSED, FUNCTIONS, CheckStatus.REFUSED, NO_FUNCTION),
        ("CREATE FUNCTION .*_(masked|cleaned)`", FORBIDDEN, ["functions"], CheckStatus.SKIPPED, NO_FUNCTIONS),
        ("CREATE FUNCTION .*_(masked|cleaned)`", UNPARSED, ["functions"], CheckStatus.REFUSED, "ask ann"),
        ("CREATE FUNCTION .*_region`", FORBIDDEN, ["policies"], CheckStatus.SKIPPED, NO_REGION),
        ("CREATE POLICY", FORBIDDEN, ["policies"], CheckStatus.SKIPPED, NO_POLICIES),
        ("CREATE SCHEMA", FORBIDDEN, ["schemas"], CheckStatus.SKIPPED, NO_SCHEMA),
        ("CREATE SCHEMA", UNPARSED, ["schemas"], CheckStatus.REFUSED, "ask ann"),
        (SCHEMA_READ, UNPARSED, ["schemas"], CheckStatus.DIFFERENT, NO_READ),
        (
            TYPES_READ,
            ("INTERNAL_ERROR", "XX000"),
            ["types and data changes"],
            CheckStatus.DIFFERENT,
            NO_TYPES,
        ),
    ],
)
def test_a_refused_statement_fails_its_group_alone(
    refused: str, error: tuple[str, str], groups: list[str], status: CheckStatus, line: str
) -> None:
    rig = Rig()
    rig.platform.faults = [
        refusing(lambda sql: re.match(refused, sql) is not None, error[0], sql_state=error[1])
    ]
    # the reads of all groups, repeated beside a refused one, may use up the run's statements
    report = rig.run([*groups, "columns", "keys", "tags"] if refused == TYPES_READ else ())
    assert report.outcome is (RunOutcome.FAILED if status.is_failure else RunOutcome.AGREED)
    for group in (group_of(report, name) for name in groups):
        assert group.status is status
        lines = [step.differences for step in group.steps] or [(group.reason,)]
        assert lines == [(line,)]
    assert others_agree(report, *groups)
    assert rig.platform.leftovers() == []
    errors = {
        (statement.error.condition, statement.error.sql_state)
        for statement in report.statements
        if statement.error
    }
    assert error in errors
    if refused == "CREATE SCHEMA":
        assert not [statement for statement in report.statements if statement.sql.startswith("DROP SCHEMA")]


@pytest.mark.parametrize(
    ("ignored", "group", "step", "words"),
    [
        ("COMMENT ON TABLE", "columns", 1, ["table comment", "written 'Changed'"]),
        ("COMMENT ON SCHEMA", "schemas", 1, ["written 'Changed'"]),
        (f"DROP TABLE `dev`.`scratch`.`{PREFIX}_removed`", "removed tables", 1, ["_removed is still there"]),
    ],
)
def test_differences(ignored: str, group: str, step: int, words: list[str]) -> None:
    rig = Rig(platform=DeafPlatform(ignored=(ignored,)))
    report = rig.run()
    assert report.outcome is RunOutcome.FAILED
    assert group_of(report, group).status is CheckStatus.DIFFERENT
    differences = " ".join(group_of(report, group).steps[step].differences)
    assert [word for word in words if word not in differences] == []
    assert rig.clock.waits
    assert rig.platform.leftovers() == ([f"{TARGET}.{PREFIX}_removed"] if "removed" in ignored else [])


def test_what_only_the_second_read_of_the_sync_finds_is_a_difference() -> None:
    """A check that stays although its DROP was accepted is no longer the engine's: a second plan keeps it."""
    kept = f"ALTER TABLE `dev`.`scratch`.`{PREFIX}_checks` DROP CONSTRAINT `small`"
    report = Rig(platform=DeafPlatform(ignored=(kept,))).run(("CHECK constraints",))
    assert group_of(report, "CHECK constraints").status is CheckStatus.DIFFERENT
    (line,) = group_of(report, "CHECK constraints").steps[1].differences
    assert line == f"{TARGET}.{PREFIX}_checks: unknown: {NOT_SHOWN_YET}"


def test_a_view_that_lags_is_read_again() -> None:
    platform = LateCatalog(view="table_tags", seconds=15)
    report = Rig(platform=platform, clock=platform.clock).run()
    assert report.outcome is RunOutcome.AGREED
    assert group_of(report, "tags").steps[0].repeats == 1
    assert group_of(report, "columns").steps[0].repeats == 0


def test_what_cannot_be_dropped_is_named() -> None:
    rig = Rig()
    rig.platform.faults = [refusing(lambda sql: sql.startswith("DROP TABLE") and "_tags`" in sql)]
    report = rig.run(("tags",))
    assert report.outcome is RunOutcome.FAILED
    assert report.clean_up.left == (f"DROP TABLE `dev`.`scratch`.`{PREFIX}_tags`",)
    assert rig.platform.leftovers() == [f"{TARGET}.{PREFIX}_tags"]


def test_tables_are_dropped_though_they_cannot_be_listed() -> None:
    rig = Rig()

    def is_clean_up(sql: str) -> bool:
        is_dropping = bool(rig.progress) and rig.progress[-1][2] == "dropping what was created"
        return is_dropping and "information_schema" in sql

    rig.platform.faults = [refusing(is_clean_up)]
    report = rig.run()
    assert any(statement.error for statement in report.statements_of("clean-up"))
    assert report.outcome is RunOutcome.AGREED
    assert rig.platform.leftovers() == []


@pytest.mark.parametrize(
    ("lost", "group", "line"),
    [
        (r"CREATE TABLE .*_part`", "a part of a table", "no answer"),
        (r"CREATE FUNCTION", "row filters", "CREATE FUNCTION had no answer: the connection is gone"),
    ],
)
def test_what_was_created_without_an_answer_is_dropped(lost: str, group: str, line: str) -> None:
    rig = Rig()
    is_lost: list[str] = []

    def lose_the_answer(sql: str) -> None:
        if re.match(lost, sql) and sql not in is_lost:
            is_lost.append(sql)
            rig.platform.run(sql)
            raise LOST

    rig.platform.faults = [lose_the_answer]
    report = rig.run((group,))
    assert group_of(report, group).status is CheckStatus.REFUSED
    messages = [statement.error.message for statement in report.statements if statement.error]
    assert line in " ".join((*group_of(report, group).steps[0].differences, *messages))
    assert rig.platform.leftovers() == []


def test_a_read_without_an_answer_is_made_again() -> None:
    rig = Rig()
    losses = [LOST]

    def lose(sql: str) -> None:
        if "DESCRIBE TABLE EXTENDED" in sql and losses:
            raise losses.pop()

    rig.platform.faults = [lose]
    report = rig.run(("columns",))
    assert report.outcome is RunOutcome.AGREED
    reads = [statement.place for statement in report.statements if "DESCRIBE TABLE EXTENDED" in statement.sql]
    assert reads.count("columns, step 1") == 2
    (lost,) = [
        statement.error.message
        for statement in report.statements
        if statement.error and "connect" in statement.error.message
    ]
    assert lost == "no answer: ConnectionResetError: the connection is gone"


def test_the_files_of_an_external_table_are_named() -> None:
    report = Rig().run(("external tables",))
    assert report.clean_up.files == (f"<external location>/{PREFIX}_external",)
    assert report.outcome is RunOutcome.AGREED
    without = Rig(external_location="").run(("columns",))
    assert without.clean_up.files == ()
    group = group_of(without, "external tables")
    assert group.status is CheckStatus.SKIPPED
    assert "--external-location" in group.reason


def at_statement(number: int, act: Callable[[], object]) -> Callable[[str], None]:
    """Return a fault that does something at a statement and at all after it."""
    sent: list[str] = []

    def fault(sql: str) -> None:
        sent.append(sql)
        if len(sent) >= number:
            act()

    return fault


@pytest.mark.parametrize("statement", [12, 60, 105, 200, 245, 280])
def test_ctrl_c_ends_the_run_and_drops_everything(statement: int) -> None:
    rig = Rig()
    before = signal.getsignal(signal.SIGINT)  # pyspark has one of its own
    signals = [signal.SIGINT]

    def interrupt() -> None:
        if signals:
            os.kill(os.getpid(), signals.pop())

    rig.platform.faults = [at_statement(statement, interrupt)]
    report = rig.run()
    assert report.outcome is RunOutcome.STOPPED
    assert len(report.statements) < 345
    assert report.clean_up.dropped
    assert rig.platform.leftovers() == []
    assert all(group.steps for group in report.groups if group.status is CheckStatus.AGREED)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("statement", [60, 200, 300])
def test_what_a_killed_run_left_is_named_by_the_next(statement: int) -> None:
    def kill() -> None:
        raise Kill

    first = Rig(run_id="deadbeef")
    first.platform.faults = [at_statement(statement, kill)]
    with pytest.raises(Kill):
        first.run()
    left = first.platform.leftovers()
    assert left
    first.platform.faults = []
    second = Rig(platform=first.platform, run_id="00c0ffee")
    report = second.run()
    assert report.outcome is RunOutcome.AGREED
    assert set(left) <= {*second.platform.leftovers()}, "a run drops nothing of an earlier run"
    for sql in report.clean_up.earlier:
        second.platform.run(sql)
    assert second.platform.leftovers() == []


def test_foreign_tables_stay() -> None:
    rig = Rig()
    foreign = [f"{TARGET}.orders", f"{TARGET}.delta_engine_conformance_results"]
    for name in foreign:
        rig.platform.run(f"CREATE TABLE {name} (id bigint) USING delta")
    report = rig.run(("columns",))
    assert report.clean_up.earlier == ()
    assert rig.platform.leftovers() == foreign


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("dev", ConfigError, "does not name a schema"),
        ("dev.silver.orders", ConfigError, "does not name a schema"),
        ("dev.information_schema", ConfigError, "the platform reserves it"),
        ("system.access", ConfigError, "the platform reserves it"),
        ("dev.gone", ConfigError, "schema dev.gone does not exist"),
        ("gone.scratch", CatalogReadError, "catalog 'gone' does not exist"),
    ],
)
def test_a_run_does_not_begin_without_its_schema(target: str, error: type[Exception], message: str) -> None:
    rig = Rig()
    with pytest.raises(error, match=message):
        rig.prepared(target)
    assert rig.platform.leftovers() == []


def test_a_run_does_not_begin_where_it_may_not_read_or_with_a_wrong_location() -> None:
    rig = Rig()
    rig.platform.faults = [refusing(lambda sql: "schemata" in sql)]
    with pytest.raises(ConfigError, match="cannot be read: ask ann"):
        rig.prepared()
    with pytest.raises(InvalidModelError, match="location"):
        Rig(external_location="somewhere").prepared()


def test_no_more_statements_are_sent_than_allowed() -> None:
    rig = Rig(platform=DeafPlatform(ignored=("COMMENT ON", "ALTER TABLE")))
    report = rig.run()
    assert len(report.statements) < 550
    assert report.outcome is RunOutcome.FAILED
    assert rig.platform.leftovers() == []


def test_no_step_begins_when_the_time_is_over() -> None:
    rig = Rig()

    def slow(_sql: str) -> None:
        rig.clock.now += 4

    rig.platform.faults = [slow]
    report = rig.run()
    assert rig.clock.now < 15 * 60
    skipped = [step for group in report.groups for step in group.steps if step.status is CheckStatus.SKIPPED]
    assert skipped[0].differences == ("the 10 minutes of the run have passed",)
    assert report.outcome is RunOutcome.FAILED
    assert {probe.holds for probe in report.probes} == {Holds.NOT_ASKED}
    assert rig.platform.leftovers() == []


@pytest.mark.parametrize(
    ("left", "statuses"),
    [
        (2, {CheckStatus.SKIPPED}),
        (50, {CheckStatus.NOT_READ_BACK, CheckStatus.SKIPPED}),
    ],
)
def test_what_cannot_be_read_back_for_want_of_statements_does_not_agree(
    left: int, statuses: set[CheckStatus]
) -> None:
    rig = Rig()
    prepared = rig.prepared()
    while len(rig.log.reports()) < MOST_STATEMENTS - KEPT_FOR_DROPS - left:
        rig.backend.runner.run("SELECT current_user()")
    run = ConformanceRun(backend=rig.backend, log=rig.log, prepared=prepared, control=rig.control)
    report = run.run()
    assert report.outcome is RunOutcome.FAILED
    assert {group.status for group in report.groups if group.steps} == statuses
    reasons = {step.differences for group in report.groups for step in group.steps if step.differences}
    assert reasons <= {("the 499 statements of the run were used up",)}
    assert {probe.holds for probe in report.probes} == {Holds.NOT_ASKED}
    assert rig.platform.leftovers() == []


def test_the_log_refuses_what_goes_beyond() -> None:
    log = StatementLog(Clock().seconds)
    ask = partial(log.through(ConformancePlatform()).run, "SELECT current_user()")
    while not log.limit_reached:
        ask()
    with pytest.raises(StatementError, match="the 499 statements of the run were used up"):
        ask()
    log.release_kept()
    ask()


def test_a_report_has_no_secrets() -> None:
    rig = Rig()
    token = "dapi" + "0" * 32
    rig.platform.faults = [
        refusing(lambda sql: "CLUSTER BY (" in sql, message=f"{USER} at {LOCATION} with Bearer {token}")
    ]
    text = report_json(rig.run(("liquid clustering",)))
    for secret in (token, USER, "bucket/scratch"):
        assert secret not in text
    assert "<current user> at <external location>" in text


def test_progress_is_reported() -> None:
    rig = Rig()
    rig.run()
    assert [done for done, _, _ in rig.progress] == list(range(len(rig.progress)))
    assert rig.progress[-1][0] + 1 == rig.progress[-1][1]
    assert rig.progress[-1][2] == "dropping what was created"
