"""Rewrites on real Delta: other partitions, what comes back, writers beside it, kills, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import StatementError, raise_all
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.apply_control import ApplyControl
from delta_engine.models import CheckConstraint, Column, Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import embedded_backend
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
from delta_engine.orchestrate.undoing import plan_undo
from delta_engine.plan_files.document import Options
from delta_engine.state.states import TableState
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_over
from tests.builders.worlds import Kill
from tests.integration.data_changes import KilledRunner
from tests.proofs import IS_LONG

POLICY = Policy(
    allow=(Allowance(DestructiveKind.BACKFILL_COLUMN), Allowance(DestructiveKind.REWRITE_TABLE)),
    create_schemas=True,
)
COLUMNS = (
    Column("id", "bigint", is_nullable=False, comment="The key"),
    Column("created_ts", "timestamp_ntz", is_nullable=False),
    Column("note", "string", default="'x'"),
)
BEFORE = Table(
    "dev",
    "silver",
    "orders",
    COLUMNS,
    comment="Orders",
    table_properties={"delta.columnMapping.mode": "name", "kept": "for a year"},
    checks=(CheckConstraint("positive", "id > 0"),),
    primary_key=["id"],
)
DAY = Column("order_day", "date", is_nullable=False, using="to_date(created_ts)")
AFTER = replace(BEFORE, columns=(*COLUMNS, DAY), partitioned_by=("order_day",))


@pytest.fixture(autouse=True)
def readers_agree() -> None:
    """Read tables in one way here: other tests hold both readers against each other, which takes long."""


class Orders:
    """One table with rows, and runs over it that share a deployment state."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.backend = embedded_backend(spark, folder / "warehouse")
        self.deployment = deployment_over(folder / "state")
        self.address = self.backend.addressing.table(BEFORE.qualified_name)
        self.sync(BEFORE)
        self.insert(
            "(1, TIMESTAMP_NTZ'2026-01-01 10:00:00', 'a'), (2, TIMESTAMP_NTZ'2026-01-02 10:00:00', NULL)"
        )

    def insert(self, rows: str) -> None:
        self.backend.runner.run(f"INSERT INTO {self.address} (id, created_ts, note) VALUES {rows}")

    def sync(self, model: Table, runner: SqlRunner | None = None) -> None:
        engine = self.engine(runner)
        with open_run(engine, "sync") as run:
            planned = plan_sync(run, [model])
            raise_all(planned.refusals)
            apply_planned(run, planned, control=ApplyControl(wait=lambda _seconds: None)).result()

    def undo(self) -> None:
        engine = self.engine()
        with open_run(engine, "undo") as run:
            planned = plan_undo(engine, run.loaded, Options())
            raise_all(planned.refusals)
            apply_planned(run, planned).result()

    def engine(self, runner: SqlRunner | None = None) -> Orchestrator:
        return engine_over(self.backend, self.deployment, POLICY, runner=runner, with_histories=True)

    @property
    def rows(self) -> list[Row]:
        return [dict(row) for row in self.backend.runner.run(f"SELECT * FROM {self.address} ORDER BY id")]

    @property
    def state(self) -> TableState:
        return self.backend.reader.snapshot_directly([BEFORE]).table(BEFORE.qualified_name)

    def is_settled(self, model: Table) -> bool:
        """Whether nothing is left to do, and nothing has drifted."""
        engine = self.engine()
        return not plan_unlocked(engine, [model]).plan and not report_drift(engine, [model]).drifted


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Orders:
    return Orders(spark, tmp_path)


def test_a_rewrite_keeps_everything_but_the_partitions_and_is_undone(orders: Orders) -> None:
    before, rows = orders.state, orders.rows
    orders.sync(AFTER)
    state = orders.state
    assert [{**row, "order_day": row["created_ts"].date()} for row in rows] == orders.rows  # type: ignore[attr-defined]
    assert (state.partitioned_by, state.primary_key, state.checks) == (
        ("order_day",), before.primary_key, before.checks,
    )  # fmt: skip
    columns = {column.name: column for column in state.columns}
    assert (columns["id"].is_nullable, columns["id"].comment) == (False, "The key")
    assert (columns["order_day"].is_nullable, columns["note"].default) == (False, "'x'")
    assert (state.table_comment, state.table_properties["kept"]) == ("Orders", "for a year")
    assert orders.is_settled(AFTER)
    with pytest.raises(StatementError, match="positive"):
        orders.backend.runner.run(
            f"INSERT INTO {orders.address} VALUES (-1, TIMESTAMP_NTZ'2026-01-01 10:00:00', 'a', DATE'2026-01-01')"
        )

    orders.undo()
    assert (orders.rows, orders.state.partitioned_by, orders.state.columns) == (rows, (), before.columns)
    assert (orders.state.primary_key, orders.state.checks) == (before.primary_key, before.checks)
    assert orders.is_settled(BEFORE)


KILLS = [(place, is_after) for place in range(9) for is_after in (False, True)] if IS_LONG else [(5, True)]


@pytest.mark.parametrize(("kill_at", "is_after"), KILLS)
def test_a_killed_rewrite_is_continued(orders: Orders, kill_at: int, is_after: bool) -> None:
    rows = orders.rows
    with suppress(Kill):
        orders.sync(AFTER, KilledRunner(orders.backend.runner, kill_at, is_after))
    assert not report_drift(orders.engine(), [AFTER]).drifted
    orders.sync(AFTER)
    assert [row["id"] for row in orders.rows] == [row["id"] for row in rows]
    assert orders.is_settled(AFTER)
    replaced = [
        row
        for row in orders.backend.runner.run(f"DESCRIBE HISTORY {orders.address}")
        if "REPLACE" in str(row["operation"])
    ]
    assert len(replaced) == 1


class Beside:
    """Runs statements, and lets a writer add a row right before or right after the rewrite."""

    def __init__(self, orders: Orders, *, is_after: bool) -> None:
        self.orders, self.is_after = orders, is_after

    def run(self, sql: str) -> Sequence[Row]:
        is_rewrite = sql.startswith("CREATE OR REPLACE")
        row = "(3, TIMESTAMP_NTZ'2026-01-03 10:00:00', 'late')"
        if is_rewrite and not self.is_after:
            self.orders.insert(row)
        answer = self.orders.backend.runner.run(sql)
        if is_rewrite and self.is_after:
            self.orders.insert(row)
        return answer


@pytest.mark.parametrize("is_after", [False, True])
def test_rows_of_writers_beside_it_stay(orders: Orders, is_after: bool) -> None:
    with suppress(ApplyFailedError):  # the row has no day until the next run fills it
        orders.sync(AFTER, Beside(orders, is_after=is_after))
    orders.sync(AFTER)
    assert [row["id"] for row in orders.rows] == [1, 2, 3]
    assert all(row["order_day"] for row in orders.rows)
    assert orders.is_settled(AFTER)


def test_a_partitioned_table_becomes_a_clustered_one(orders: Orders) -> None:
    partitioned = replace(BEFORE, partitioned_by=("note",))
    orders.sync(partitioned)
    clustered = replace(BEFORE, cluster_by=("id",))
    orders.sync(clustered)
    assert (orders.state.partitioned_by, orders.state.cluster_by) == ((), ("id",))
    assert [row["id"] for row in orders.rows] == [1, 2]
    assert orders.is_settled(clustered)

    orders.undo()  # RESTORE brings the partitions back, which no other statement does by now
    assert (orders.state.partitioned_by, orders.state.cluster_by) == (("note",), ())
    assert orders.is_settled(partitioned)


def test_a_table_that_was_ever_clustered_gets_no_partitions(orders: Orders) -> None:
    """Its protocol keeps the feature after CLUSTER BY NONE, and Delta refuses the rewrite."""
    partitioned = replace(BEFORE, partitioned_by=("note",))
    assert not plan_unlocked(orders.engine(), [partitioned]).refusals
    orders.sync(replace(BEFORE, cluster_by=("id",)))
    orders.sync(BEFORE)
    assert orders.state.cluster_by == ()
    (refusal,) = plan_unlocked(orders.engine(), [partitioned]).refusals
    assert "it is or was clustered" in str(refusal)
    with pytest.raises(StatementError) as refused:
        orders.backend.runner.run(
            f"CREATE OR REPLACE TABLE {orders.address} USING delta PARTITIONED BY (note) "
            f"AS SELECT * FROM {orders.address}"
        )
    assert refused.value.error_class == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"
