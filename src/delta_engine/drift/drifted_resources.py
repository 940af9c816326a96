"""Drifted tables and schemas: their deviations, classified by a target's policy. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeAlias, TypeGuard

from delta_engine.actions.drift_policy import DriftPolicy, IgnoreEntry
from delta_engine.aspects.comparison import Model_co, Securable, SecurableState, State_co
from delta_engine.deployment.resources import resource_key
from delta_engine.drift.comparison import Deviation, Recorded
from delta_engine.drift.drift_report import Attribution, Finding
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.state.states import SchemaState, TableState
from delta_engine.state.table_queries import TableVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedDrift:
    """A deviation with its finding for the report, and the policy entry that ignores it, if any."""

    deviation: Deviation
    finding: Finding
    ignored_by: IgnoreEntry | None = None


class DriftRefusal(RefusedError):
    """A plan would undo a change made outside the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted(Generic[Model_co, State_co]):
    """A table or schema that differs from its last apply.

    Args:
        is_history_whole: whether the history of a table reaches back to the apply, so that renames are known.
        field_renames: the renames of fields in commits, new paths by old ones, dotted and in lower case.
    """

    recorded: Recorded[Model_co]
    observed: State_co
    version: TableVersion | None = None
    is_history_whole: bool = False
    field_renames: Mapping[str, str] = field(default_factory=dict)
    details: tuple[ClassifiedDrift, ...]

    @property
    def name(self) -> QualifiedName | SchemaName:
        """The name of the table or schema."""
        return self.recorded.declared.qualified_name

    @property
    def resource(self) -> str:
        """The key in the deployment state."""
        return resource_key(self.name)

    @property
    def drift(self) -> tuple[ClassifiedDrift, ...]:
        """The deviations that the policy does not ignore."""
        return tuple(detail for detail in self.details if detail.ignored_by is None)


DriftedTable: TypeAlias = Drifted[Table, TableState]
DriftedSchema: TypeAlias = Drifted[Schema, SchemaState]
DriftedResource: TypeAlias = Drifted[Securable, SecurableState]


def drifted_tables(found: Iterable[DriftedResource]) -> tuple[DriftedTable, ...]:
    """Return the drifted tables."""
    return tuple(filter(is_table, found))


def drifted_schemas(found: Iterable[DriftedResource]) -> tuple[DriftedSchema, ...]:
    """Return the drifted schemas."""
    return tuple(filter(is_schema, found))


def is_schema(drifted: DriftedResource) -> TypeGuard[DriftedSchema]:
    """Whether the resource is a schema."""
    return isinstance(drifted.recorded.declared, Schema)


def is_table(drifted: DriftedResource) -> TypeGuard[DriftedTable]:
    """Whether the resource is a table."""
    return isinstance(drifted.recorded.declared, Table)


def classified(
    policy: DriftPolicy,
    name: QualifiedName | SchemaName,
    deviation: Deviation,
    changed: Attribution | None,
    now: datetime,
    *,
    written: Attribution | None = None,
) -> ClassifiedDrift:
    """Return a deviation as the policy at `now` classifies it; `written` is the last writer, for an unknown author."""
    kind, subject = deviation.kind, deviation.field
    entries = (
        entry for entry in policy.ignores if not entry.is_expired(now) and entry.matches(name, kind, subject)
    )
    return ClassifiedDrift(
        deviation=deviation,
        finding=Finding(
            kind=kind,
            field=subject,
            expected=deviation.expected,
            actual=deviation.actual,
            severity=policy.severity(name, kind, subject),
            changed=changed,
            last_written=written if changed is None else None,
        ),
        ignored_by=next(entries, None),
    )
