"""Times the engine against the bare SQL it saves people from writing, on local Delta.

40 tables × 21 commented columns: created, read when nothing is to do, and all comments changed. Both
sides run in the same Spark session at the same parallelism, in turn, and the medians are compared. The
no-op is read cold: each reading is a new process that has seen none of the tables.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measurement import Measurement
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.capabilities import OPEN_SOURCE
from delta_engine.backends.spark_sessions import open_local_session
from delta_engine.compile.compiler import compile_plan
from delta_engine.compile.planner import TablePlanner
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import Column, Table
from delta_engine.orchestrate.backend import embedded_backend
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.sql.queries import sql_describe_table, sql_show_table_properties
from delta_engine.state.states import ABSENT, CatalogState, TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES, COLUMNS, PARALLELISM = 40, 21, 4
WARM_UPS, ROUNDS = 2, 5


def measure() -> Iterator[Measurement]:
    """Yield the medians of both sides."""
    with tempfile.TemporaryDirectory() as folder:
        results = _seconds(Path(folder))
    for work, (engine, bare) in results.items():
        yield Measurement(
            work=f"local Delta, {TABLES} × {COLUMNS}: {work}",
            value=statistics.median(engine),
            bare=statistics.median(bare),
        )


def _seconds(folder: Path) -> dict[str, tuple[list[float], list[float]]]:
    """Return the seconds of (engine, bare SQL) by kind of work, warm-ups left out."""
    spark = open_local_session({}, scratch=folder / "scratch")
    create: tuple[list[float], list[float]] = ([], [])
    change: tuple[list[float], list[float]] = ([], [])
    for number in range(WARM_UPS + ROUNDS):
        ours, theirs = _warehouse(folder / f"engine{number}"), _warehouse(folder / f"bare{number}")
        sync = _engine(spark, ours)
        for series, desired, observed in ((create, models(), None), (change, models("new"), models())):
            statements = _statements(desired, observed, theirs)
            seconds = (
                _timed(partial(sync, desired)),
                _timed(partial(_run_all, spark, statements)),
            )
            if number >= WARM_UPS:
                series[0].append(seconds[0])
                series[1].append(seconds[1])
    spark.stop()
    last = folder / f"engine{WARM_UPS + ROUNDS - 1}"
    cold = [
        tuple(_cold_process(side, last, folder / f"engine{0}") for side in ("engine", "bare"))
        for _ in range(ROUNDS)
    ]
    return {
        "create": create,
        "change all comments": change,
        "no-op, cold": ([pair[0] for pair in cold], [pair[1] for pair in cold]),
    }


def models(wording: str = "old") -> list[Table]:
    """Return the tables."""
    return [
        Table(
            "dev",
            "silver",
            f"t{number}",
            [Column(f"c{index}", "bigint", comment=f"{wording} {index}") for index in range(COLUMNS)],
            comment=f"table {number}",
            table_properties={"team": "retail"},
        )
        for number in range(TABLES)
    ]


def _engine(spark: SparkSession, warehouse: Path) -> Callable[[list[Table]], object]:
    backend = embedded_backend(spark, warehouse, parallelism=PARALLELISM)
    runner = ActionRunner(backend.runner, backend.addressing, backend.capabilities, parallelism=PARALLELISM)
    return Orchestrator(reader=backend.reader, action_runner=runner).sync_tables


def _statements(desired: list[Table], observed: list[Table] | None, warehouse: Path) -> list[str]:
    """Return the statements by hand: rendered ahead, so that only running them is timed."""
    states = (
        [TableState(columns=t.columns, table_comment=t.comment, table_properties=t.table_properties)
         for t in observed]
        if observed
        else [ABSENT] * len(desired)
    )  # fmt: skip
    state = CatalogState(tables={t.qualified_name.key: s for t, s in zip(desired, states, strict=True)})
    plan = TablePlanner().plan(desired, state)
    return list(compile_plan(plan, PathAddressing(warehouse), OPEN_SOURCE).sql())


def _cold_process(side: str, warehouse: Path, other: Path) -> float:
    command = [sys.executable, "-m", "benchmarks.sync_against_bare_sql", side, str(warehouse), str(other)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout))


def _cold_reading(side: str, warehouse: Path, other: Path) -> float:
    """Warm the JVM on other tables, then read these for the first time."""
    with tempfile.TemporaryDirectory() as scratch:
        spark = open_local_session({}, scratch=Path(scratch))
        read = _no_op if side == "engine" else _bare_reading
        read(spark, other)
        return _timed(lambda: read(spark, warehouse))


def _no_op(spark: SparkSession, warehouse: Path) -> None:
    if _engine(spark, warehouse)(models("new")):
        raise AssertionError("there was something to do")


def _bare_reading(spark: SparkSession, warehouse: Path) -> None:
    def read(address: str) -> None:
        spark.table(address).schema  # noqa: B018 - reading it is the work
        for sql in (sql_show_table_properties(address), sql_describe_table(address)):
            spark.sql(sql).collect()  # the latter alone has the table's comment and partitions

    addressing = PathAddressing(warehouse)
    _in_parallel(read, [addressing.table(model.qualified_name) for model in models()])


def _run_all(spark: SparkSession, statements: list[str]) -> None:
    _in_parallel(lambda sql: spark.sql(sql).collect(), statements)


def _in_parallel(work: Callable[[str], object], items: Iterable[str]) -> None:
    with ThreadPoolExecutor(PARALLELISM) as pool:
        list(pool.map(work, items))


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _warehouse(folder: Path) -> Path:
    (folder / "dev" / "silver").mkdir(parents=True)
    return folder


if __name__ == "__main__":
    print(json.dumps(_cold_reading(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
