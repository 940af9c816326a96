"""Laws of unmanaged parts: no sync makes them drift, and a revert brings them back."""

from __future__ import annotations

from hypothesis import given

from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.definitions import as_table, define
from delta_engine.drift.baselines import with_unmanaged_parts
from delta_engine.drift.comparison import explained
from delta_engine.drift.handling import accepted
from delta_engine.models import Table
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import TableState
from tests.builders.detection import compared_with, drift_from
from tests.builders.strategies import reachable, successive_models
from tests.fakes.applying import after, created, orders_in

KEY = "dev.silver.orders"
PLANNER = TablePlanner()


def synced(
    model: Table, state: TableState, earlier: Recorded[Table] | None = None
) -> tuple[TableState, Recorded[Table]]:
    """Return a table after a sync, which makes no drift of what it leaves alone; and what is on record then."""
    earlier_records = {f"table.{KEY}": earlier} if earlier else {}
    end = after(PLANNER.plan([model], orders_in(state), earlier_records), orders_in(state)).tables[KEY]
    whole = with_unmanaged_parts(model, state, earlier)
    record = Recorded.of(as_table(define(model)), baseline=whole)
    assert drift_from(record, end) == ()
    return end, record


@given(successive_models(3))
def test_what_was_there_before_is_no_drift_whatever_comes_after(drawn: tuple[Table, ...]) -> None:
    theirs, ours, next_one = drawn
    ours = reachable(ours, theirs, next_one)
    state, record = synced(ours, created(theirs))
    state, record = synced(reachable(next_one, ours), state, record)
    synced(ours, state, record)


@given(successive_models(3))
def test_a_revert_brings_back_every_change(drawn: tuple[Table, ...]) -> None:
    theirs, ours, later = drawn
    ours = reachable(ours, theirs, later)
    _, record = synced(ours, created(theirs))
    changed = created(later)
    compared = compared_with(record, changed)
    wanted = accepted(compared.baseline, changed, explained(compared))
    plan = PLANNER.for_reverts().plan([wanted], orders_in(changed))
    assert drift_from(record, after(plan, orders_in(changed)).tables[KEY]) == ()
