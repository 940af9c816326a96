"""Changes made to a deployment state by hand; the tables themselves stay untouched."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.deployment.renamed_resources import with_renamed
from delta_engine.deployment.resources import resource_key
from delta_engine.models import QualifiedName
from delta_engine.telemetry.context import command


def without_resources(state: DeploymentState, keys: Collection[str]) -> DeploymentState:
    """Return the document without some resources, which the engine then does not know."""
    kept = {key: resource for key, resource in state.resources.items() if key not in keys}
    return msgspec.structs.replace(state, resources=kept)


def with_renamed_table(state: DeploymentState, old: QualifiedName, new: QualifiedName) -> DeploymentState:
    """Return the document with a table under another name, after it was renamed in the catalog.

    Raises:
        StateMismatchError: there is no such table, or there is one of the new name.
    """
    old_key, new_key = resource_key(old), resource_key(new)
    if old_key not in state.resources:
        raise StateMismatchError(
            f"it has no table {old}",
            way_out=f"{command('state list', state.environment.name)} shows what it has.",
        )
    if new_key in state.resources:
        raise StateMismatchError(
            f"it has a table {new} already",
            way_out=f"Forget that one first: {command(f'state rm {new}', state.environment.name)}.",
        )
    return msgspec.structs.replace(state, resources=with_renamed(state.resources, old, new))
