"""Histories of an environment: what the engine says of drift and ownership, and does about it, is in a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import assume, given, settings

from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.drifted_resources import DriftRefusal
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import InvalidModelError
from delta_engine.models import Securable
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.planning import plan_unlocked
from tests.builders.histories import ByHand, Declare, Step, Sync, histories
from tests.builders.history_runs import do
from tests.builders.worlds import World, first_name
from tests.cases import schema_expectations
from tests.cases.ownership_expectations import (
    expected_drift,
    ignored,
    is_refused,
    is_replaced,
    kept_order,
    lacks_parent,
    pending,
    undone,
    view,
)
from tests.cases.ownership_ledger import parts_of
from tests.proofs import examples


def check(world: World) -> None:
    """Compare what the engine says with the ledger."""
    models = world.declared_models
    report, planned = report_drift(world.engine(), models), plan_of(world, models)
    expected = {name: expected_drift(world, name) for name in world.pages}
    expected["silver"] = schema_expectations.expected_drift(world)
    assert drift_in(report) == {name: parts for name, parts in expected.items() if parts}
    left = {name: ignored(world, name) for name in world.pages} | {
        "silver": schema_expectations.ignored(world)
    }
    ignored_by_table = by_table((ignored.resource, ignored.finding.field) for ignored in report.ignored)
    assert ignored_by_table == {name: parts for name, parts in left.items() if parts}
    if planned is None:
        return
    unmanaged = {
        name: page.unmanaged(parts_of(world.models[name]), kept_order(world, name, seen), seen, world.full)
        for name in world.declared
        for page, seen in [view(world, name)]
        if seen is not None
    }
    listed = by_table((part.resource, part.key) for part in planned.unmanaged_parts)
    assert listed == {name: parts for name, parts in unmanaged.items() if parts}
    reverted = {
        name: {*undone(world, name).values()} for name in world.declared if not is_replaced(world, name)
    }
    reverted["silver"] = schema_expectations.undone(world)
    assert by_table(planned.undone) == {name: parts for name, parts in reverted.items() if parts}
    changes = {name: pending(world, name) for name in world.declared}
    changes["silver"] = schema_expectations.pending(world) or None
    assert pending_in(report) == {name: parts for name, parts in changes.items() if parts is not None}
    has_refused = any(isinstance(refusal, DriftRefusal) for refusal in planned.refusals)
    refused = [is_refused(world, name) for name in world.declared]
    assert has_refused == any([*refused, schema_expectations.is_refused(world)])


def plan_of(world: World, models: Sequence[Securable]) -> PlannedRun | None:
    """Return the plan; None if a key references a table whose deletion is ignored, which refuses every plan."""
    try:
        return plan_unlocked(world.engine(), models)
    except InvalidModelError:
        assert lacks_parent(world)
        return None


def drift_in(report: DriftReport) -> dict[str, dict[str, bool]]:
    return {
        first_name(resource.resource.rpartition(".")[2]): {
            named(finding.field): finding.accepted is not None for finding in resource.findings
        }
        for resource in (*report.drifted, *report.deleted, *report.schemas)
    }


def pending_in(report: DriftReport) -> dict[str, set[str]]:
    """Return the pending changes by table, without the moves of columns."""
    changes_by_resource = {
        resource.resource: {part.field for part in resource.changes} for resource in report.pending
    }
    kept = {
        key: {part for part in parts if not part.endswith(" place")}
        for key, parts in changes_by_resource.items()
    }
    return {
        first_name(key.rpartition(".")[2]): {*map(named, kept[key])}
        for key in changes_by_resource
        if kept[key] or not changes_by_resource[key]
    }


def by_table(parts: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    parts_by_table: dict[str, set[str]] = {}
    for resource, part in parts:
        parts_by_table.setdefault(first_name(resource.rpartition(".")[2]), set()).add(named(part))
    return parts_by_table


def named(part: str) -> str:
    """Return a part as the ledger names it: a table has one primary key; properties are listed by their keys."""
    if part.startswith("primary key"):
        return "primary key"
    return part if " " in part or part in ("clustering", "table", "owner") else f"property {part}"


@settings(max_examples=examples(250, 10_000))
@given(histories())
@pytest.mark.parametrize("is_adopted", [False, True], ids=["created", "adopted"])
def test_a_history_is_what_the_ledger_says(is_adopted: bool, history: tuple[list[Step], list[Step]]) -> None:
    world, (model, steps) = World(), history
    adopted: list[Step] = [ByHand("a", "create with more")] if is_adopted else []
    for step in (Declare("a", "comment", ""), *adopted, *model, Sync()):
        do(world, step)
    assume(world.pages["a"].declared is not None)  # a plan that sets tags and drops a mask is refused
    for step in steps:
        check(world)
        do(world, step)
    check(world)
