"""Adds RESTORE and UNSET MANAGED to the plan of an undo, in place of actions whose effects they bring back. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace

from delta_engine import aspects
from delta_engine.actions import Action, Align, AlignTable, Create, TablePlan
from delta_engine.aspects.restores import RestoreTable
from delta_engine.aspects.storage import ChangeLocation, UnsetManaged
from delta_engine.aspects.tags import UnsetColumnTags
from delta_engine.aspects.view_needs import turn_of
from delta_engine.models import QualifiedName, Securable, Table
from delta_engine.state.states import CatalogState


def before_restores(
    models: Sequence[Securable], observed: CatalogState, restores: Mapping[QualifiedName, RestoreTable]
) -> list[Securable]:
    """Return the models to plan from: RESTORE brings back partitions, so that no rewrite is planned for them."""
    restored = {name.key for name in restores}
    return [
        replace(model, partitioned_by=observed.tables[model.key].partitioned_by)
        if isinstance(model, Table) and model.key in restored
        else model
        for model in models
    ]


def with_restores(plan: TablePlan, restores: Mapping[QualifiedName, RestoreTable]) -> TablePlan:
    """Return a plan that restores some of its tables; of their other actions, it has those of the catalog alone."""
    if not restores:
        return plan
    aligned = {align.table.key: align for align in plan.align_tables}
    for name, restore in restores.items():
        present = aligned.get(name.key, AlignTable(name, (restore,)))
        beyond = (
            action
            for action in present.actions
            if not aspects.is_in_history(action)
            and not (isinstance(action, UnsetColumnTags) and action.before_drop)  # RESTORE drops the column
        )
        actions = (restore, *(action for action in beyond if action is not restore))
        aligned[name.key] = replace(present, actions=actions)
    return _with_later_views(plan.with_aligned_tables(aligned.values()), {name.key for name in restores})


def _with_later_views(plan: TablePlan, restored: Set[str]) -> TablePlan:
    """Return a plan whose views change after RESTORE: no order lets one resolve before and after that statement."""
    turn = turn_of(RestoreTable.phase)
    changes = (
        replace(change, order=change.order.after_all_of(restored, turn))
        if change.name.kind == "view" and isinstance(change, Create | Align)
        else change
        for change in plan.changes
    )
    return replace(plan, changes=tuple(changes))


def with_returns(plan: TablePlan, returns: Collection[QualifiedName]) -> TablePlan:
    """Return a plan that returns some of its tables to their former location."""
    if not returns:
        return plan
    keys = {name.key for name in returns}
    return plan.with_aligned_tables(
        replace(align, actions=tuple(map(_returned, align.actions))) if align.table.key in keys else align
        for align in plan.align_tables
    )


def _returned(action: Action) -> Action:
    match action:
        case ChangeLocation(desired=str(location), observed=None):
            return UnsetManaged(location)
    return action
