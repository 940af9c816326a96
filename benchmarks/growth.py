"""Whether planning grows with the tables, and no faster: many at once, beside the same ones in ten parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from time import process_time
from typing import TypeAlias

from benchmarks.many_tables import catalog, declared, with_another_comment
from benchmarks.measurement import Measurement, seconds_of
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import Table
from delta_engine.state.states import CatalogState

COLUMNS = 10  # 50,000 tables of 50 columns would measure this machine's memory
PARTS = 10
ROUNDS = 21

Database: TypeAlias = tuple[Sequence[Table], CatalogState]


def measure() -> Iterator[Measurement]:
    """Yield how many times as long ten times the tables take, one in ten of them changed."""
    for many in (10_000, 50_000):
        yield Measurement(
            work=f"growth of planning: {many // PARTS:,} to {many:,} tables",
            value=_growth(many),
            unit="×",
            bare=PARTS,
        )


def _growth(tables: int) -> float:
    """Return how many times as long all tables take as a part of them.

    The parts are planned one after the other, so that what is planned is in no processor's caches yet, as it is with
    all of them, and in a run of the engine; the same few tables again and again would be. A round is both, right
    after each other, for the speed of a processor may change from second to second; the median round counts.
    """
    whole = _database(tables)
    parts = [_part(whole, start, tables // PARTS) for start in range(0, tables, tables // PARTS)]
    return median(_seconds([whole]) / (_seconds(parts) / PARTS) for _ in range(ROUNDS))


def _database(tables: int) -> Database:
    models = [declared(number, COLUMNS) for number in range(tables)]
    models[::10] = map(with_another_comment, models[::10])
    return models, catalog(tables, COLUMNS)


def _part(whole: Database, start: int, tables: int) -> Database:
    models, state = whole[0][start : start + tables], whole[1]
    return models, CatalogState(tables={model.key: state.tables[model.key] for model in models})


def _seconds(databases: Sequence[Database]) -> float:
    """Return the seconds of a processor that planning them takes."""

    def plan() -> None:
        for models, state in databases:
            TablePlanner().plan(models, state)

    return seconds_of(plan, process_time)
