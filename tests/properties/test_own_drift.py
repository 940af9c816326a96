"""Runs of the engine leave no drift: what a report finds, others have made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.drift.drifted_resources import drifted_tables
from delta_engine.drift.handling import edited
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import ConfigError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import Table
from delta_engine.orchestrate.acceptance import record_accepted
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import find_drift, plan_revert, plan_sync
from delta_engine.orchestrate.runs import OpenRun, open_run
from delta_engine.orchestrate.undoing import plan_undo
from delta_engine.plan_files.document import Options
from delta_engine.validation.validator import PlanValidator
from tests.builders.histories import (
    FACETS,
    POLICIES,
    TOPICS,
    Accept,
    ByHand,
    Configure,
    Declare,
    Revert,
    Sync,
)
from tests.builders.history_runs import do
from tests.builders.worlds import Kill, World
from tests.proofs import examples


class Undo(NamedTuple):
    """Undoes the last run; the statement at a place fails, or the run is killed there."""

    fault: Sync = Sync()


Step: TypeAlias = Accept | ByHand | Configure | Declare | Revert | Sync | Undo

_TOPICS = ("order", "order", "x", "y", "n", "fields", "required", "type", "clustering", "tag")
_FAULTS = [Sync(place, is_killed) for is_killed in (False, True) for place in range(4)]
_RUNS: list[Step] = [Sync(), Sync(), Sync(), Undo(), Undo(), *_FAULTS, *map(Undo, _FAULTS)]
_TOLD_LATER = {"move x": {DriftKind.COLUMN_ORDER}}
"""What others change and a report tells only after the next run, if an unfinished one may have done it."""
_ANSWERS: list[Step] = [Accept(is_merged=True), Accept(is_merged=False), Revert(), Revert()]


@st.composite
def histories(draw: st.DrawFn, *, has_others: bool) -> list[Step]:
    """Draw what happens to a table: what its model declares, the runs, and what others do."""
    topics = draw(st.lists(st.sampled_from(_TOPICS), min_size=1, max_size=2))
    facets = [facet for topic in topics for facet in TOPICS[topic][0]]
    declared: list[Step] = [Declare("a", facet, value) for facet in facets for value in FACETS[facet]]
    orders: list[Step] = [Configure("column_order", order) for order in POLICIES["column_order"]]
    steps = [
        st.sampled_from(declared),
        st.sampled_from(_RUNS),
        st.sampled_from([Sync(), Sync(), Undo(), *orders]),
    ]
    if has_others:
        changes: list[Step] = [ByHand("a", change) for topic in topics for change in TOPICS[topic][1]]
        steps += [st.sampled_from(changes), st.sampled_from(_ANSWERS)]
    first = draw(st.lists(st.sampled_from(declared), max_size=4))
    return [*first, Sync(), *draw(st.lists(st.one_of(steps), min_size=3, max_size=10))]


@settings(max_examples=examples(200, 5_000))
@given(histories(has_others=False))
@pytest.mark.parametrize("is_adopted", [False, True], ids=["created", "adopted"])
def test_runs_of_the_engine_alone_leave_no_drift(is_adopted: bool, history: list[Step]) -> None:
    world = _world(is_adopted=is_adopted)
    for step in history:
        _do(world, step)
        assert _drift(world) == set()


@settings(max_examples=examples(200, 5_000))
@given(histories(has_others=True))
def test_runs_add_no_drift_to_that_of_others(history: list[Step]) -> None:
    world, of_others = _world(is_adopted=False), set[DriftKind]()
    for step in history:
        _do(world, step)
        if isinstance(step, ByHand):
            of_others |= _drift(world) | _TOLD_LATER.get(step.change, set())
        assert _drift(world) <= of_others


@pytest.mark.parametrize("dropped", [None, "n"], ids=["statements", "RESTORE"])
@pytest.mark.parametrize("facet", [facet for facet in FACETS if facet not in ("declared", "name")])
def test_a_sync_behind_an_unfinished_undo_brings_back_a_table_with_all_parts_of_others(
    facet: str, dropped: str | None
) -> None:
    for fault in (Sync(), *_FAULTS):
        world = _world(is_adopted=True)
        _do(world, Declare("a", "third column", dropped))
        _do(world, Sync())
        _do(world, Declare("a", "third column", None))
        _do(world, Declare("a", facet, FACETS[facet][1]))
        _do(world, Sync())
        synced = world.catalog.tables["dev.silver.a"].state
        _do(world, Undo(fault))
        _do(world, Sync())
        assert world.catalog.tables["dev.silver.a"].state == synced, fault


def _world(*, is_adopted: bool) -> World:
    world = World()
    if is_adopted:
        do(world, ByHand("a", "create with more"))
    do(world, Declare("a", "comment", ""))
    return world


def _do(world: World, step: Step) -> None:
    match step:
        case Sync():
            _run(world, "sync", lambda run: plan_sync(run, _models(world)), step)
        case Revert():
            _run(world, "drift --revert", lambda run: plan_revert(run, _models(world)))
        case Undo(fault):
            with suppress(ConfigError, StateMismatchError):  # there is nothing to undo
                _run(world, "undo", _undo, fault)
        case Accept(is_merged):
            _accept(world, is_merged=is_merged)
        case ByHand() | Configure() | Declare():
            do(world, step)


def _run(
    world: World,
    operation: str,
    plan: Callable[[OpenRun], PlannedRun],
    fault: Sync = Sync(),  # noqa: B008 - a tuple
) -> None:
    with suppress(Kill, ApplyFailedError), open_run(world.engine(fault), operation) as run:
        planned = plan(run)
        if not planned.refusals:
            apply_planned(run, planned).result()


def _undo(run: OpenRun) -> PlannedRun:
    return plan_undo(run.environment, run.loaded, Options(skips_refused=True))


def _accept(world: World, *, is_merged: bool) -> None:
    with open_run(world.engine(), "drift --accept") as run:
        drifted = [resource for resource in find_drift(run, _models(world)) if resource.drift]
        record_accepted(run, drifted)
    models = [edited(world.models["a"], table) for table in drifted_tables(drifted) if table.observed.exists]
    if is_merged and not any(PlanValidator().model_violations(models)):
        world.models.update({model.table_name: model for model in models})


def _models(world: World) -> list[Table]:
    return [*world.declared.values()]


def _drift(world: World) -> set[DriftKind]:
    report = report_drift(world.engine(), _models(world))
    return {
        finding.kind
        for resource in (*report.drifted, *report.deleted, *report.schemas)
        for finding in resource.findings
    }
