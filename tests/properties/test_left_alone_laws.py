"""Laws of what is left alone: no sync makes drift of it, and a revert brings back what somebody changed of it."""

from __future__ import annotations

from hypothesis import given

from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.definitions import as_table, define
from delta_engine.deployment.document import ResourceMetadata
from delta_engine.deployment.left_alone import drift_of, others_of, with_others
from delta_engine.drift.comparison import Applied, accepted, deviations, excused
from delta_engine.models import Table
from delta_engine.state.states import CatalogState, TableState
from tests.fakes.applying import after, created
from tests.strategies import reachable, successive_models

KEY = "dev.silver.orders"
PLANNER = TablePlanner()


def catalog(state: TableState) -> CatalogState:
    """Return a snapshot of dev.silver.orders."""
    return CatalogState(tables={KEY: state})


def synced(
    model: Table, state: TableState, earlier: ResourceMetadata | None = None
) -> tuple[TableState, ResourceMetadata]:
    """Return a table after a sync, which makes no drift of what it leaves alone; and what is on record then."""
    last = {KEY: as_table(earlier.definition)} if earlier and earlier.definition else {}
    end = after(PLANNER.plan([model], catalog(state), last), catalog(state)).tables[KEY]
    whole = with_others(model, state, earlier)
    record = ResourceMetadata(definition=define(model), with_others=define(whole) if whole != model else None)
    assert drift_of(as_table(define(model)), others_of(record), end) == ()
    return end, record


@given(successive_models(3))
def test_what_was_there_before_is_no_drift_whatever_comes_after(drawn: tuple[Table, ...]) -> None:
    theirs, ours, next_one = drawn
    ours = reachable(ours, theirs, next_one)
    state, record = synced(ours, created(theirs))
    state, record = synced(reachable(next_one, ours), state, record)
    synced(ours, state, record)


@given(successive_models(3))
def test_a_revert_brings_back_whatever_somebody_did(drawn: tuple[Table, ...]) -> None:
    theirs, ours, later = drawn
    ours = reachable(ours, theirs, later)
    _, record = synced(ours, created(theirs))
    applied = Applied(table=as_table(define(ours)), renames={}, with_others=others_of(record))
    changed = created(later)
    wanted = accepted(applied.left, changed, excused(applied, changed))
    plan = PLANNER.restoring().plan([wanted], catalog(changed))
    assert deviations(applied, after(plan, catalog(changed)).tables[KEY]) == ()
