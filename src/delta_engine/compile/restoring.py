"""Adds RESTORE to a plan, in place of the actions whose effects it brings back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from delta_engine import aspects
from delta_engine.actions import AlignTable, TablePlan
from delta_engine.aspects.restores import RestoreTable
from delta_engine.models import QualifiedName


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
