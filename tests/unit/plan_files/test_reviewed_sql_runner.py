"""Only what was reviewed runs, whatever the engine has in mind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.execute.recording_sql_runner import RecordingSqlRunner
from delta_engine.execute.reviewed_sql_runner import ReviewedSqlRunner, UnreviewedStatementError
from delta_engine.plan_files.reviewed_plan import ReviewedPlan
from tests.builders import orders
from tests.deployment_builders import deployment_over
from tests.fake_platform import FakePlatform, engine_over

CHECKSUM = "sha256:" + "0" * 64


class FailingOnce:
    """Refuses its first statement."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def run(self, sql: str) -> list[Row]:
        self.statements.append(sql)
        if len(self.statements) == 1:
            raise StatementError("somebody else was faster", sql=sql, error_class=None)
        return []


def test_each_statement_runs_as_often_as_it_is_in_the_script() -> None:
    recorder = RecordingSqlRunner()
    runner = ReviewedSqlRunner(recorder, ["a", "b", "a"])
    for sql in ("a", "a", "b"):
        runner.run(sql)
    for sql in ("a", "b", "c", "A", "a "):
        with pytest.raises(UnreviewedStatementError) as stopped:
            runner.run(sql)
        assert stopped.value.sql == sql
    assert recorder.statements == ["a", "a", "b"]


def test_a_statement_that_failed_may_be_tried_again() -> None:
    platform = FailingOnce()
    runner = ReviewedSqlRunner(platform, ["a"])
    with pytest.raises(StatementError):
        runner.run("a")
    runner.run("a")
    with pytest.raises(UnreviewedStatementError):
        runner.run("a")
    assert platform.statements == ["a", "a"]


def test_who_runs_it_may_be_asked_for_messages() -> None:
    recorder = RecordingSqlRunner()
    ReviewedSqlRunner(recorder, []).run("SELECT current_user()")
    assert recorder.statements == ["SELECT current_user()"]


def test_threads_share_what_is_left() -> None:
    recorder = RecordingSqlRunner()
    runner = ReviewedSqlRunner(recorder, ["a"] * 50)

    def is_run(_number: int) -> bool:
        try:
            runner.run("a")
        except UnreviewedStatementError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(is_run, range(200))) == 50
    assert len(recorder.statements) == 50


def test_an_engine_that_goes_astray_is_stopped_and_leaves_its_journal(tmp_path: Path) -> None:
    platform = FakePlatform()
    deployment = deployment_over(tmp_path)
    models = [orders(name="a", comment="x"), orders(name="b", comment="x")]
    platform.models = {model.qualified_name.key: model for model in models}
    action_runner = ActionRunner(platform, CatalogAddressing(), DATABRICKS)
    with engine_over(platform, deployment).run("apply") as run:
        plan = run.plan(models)
        reviewed = ReviewedPlan(checksum=CHECKSUM, script=action_runner.script(plan)[:1])
        with pytest.raises(UnreviewedStatementError, match="was stopped before it ran: CREATE TABLE"):
            run.apply(plan, reviewed=reviewed)
    assert set(platform.states) == {"dev.silver.a"}
    state = deployment.peek_replayed()
    assert state is not None
    (cut_short,) = state.applied_plans
    assert (cut_short.checksum, cut_short.is_whole) == (CHECKSUM, False)
