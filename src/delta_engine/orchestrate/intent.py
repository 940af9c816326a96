"""What a run brings about: it plans from any snapshot of the same tables, by the same rules and records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects.restores import RestoreTable
from delta_engine.compile.planner import TablePlanner, while_renaming
from delta_engine.compile.restoring import before_restores, with_restores, with_returns
from delta_engine.models import QualifiedName, Securable, SecurableName, Table, of_kind
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import CatalogState
from delta_engine.validation.relations import checked_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """What the undo of a run brings back.

    Args:
        run: the run's id.
        title: names the run in messages.
        models: what was declared. Columns that the run renamed name their present names.
        baselines: the same, tables with the unmanaged parts of then.
        former: the records from before the run, by `QualifiedName.key`.
        restores: the tables that only RESTORE brings back.
        restored: the keys of these tables, and of those that an undo that did not finish has restored.
        returns: the tables that UNSET MANAGED returns to their former location.
        created: what the run created, and the undo drops.
    """

    run: str
    title: str = ""
    models: tuple[Securable, ...] = ()
    baselines: tuple[Securable, ...] = ()
    former: Mapping[str, Recorded[Table]] = field(default_factory=dict)
    restores: Mapping[QualifiedName, RestoreTable] = field(default_factory=dict)
    restored: frozenset[str] = frozenset()
    returns: tuple[QualifiedName, ...] = ()
    created: tuple[Securable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What a run brings about.

    Args:
        planner: with the policy of the run.
        models: what securables become: the models with ignored drift, or the baselines that a revert restores.
        records: of all, as `TablePlanner.plan` takes them.
        removed: as `TablePlanner.plan` takes it.
        undo: what is to be undone; None for a run of the models as they are.
        is_revert: whether it brings back what was applied last. That settles nothing that unfinished runs attempted.
    """

    planner: TablePlanner
    models: tuple[Securable, ...]
    records: Mapping[str, Recorded[Any]] = field(default_factory=dict)
    removed: Mapping[SecurableName, int | None] = field(default_factory=dict)
    undo: Undo | None = None
    is_revert: bool = False

    @property
    def tables(self) -> tuple[Table, ...]:
        """What the tables become."""
        return tuple(of_kind(Table, self.models))

    @property
    def policy(self) -> Policy:
        """The policy by which it plans."""
        return self.planner.policy

    def plan(self, observed: CatalogState, under_way: AlignTable | None = None) -> TablePlan:
        """Return what is to be done, also during the alignment of a table.

        Raises:
            InvalidModelError, RefusalGroup: models do not fit what exists.
        """
        return checked_plan(self.tables, observed, lambda: self._plan(observed, under_way))

    def _plan(self, observed: CatalogState, under_way: AlignTable | None) -> TablePlan:
        undo = self.undo
        plan = self.planner.plan(
            before_restores(self.models, observed, undo.restores) if undo else self.models,
            observed,
            while_renaming(self.records, under_way) if under_way else self.records,
            {name: rows for name, rows in self.removed.items() if not _is_gone(name, observed)},
            undoes=undo is not None,
        )
        return with_returns(with_restores(plan, undo.restores), undo.returns) if undo else plan


def _is_gone(name: SecurableName, observed: CatalogState) -> bool:
    """Whether a snapshot shows that something does not exist."""
    state = observed.of(name)
    return state is not None and not state.exists
