"""Applying a change to each of 1,000 tables through a runner that takes 50 ms a statement, by 16 workers."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from benchmarks.many_tables import catalog, declared, with_another_comment
from benchmarks.measurement import Measurement, best_seconds
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.planner import TablePlanner
from delta_engine.execute.action_runner import ActionRunner

TABLES, WORKERS, STATEMENT_SECONDS = 1_000, 16, 0.05


class SlowRunner:
    """Takes its time for every statement, and does nothing."""

    def run(self, _sql: str) -> Sequence[Row]:
        """Wait as long as a platform would need."""
        time.sleep(STATEMENT_SECONDS)
        return ()


def measure() -> Iterator[Measurement]:
    """Yield how long it takes, beside the rounds of statements that the workers need at best."""
    models = [with_another_comment(declared(number)) for number in range(TABLES)]
    plan = TablePlanner().plan(models, catalog(TABLES))
    runner = ActionRunner(SlowRunner(), CatalogAddressing(), DATABRICKS, parallelism=WORKERS)
    yield Measurement(
        work=f"apply {TABLES:,} statements of 50 ms by {WORKERS} workers",
        value=best_seconds(lambda: runner.apply(runner.compile(plan)), rounds=2),
        bare=math.ceil(TABLES / WORKERS) * STATEMENT_SECONDS,
    )
