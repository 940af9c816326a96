"""Tables that a run changed and got no answer when it read them again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.drift.drifted_resources import DriftRefusal
from delta_engine.models import Column
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.runs import open_run
from tests.builders.late_views import (
    ADDRESS,
    KEY,
    KEYED,
    OTHER,
    VIEW,
    drifted,
    free_to_drop,
    freeze,
    lag,
    let_hours_pass,
    replace_by_hand,
    statuses,
    sync_unverified,
)
from tests.fakes.faulty import Faulty


def test_a_run_that_was_not_verified_leaves_no_unmanaged_part(runner: Faulty, engine: Orchestrator) -> None:
    """The next run sees the key of the table itself, and drops what its model no longer declares."""
    sync_unverified(engine, KEYED)
    lag(runner, "table_constraints")
    engine.sync_tables([replace(KEYED, primary_key=None)])
    runner.changed.clear()
    assert runner.catalog.statements[-1] == f"ALTER TABLE {ADDRESS} DROP CONSTRAINT `pk`"
    assert drifted(engine, replace(KEYED, primary_key=None)) == {}


def test_drift_of_a_table_that_was_not_verified_is_severe_an_hour_later(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted = replace(KEYED, grants={"analysts": ("SELECT",)})
    sync_unverified(engine, granted)
    runner.catalog.by_hand(f"REVOKE SELECT ON TABLE {ADDRESS} FROM `analysts`")
    report = report_drift(engine, [granted])
    assert ([*report.findings()], report.unfinished) == ([], (KEY,))
    let_hours_pass(monkeypatch)
    report = report_drift(engine, [granted])
    assert [finding.kind.value for _, finding in report.findings()] == ["grant"]
    assert report.unfinished == ()
    with pytest.raises(DriftRefusal, match="grant SELECT to analysts"):
        engine.sync_tables([granted])
    with open_run(engine, "sync") as run:
        record_statuses(run, [granted])
    assert statuses(engine)["dev.silver.orders"] == "drifted"


DESCRIBED = replace(
    KEYED,
    columns=(*KEYED.columns, Column("unit", "string", comment="of sale")),
    comment="Orders",
    owner="one",
    tags={"team": "one"},
    table_properties={"delta.appendOnly": "true", "delta.columnMapping.mode": "name"},
)


TOLD_BY_ITSELF = {
    f"ALTER TABLE {ADDRESS} RENAME COLUMN unit TO kind": "column_renamed",
    f"ALTER TABLE {ADDRESS} ADD COLUMNS (note string)": "column_added",
    f"ALTER TABLE {ADDRESS} DROP COLUMN unit": "column_dropped",
    f"ALTER TABLE {ADDRESS} ALTER COLUMN unit FIRST": "column_order",
    f"ALTER TABLE {ADDRESS} ALTER COLUMN unit COMMENT 'theirs'": "column_comment",
    f"COMMENT ON TABLE {ADDRESS} IS 'theirs'": "table_comment",
    f"ALTER TABLE {ADDRESS} SET TBLPROPERTIES ('delta.appendOnly' = 'false')": "property",
    f"ALTER TABLE {ADDRESS} ADD CONSTRAINT theirs CHECK (id > 0)": "check",
}


@pytest.mark.parametrize("statement", TOLD_BY_ITSELF)
def test_what_a_table_tells_of_itself_is_drift_though_its_run_did_not_read_it_again(
    statement: str, runner: Faulty, engine: Orchestrator
) -> None:
    sync_unverified(engine, DESCRIBED)
    runner.catalog.by_hand(statement)
    report = report_drift(engine, [DESCRIBED])
    kinds = [finding.kind.value for _, finding in report.findings()]
    assert (kinds, report.unfinished) == ([TOLD_BY_ITSELF[statement]], (KEY,))
    with open_run(engine, "sync") as run:
        record_statuses(run, [DESCRIBED])
    assert statuses(engine)[DESCRIBED.key] == "unknown"  # views may show something else late


@pytest.mark.parametrize("is_described", [True, False])
def test_a_key_of_a_table_that_its_run_did_not_read_again_is_no_drift_for_an_hour(
    is_described: bool, runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older runtimes describe no keys, and a view may show one late that the run has dropped."""
    runner.catalog.describes_keys = is_described
    engine.sync_tables([KEYED])
    freeze(runner, engine, KEYED, "table_constraints", "key_column_usage")
    without = replace(KEYED, primary_key=None)
    sync_unverified(engine, without)
    assert drifted(engine, without) == {}
    runner.changed.clear()
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} ADD CONSTRAINT theirs PRIMARY KEY (id)")
    assert drifted(engine, without) == {}
    let_hours_pass(monkeypatch)
    assert drifted(engine, without) == {KEY: ["primary_key"]}


def test_a_plan_is_refused_that_would_lose_a_renamed_column_of_a_table_that_was_not_read_again(
    runner: Faulty, engine: Orchestrator
) -> None:
    sync_unverified(engine, DESCRIBED)
    runner.catalog.by_hand(f"ALTER TABLE {ADDRESS} RENAME COLUMN unit TO kind")
    with pytest.raises(DriftRefusal, match="it was renamed to 'kind' outside the engine"):
        engine.sync_tables([DESCRIBED])


def test_a_table_that_was_not_verified_is_healthy_after_the_next_run(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_unverified(engine, KEYED)
    let_hours_pass(monkeypatch)
    assert drifted(engine, KEYED) == {}
    assert statuses(engine)["dev.silver.orders"] == "unknown"
    engine.sync_tables([KEYED])
    assert statuses(engine)["dev.silver.orders"] == "healthy"


def test_a_view_that_was_not_verified_stays_in_doubt(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No run has recorded yet in which words the platform shows its query."""
    sync_unverified(engine, KEYED, VIEW)
    let_hours_pass(monkeypatch)
    runner.catalog.by_hand("CREATE OR REPLACE VIEW `dev`.`silver`.`recent` AS SELECT 1 AS id")
    report = report_drift(engine, [KEYED, VIEW])
    assert ([*report.findings()], report.unfinished) == ([], ("view.dev.silver.recent",))


def test_a_sync_does_not_take_a_table_that_replaced_an_unverified_one_for_the_recorded_one(
    runner: Faulty, engine: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = free_to_drop(runner, engine)
    sync_unverified(engine, KEYED, OTHER)
    replace_by_hand(runner)
    let_hours_pass(monkeypatch)
    engine.sync_tables([KEYED, OTHER])
    assert drifted(engine, KEYED, OTHER) == {KEY: ["table_replaced"]}
    engine.sync_tables([OTHER])
    assert "dev.silver.orders" in runner.catalog.tables


def test_an_unverified_table_that_no_model_declares_any_more_is_dropped(
    runner: Faulty, engine: Orchestrator
) -> None:
    engine = free_to_drop(runner, engine)
    sync_unverified(engine, KEYED, OTHER)
    engine.sync_tables([OTHER])
    assert "dev.silver.orders" not in runner.catalog.tables
