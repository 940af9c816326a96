"""What a run records, rule by rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import ColumnOrder, Policy
from delta_engine.backends.cancellation import StoppedError
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import (
    noted,
    unfinished,
)
from delta_engine.deployment.stores.memory import MemoryStateStore, memory_journals
from delta_engine.drift.observation import Observation
from delta_engine.drift.planned_run import Intent, PlannedRun
from delta_engine.errors import StatementError
from delta_engine.execute.outcomes import AnyOutcome, Outcome, OutcomeKind, RunStatement
from delta_engine.models import Column, QualifiedName, SchemaName, Table, resource_key
from delta_engine.orchestrate import recording
from delta_engine.orchestrate.applied_records import AppliedRecords
from delta_engine.orchestrate.recording import Recording
from delta_engine.ownership.recorded import (
    AnyRecord,
    Failure,
    Kept,
    LastChange,
    Recorded,
    Status,
    is_of_table,
)
from delta_engine.state.audits import Audit
from delta_engine.state.states import CatalogState, TableState
from delta_engine.state.table_queries import TableVersion
from tests.builders.deployment import FACTS, NOON, applied, repository_over
from tests.builders.models import ORDERS, observed, orders

KEY = resource_key(ORDERS)
SILVER = SchemaName("dev", "silver")
OTHERS = QualifiedName("dev", "silver", "others")
X, Y, THEIRS = Column("x", "int"), Column("y", "int"), Column("theirs", "int")
MODEL = orders(Column("id", "bigint"), X)
SENT = RunStatement(sql="ALTER", seconds=1)


class Run:
    """The records of a run over one table, and what it records of outcomes."""

    def __init__(self, folder: Path, observed: TableState, policy: Policy | None = None) -> None:
        repository = repository_over(MemoryStateStore(), folder)
        self.recorder = RunRecorder(repository, memory_journals(), FACTS, fence=0, now=lambda: NOON)
        planned = PlannedRun(
            plan=TablePlan(),
            compiled=CompiledPlan(),
            basis=Observation(
                models=(MODEL,), observed=(catalog := CatalogState(tables={ORDERS.key: observed}))
            ),
            intent=Intent(planner=TablePlanner(policy or Policy()), models=(MODEL,)),
            snapshot=catalog,
        )
        changes = dict.fromkeys(
            (KEY, resource_key(SILVER), resource_key(OTHERS)), LastChange(run="run-1", at=NOON)
        )
        self.records = AppliedRecords(self.recorder, planned)
        self.recording = Recording(self.recorder, planned, changes, lambda _outcome: None)

    def table(self, key: str = KEY) -> Recorded[Table]:
        resource = self.recorder.resources[key]
        assert is_of_table(resource)
        return resource

    def record(self, outcome: AnyOutcome) -> AnyRecord | None:
        self.recording.record(outcome)
        return self.recorder.resources.get(resource_key(outcome.name))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, observed(*MODEL.columns))


def test_the_schema_of_a_new_table_exists(run: Run) -> None:
    failed = unfinished(SILVER, Failure(Status.FAILED, "refused"), attempted=(), earlier=None)
    for resource, status in ((None, Status.HEALTHY), (failed, Status.HEALTHY)):
        if resource is not None:
            run.recorder.resources[resource_key(SILVER)] = resource
        run.recording.note_schema(MODEL)
        assert run.recorder.resources[resource_key(SILVER)].status is status


def test_what_was_attempted_under_the_new_name_stays(run: Run) -> None:
    former = QualifiedName("dev", "silver", "former")
    run.recorder.resources |= {
        resource_key(former): applied(replace(MODEL, table_name="former")),
        KEY: unfinished(
            ORDERS, Failure(Status.FAILED, "refused"), attempted=(Kept(orders(Y)),), earlier=None
        ),
    }
    run.recording.rename(former, ORDERS)
    assert (run.table().declared, run.table().attempted) == (MODEL, (orders(Y),))


@pytest.mark.parametrize(
    ("policy", "model", "order"),
    [
        (None, MODEL, ("x", "id")),
        (None, orders(*MODEL.columns, Y), ("x", "id", "y")),
        (Policy(column_order=ColumnOrder.ENFORCE), MODEL, ()),
    ],
    ids=["unchanged", "a new column comes last", "columns are moved"],
)
def test_the_order_that_a_plan_leaves(
    tmp_path: Path, policy: Policy | None, model: Table, order: tuple[str, ...]
) -> None:
    run = Run(tmp_path, observed(X, THEIRS, Column("id", "bigint")), policy)
    assert run.records.applied(model).column_order == order


def test_a_table_that_an_unfinished_run_left_as_declared_gets_its_present_version(run: Run) -> None:
    run.recorder.resources |= {KEY: applied(MODEL)}
    assert run.recording.with_new_version([MODEL]) == []
    begun = unfinished(ORDERS, Failure(Status.FAILED, "lost"), attempted=(Kept(MODEL),), earlier=run.table())
    run.recorder.resources |= {KEY: begun}
    assert run.recording.with_new_version([MODEL]) == [ORDERS]


def test_a_stopped_table_is_recorded_if_it_was_begun(run: Run) -> None:
    stopped = Outcome(name=ORDERS, kind=OutcomeKind.STOPPED, failure=StoppedError(sql=""))
    assert run.record(stopped) is None
    resource = run.record(replace(stopped, runs=(SENT,)))
    assert resource is not None
    assert resource.status is Status.DEGRADED


class Versions:
    """Says that all tables have one version, and notes which it was asked for."""

    def __init__(self) -> None:
        self.asked: list[QualifiedName] = []

    def read_versions(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        self.asked += tables
        return {table.key: TableVersion(table_id="id", version=7) for table in tables}


def test_only_created_and_changed_tables_have_a_version_that_the_run_left(run: Run) -> None:
    gone = QualifiedName("dev", "silver", "gone")
    versions, failure = Versions(), StatementError("no", sql="ALTER", error_class=None)
    run.recorder.resources[resource_key(OTHERS)] = applied(replace(MODEL, table_name="others"))
    run.record(Outcome(name=ORDERS, kind=OutcomeKind.CHANGED, runs=(SENT,)))
    run.record(Outcome(name=OTHERS, kind=OutcomeKind.FAILED, failure=failure))
    run.record(Outcome(name=gone, kind=OutcomeKind.DROPPED, runs=(SENT,)))
    run.recording.note_versions(versions)
    assert versions.asked == [ORDERS]
    assert run.table().delta_version == 7


def test_a_failure_without_a_statement_has_none_in_the_document_and_the_log(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[dict[str, object]] = []
    monkeypatch.setattr(recording, "log", lambda _level, event, **facts: logged.append({event: facts}))
    waited = StatementError("it waits for another", sql="", error_class=None)
    run.record(Outcome(name=ORDERS, kind=OutcomeKind.FAILED, failure=waited))
    run.record(Outcome(name=SILVER, kind=OutcomeKind.CHANGED, runs=(SENT,)))
    saved = run.recorder.save(run.recording.touched)
    assert saved is not None
    checkpoints = [
        (checkpoint.statement, checkpoint.error, checkpoint.statements_done)
        for checkpoint in saved.state.metadata.checkpoints
    ]
    assert checkpoints == [(None, None, 1), (None, "it waits for another", 0)]  # by key
    reason = {"error": "it waits for another", "error_class": None, "sql": None}
    assert logged == [
        {"table not done": {"table": str(ORDERS), "status": "failed", "statements": 0, **reason}},
        {"schema done": {"schema": "dev.silver", "status": "changed", "statements": 1}},
    ]


def test_a_table_is_as_old_as_recorded_while_its_id_is_the_same() -> None:
    """A table that replaced it may be younger."""
    young = replace(observed(*MODEL.columns), audit=Audit(created_at=NOON + timedelta(days=1)))
    resource = applied(MODEL)
    for created_at, expected in ((NOON, NOON), (None, young.audit.created_at)):
        earlier = replace(resource, created_at=created_at)
        assert noted(earlier, MODEL, young, earlier, ordered=earlier).created_at == expected
        other = replace(earlier, delta_table_id="another")
        assert noted(resource, MODEL, young, other, ordered=other).created_at == young.audit.created_at
    assert noted(resource, MODEL, young, None, ordered=None).created_at == young.audit.created_at
    replaced_by_the_run = resource  # which forgets the creation time of a catalog-managed table
    assert (
        noted(replaced_by_the_run, MODEL, young, earlier, ordered=earlier).created_at
        == young.audit.created_at
    )
