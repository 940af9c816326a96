"""What a run brings about, and its plan, with the drift that the plan meets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.actions.policy import Consent, NeededConsent, Policy
from delta_engine.aspects.restores import RestoreTable
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.compile.planner import TablePlanner, while_renaming
from delta_engine.compile.restoring import before_restores, with_restores, with_returns
from delta_engine.drift.comparison import listed_parts
from delta_engine.drift.drifted_resources import ComparedResource, UndoneDrift, UnmanagedPart
from delta_engine.drift.handling import is_replaced
from delta_engine.drift.observation import EMPTY_CATALOG, Observation
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName, Securable, SecurableName, Table, of_kind
from delta_engine.ownership.recorded import Recorded, is_unrecorded, table_record
from delta_engine.state.states import CatalogState
from delta_engine.validation.relations import checked_plan
from delta_engine.validation.rules import needed_by


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
    """What a run brings about. It plans from any snapshot of the same tables, by the same rules and records.

    Args:
        planner: with the policy of the run.
        models: what securables become: the models with ignored drift, or the baselines that a revert restores.
        records: of all, as `TablePlanner.plan` takes them.
        removed: as `TablePlanner.plan` takes it.
        undo: what is to be undone; None for a run of the models as they are.
        is_revert: whether it brings back what was applied last. That settles nothing that unfinished runs attempted.
    """

    planner: TablePlanner = field(default_factory=TablePlanner)
    models: tuple[Securable, ...] = ()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A plan with everything that an apply, a plan file and a rendering need.

    Args:
        compiled: the statements of the plan.
        basis: what the plan was made from.
        intent: what it brings about.
        snapshot: the snapshot with the tables that foreign keys reference, and those to be dropped.
        drifted: the drift that it meets; a revert says none.
        refusals: why the plan must not be applied; empty if it may.
        consents: the entries of `conf/consents.yml` that allow changes of the plan.
        consent_entries: the entries that would allow the changes that are refused; empty for none.
        undone: the drift that the plan undoes, by resource key and field.
        judged_warnings: which rights the principal may lack, and which readers the plan may break.
    """

    plan: TablePlan = field(default_factory=TablePlan)
    compiled: CompiledPlan = field(default_factory=CompiledPlan)
    basis: Observation = field(default_factory=Observation)
    intent: Intent = field(default_factory=Intent)
    snapshot: CatalogState = EMPTY_CATALOG
    drifted: tuple[ComparedResource, ...] = ()
    refusals: tuple[RefusedError, ...] = ()
    consents: tuple[Consent, ...] = ()
    consent_entries: str = ""
    undone: UndoneDrift = field(default_factory=dict)
    judged_warnings: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[Securable, ...]:
        """What the run records: the declared models, or what a revert restores."""
        return self.basis.models

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that the run records."""
        return self.basis.tables

    @property
    def replaced(self) -> tuple[QualifiedName, ...]:
        """The declared tables that were dropped and created outside the engine."""
        keys = {compared.model_name.key for compared in self.drifted if is_replaced(compared)}
        return tuple(table.qualified_name for table in self.tables if table.key in keys)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be read, what the judgement warns of, and which replaced tables a sync would take."""
        taken = () if self.refusals else self.replaced
        replaced = (
            f"{name} was replaced outside the engine: a sync records the new table in its place"
            for name in taken
        )
        return (*self.basis.warnings, *self.judged_warnings, *replaced)

    @property
    def meets_drift(self) -> bool:
        """Whether the plan undoes drift, or takes replaced tables."""
        return bool(self.undone or self.replaced)

    @property
    def adopted(self) -> tuple[QualifiedName, ...]:
        """The declared tables that exist and that no run has recorded: this run adopts them."""
        basis = self.basis
        tables = [(table.qualified_name, basis.observed.table(table.qualified_name)) for table in self.tables]
        return tuple(
            name
            for name, table in tables
            if table.exists and is_unrecorded(table_record(basis.resources, table.former_name or name))
        )

    @property
    def needed_consents(self) -> tuple[NeededConsent, ...]:
        """The changes that are refused because they lack consent."""
        return needed_by(self.refusals)

    @property
    def unmanaged_parts(self) -> tuple[UnmanagedPart, ...]:
        """The parts of the declared tables that a sync keeps because they were never declared."""
        basis, order = self.basis, self.intent.policy.column_order
        return tuple(listed_parts(basis.tables, basis.observed, basis.records, order))


def _is_gone(name: SecurableName, observed: CatalogState) -> bool:
    """Whether a snapshot shows that something does not exist."""
    state = observed.of(name)
    return state is not None and not state.exists
