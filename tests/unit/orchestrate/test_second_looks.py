"""Whole runs that meet conflicts and lost answers: a fresh look says whether a statement is still needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.outcomes import OutcomeKind
from delta_engine.models import CheckConstraint, Column
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.orchestrator import plan_revert, plan_sync
from delta_engine.orchestrate.runs import open_run
from tests.builders.deployment import deployment_over
from tests.builders.models import orders
from tests.fakes.applying import created
from tests.fakes.platform import FakePlatform, engine_over, statuses, sync


def hasty() -> ApplyControl:
    """Return a control whose waits cost nothing."""
    return ApplyControl(wait=lambda _seconds: None)


class Meddled(FakePlatform):
    """Somebody commits while a statement is sent, once; `meddle` is what they do."""

    def __init__(self, meddle: Callable[[FakePlatform], None]) -> None:
        super().__init__()
        self._meddle: Callable[[FakePlatform], None] | None = meddle

    def run(self, sql: str) -> Sequence[Row]:
        if self._meddle is not None:
            meddle, self._meddle = self._meddle, None
            meddle(self)
            raise StatementError("somebody was faster", sql=sql, error_class="DELTA_METADATA_CHANGED")
        return super().run(sql)


def do_nothing(_platform: FakePlatform) -> None:
    """Commit something that the engine does not look at."""


def create_it_otherwise(platform: FakePlatform) -> None:
    model = orders(Column("theirs", "string"), name="t")
    platform.states["dev.silver.t"] = created(model)


@pytest.mark.parametrize(("meddle", "failures"), [(do_nothing, ()), (create_it_otherwise, ("dev.silver.t",))])
def test_a_whole_run_reads_the_table_anew(
    meddle: Callable[[FakePlatform], None], failures: tuple[str, ...], tmp_path: Path
) -> None:
    model = orders(name="t")
    platform, deployment, control = Meddled(meddle), deployment_over(tmp_path), hasty()
    platform.models = {model.qualified_name.key: model}
    failed: tuple[str, ...] = ()
    with open_run(engine_over(platform, deployment), "sync") as run:
        try:
            apply_planned(run, plan_sync(run, [model]), control=control).result()
        except ApplyFailedError as error:
            failed = tuple(str(outcome.name) for outcome in error.tables if outcome.failure)
    assert failed == failures
    assert statuses(deployment) == {"t": "failed" if failures else "healthy"}


class Losing(FakePlatform):
    """Loses one answer to a statement that begins with given words, which was done or not."""

    def __init__(self, words: str, *, is_done: bool) -> None:
        super().__init__()
        self._words = words
        self._is_done = is_done
        self._has_lost = False

    def run(self, sql: str) -> Sequence[Row]:
        if not sql.startswith(self._words) or self._has_lost:
            return super().run(sql)
        self._has_lost = True
        if self._is_done:
            super().run(sql)
        raise StatementError("not now", sql=sql, error_class="TEMPORARILY_UNAVAILABLE")


@pytest.mark.parametrize("is_done", [False, True])
def test_a_table_that_goes_is_looked_at_too(is_done: bool, tmp_path: Path) -> None:
    kept, gone = orders(name="kept"), orders(name="gone")
    platform, deployment, control = Losing("DROP TABLE", is_done=is_done), deployment_over(tmp_path), hasty()
    sync(platform, deployment, kept, gone)
    policy = Policy(removed_tables=Removed.DROP, allow=(Allowance(DestructiveKind.DROP_TABLE),))
    with open_run(engine_over(platform, deployment, policy), "sync") as run:
        outcomes = apply_planned(run, plan_sync(run, [kept]), control=control).result()
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.DROPPED]
    assert set(platform.states) == {"dev.silver.kept"}
    assert statuses(deployment) == {"kept": "healthy"}


def test_a_revert_is_looked_at_by_the_rules_of_reverts(tmp_path: Path) -> None:
    model = orders(name="t")
    platform, deployment, control = Losing("ALTER TABLE", is_done=False), deployment_over(tmp_path), hasty()
    sync(platform, deployment, model)
    before = platform.states["dev.silver.t"]
    platform.states["dev.silver.t"] = replace(before, checks=(CheckConstraint("theirs", "id > 0"),))
    with open_run(engine_over(platform, deployment), "drift --revert") as run:
        (outcome,) = apply_planned(run, plan_revert(run, [model]), control=control).result()
    assert outcome.failure is None
    assert platform.states["dev.silver.t"] == before


class Conflicting(FakePlatform):
    """Meets a conflict at the first statement that has some words in it; statements do what the tests here need."""

    def __init__(self, words: str, *, is_done: bool = False) -> None:
        super().__init__()
        self._words = words
        self._is_done = is_done
        self.conflicts = 0

    def run(self, sql: str) -> Sequence[Row]:
        if self._words not in sql or self.conflicts:
            return self._done(sql)
        self.conflicts += 1
        condition = "DELTA_METADATA_CHANGED"
        if self._is_done:
            self._done(sql)
            condition = "TEMPORARILY_UNAVAILABLE"
        else:
            self.statements.append(sql)
        raise StatementError("somebody was faster", sql=sql, error_class=condition)

    def _done(self, sql: str) -> Sequence[Row]:
        column = re.search(r"COLUMN `(\w+)`(?: TO `(\w+)`| DROP DEFAULT)", sql)
        if column is None:
            return super().run(sql)
        self.statements.append(sql)
        state = self.states["dev.silver.t"]
        columns = (
            replace(
                existing,
                default=None if column[2] is None else existing.default,
                name=column[2] or existing.name,
            )
            if existing.name == column[1]
            else existing
            for existing in state.columns
        )
        self.states["dev.silver.t"] = replace(state, columns=tuple(columns))
        return ()


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("words", ["RENAME TO", "COMMENT ON TABLE"])
def test_a_renamed_table_is_read_under_both_names(words: str, is_done: bool, tmp_path: Path) -> None:
    platform, deployment, control = Conflicting(words, is_done=is_done), deployment_over(tmp_path), hasty()
    before = orders(name="order", comment="first")
    after = replace(orders(name="orders", comment="second"), renamed_from=("order",))
    sync(platform, deployment, before)
    platform.statements.clear()
    platform.models = {after.qualified_name.key: after}
    with open_run(engine_over(platform, deployment), "sync") as run:
        (outcome,) = apply_planned(run, plan_sync(run, [after]), control=control).result()
    assert outcome.failure is None
    assert platform.conflicts == 1
    sent = [sql for sql in platform.statements if words in sql]
    assert len(sent) == (1 if is_done else 2)
    assert set(platform.states) == {"dev.silver.orders"}
    assert statuses(deployment) == {"orders": "healthy"}


def test_a_table_that_is_gone_under_both_names_fails(tmp_path: Path) -> None:
    platform = Meddled(lambda platform: platform.states.clear())
    deployment, control = deployment_over(tmp_path), hasty()
    before = orders(name="order")
    after = replace(orders(name="orders"), renamed_from=("order",))
    platform.states["dev.silver.order"] = created(before)
    with (
        open_run(engine_over(platform, deployment), "sync") as run,
        pytest.raises(ApplyFailedError, match="and the plan no longer fits"),
    ):
        apply_planned(run, plan_sync(run, [after]), control=control).result()


@pytest.mark.parametrize("others", [(), (Column("b", "string"),)])
@pytest.mark.parametrize("words", ["RENAME COLUMN", "DROP DEFAULT"])
def test_parts_of_a_renamed_column_stay(words: str, others: tuple[Column, ...], tmp_path: Path) -> None:
    """Another column had the new name once, and somebody dropped it by hand: what is on record of it says nothing."""
    platform, deployment, control = Conflicting(words), deployment_over(tmp_path), hasty()
    named = {"delta.columnMapping.mode": "name", "delta.feature.allowColumnDefaults": "supported"}
    before = orders(Column("a", "string", default="'x'"), *others, name="t", properties=named)
    after = orders(Column("b", "string", renamed_from="a"), name="t", properties=named)
    sync(platform, deployment, before)
    state = platform.states["dev.silver.t"]
    platform.states["dev.silver.t"] = replace(state, columns=state.columns[:1])
    platform.statements.clear()
    platform.models = {after.qualified_name.key: after}
    with open_run(engine_over(platform, deployment), "sync") as run:
        (outcome,) = apply_planned(run, plan_sync(run, [after]), control=control).result()
    assert outcome.failure is None
    assert [sql.split("COLUMN ")[1] for sql in platform.statements if words in sql] in (
        ["`a` TO `b`"] * 2,
        ["`b` DROP DEFAULT"] * 2,
    )
    assert platform.states["dev.silver.t"].columns == (Column("b", "string"),)
