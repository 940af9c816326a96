"""The synchronizer: what became of everything that was applied, by comparing it with the catalog.

Only statuses and findings change here. What was applied last stays as it is: only an apply replaces it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from delta_engine import aspects
from delta_engine.actions.policy import NO_POLICY, Ownership, Policy, as_applied
from delta_engine.aspects.aspect import Comparison
from delta_engine.deployment.attempts import not_of_runs
from delta_engine.deployment.definitions import as_schema, define_columns, schema_checksum
from delta_engine.deployment.document import DeploymentState, Difference, Resource, ResourceType, Status
from delta_engine.deployment.left_alone import (
    as_difference,
    beside,
    carried,
    drift_of,
    exact_differences,
    others_of,
    ours_of,
)
from delta_engine.deployment.resources import noted, table_key, unmanaged_table
from delta_engine.deployment.schema_resources import schema_key
from delta_engine.models import QualifiedName, Table
from delta_engine.state.states import CatalogState, TableState

NOT_SHOWN_YET = "right after the apply the catalog did not show all of it yet"
"""Why a table that was applied is not verified, where it can be read."""

HALF_DONE = (Status.DEGRADED, Status.UNKNOWN)
"""Runs of ours left these half-done: that they differ is nobody's drift, as far as runs can have done it."""

_SETTLED = (Status.HEALTHY, Status.MISSING, Status.DRIFTED)
"""What these said of a half-done resource holds no more."""


def synchronize(
    state: DeploymentState,
    observed: CatalogState,
    *,
    managed: Collection[str] | None,
    now: datetime,
    policy: Policy = NO_POLICY,
) -> DeploymentState:
    """Return the document with the statuses that the catalog shows: missing, drifted, healthy, unmanaged.

    Args:
        state: the document.
        observed: a snapshot; what it does not cover is left as it is.
        managed: the keys of all models' tables; None where only some were read, and who is unmanaged cannot
            be told.
        now: the time.
        policy: whose the tags and privileges are that nobody applied.

    Returns:
        The same document if nothing is different.
    """
    held = as_applied(policy)
    resources = {
        key: _synchronized(key, resource, observed, held) for key, resource in state.resources.items()
    }
    if managed is not None:
        resources = _with_unmanaged(resources, observed, managed)
    if resources == state.resources:
        return state
    return msgspec.structs.replace(state, resources=resources, synced_at=now)


def is_half_done(resource: Resource) -> bool:
    """Whether a run of ours left a table or schema half-done. One that the catalog only showed late is not."""
    metadata = resource.metadata
    return bool(metadata.attempted or metadata.attempted_schemas) or (
        resource.status in HALF_DONE and not metadata.lag
    )


def confirmed(
    resource: Resource,
    wanted: Table,
    observed: TableState,
    *,
    ours: Sequence[Table] = (),
    policy: Policy = NO_POLICY,
) -> Resource:
    """Return the record of a table that was just applied, after another look at it.

    What it is not yet is no drift: the catalog may be late to show it. What the run left alone is no part of that.

    Args:
        resource: the record.
        wanted: what the table was to become.
        observed: the table now.
        ours: what was on record of it before: what is not wanted of that any more may show for a while.
        policy: what it was planned by.
    """
    left = () if policy.definitions is Ownership.FULL else beside(wanted, observed, ours)
    found = exact_differences(wanted, observed, as_applied(policy))
    late = tuple(as_difference(one) for one in found if one not in left)
    if not late:
        return noted(resource, observed)
    metadata = msgspec.structs.replace(resource.metadata, drift=late, lag=late, sync_error=NOT_SHOWN_YET)
    return msgspec.structs.replace(resource, status=Status.UNKNOWN, metadata=metadata)


def _synchronized(key: str, resource: Resource, observed: CatalogState, policy: Policy) -> Resource:
    definition = resource.metadata.definition
    if definition is None:
        return _synchronized_schema(key, resource, observed, policy)
    name = QualifiedName(definition.catalog, definition.schema, definition.name)
    if name.key not in observed.tables:
        return resource
    table = observed.table(name)
    if not table.exists:
        return _found(resource, Status.MISSING, sync_error="the table is not in the catalog")
    checksum = schema_checksum(define_columns(table.columns))
    others, ours = others_of(resource.metadata), ours_of(resource.metadata)
    found = drift_of(ours[0], others, table, policy)
    attempted = [carried(model, others, ours) if others else model for model in ours[1:]]
    by_others = not_of_runs(found, attempted, table, policy) if attempted else ()
    if by_others:
        return _found(
            resource,
            Status.DRIFTED,
            sync_error=resource.metadata.sync_error,
            drift=tuple(map(as_difference, by_others)),
            actual_checksum=checksum,
        )
    return _compared(resource, tuple(map(as_difference, found)), checksum)


def _compared(
    resource: Resource, drift: tuple[Difference, ...], actual_checksum: str | None = None
) -> Resource:
    """Return a resource that exists, with how it differs from what was applied."""
    if not drift:
        return _found(resource, Status.HEALTHY)
    if is_half_done(resource):
        status = Status.UNKNOWN if resource.status in _SETTLED else resource.status
    else:
        is_late = resource.status in HALF_DONE and set(drift) <= set(resource.metadata.lag)
        status = resource.status if is_late else Status.DRIFTED
    return _found(
        resource,
        status,
        sync_error=(
            resource.metadata.sync_error if is_half_done(resource) or status is resource.status else None
        ),
        drift=drift,
        actual_checksum=actual_checksum,
    )


def _synchronized_schema(key: str, resource: Resource, observed: CatalogState, policy: Policy) -> Resource:
    """Return a schema's resource as found; one that is not declared says nothing that could be compared."""
    if key in {schema_key(*pair) for pair in observed.missing_schemas}:
        return _found(resource, Status.MISSING, sync_error="the schema is not in the catalog")
    definition = resource.metadata.schema_definition
    if definition is not None:
        schema = as_schema(definition)
        found = observed.schema_states.get(schema.key)
        if found is not None:
            drift = aspects.differences(Comparison.of(schema, found, policy=policy))
            return _compared(resource, tuple(map(as_difference, drift)))
    if resource.status is Status.MISSING and key in {schema_key(*pair) for pair in observed.schemas}:
        return _found(resource, Status.HEALTHY)
    return resource


def _found(
    resource: Resource,
    status: Status,
    *,
    sync_error: str | None = None,
    drift: tuple[Difference, ...] = (),
    actual_checksum: str | None = None,
) -> Resource:
    lag = () if status is Status.HEALTHY else resource.metadata.lag
    metadata = msgspec.structs.replace(
        resource.metadata, sync_error=sync_error, drift=drift, lag=lag, actual_checksum=actual_checksum
    )
    return msgspec.structs.replace(resource, status=status, metadata=metadata)


def _with_unmanaged(
    resources: dict[str, Resource], observed: CatalogState, managed: Collection[str]
) -> dict[str, Resource]:
    """Replace the unmanaged tables known so far by those that are there.

    A table that a run only attempted, and that is not declared any more, is one of them, or was never made.
    """
    formers = {table_key(table.former_name) for table in observed.tables.values() if table.former_name}
    listed = observed.schemas | observed.missing_schemas
    given_up = {
        key
        for key, found in resources.items()
        if key not in managed and key not in formers and _is_given_up(key, found, listed)
    }
    kept = {
        key: found
        for key, found in resources.items()
        if key not in given_up
        and (found.status is not Status.UNMANAGED or (key in managed and found.metadata.attempted))
    }
    for name in observed.unasked:
        key = table_key(name)
        if key not in kept and key not in managed:
            known = resources.get(key)
            kept[key] = known if known and key not in given_up else unmanaged_table(name, known)
    return kept


def _is_given_up(key: str, resource: Resource, listed: Collection[tuple[str, str]]) -> bool:
    """Whether nothing was ever applied to a table that no model wants, in one of the schemas that were listed."""
    if resource.type is not ResourceType.TABLE or resource.metadata.definition is not None:
        return False
    catalog, schema = key.split(".")[1:3]
    return resource.status is not Status.UNMANAGED and (catalog, schema) in listed
