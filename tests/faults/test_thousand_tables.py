"""A thousand tables, some of which fail: the others are applied, and the next run does those alone."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import Row
from delta_engine.cli.terminal import ExitCode, report_error
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError
from delta_engine.execute.outcomes import OutcomeKind, TableOutcome
from delta_engine.orchestrate.orchestrator import Orchestrator
from tests.builders.deployment import deployment_over
from tests.builders.models import orders
from tests.fakes.platform import FakePlatform, statuses, sync

MODELS = [orders(name=f"t{number}") for number in range(1000)]
FAILING = frozenset(f"`t{number}`" for number in range(5, 1000, 27))


class FailingPlatform(FakePlatform):
    def __init__(self) -> None:
        super().__init__()
        self.refused = FAILING
        self.models = {model.qualified_name.key: model for model in MODELS}

    def run(self, sql: str) -> Sequence[Row]:
        if sql.split(".")[2].split()[0] in self.refused:
            self.statements.append(sql)
            raise StatementError("the disk is full", sql=sql, error_class="DISK_FULL")
        return super().run(sql)


def synced(platform: FakePlatform, folder: Path) -> tuple[Callable[[], tuple[TableOutcome, ...]], list[str]]:
    """Return what runs a sync, with sixteen tables at once, and the statements of the run before."""
    deployment = deployment_over(folder)
    engine = Orchestrator(
        reader=platform,
        action_runner=ActionRunner(platform, CatalogAddressing(), DATABRICKS, parallelism=16),
        deployment=deployment,
    )

    def run() -> tuple[TableOutcome, ...]:
        platform.statements.clear()
        return engine.sync_tables(MODELS)

    return run, platform.statements


def test_the_others_are_applied_and_the_next_run_does_those_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(FAILING) == 37
    platform = FailingPlatform()
    run, statements = synced(platform, tmp_path)
    with pytest.raises(ApplyFailedError) as failed:
        run()
    kinds = Counter(outcome.kind for outcome in failed.value.outcomes)
    assert kinds == {OutcomeKind.CREATED: 963, OutcomeKind.FAILED: 37}
    assert report_error(failed.value) is ExitCode.PARTIAL
    told = " ".join(capsys.readouterr().err.split())
    assert "37 tables: the disk is full table dev.silver." in told
    assert "and 30 more" in told
    with pytest.raises(ApplyFailedError):
        run()
    assert {sql.split(".")[2].split()[0] for sql in statements} == FAILING
    platform.refused = frozenset()
    assert len(run()) == 37
    assert run() == ()


def test_a_statement_that_was_done_twice_fails_its_table_until_the_next_run(tmp_path: Path) -> None:
    """A client that repeats a request after a lost answer is told that its own table is there already."""

    class Twice(FakePlatform):
        def run(self, sql: str) -> Sequence[Row]:
            if sql.startswith("SELECT"):
                return [{"current_user()": "ana"}]
            super().run(sql)
            if "`t7`" in sql:
                raise StatementError("it exists", sql=sql, error_class="TABLE_OR_VIEW_ALREADY_EXISTS")
            return ()

    platform, deployment, models = Twice(), deployment_over(tmp_path), MODELS[:20]
    with pytest.raises(ApplyFailedError) as failed:
        sync(platform, deployment, *models)
    assert [str(outcome.name) for outcome in failed.value.outcomes if outcome.failure] == ["dev.silver.t7"]
    assert statuses(deployment)["t7"] == "failed"
    platform.statements.clear()
    sync(platform, deployment, *models)
    assert platform.statements == []
    assert set(statuses(deployment).values()) == {"healthy"}


@pytest.mark.parametrize("error", [ConnectionResetError("the peer is gone"), TimeoutError("30 s are over")])
def test_a_runner_that_dies_fails_its_tables_and_leaves_a_document(tmp_path: Path, error: OSError) -> None:
    class Dying(FakePlatform):
        def run(self, sql: str) -> Sequence[Row]:
            if len(self.statements) >= 5:
                raise error
            return super().run(sql)

    platform, deployment, models = Dying(), deployment_over(tmp_path), MODELS[:8]
    with pytest.raises(ApplyFailedError) as failed:
        sync(platform, deployment, *models)
    assert Counter(outcome.kind for outcome in failed.value.outcomes) == {
        OutcomeKind.CREATED: 5,
        OutcomeKind.FAILED: 3,
    }
    (reason, *_) = [outcome.failure.message for outcome in failed.value.outcomes if outcome.failure]
    assert reason == f"no answer: {type(error).__name__}: {error}"
    whole = FakePlatform()
    whole.states = platform.states
    sync(whole, deployment, *models)
    assert len(whole.statements) == 3
    assert set(statuses(deployment).values()) == {"healthy"}
