"""Runs from lock to unlock over a fake platform: what is recorded of each table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import Securable
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.observing import record_statuses
from delta_engine.orchestrate.orchestrator import plan_revert
from delta_engine.orchestrate.runs import open_run
from delta_engine.ownership.recorded import Status
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import TableVersion
from tests.builders.deployment import FACTS, deployment_over
from tests.builders.engines import engine_on
from tests.fakes.applying import created
from tests.fakes.platform import FakePlatform, comments, engine_over, recorded, statuses, sync
from tests.unit.deployment.runs import CHANGED, TABLES


def test_a_run_from_lock_to_unlock(platform: FakePlatform, deployment: Deployment) -> None:
    assert sync(platform, deployment, *TABLES) == []
    state = recorded(deployment)
    assert (state.serial, state.lineage, state.environment) == (2, FACTS.lineage, FACTS.environment)
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "healthy"}
    assert state.metadata.last_apply_actions.added == 3
    assert {checkpoint.resource for checkpoint in state.metadata.checkpoints} == {
        f"table.dev.silver.{x}" for x in "abc"
    }
    assert deployment.journals.read() == {}
    sync(platform, deployment, *TABLES)
    assert recorded(deployment) == state


class Wordless(FakePlatform):
    """Refuses every statement, and does not say why."""

    def run(self, sql: str) -> Sequence[Row]:
        raise StatementError("", sql=sql, error_class=None)


def test_a_comparison_is_saved_and_dated_also_if_nothing_differs(
    platform: FakePlatform, deployment: Deployment
) -> None:
    sync(platform, deployment, *TABLES)
    before = recorded(deployment)
    assert before.synced_at is not None
    assert before.updated_by == FACTS.who
    with open_run(engine_over(platform, deployment), "state sync") as run:
        record_statuses(run, TABLES)
    after = recorded(deployment)
    assert after.synced_at is not None
    assert after.synced_at > before.synced_at
    assert (after.serial, after.resources) == (before.serial + 1, before.resources)
    sync(platform, deployment, *TABLES)
    assert recorded(deployment) == after  # a sync without changes saves nothing


def test_a_refusal_without_a_word_is_recorded_like_any_other(deployment: Deployment) -> None:
    with pytest.raises(ApplyFailedError, match="3 of 3 tables failed"):
        sync(Wordless(), deployment, *TABLES)
    records = recorded(deployment).resources.values()
    assert {(record.status, record.reason) for record in records} == {(Status.FAILED, "no message")}


def test_one_failure_does_not_stop_the_others(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    platform.failing = "b"
    with pytest.raises(ApplyFailedError):
        sync(platform, deployment, *CHANGED)
    assert statuses(deployment) == {"a": "healthy", "b": "failed", "c": "healthy"}
    assert comments(deployment) == {"a": "second", "b": "first", "c": "second"}
    platform.failing = None
    sync(platform, deployment, *CHANGED)
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "healthy"}
    assert comments(deployment)["b"] == "second"


def test_a_table_not_created_has_no_definition(platform: FakePlatform, deployment: Deployment) -> None:
    platform.failing = "b"
    with pytest.raises(ApplyFailedError):
        sync(platform, deployment, *TABLES)
    resource = recorded(deployment).resources["table.dev.silver.b"]
    assert (resource.status, resource.declared, resource.deployed_at) == (
        Status.FAILED,
        None,
        None,
    )


def test_a_run_that_ends_during_a_report_is_no_drift(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)

    class Interfering:
        """Lets a sync run just before the catalog is read."""

        def __init__(self) -> None:
            self.times = 0

        def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
            return platform.snapshot(models)

        def snapshot(self, models: Sequence[Securable]) -> CatalogState:
            self.times += 1
            if self.times == 1:
                sync(platform, deployment, *CHANGED)
            return platform.snapshot(models)

    reader = Interfering()
    engine = engine_on(reader, platform, deployment)
    report = report_drift(engine, CHANGED)
    assert report.drifted == ()
    assert reader.times == 2


def test_a_retired_table_is_no_drift(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    del platform.states["dev.silver.b"]
    left = (TABLES[0], TABLES[2])
    engine = engine_over(platform, deployment)
    report = report_drift(engine, left)
    assert report.deleted == ()
    with open_run(engine, "revert") as run:
        assert not plan_revert(run, left).plan


def test_undeclared_tables_block_nothing(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    del platform.states["dev.silver.c"]
    assert sync(platform, deployment, *TABLES[:2]) == []
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "missing"}

    platform.unreadable = "dev.silver.c"
    (note,) = sync(platform, deployment, *CHANGED[:2])
    assert "cannot be read" in note
    assert "state rm" in note
    assert comments(deployment) == {"a": "second", "b": "second", "c": "first"}


def test_what_the_catalog_does_not_show_yet_is_unknown(platform: FakePlatform, tmp_path: Path) -> None:
    class NoVersions:
        def read_versions(self, tables: object, *, with_id: object) -> dict[str, TableVersion]:
            return {}

    deployment = deployment_over(tmp_path)
    sync(platform, deployment, *TABLES)
    platform.shows = False
    platform.models = {model.qualified_name.key: model for model in CHANGED}
    engine = engine_on(platform, platform, deployment, versions=NoVersions())
    assert [outcome.is_verified for outcome in engine.sync_tables(CHANGED)] == [False, False, False]
    assert set(statuses(deployment).values()) == {"unknown"}
    platform.shows = True
    platform.models["dev.silver.c"] = TABLES[2]  # one still lags behind
    assert [outcome.is_verified for outcome in engine.sync_tables(CHANGED)] == [True, True, False]
    platform.shows = False
    platform.states = {key: created(model) for key, model in zip(platform.models, TABLES, strict=True)}
    engine.sync_tables(CHANGED)
    assert set(statuses(deployment).values()) == {"unknown"}
    platform.states = {key: created(model) for key, model in platform.models.items()}
    sync(platform, deployment, *CHANGED)
    assert set(statuses(deployment).values()) == {"healthy"}


def test_a_partial_run_looks_at_its_own_tables_only(platform: FakePlatform, deployment: Deployment) -> None:
    sync(platform, deployment, *TABLES)
    del platform.states["dev.silver.c"]
    platform.states["dev.silver.temp"] = created(TABLES[0])
    sync(platform, deployment, *CHANGED[:1], is_partial=True)
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "healthy"}
    sync(platform, deployment, CHANGED[0], TABLES[1])
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "missing", "temp": "unmanaged"}
