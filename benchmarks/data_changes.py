"""Changes that write ten million rows anew, on local Delta, beside the same statements by hand.

The engine's verification is counted apart: statements that are written by hand do not have it. Each side has a table of
its own with the same rows; they run in turn, and the best of two rounds counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measurement import Measurement
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.spark_sessions import open_local_session
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import raise_all
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import Column, Table
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.backend import Backend, embedded_backend
from delta_engine.orchestrate.orchestrator import Orchestrator, plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import open_run
from delta_engine.validation.validator import PlanValidator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, PARTS, ROUNDS = 10_000_000, 8, 2
POLICY = Policy(
    allow=(Allowance(DestructiveKind.BACKFILL_COLUMN), Allowance(DestructiveKind.REWRITE_TABLE)),
    create_schemas=True,
)
BEFORE = Table(
    "dev",
    "silver",
    "orders",
    [Column("id", "bigint"), Column("amount", "string"), Column("part", "int")],
    table_properties={"delta.columnMapping.mode": "name"},
)
CHANGES = {
    "convert a column": replace(
        BEFORE,
        columns=(
            Column("id", "bigint"),
            Column("amount", "int", using="cast(amount AS int)"),
            Column("part", "int"),
        ),
    ),
    "other partitions": replace(BEFORE, partitioned_by=("part",)),
}


def measure() -> Iterator[Measurement]:
    """Yield each change without its verification, and the verification."""
    with tempfile.TemporaryDirectory() as folder:
        spark = open_local_session({}, scratch=Path(folder) / "scratch")
        for work, after in CHANGES.items():
            rounds = [_round(spark, Path(folder) / f"{work}{number}", after) for number in range(ROUNDS)]
            engine, verification, bare = (min(seconds) for seconds in zip(*rounds, strict=True))
            name = f"local Delta, 10 million rows: {work}"
            yield Measurement(work=name, value=engine, bare=bare)
            yield Measurement(work=f"{name}, verification", value=verification)


def _round(spark: SparkSession, folder: Path, after: Table) -> tuple[float, float, float]:
    """Return the seconds of the engine without its verification, of that, and of the statements by hand."""
    ours, theirs = (_warehouse(spark, folder / side) for side in ("engine", "bare"))
    statements = [
        statement.sql
        for step in plan_unlocked(_engine(theirs), [after]).compiled.steps
        for statement in step.statements
        if not _is_verification(statement.sql)
    ]
    runner = _Timed(ours.runner)
    began = time.perf_counter()
    _sync(_engine(ours, runner), after)
    engine = time.perf_counter() - began - runner.verifying
    began = time.perf_counter()
    for sql in statements:
        theirs.runner.run(sql)
    return engine, runner.verifying, time.perf_counter() - began


@dataclass
class _Timed:
    """Runs statements, and counts the seconds of those that verify."""

    runner: SqlRunner
    verifying: float = 0

    def run(self, sql: str) -> Sequence[Row]:
        began = time.perf_counter()
        try:
            return self.runner.run(sql)
        finally:
            if _is_verification(sql):
                self.verifying += time.perf_counter() - began


def _is_verification(sql: str) -> bool:
    return sql.startswith("SELECT CASE WHEN")


def _warehouse(spark: SparkSession, folder: Path) -> Backend:
    """Return a warehouse with the table and its rows."""
    backend = embedded_backend(spark, folder)
    _sync(_engine(backend), BEFORE)
    backend.runner.run(
        f"INSERT INTO {backend.addressing.table(BEFORE.qualified_name)} "
        f"SELECT id, string(id % 1000000), int(id % {PARTS}) FROM range({ROWS})"
    )
    return backend


def _engine(backend: Backend, runner: SqlRunner | None = None) -> Orchestrator:
    return Orchestrator(
        reader=backend.reader,
        action_runner=ActionRunner(runner or backend.runner, backend.addressing, backend.capabilities),
        planner=TablePlanner(POLICY),
        validator=PlanValidator(POLICY),
        versions=backend.versions,
    )


def _sync(engine: Orchestrator, model: Table) -> None:
    with open_run(engine, "sync") as run:
        planned = plan_sync(run, [model])
        raise_all(planned.refusals)
        apply_planned(run, planned).result()
