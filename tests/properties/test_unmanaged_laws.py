"""Laws of unmanaged parts: no sync makes them drift, and a revert brings them back."""

from __future__ import annotations

from typing import cast

from hypothesis import given

from delta_engine.actions.policy import AS_APPLIED
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.definitions import as_table, define
from delta_engine.deployment.document import ResourceMetadata
from delta_engine.drift.comparison import deviations, explained, recorded, with_unmanaged_parts
from delta_engine.drift.drifted_resources import Recorded
from delta_engine.drift.handling import accepted
from delta_engine.models import Table
from delta_engine.state.states import TableState
from tests.builders.strategies import reachable, successive_models
from tests.fakes.applying import after, created, orders_in

KEY = "dev.silver.orders"
PLANNER = TablePlanner()


def known(record: ResourceMetadata) -> Recorded[Table]:
    found = recorded(record, AS_APPLIED)
    assert found is not None
    assert isinstance(found.declared, Table)
    return cast("Recorded[Table]", found)


def synced(
    model: Table, state: TableState, earlier: ResourceMetadata | None = None
) -> tuple[TableState, ResourceMetadata]:
    """Return a table after a sync, which makes no drift of what it leaves alone; and what is on record then."""
    last = {KEY: as_table(earlier.definition)} if earlier and earlier.definition else {}
    end = after(PLANNER.plan([model], orders_in(state), last), orders_in(state)).tables[KEY]
    whole = with_unmanaged_parts(model, state, earlier)
    record = ResourceMetadata(definition=define(model), with_others=define(whole) if whole != model else None)
    assert deviations(known(record), end) == ()
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
    applied = known(record)
    changed = created(later)
    wanted = accepted(applied.baseline, changed, explained(applied, changed))
    plan = PLANNER.restoring().plan([wanted], orders_in(changed))
    assert deviations(applied, after(plan, orders_in(changed)).tables[KEY]) == ()
