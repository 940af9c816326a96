"""Tables that were applied once and are not declared any more: found without reading anything further."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.deployment.resources import resource_key
from delta_engine.models import QualifiedName, Table
from delta_engine.state.states import NO_AUDIT, CatalogState


def removed_tables(
    state: DeploymentState, undeclared: Collection[Table], observed: CatalogState
) -> Iterator[QualifiedName]:
    """Yield those of some tables that are still there, and still the ones that were applied.

    Args:
        state: the deployment state.
        undeclared: what was applied to tables that no model declares, as it was applied last.
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


def _is_same(recorded: Resource, created_at: object) -> bool:
    known = recorded.metadata.created_at
    return known is None or created_at is None or known == created_at
