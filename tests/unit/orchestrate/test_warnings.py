"""Warnings of whole runs: each is shown once, and is in the report once."""

from __future__ import annotations

from pathlib import Path

from delta_engine.orchestrate.orchestrator import plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
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
