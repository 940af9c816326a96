"""Pure planning of 10,000 tables × 50 columns, beside comparing the same columns and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import process_time

from benchmarks.many_tables import catalog, declared, with_another_comment
from benchmarks.measurement import Measurement, best_seconds, peak_memory
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import Table, resource_key
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import CatalogState

TABLES = 10_000
WHAT = f"plan {TABLES:,} × 50"


def measure() -> Iterator[Measurement]:
    """Yield the times, with what was applied last at hand, as in every sync; and the memory of all that."""
    state = catalog(TABLES)
    models = [declared(number) for number in range(TABLES)]
    yield _planned("nothing to do", models, state, changed=0)
    changed = [with_another_comment(model) for model in models]
    yield _planned("a column of every table changed", changed, state, changed=TABLES)
    yield Measurement(work=f"{WHAT}: memory", value=peak_memory(), unit="MiB")
    del models, changed
    reworded = [declared(number, wording="reworded") for number in range(TABLES)]
    yield _planned("every column changed", reworded, state, changed=TABLES)


def _planned(what: str, models: Sequence[Table], state: CatalogState, *, changed: int) -> Measurement:
    applied = {resource_key(model.qualified_name): Recorded.of(model) for model in models}

    def plan() -> None:
        result = TablePlanner().plan(models, state, applied)
        assert len(result.align_tables) == changed

    return Measurement(
        work=f"{WHAT}: {what}",
        value=best_seconds(plan, clock=process_time),
        bare=best_seconds(lambda: _compared(models, state), clock=process_time),
    )


def _compared(models: Sequence[Table], state: CatalogState) -> int:
    """Return how many columns are equal: each is compared, also where another one of its table differs."""
    sides = ((model.columns, state.tables[model.qualified_name.key].columns) for model in models)
    return sum(
        column == other
        for desired, observed in sides
        for column, other in zip(desired, observed, strict=True)
    )
