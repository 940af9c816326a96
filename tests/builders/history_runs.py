"""Lets the steps of a history happen in a world, and notes them in its ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from delta_engine.actions.drift_policy import IgnoreEntry
from delta_engine.aspects.protection import is_protected
from delta_engine.drift.drifted_resources import is_table
from delta_engine.drift.handling import edited
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import InvalidModelError, StatementError
from delta_engine.execute.outcomes import AnyOutcome, is_of_table, of_schemas
from delta_engine.models import Securable, Table
from delta_engine.models.types import StructType
from delta_engine.orchestrate.acceptance import record_accepted
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.orchestrator import find_drift, plan_revert, plan_sync
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.runs import OpenRun, open_run
from delta_engine.validation.validator import PlanValidator
from tests.builders import schema_runs
from tests.builders.histories import (
    Accept,
    ByHand,
    Configure,
    Declare,
    Revert,
    Step,
    Sync,
    modelled,
    modelled_schema,
    statement_by_hand,
)
from tests.builders.worlds import EVERYTHING, REFUSED, Kill, World, first_name
from tests.cases import schema_expectations as expected_schema
from tests.cases.ownership_expectations import (
    after_sync,
    column_names,
    declared_renames,
    ignored,
    is_left_deleted,
    lacks_parent,
    renames_of,
)
from tests.cases.ownership_ledger import Page, Parts, Seen, is_inside, kind_of, parts_of


def do(world: World, step: Step) -> None:
    """Let something happen, and note it in the ledger."""
    match step:
        case Declare("silver", facet, value):
            world.schema_facets[facet] = value
            world.schema = modelled_schema(world.schema_facets)
        case Declare(table, facet, value):
            _declare(world, table, {**world.facets.get(table, {}), facet: value})
        case ByHand(table, change):
            with contextlib.suppress(StatementError):
                statement = statement_by_hand(change, table, world.present_name(table))
                world.catalog.run(statement)
                _note_statements(world, [statement])
        case Configure("allow", value):
            world.policy = replace(world.policy, allow=EVERYTHING if value == "everything" else ())
        case Configure("handling" | "refused_from" as key, value):
            changes: dict[str, Any] = {key: value}
            world.drift_policy = replace(world.drift_policy, **changes)
        case Configure("ignored", value):
            world.ignored = str(value)
            fields = ("table_deleted", "table_replaced") if value == "table" else (world.ignored,)
            entry = IgnoreEntry(resource="*", fields=fields, reason="known")
            world.drift_policy = replace(world.drift_policy, ignores=(entry,) if value else ())
        case Configure(key, value):
            changes = {key: value}
            world.policy = replace(world.policy, **changes)
        case Sync():
            _sync(world, step)
        case Accept(is_merged):
            _accept(world, is_merged=is_merged)
        case Revert():
            _revert(world)
    for name, page in world.pages.items():
        stored = world.stored(name)
        page.is_hidden = stored is not None and is_protected(stored.state)


def _declare(world: World, name: str, facets: dict[str, object]) -> None:
    """Change a model, unless the models would be invalid. A table is not renamed back."""
    facets["name"] = facets.get("name") or world.facets.get(name, {}).get("name", "")
    model = modelled(name, facets)
    kept = {other_name: model for other_name, model in world.declared.items() if other_name != name}
    kept |= {name: model} if facets.get("declared", True) else {}
    if _are_valid(kept) and not _has_both_names(world, name, model):
        world.facets[name], world.models[name] = facets, model
        world.pages.setdefault(name, Page())


def _are_valid(models: Mapping[str, Table]) -> bool:
    names = {model.table_name for model in models.values()}
    parents = {key.references.rpartition(".")[2] for model in models.values() for key in model.foreign_keys}
    types = [column.data_type for model in models.values() for column in model.columns]
    if StructType(()) in types:  # no file can declare it: the last field of a struct is gone
        return False
    return parents <= names and not any(PlanValidator().model_violations([*models.values()]))


def _has_both_names(world: World, name: str, model: Table) -> bool:
    """Whether the table has a renamed column under both names, as after a failed run: the engine refuses that."""
    stored = world.stored(name)
    there = {column.key for column in stored.state.columns} if stored else set()
    return any(column.key in there and not there.isdisjoint(column.renamed_from) for column in model.columns)


def _note_statements(world: World, statements: Iterable[str]) -> None:
    for sql in statements:
        if " SCHEMA " in sql:
            continue
        names = sql.split("`")[1::2]
        page = world.pages.setdefault(first_name(names[2]), Page())
        if " RENAME COLUMN " in sql:
            *inside, old, new = names[3:]
            page.note_rename(".".join((*inside, old)), ".".join((*inside, new)))
    for name, page in world.pages.items():
        page.note_gone(world.seen(name))


def _applied(
    world: World, operation: str, plan: Callable[[OpenRun, list[Securable]], PlannedRun], fault: Sync
) -> tuple[PlannedRun | None, dict[str, AnyOutcome], bool]:
    """Plan and apply; return the plan unless the models do not fit, the outcomes, and whether the run ended."""
    ran, outcomes, has_ended = len(world.catalog.statements), dict[str, AnyOutcome](), True

    def keep(outcome: AnyOutcome) -> None:
        if is_of_table(outcome):
            outcomes.setdefault(first_name(outcome.name.table), outcome)

    planned: PlannedRun | None = None
    try:
        with open_run(world.engine(fault), operation) as run:
            planned = plan(run, world.declared_models)
            if not planned.refusals:
                done = apply_planned(run, planned, keep)
                outcomes |= {outcome.name.schema: outcome for outcome in of_schemas(done.outcomes)}
    except Kill:
        has_ended = False
    except InvalidModelError:
        assert lacks_parent(world)
        return None, outcomes, has_ended
    assert planned is not None
    _note_statements(world, world.catalog.statements[ran:])
    return planned, outcomes, has_ended


def _sync(world: World, fault: Sync) -> None:
    before = {name: world.seen(name) for name in world.declared}
    models = {name: declared for name, declared in world.declared.items() if not is_left_deleted(world, name)}
    wanted = {name: after_sync(world, name) for name in models}
    schema_before, schema_wanted = world.seen_schema(), expected_schema.after_sync(world)
    planned, outcomes, has_ended = _applied(world, "sync", plan_sync, fault)
    if planned is None or planned.refusals:
        return
    done = outcomes.get("silver")
    schema_runs.note_synced(
        world,
        schema_before,
        schema_wanted,
        has_failed=done.failure is not None if done else world.seen_schema().parts != schema_wanted,
        is_touched=bool(planned.plan.align_schemas),
        was_refused=done is not None and was_refused(done),
        has_ended=has_ended,
    )
    touched = {first_name(action.table.table) for action in planned.plan.table_actions()}
    is_whole = has_ended and not any(outcome.failure for outcome in outcomes.values())
    for name, model in models.items():
        outcome, page = outcomes.get(name), world.pages[name]
        has_failed = name in touched and (outcome is None or outcome.failure is not None)
        if has_failed and outcome is not None and world.present_name(name) != model.table_name:
            pass  # its rename failed, and no other statement ran
        elif has_failed and outcome is not None and was_refused(outcome):
            page.attempts += (page.declared,) if page.declared is not None else ()
        elif has_failed:
            renames = renames_of(model, before[name])
            page.attempts += (parts_of(model), *(followed_under(page, renames) if renames else ()))
            page.attempted_renames |= {*declared_renames(model).items()}
        elif name in touched or has_ended:
            _note_applied(world, name, before[name], is_touched=name in touched, has_ended=has_ended)
            stored = world.catalog.tables[model.key]
            assert parts_of(stored.state) == wanted[name]
        if has_ended:
            world.pages[name].note_agreement(world.seen(name), world.full)
    if has_ended:
        _forget_deleted(world)
    if is_whole:
        assert not plan_unlocked(world.engine(), world.declared_models).plan


def was_refused(outcome: AnyOutcome) -> bool:
    """Whether the first statement certainly did nothing."""
    failure = outcome.failure
    return failure is not None and failure.error_class == REFUSED and not outcome.statements


def _note_applied(world: World, name: str, before: Seen | None, *, is_touched: bool, has_ended: bool) -> None:
    is_ignored = "table" in ignored(world, name)
    page, seen, model = world.pages[name], world.seen(name), world.models[name]
    assert seen is not None
    if is_touched or page.model != model or page.attempts or page.full != world.full:
        page.applied(parts_of(model), column_names(model), before, seen, world.full)
        page.model = model
    elif seen.columns == column_names(model):
        page.order = seen.columns
    if before is None:
        page.birth = seen.birth if has_ended else None  # a killed run does not read it
    elif has_ended and not is_ignored:
        page.birth = seen.birth


def _forget_deleted(world: World) -> None:
    """Forget the tables whose deletion was accepted, and whose models are gone."""
    for name, page in world.pages.items():
        if name not in world.declared and world.seen(name) is None and "table" in page.accepted:
            world.pages[name] = Page()


def _accept(world: World, *, is_merged: bool) -> None:
    with open_run(world.engine(), "drift --accept") as run:
        keys = {model.key for model in world.declared.values()}
        compared = find_drift(run, world.declared_models)
        keys |= {world.schema.key} if world.schema else set()
        drifted = [resource for resource in compared if resource.drift and resource.model_name.key in keys]
        record_accepted(run, drifted)
    for name in world.declared:
        world.pages[name].note_agreement(world.seen(name), world.full)
    world.schema_page.note_agreement(world.seen_schema(), world.full)
    schema_runs.note_accepted(world, drifted, is_merged=is_merged)
    models = dict(world.declared)
    for table in filter(is_table, drifted):
        name = first_name(table.declared.table_name)
        drift, left = world.pages[name].drift(world.seen(name), world.full), ignored(world, name)
        world.pages[name].accepted = {part: value for part, value in drift.items() if part not in left}
        edits = {name: edited(world.models[name], table)} if table.observed.exists else {}
        models = {key: model for key, model in models.items() if key != name} | edits
    if is_merged and _are_valid(models):  # else nothing is edited
        for name in world.declared:
            world.facets[name]["declared"] = name in models
        world.models |= models


def _revert(world: World) -> None:
    before = {name: world.seen(name) for name in world.declared}
    drift = {name: world.pages[name].drift(seen, world.full) for name, seen in before.items()}
    kept = {name: ignored(world, name) for name in world.declared}
    renames = {name: world.pages[name].known_renames(seen) if seen else {} for name, seen in before.items()}
    schema_before, schema_drift = world.seen_schema(), {*expected_schema.drift(world)}
    schema_kept = expected_schema.ignored(world)
    planned, _, _ = _applied(world, "drift --revert", plan_revert, Sync())
    if planned is None:
        return
    if not planned.refusals:
        schema_runs.check_reverted(world, schema_before, schema_drift, schema_kept)
    touched = {first_name(action.table.table) for action in planned.plan.table_actions()}
    for name in () if planned.refusals else world.declared:
        page, seen, former = world.pages[name], world.seen(name), before[name]
        if seen and page.model and name not in touched and seen.columns == column_names(page.model):
            page.order = seen.columns  # others gave it the order that was declared
        if not {*drift[name]} - kept[name]:
            assert seen == former
            continue
        assert seen is not None
        back = {new: old for old, new in renames[name].items()}
        if name in touched:
            page.names, page.accepted = {}, {}
            order = column_names(page.model) if page.model else page.order
            page.note_order(former and former.renamed(back), seen, order)
        if former is None:
            page.birth = seen.birth  # of a replaced table it stays: its data cannot be brought back
        else:
            assert_unchanged(former.renamed(back), seen, {*drift[name]} - kept[name], page.base)
        assert {*page.drift(seen, world.full)} <= {"column order", "table", *kept[name]}


def followed_under(page: Page, renames: dict[str, str]) -> tuple[Parts, ...]:
    followed = ((page.declared,) if page.declared else ()) + page.attempts
    return tuple(Seen(parts, (), "").renamed(renames).parts for parts in followed)


def assert_unchanged(former: Seen, seen: Seen, drift: Iterable[str], base: Parts) -> None:
    """A revert changes nothing but drift, and may bring back what others had made before the engine came."""
    columns = {part for part in drift if kind_of(part) == "column"}
    for part in {*former.parts, *seen.parts}.difference(drift):
        expected = (former.parts.get(part), base.get(part))
        assert is_inside(part, columns) or seen.parts.get(part) in expected, part
