"""Adds RESTORE to a plan, in place of the actions whose effects it brings back. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from delta_engine import aspects
from delta_engine.actions import AlignTable, TablePlan
from delta_engine.aspects.restores import RestoreTable
from delta_engine.models import QualifiedName, Table
from delta_engine.state.states import CatalogState


def before_restores(
    models: Sequence[Table], observed: CatalogState, restores: Mapping[QualifiedName, RestoreTable]
) -> list[Table]:
    """Return the models to plan from: RESTORE brings back partitions, so that no rewrite is planned for them."""
    restored = {name.key for name in restores}
    return [
        replace(model, partitioned_by=observed.tables[model.key].partitioned_by)
        if model.key in restored
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
        beyond = (action for action in present.actions if not aspects.is_in_history(action))
        actions = (restore, *(action for action in beyond if action is not restore))
        aligned[name.key] = replace(present, actions=actions)
    return replace(plan, align_tables=tuple(aligned[key] for key in sorted(aligned)))
