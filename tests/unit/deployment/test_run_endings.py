"""How runs end in disorder: saves that fail, interrupts that come late, errors that nobody expects."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.cli.run_view import TerminalView
from delta_engine.cli.terminal import exits
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.document import (
    DeploymentState,
)
from delta_engine.deployment.errors import StaleStateError, StoreError, UnsavedStateError
from delta_engine.deployment.stored import DocumentIdentity, StoredDocument
from delta_engine.deployment.stores.memory import MemoryStateStore
from delta_engine.errors import CatalogReadError, RefusalGroup, StatementError
from delta_engine.execute.action_runner import ApplyStoppedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind
from delta_engine.models import CheckConstraint, QualifiedName, Table
from delta_engine.orchestrate.applying import UnrecordedApplyError, apply_planned
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.histories import RunHistory
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.orchestrator import sync as run_sync
from delta_engine.orchestrate.runs import open_run
from delta_engine.report.run_report import RunStatus
from delta_engine.state.table_queries import TableVersion, TableVersionReader
from tests.builders.deployment import deployment_over
from tests.builders.detection import FakeRefusedVersions
from tests.builders.engines import engine_on
from tests.fakes.applying import created
from tests.fakes.platform import FakePlatform, engine_over, recorded, statuses, sync
from tests.unit.deployment.runs import TABLES, FakeLock, Unwritable


@pytest.fixture
def platform() -> FakePlatform:
    fake = FakePlatform()
    fake.models = {model.qualified_name.key: model for model in TABLES}
    return fake


def engine_with(
    platform: FakePlatform,
    deployment: Deployment,
    versions: TableVersionReader | None = None,
    *,
    parallelism: int = 1,
) -> Orchestrator:
    return engine_on(platform, platform, deployment, parallelism=parallelism, versions=versions)


def commanded(engine: Orchestrator, models: Sequence[Table] = TABLES) -> Callable[[], None]:
    """Return a sync as the command does it, with `--json`."""

    def command() -> None:
        run_sync(engine, models, TerminalView(environment="test", as_json=True, yes=True))

    return command


def exit_code(command: Callable[[], None]) -> int:
    with pytest.raises(SystemExit) as ended, exits():
        command()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    ("failing", "code", "status", "tables"),
    [
        ("b", 5, "partial", ["created", "failed", "created"]),
        (None, 5, "unsaved", ["created", "created", "created"]),
    ],
)
def test_a_save_that_fails_hides_nothing_of_the_tables(
    platform: FakePlatform,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    failing: str | None,
    code: int,
    status: str,
    tables: list[str],
) -> None:
    platform.failing = failing
    deployment = deployment_over(tmp_path, store=Unwritable(1))
    assert exit_code(commanded(engine_over(platform, deployment))) == code
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert report["status"] == status
    assert [table["status"] for table in report["tables"]] == tables
    assert "the store is down" in report["unsaved"]
    told = " ".join(captured.err.split())
    assert ("table dev.silver.b: no (after 0 statements" in told) == (failing == "b")
    assert "the deployment state could not be saved: the store is down" in told
    assert "state restore" in told


def test_the_error_carries_both_failures(platform: FakePlatform, tmp_path: Path) -> None:
    platform.failing = "b"
    deployment = deployment_over(tmp_path, store=Unwritable(1))
    with pytest.raises(UnrecordedApplyError) as failed:
        engine_over(platform, deployment).sync_tables(TABLES)
    assert isinstance(failed.value.reason, UnsavedStateError)
    kinds = [outcome.kind for outcome in failed.value.outcomes]
    assert kinds == [OutcomeKind.CREATED, OutcomeKind.FAILED, OutcomeKind.CREATED]
    first, _, *_, last = str(failed.value).splitlines()
    assert first == "1 of 3 tables failed:"
    assert "state restore" in last


def test_a_document_that_another_run_saved_meanwhile(platform: FakePlatform, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path)
    sync(platform, deployment, *TABLES[:1])
    platform.models = {model.qualified_name.key: model for model in TABLES}

    def save_meanwhile(outcome: AnyOutcome) -> None:
        if outcome.name.key == "dev.silver.b":
            loaded = deployment.peek()
            assert loaded is not None
            deployment.repository.save(loaded.state, loaded)

    with open_run(engine_over(platform, deployment), "sync") as run:
        applied = apply_planned(run, plan_sync(run, TABLES), save_meanwhile)
    with pytest.raises(UnrecordedApplyError, match="saved by another run") as failed:
        applied.result()
    assert isinstance(failed.value.reason, StaleStateError)
    assert applied.report.status is RunStatus.UNSAVED


def test_a_run_with_nothing_to_do_that_cannot_be_recorded_changed_nothing(
    platform: FakePlatform, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = deployment_over(tmp_path, store=Unwritable(2))
    sync(platform, deployment, *TABLES)
    assert exit_code(commanded(engine_over(platform, deployment), TABLES[:2])) == 0
    del platform.states["dev.silver.c"]  # which is worth recording, and no table of the plan
    capsys.readouterr()
    assert exit_code(commanded(engine_over(platform, deployment), TABLES[:2])) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "unsaved"


class Signalled:
    """Reads no versions: Ctrl-C comes while it is asked for them."""

    def __init__(self, number: signal.Signals = signal.SIGINT) -> None:
        self._number = number

    def read_versions(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        signal.raise_signal(self._number)
        return {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_during_the_last_look_is_heard_when_all_is_recorded(
    platform: FakePlatform, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    lock = FakeLock()
    deployment = deployment_over(tmp_path, lock=lock)
    assert exit_code(commanded(engine_with(platform, deployment, Signalled(number)))) == 130
    assert statuses(deployment) == {"a": "unknown", "b": "unknown", "c": "unknown"}  # not read again
    assert deployment.journals.read() == {}
    assert lock.leases == 0
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert report["status"] == "stopped"
    assert [table["status"] for table in report["tables"]] == ["created"] * 3
    assert captured.err.endswith("stopped: all 3 tables were done before the stop.\n")


class SignalledStore(MemoryStateStore):
    """Ctrl-C comes with every write but the first, which comes before all statements."""

    def replace(
        self, data: bytes, identity: DocumentIdentity, expected: StoredDocument | None
    ) -> StoredDocument:
        if expected is not None:
            signal.raise_signal(signal.SIGINT)
        return super().replace(data, identity, expected)


def test_an_interrupt_during_the_save_comes_after_it(platform: FakePlatform, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path, store=SignalledStore())
    assert exit_code(commanded(engine_over(platform, deployment))) == 130
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "healthy"}
    assert recorded(deployment).serial == 2


def test_an_interrupt_in_the_history(
    platform: FakePlatform, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Signalling:
        def run(self, sql: str) -> Sequence[Row]:
            signal.raise_signal(signal.SIGINT)
            return ()

    engine = engine_on(
        platform,
        platform,
        deployment_over(tmp_path),
        run_history=RunHistory(Signalling(), "`dev`.`ops`.`run_history`"),
    )
    assert exit_code(commanded(engine)) == 130
    assert json.loads(capsys.readouterr().out)["status"] == "stopped"


def test_an_interrupt_at_the_end_skips_the_last_look(platform: FakePlatform, tmp_path: Path) -> None:
    control, asked = ApplyControl(), list[object]()

    class Versions:
        def read_versions(
            self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
        ) -> Mapping[str, TableVersion]:
            asked.append(tables)
            return {}

    deployment = deployment_over(tmp_path)
    with (
        open_run(engine_with(platform, deployment, Versions()), "sync") as run,
        pytest.raises(ApplyStoppedError) as stopped,
    ):
        apply_planned(
            run, plan_sync(run, TABLES[:1]), lambda _outcome: control.stop.request(), control
        ).result()
    assert [outcome.kind for outcome in stopped.value.outcomes] == [OutcomeKind.CREATED]
    assert asked == []
    assert statuses(deployment) == {"a": "unknown"}
    sync(platform, deployment, *TABLES[:1])
    assert statuses(deployment) == {"a": "healthy"}


@pytest.mark.parametrize(
    "error",
    [
        StatementError("the connection is gone", sql="DESCRIBE", error_class=None, is_outcome_unknown=True),
        StatementError("too many requests", sql="DESCRIBE", error_class="REQUEST_LIMIT_EXCEEDED"),
        CatalogReadError("it cannot be read", table="dev.silver.b"),
        RefusalGroup([CatalogReadError("it is a view", table=f"dev.silver.{name}") for name in "ab"]),
        OSError(36, "File name too long"),
    ],
)
def test_a_second_read_that_fails_verifies_no_table(
    platform: FakePlatform, tmp_path: Path, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = deployment_over(tmp_path)
    platform.second_look_error = error
    commanded(engine_with(platform, deployment, FakeRefusedVersions()))()
    assert statuses(deployment) == {"a": "unknown", "b": "unknown", "c": "unknown"}
    reason = f"the second read after the apply failed: {error}"
    assert recorded(deployment).resources["table.dev.silver.a"].reason == reason
    assert json.loads(capsys.readouterr().out)["unverified"] == reason
    sync(platform, deployment, *TABLES)
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "healthy"}
    assert len(platform.statements) == len(TABLES)


def test_a_change_that_did_not_arrive_is_repaired_after_a_failed_second_read(
    platform: FakePlatform, tmp_path: Path
) -> None:
    deployment = deployment_over(tmp_path)
    sync(platform, deployment, *TABLES[:1])
    changed = replace(TABLES[0], comment="second")
    platform.models, platform.shows = {changed.key: changed}, False
    platform.second_look_error = StatementError("no", sql="DESCRIBE", error_class="NO")
    commanded(engine_with(platform, deployment, FakeRefusedVersions()), [changed])()
    platform.shows, platform.second_look_error = True, None
    sync(platform, deployment, changed)
    assert platform.states[changed.key] == created(changed)
    assert statuses(deployment) == {"a": "healthy"}


def test_the_doubt_of_a_failed_second_read_ends_with_a_sync_that_has_nothing_to_do(
    platform: FakePlatform, tmp_path: Path
) -> None:
    """Also while the table has a part of others: later changes of others are drift again."""
    deployment, (model, *_) = deployment_over(tmp_path), TABLES
    platform.second_look_error = StatementError("no", sql="DESCRIBE", error_class="NO")
    commanded(engine_with(platform, deployment, FakeRefusedVersions()), [model])()
    platform.second_look_error = None
    state = platform.states[model.key]
    platform.states[model.key] = replace(state, checks=(CheckConstraint("theirs", "id > 0"),))
    sync(platform, deployment, model)
    assert len(platform.statements) == 1
    platform.states[model.key] = replace(platform.states[model.key], table_comment="theirs")
    report = report_drift(engine_over(platform, deployment), [model])
    assert [finding.field for _, finding in report.findings()] == ["check theirs", "table comment"]
    assert report.unfinished == ()


FULL = StoreError("local.lock cannot be released: No space left on device")


def test_a_lock_that_cannot_be_released_hides_no_unsaved_state(
    platform: FakePlatform, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = deployment_over(tmp_path, store=Unwritable(1), lock=FakeLock(release_error=FULL))
    assert exit_code(commanded(engine_over(platform, deployment))) == 5
    captured = capsys.readouterr()
    assert "errored-2.json" in json.loads(captured.out)["unsaved"]
    note, failed, restore, *_ = captured.err.partition("note: the release")[2].splitlines()
    assert note == f" of the lock was not recorded: {FULL}"
    assert failed == "failed: the deployment state could not be saved: the store is down"
    assert "state restore" in restore


def test_a_lock_that_cannot_be_released_is_a_note_after_a_run(platform: FakePlatform, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path, lock=FakeLock(release_error=FULL))
    assert sync(platform, deployment, *TABLES) == [f"the release of the lock was not recorded: {FULL}"]
    assert statuses(deployment) == {"a": "healthy", "b": "healthy", "c": "healthy"}


@pytest.mark.parametrize(("failing", "code"), [(None, 130), ("b", 5)])
def test_an_interrupt_at_the_release(
    platform: FakePlatform, tmp_path: Path, failing: str | None, code: int
) -> None:
    lock = FakeLock(is_signalled=True)
    platform.failing = failing
    assert exit_code(commanded(engine_over(platform, deployment_over(tmp_path, lock=lock)))) == code
    assert lock.leases == 0


class Broken(Exception):
    """What nobody expects of a runner."""


def test_tables_that_finish_while_an_error_ends_the_run_are_journaled(tmp_path: Path) -> None:
    all_run, control, seen = threading.Barrier(3), ApplyControl(), list[str]()

    class HalfBroken(FakePlatform):
        def run(self, sql: str) -> Sequence[Row]:
            all_run.wait(10)
            if "`b`" in sql:
                raise Broken
            control.stop.wait(10)  # until the run is to end
            return super().run(sql)

    platform, deployment = HalfBroken(), deployment_over(tmp_path)
    platform.models = {model.qualified_name.key: model for model in TABLES}
    with (
        open_run(engine_with(platform, deployment, parallelism=3), "sync") as run,
        pytest.raises(Broken),
    ):
        apply_planned(
            run, plan_sync(run, TABLES), lambda outcome: seen.append(str(outcome.name)), control
        ).result()
    assert sorted(seen) == ["dev.silver.a", "dev.silver.c"]
    notes: list[str] = []
    with open_run(engine_over(platform, deployment), "sync", notes.append) as run:
        assert found_statuses(run.recorder.state) == {"a": "healthy", "b": "unknown", "c": "healthy"}
    assert "2 of 3 resources were recorded" in notes[0]


def found_statuses(state: DeploymentState) -> dict[str, str]:
    resources = state.resources.items()
    return {
        key.rsplit(".", 1)[1]: resource.status.value for key, resource in resources if key.startswith("table")
    }
