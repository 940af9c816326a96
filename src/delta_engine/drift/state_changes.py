"""The differences between two deployment states, resource by resource."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delta_engine import aspects
from delta_engine.aspects.aspect import Change, Sign
from delta_engine.aspects.comparison import Comparison
from delta_engine.deployment.definitions import TableDefinition, as_table
from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.state.states import state_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceChange:
    """One resource that differs. It has no changes if only one side has it."""

    key: str
    sign: Sign
    changes: tuple[Change, ...] = ()


def compare_states(earlier: DeploymentState, later: DeploymentState) -> tuple[ResourceChange, ...]:
    """Return the changes from one document to another, sorted by key."""
    return tuple(_changes(earlier, later))


def _changes(earlier: DeploymentState, later: DeploymentState) -> Iterator[ResourceChange]:
    for key in sorted({*earlier.resources, *later.resources}):
        before, after = earlier.resources.get(key), later.resources.get(key)
        if before is None:
            yield ResourceChange(key=key, sign=Sign.ADDED)
        elif after is None:
            yield ResourceChange(key=key, sign=Sign.REMOVED)
        elif before != after:
            yield ResourceChange(key=key, sign=Sign.CHANGED, changes=tuple(_within(before, after)))


def _within(before: Resource, after: Resource) -> Iterator[Change]:
    if before.status is not after.status:
        yield _changed("status", before.status.value, after.status.value)
    earlier, later = before.metadata.definition, after.metadata.definition
    if earlier is not None and later is not None:
        yield from _redefined(earlier, later)
    if before.metadata.delta_version != after.metadata.delta_version:
        yield _changed("delta version", str(before.metadata.delta_version), str(after.metadata.delta_version))
    if before.deployed_at != after.deployed_at:
        yield _changed("deployed at", str(before.deployed_at), str(after.deployed_at))


def _redefined(earlier: TableDefinition, later: TableDefinition) -> Iterator[Change]:
    before = as_table(earlier)
    comparison = Comparison.of(as_table(later), state_of(before), last_applied=before)
    yield from (difference.change for difference in aspects.differences(comparison))


def _changed(subject: str, observed: str, desired: str) -> Change:
    return Change(subject, observed, desired)
