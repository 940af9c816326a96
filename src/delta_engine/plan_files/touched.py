"""What a plan touches: the tables and schemas that it changes, and the tables that foreign keys connect with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from delta_engine.actions import TablePlan
from delta_engine.deployment.codec import details_of
from delta_engine.deployment.definitions import config_checksum
from delta_engine.models import QualifiedName, Securable, Table, resource_key
from delta_engine.models.constraints import referenced_table
from delta_engine.models.open_struct import checksum_of
from delta_engine.ownership.recorded import AnyRecord
from delta_engine.plan_files.document import TouchedResource
from delta_engine.state.audits import NO_AUDIT
from delta_engine.state.states import ABSENT, CatalogState, SecurableState, TableState

_VOLATILE = ("delta.lastCommitTimestamp", "delta.lastUpdateVersion", "transient_", "spark.sql.statistics.")
"""Prefixes of properties that change with the data."""

_NOT_COUNTED = {
    *("drift", "sync_error", "actual_checksum", "lag", "sync_warning"),  # runs derive them again
    *("delta_version", "schema_checksum", "unknown"),  # nothing is planned from them
    "change",  # names the last run, also one that changed nothing; an undo, which is planned from it, plans again
}
"""Details of a record that make no plan stale."""


def touched_keys(plan: TablePlan, models: Iterable[Table], observed: CatalogState) -> frozenset[str]:
    """Return the resource keys of what a plan touches, renamed tables under both names.

    Args:
        models: the declared tables.
        observed: the snapshot of the plan; tables that it does not have are touched only if the plan changes them.
    """
    changed = {name.key for name in _changed_tables(plan, observed)}
    connected = {key for ends in _connections(models, observed) if changed & {*ends} for key in ends}
    tables = changed | (connected & observed.tables.keys())
    names = map(resource_key, plan.changed_names())
    return frozenset((*names, *(f"table.{key}" for key in tables)))


def touched_resource(
    state: SecurableState | None,
    model: Securable | None,
    record: AnyRecord | None,
    table_id: str | None,
) -> TouchedResource:
    """Return what a plan file holds of a table or schema; None for what is not known or does not exist."""
    existing = state if state is not None and state.exists else ABSENT
    return TouchedResource(
        observed=_observed(existing) if existing.exists else None,
        declared=None if model is None else _declared(model),
        recorded=_recorded(record),
        table_id=table_id,
        created_at=existing.audit.created_at,
    )


def _observed(state: SecurableState) -> str:
    """Return the checksum of a definition, without what changes with the data of a table."""
    state = replace(state, audit=NO_AUDIT)
    if isinstance(state, TableState):
        properties = state.table_properties.items()
        state = replace(
            state,
            table_properties={key: value for key, value in properties if not key.startswith(_VOLATILE)},
            cluster_by=() if state.clusters_automatically else state.cluster_by,
        )
    return checksum_of(repr(state).encode())  # it shows the fields that a comparison counts


def _declared(model: Securable) -> str:
    return config_checksum(model)


def _recorded(record: AnyRecord | None) -> str | None:
    """Return the checksum of a record: its models, ownership, ids, accepted drift and last apply.

    What other runs derive again without an apply does not count. Measured with `drift`, `sync` and `sync -t`: they
    change the status, `drift`, `sync_error` and `actual_checksum`, and nothing of a table that `-t` leaves out.
    A `sync` can also adopt a model or an ownership policy without a statement. Plans depend on both, so they count.
    A record without a model only lists a table or schema: it counts as none.
    """
    if record is None or not (record.applied or record.attempts):
        return None
    facts = details_of(record)
    counted = {key: value for key, value in facts.items() if key not in _NOT_COUNTED}
    return checksum_of(msgspec.json.encode({**counted, "deployed_at": record.deployed_at}, order="sorted"))


def _changed_tables(plan: TablePlan, observed: CatalogState) -> Iterator[QualifiedName]:
    for action in plan.table_actions():
        yield action.table
        former = observed.tables.get(action.table.key, ABSENT).former_name
        if former is not None:
            yield former


def _connections(models: Iterable[Table], observed: CatalogState) -> Iterator[tuple[str, str]]:
    """Yield the keys of the two tables of every foreign key, declared or existing."""
    tables = [(model.qualified_name, model.foreign_keys) for model in models]
    tables += [(QualifiedName.of_key(key), state.foreign_keys) for key, state in observed.tables.items()]
    for name, foreign_keys in tables:
        for foreign_key in foreign_keys:
            parent = referenced_table(name, foreign_key)
            if parent is not None:
                yield name.key, parent.key
    for key, state in observed.tables.items():
        yield from ((reference.table.key, key) for reference in state.referenced_by)
