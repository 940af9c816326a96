"""Warnings of whole runs: each is shown once, and is in the report once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from delta_engine.errors import CatalogReadError
from delta_engine.models import Securable
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
from delta_engine.state.states import CatalogState
from tests.builders.deployment import deployment_over
from tests.builders.models import orders
from tests.fakes.platform import FakePlatform, engine_over, sync


def test_an_unreadable_undeclared_table_is_warned_of_once(tmp_path: Path) -> None:
    kept, gone = orders(name="kept"), orders(name="gone")
    platform, deployment = FakePlatform(), deployment_over(tmp_path)
    sync(platform, deployment, kept, gone)
    platform.unreadable = gone.key
    engine, notes = engine_over(platform, deployment), list[str]()
    with open_run(engine, "sync", notes.append) as run:
        planned = plan_sync(run, [kept])
        warnings = run.recorder.warnings
    assert notes == warnings == list(planned.warnings)
    assert len(notes) == len(plan_unlocked(engine, [kept]).warnings) == 1
    assert "recorded tables that are no longer declared cannot be read" in notes[0]


def test_a_report_notes_that_the_catalog_of_undeclared_tables_was_not_read(tmp_path: Path) -> None:
    kept, gone = orders(name="kept"), orders(name="gone")
    platform, deployment = FakePlatform(), deployment_over(tmp_path)
    sync(platform, deployment, kept, gone)

    class WithoutCatalog:
        def snapshot(self, models: Sequence[Securable]) -> CatalogState:
            if any(model.key == gone.key for model in models):
                raise CatalogReadError("the catalog does not exist")
            return platform.snapshot(models)

    report = report_drift(replace(engine_over(platform, deployment), reader=WithoutCatalog()), [kept])
    (note,) = report.notes
    assert "recorded tables that are no longer declared cannot be read: the catalog does not exist" in note
