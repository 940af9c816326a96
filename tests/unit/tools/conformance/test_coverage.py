"""The conformance run leaves nothing out: actions, statements, views, reads and features; and it stays small."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from delta_engine.aspects import (
    KINDS,
    backfill_actions,
    generated_columns,
    nullability,
    restores,
    storage,
    table_features,
)
from delta_engine.backends.capabilities import Feature
from delta_engine.state.unity_catalog import information_schema
from delta_engine.state.unity_catalog.information_schema import SystemView
from delta_engine.tools.conformance.probes import PROBES
from delta_engine.tools.conformance.report import CheckStatus, ConformanceReport, RunOutcome
from delta_engine.tools.conformance.scratch_tables import ScratchPlace, groups
from delta_engine.tools.conformance.statement_log import KEPT_FOR_DROPS, MOST_STATEMENTS
from tests.builders.conformance_runs import Rig
from tests.cases.golden_texts import assert_golden_lines
from tests.cases.statement_kinds import emitted_statements, statements_by_kind

STEPS = Path(__file__).parents[3] / "golden_reports" / "conformance_steps.txt"

NEVER_RUN = {
    generated_columns.ChangeGeneration: "a rule refuses it",
    generated_columns.ChangeFixedColumn: "a rule refuses it",
    storage.ChangeLocation: "a rule refuses it",
    table_features.ContradictFeature: "a rule refuses it",
    backfill_actions.BlockedFill: "a rule refuses it",
    restores.RestoreTable: "only an undo plans it",
    storage.UnsetManaged: "only an undo plans it",
    storage.SetManaged: "the statements of a run are used up, and it copies files",
    backfill_actions.AbandonConversion: "it needs a run that was killed",
    nullability.AddNotNullCheck: "only open-source Delta needs it",
    nullability.DropNotNullCheck: "only open-source Delta needs it",
}

KINDS_LEFT_OUT = {
    **dict.fromkeys(
        ("ALTER VIEW … UNSET TAGS", "DROP VIEW", "REVOKE … ON VIEW"),
        "the group of views sends no such statement",
    ),
    "ALTER TABLE … SET MANAGED": "the statements of a run are used up, and it copies files",
    "ALTER STREAMING TABLE … ALTER COLUMN … COMMENT": "a streaming table needs a pipeline",
    "ALTER STREAMING TABLE … ALTER COLUMN … SET TAGS": "a streaming table needs a pipeline",
    "ALTER STREAMING TABLE … SET TAGS": "a streaming table needs a pipeline",
    "ALTER TABLE … ALTER COLUMN … SET NOT NULL (fields)": "a rule refuses it",
    **{
        f"ALTER TABLE … ALTER COLUMN … {clause}": "it stands in statements about several columns here"
        for clause in ("COMMENT (fields)", "DROP DEFAULT", "SET DEFAULT", "TYPE (fields)")
    },
}


@pytest.fixture(scope="module")
def report() -> ConformanceReport:
    return Rig().run()


def kinds_run(report: ConformanceReport) -> Mapping[str, list[str]]:
    """Return the kinds of the statements that the walks sent."""
    places = {step.name for group in report.groups for step in group.steps}
    asks = ("SELECT", "DESCRIBE", "SHOW")
    sent = [
        statement.sql
        for statement in report.statements
        if statement.place in places and not statement.sql.startswith(asks)
    ]
    return statements_by_kind(sent)


def test_everything_agrees(report: ConformanceReport) -> None:
    assert report.outcome is RunOutcome.AGREED
    assert {group.status for group in report.groups} == {CheckStatus.AGREED}
    assert not [
        statement
        for statement in report.statements
        if statement.error and statement.place not in {p.name for p in PROBES}
    ]


def test_the_actions_of_each_step(report: ConformanceReport, request: pytest.FixtureRequest) -> None:
    lines = [
        f"{step.name}: {step.status.value}: {', '.join(step.actions)}"
        for group in report.groups
        for step in group.steps
    ]
    assert_golden_lines(lines, STEPS, request)


def test_every_action_is_run(report: ConformanceReport) -> None:
    actions = {action.__name__ for kind in KINDS for aspect in kind.aspects for action in aspect.actions}
    actions |= {"CreateTable", "DropTable", "CreateSchema", "CreateFunction", "CreatePolicy", "CreateView"}
    run = {action for group in report.groups for step in group.steps for action in step.actions}
    assert actions - run == {action.__name__ for action in NEVER_RUN}


def test_every_kind_of_statement_is_run(report: ConformanceReport) -> None:
    statements = statements_by_kind(emitted_statements())
    assert {*statements} - {*kinds_run(report)} == {*KINDS_LEFT_OUT}


def test_every_view_is_read(report: ConformanceReport) -> None:
    views = {view.name for view in vars(information_schema).values() if isinstance(view, SystemView)}
    statements = "\n".join(statement.sql for statement in report.statements)
    assert views <= {*re.findall(r"information_schema\.(\w+)$", statements, re.MULTILINE)}


@pytest.mark.parametrize(
    "read",
    [
        r"DESCRIBE TABLE EXTENDED .* AS JSON",
        r"SHOW CREATE TABLE",
        r"SHOW TBLPROPERTIES",
        r"DESCRIBE HISTORY .* LIMIT 1000",
        r"DESCRIBE HISTORY .* LIMIT 1$",
        r"DESCRIBE DETAIL",
        r"SELECT count\(\*\)",
        r"SELECT count_if\(.*IS NOT NULL",
        r"SELECT count_if\(.*>= 1",
        r"SELECT current_user\(\)",
        r"SELECT \* FROM .*_merge",
        r"SHOW EFFECTIVE POLICIES",
        r"(?s).*FROM system\.access\.table_lineage",
        r"(?s).*information_schema\.views",
    ],
)
def test_every_read_is_made(report: ConformanceReport, read: str) -> None:
    assert any(re.match(read, statement.sql) for statement in report.statements), read


def test_every_feature_has_a_group() -> None:
    place = ScratchPlace(
        catalog="dev", schema="scratch", run_id="0123abcd", user="ann", external_location="s3://b/x"
    )
    covered = {feature for group in groups(place) for feature in group.features}
    of_no_group = {
        *(Feature.STREAMING_TABLES, Feature.MANAGED_CONVERSION, Feature.VOID_WIDENING),
        Feature.FUNCTION_TAGS,  # nothing shows them, and a run has no record: a probe sets one
    }
    assert covered | of_no_group == {*Feature}


@pytest.mark.parametrize("has_listing", [True, False])
def test_a_run_stays_small(has_listing: bool) -> None:
    report = Rig(has_listing=has_listing).run()
    clean_up = len(list(report.statements_of("clean-up")))
    assert clean_up <= KEPT_FOR_DROPS
    spare = 15
    assert len(report.statements) - clean_up <= MOST_STATEMENTS - KEPT_FOR_DROPS - spare
    assert MOST_STATEMENTS < 550


def test_statements_are_put_down_to_what_sent_them(report: ConformanceReport) -> None:
    places = {step.name for group in report.groups for step in group.steps} | {probe.name for probe in PROBES}
    others = {statement.place for statement in report.statements} - places
    assert others == {
        "preparation",
        "clean-up",
        "read back after step 1",
        "read back after step 2",
        "read back after step 3",
    }
    assert [statement.number for statement in report.statements] == list(range(1, len(report.statements) + 1))
