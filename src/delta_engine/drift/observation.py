"""What was observed, and what a drift report is made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from delta_engine.actions.drift_policy import NO_DRIFT_POLICY, DriftKind, DriftPolicy
from delta_engine.actions.policy import NO_POLICY, NeededConsent, Policy
from delta_engine.deployment.document import DeploymentState, records_of
from delta_engine.drift.drifted_resources import (
    ClassifiedDrift,
    ComparedResource,
    ComparedTable,
    drifted_tables,
)
from delta_engine.errors import RefusedError
from delta_engine.models import (
    QualifiedName,
    Securable,
    SecurableName,
    Table,
    by_resource,
    of_kind,
    resource_key,
)
from delta_engine.ownership.recorded import AnyRecord, Recorded
from delta_engine.state.states import CatalogState, SecurableState

if TYPE_CHECKING:
    from delta_engine.config.entry_text import EntryWriter


EMPTY_CATALOG: Final = CatalogState(tables={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a plan and a report are made from.

    Args:
        models: the declared models, keys of tables resolved.
        retired: the last models of what is recorded and no longer declared, under the names of the read.
        observed: a snapshot of them, and of what is recorded and no longer declared.
        loaded: the deployment state as it was loaded; None if there is none yet.
        state: the same under the present names of tables; for a plan, with the statuses that the snapshot shows.
        records: of all that has a model, by resource key; those of what is renamed also under their new names.
        compared: the records next to what exists, by resource key.
        is_partial: whether other models were left out.
        unreadable: why tables are not in the snapshot.
        warnings: why recorded tables that no model declares are not in the snapshot.
        has_undeclared: whether these were read at all, so that `unreadable` says which are missing.
    """

    models: tuple[Securable, ...] = ()
    observed: CatalogState = EMPTY_CATALOG
    retired: tuple[Securable, ...] = ()
    loaded: DeploymentState | None = None
    state: DeploymentState | None = None
    records: Mapping[str, Recorded[Any]] = field(default_factory=dict)
    compared: Mapping[str, ComparedResource] = field(default_factory=dict)
    is_partial: bool = False
    unreadable: tuple[RefusedError, ...] = ()
    warnings: tuple[str, ...] = ()
    has_undeclared: bool = True

    @property
    def resources(self) -> Mapping[str, AnyRecord]:
        """All records of the deployment state, by key; those of others than `records` have no model."""
        return records_of(self.state)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The declared tables."""
        return tuple(of_kind(Table, self.models))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRevert:
    """A revert of drift, as its plan was judged.

    Args:
        resources: the securables that it can bring back, by key.
        needed: the changes that it needs to be allowed.
        refusals: why it refuses the others, whatever is allowed.
        files: whether a Delta table lies at the location of a missing table, by its key, as far as that is known.
    """

    resources: frozenset[str] = frozenset()
    needed: tuple[NeededConsent, ...] = ()
    refusals: tuple[RefusedError, ...] = ()
    files: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DriftFacts:
    """The input of a report.

    Args:
        checked_at: the time of the snapshot, UTC.
        unreadable: the tables that could not be read. The snapshot lacks them.
        model_patterns: the globs of the YAML models.
        entries: writes entries of the configuration; without it, none are recommended.
    """

    environment: str
    checked_at: datetime
    basis: Observation
    drifted: Sequence[ComparedResource] = ()
    unreadable: Sequence[tuple[QualifiedName, ClassifiedDrift]] = ()
    unmanaged: Sequence[tuple[SecurableName, ClassifiedDrift]] = ()
    policy: DriftPolicy = NO_DRIFT_POLICY
    plan_policy: Policy = NO_POLICY
    reversal: PlannedRevert = field(default_factory=PlannedRevert)
    model_patterns: Sequence[str] = ()
    entries: EntryWriter | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def declared(self) -> Mapping[str, Securable]:
        """The declared securables by resource key."""
        return by_resource(self.basis.models)

    @cached_property
    def missing_tables(self) -> Mapping[str, ComparedTable]:
        """The drifted tables that do not exist, by key."""
        return {table.name.key: table for table in drifted_tables(self.drifted) if not table.observed.exists}

    @cached_property
    def tables_without_keys(self) -> Mapping[str, Sequence[ComparedTable]]:
        """The tables with drift of foreign keys, by the resource keys of the tables that their models reference."""
        tables: dict[str, list[ComparedTable]] = defaultdict(list)
        for table in drifted_tables(self.drifted):
            model = self.declared.get(table.model_key)
            if isinstance(model, Table) and any(
                detail.finding.kind is DriftKind.FOREIGN_KEY for detail in table.drift
            ):
                for parent in {key.references.lower() for key in model.foreign_keys}:
                    tables[f"{QualifiedName.kind}.{parent}"].append(table)
        return tables

    @cached_property
    def needed_by_tables(self) -> Mapping[str, Sequence[NeededConsent]]:
        """The changes that the reversal needs to be allowed, by resource key."""
        needed: dict[str, list[NeededConsent]] = defaultdict(list)
        for change in self.reversal.needed:
            needed[resource_key(change.securable)].append(change)
        return needed

    @cached_property
    def readable(self) -> Sequence[tuple[Securable, SecurableState]]:
        """The declared securables that the snapshot covers, with their states, by key, tables last."""
        ordered = sorted(self.basis.models, key=lambda model: (isinstance(model, Table), model.key))
        states = ((model, self.basis.observed.of(model.qualified_name)) for model in ordered)
        return [(model, state) for model, state in states if state is not None]
