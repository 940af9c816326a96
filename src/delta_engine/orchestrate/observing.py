"""Reads what exists for a plan, and what it says about the records of the deployment state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.deployment.recorded_models import last_applied, with_recorded_grants
from delta_engine.deployment.resources import resource_key, with_settled_renames
from delta_engine.drift.status import synchronize
from delta_engine.errors import RefusalGroup, RefusedError, StatementError
from delta_engine.models import QualifiedName, Table
from delta_engine.models.constraints import resolved
from delta_engine.orchestrate.environment import Environment
from delta_engine.state.catalog_reader import former_name, snapshot_with_former_names
from delta_engine.state.states import NO_AUDIT, CatalogState
from delta_engine.telemetry.context import command, utc_now

UNREADABLE: Final = (RefusedError, RefusalGroup, StatementError, OSError)
"""What a read may raise that is not worth ending a run for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a plan is made from.

    Args:
        models: the declared tables, keys resolved.
        observed: a snapshot of them, and of the tables that are recorded and no longer declared.
        loaded: the deployment state as it was loaded; None if there is none yet.
        state: the deployment state with the statuses that the snapshot shows.
        applied: the models that were applied last, by `QualifiedName.key`.
        is_partial: whether other models were left out.
        warnings: what could not be read.
    """

    models: tuple[Table, ...]
    observed: CatalogState
    loaded: DeploymentState | None = None
    state: DeploymentState | None = None
    applied: Mapping[str, Table]
    is_partial: bool = False
    warnings: tuple[str, ...] = ()


def observe(
    environment: Environment, tables: Sequence[Table], state: DeploymentState | None, *, is_partial: bool
) -> Observation:
    """Read the tables of models and interpret the records of a deployment state by what is found.

    Raises:
        CatalogReadError, RefusalGroup, StatementError: a declared table cannot be read.
    """
    models = resolved(tables)
    observed = snapshot_with_former_names(
        environment.reader,
        with_recorded_grants(models, state),
        with_recorded_grants(environment.planner.schemas, state),
    )
    return interpret(environment, models, observed, state, is_partial=is_partial)


def interpret(
    environment: Environment,
    models: tuple[Table, ...],
    observed: CatalogState,
    loaded: DeploymentState | None,
    *,
    is_partial: bool,
) -> Observation:
    """Return what a snapshot says about the records; it reads recorded tables that are no longer declared."""
    if loaded is None:
        return Observation(models=models, observed=observed, applied={}, is_partial=is_partial)
    state = with_settled_renames(loaded, models, observed)
    applied, now, policy = last_applied(state), utc_now(), environment.planner.policy
    managed = None if is_partial else {resource_key(model.qualified_name) for model in models}
    state = synchronize(state, observed, managed=managed, now=now, policy=policy)
    undeclared = [] if is_partial else undeclared_tables(models, applied)
    found, warnings = _read_undeclared(environment, with_recorded_grants(undeclared, state))
    if found is not None:
        state = synchronize(state, found, managed=None, now=now, policy=policy)
        observed = observed.with_tables(found)
    return Observation(
        models=models,
        observed=observed,
        loaded=loaded,
        state=state,
        applied=applied,
        is_partial=is_partial,
        warnings=warnings,
    )


def undeclared_tables(models: Sequence[Table], applied: Mapping[str, Table]) -> list[Table]:
    """Return the applied models of tables that no model declares, nor renames."""
    known = {model.key for model in models}
    known |= {former.key for former in map(former_name, models) if former is not None}
    return [table for key, table in applied.items() if key not in known]


def removed_tables(
    state: DeploymentState, undeclared: Sequence[Table], observed: CatalogState
) -> Iterator[QualifiedName]:
    """Yield the recorded tables that still exist, and still are the ones that were applied.

    Args:
        undeclared: the models that were applied last to tables that are no longer declared.
        observed: a snapshot of the models' schemas.
    """
    listed = {name.key for name in observed.other_tables}
    for table in undeclared:
        name = table.qualified_name
        read = observed.tables.get(name.key)
        exists = read.exists if read is not None else name.key in listed
        audit = read.audit if read is not None else observed.audits.get(name.key, NO_AUDIT)
        recorded = state.resources[resource_key(name)]
        # A part of a table, or another table under the name, was never the engine's to drop.
        if exists and table.manages is None and _is_same(recorded, audit.created_at):
            yield name


def _read_undeclared(
    environment: Environment, undeclared: Sequence[Table]
) -> tuple[CatalogState | None, tuple[str, ...]]:
    """Return a snapshot of undeclared tables; why they are unreadable is only a warning."""
    if not undeclared:
        return None, ()
    try:
        return environment.reader.snapshot(undeclared), ()
    except UNREADABLE as error:
        return None, (
            f"recorded tables that are no longer declared cannot be read: {error} "
            f"{command('state rm')} forgets them.",
        )


def _is_same(recorded: Resource, created_at: object) -> bool:
    known = recorded.metadata.created_at
    return known is None or created_at is None or known == created_at
