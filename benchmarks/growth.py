"""Whether planning grows with the tables, and no faster: ten times the tables at two sizes."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

from benchmarks.many_tables import catalog, declared, with_another_comment
from benchmarks.measurement import Measurement, best_seconds
from delta_engine.compile.planner import TablePlanner

COLUMNS = 10  # 50,000 tables of 50 columns would measure this machine's memory


def measure() -> Iterator[Measurement]:
    """Yield how many times as long ten times the tables take, one in ten of them changed."""
    seconds = {tables: planned(tables) for tables in (1_000, 5_000, 10_000, 50_000)}
    for few, many in ((1_000, 10_000), (5_000, 50_000)):
        yield Measurement(
            work=f"growth of planning: {few:,} to {many:,} tables",
            value=seconds[many] / seconds[few],
            unit="×",
            bare=many / few,
        )


def planned(tables: int) -> float:
    """Return the seconds that planning takes."""
    state = catalog(tables, COLUMNS)
    models = [declared(number, COLUMNS) for number in range(tables)]
    models[::10] = map(with_another_comment, models[::10])
    return best_seconds(lambda: TablePlanner().plan(models, state), clock=process_time)
