"""Records as documents have them, version 2: the classes from which the published schema is generated."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from delta_engine.aspects import KINDS
from delta_engine.deployment.definitions import (
    attempt_of,
    baseline_of_record,
    definition_of,
    kept,
    kept_baseline,
)
from delta_engine.deployment.document import Checksum, DeploymentState
from delta_engine.deployment.stored_definitions import (
    Baseline,
    FunctionDefinition,
    PolicyDefinition,
    SchemaDefinition,
    TableDefinition,
)
from delta_engine.models import PolicyName, SecurableName
from delta_engine.models.open_struct import Count, Moment, OpenStruct
from delta_engine.ownership.recorded import (
    AcceptedDrift,
    AnyRecord,
    Failure,
    LastChange,
    Recorded,
    RecordedDifference,
    Status,
    is_of_table,
    not_shown,
    resource_id,
)


class _Metadata(OpenStruct, frozen=True, kw_only=True):
    """The details that all securables share.

    Args:
        change: the run that last changed the resource; None if no run did, or one of an older engine.
        full_ownership: the undeclared parts that the policy removed at the last apply, `tags` or `grants`: only among
            these is an additional one drift. None if unknown.
        drift: how the resource differs from its baseline.
        accepted: the part of it that was accepted and waits for its model.
        sync_error: why the status is what it is.
    """

    change: LastChange | None = None
    full_ownership: tuple[str, ...] | None = None
    drift: tuple[RecordedDifference, ...] = ()
    accepted: tuple[AcceptedDrift, ...] = ()
    sync_error: str | None = None


class TableMetadata(_Metadata, frozen=True, kw_only=True):
    """The details of one table. All of them are optional.

    Args:
        declared: the whole table as it was last applied. Only an apply replaces it.
        baseline: what the catalog had besides, right after that apply or when the table was adopted: constraints,
            clustering, comments and defaults that no model declares. None if it had none.
        column_order: the columns in the table's order after the apply, if the model has another order; None if
            unknown.
        delta_table_id: Delta's id of the table then; another id is another table of that name.
        delta_version: the table's version after the apply; later ones are data or external changes.
        created_at: when the catalog says that the table was created, which distinguishes it from another of that name.
        schema_checksum: of names, types and NOT NULL as applied.
        actual_checksum: of the same as observed, where they differ.
        lag: how the catalog differed right after the apply; no drift while it lasts.
        sync_warning: for tables that no model declares.
        attempted: what unfinished runs attempted since: the table may have parts of it, which the engine manages.
        adopted_at: when a run first recorded the table, which existed already; None for one that a run created, or that
            an older engine recorded.
    """

    declared: TableDefinition | None = None
    baseline: Baseline | None = None
    column_order: tuple[str, ...] | None = None
    delta_table_id: str | None = None
    delta_version: Count | None = None
    created_at: Moment | None = None
    schema_checksum: Checksum | None = None
    actual_checksum: Checksum | None = None
    lag: tuple[RecordedDifference, ...] = ()
    sync_warning: str | None = None
    attempted: tuple[TableDefinition, ...] = ()
    adopted_at: Moment | None = None


class SchemaMetadata(_Metadata, frozen=True, kw_only=True):
    """The details of one schema. All of them are optional.

    Args:
        declared: the schema as it was last applied, if it is declared.
        attempted: what unfinished runs attempted since.
    """

    declared: SchemaDefinition | None = None
    attempted: tuple[SchemaDefinition, ...] = ()


class FunctionMetadata(_Metadata, frozen=True, kw_only=True):
    """The details of one function. All of them are optional.

    Args:
        declared: the function as it was last applied.
        baseline: how the platform showed it right after that apply; None if that is the same.
        attempted: what unfinished runs attempted since.
    """

    declared: FunctionDefinition | None = None
    baseline: FunctionDefinition | None = None
    attempted: tuple[FunctionDefinition, ...] = ()


class PolicyMetadata(_Metadata, frozen=True, kw_only=True):
    """The details of one policy, as of a function."""

    declared: PolicyDefinition | None = None
    baseline: PolicyDefinition | None = None
    attempted: tuple[PolicyDefinition, ...] = ()


class _Resource(OpenStruct, frozen=True, kw_only=True, tag_field="type"):
    """One securable.

    Args:
        id: its qualified name, as declared; that of a policy begins with the kind and the name of its scope.
        deployed_at: when it was last applied; None if it never was.
        deployed_by: the principal that applied it.
        config_checksum: SHA-256 of the canonical model; None without a model, and for schemas of older documents.
        status: its status.
        dependencies: the keys of the resources that it needs.
    """

    id: str
    deployed_at: Moment | None
    deployed_by: str | None
    config_checksum: Checksum | None
    status: Status
    dependencies: tuple[str, ...]


class TableResource(_Resource, frozen=True, kw_only=True, tag_field="type", tag="table"):
    """One table.

    Args:
        metadata: its details.
    """

    metadata: TableMetadata


class SchemaResource(_Resource, frozen=True, kw_only=True, tag_field="type", tag="schema"):
    """One schema."""

    metadata: SchemaMetadata


class FunctionResource(_Resource, frozen=True, kw_only=True, tag_field="type", tag="function"):
    """One function."""

    metadata: FunctionMetadata


class PolicyResource(_Resource, frozen=True, kw_only=True, tag_field="type", tag="policy"):
    """One policy (ABAC)."""

    metadata: PolicyMetadata


Resource: TypeAlias = TableResource | SchemaResource | FunctionResource | PolicyResource
"""A record of any kind."""


class StoredState(DeploymentState, frozen=True, kw_only=True):
    """A deployment state as documents have it."""

    resources: dict[str, TableResource | SchemaResource]  # type: ignore[assignment]  # as documents have them
    governance: dict[str, FunctionResource | PolicyResource] = msgspec.field(default_factory=dict)

    @property
    def records(self) -> dict[str, Resource]:
        """The records of all kinds, by key."""
        return {**self.resources, **self.governance}


StoredState.__doc__ = f"""{DeploymentState.__doc__}
        governance: functions and policies by key, `function.<catalog>.<schema>.<function>` and
            `policy.<kind of scope>.<scope>.<policy>`, lower case. Engines that know neither keep this field.
"""  # the published schema describes the fields


_SHARED: Final = ("change", "full_ownership", "accepted")
_OF_TABLES: Final = (
    *_SHARED,
    "column_order",
    "delta_table_id",
    "delta_version",
    "created_at",
    "schema_checksum",
    "actual_checksum",
    "lag",
    "adopted_at",
)
"""What a record and the details in its document have under the same name."""

_shared_values, _table_values = attrgetter(*_SHARED), attrgetter(*_OF_TABLES)
_LATER: Final = (FunctionResource, PolicyResource)
_NAMES: Final = {kind.word: kind.name for kind in KINDS}
_SHAPES: Final[Mapping[str, tuple[Any, Any]]] = {
    "table": (TableResource, TableMetadata),
    "schema": (SchemaResource, SchemaMetadata),
    "function": (FunctionResource, FunctionMetadata),
    "policy": (PolicyResource, PolicyMetadata),
}


def record_of(resource: Resource) -> AnyRecord:
    """Return the record in a document; `msgspec.ValidationError` for an id that is not a whole name."""
    details = resource.metadata
    if isinstance(details, TableMetadata):
        facts: dict[str, Any] = dict(zip(_OF_TABLES, _table_values(details), strict=True))
        facts["warning"] = details.sync_warning
        if details.baseline is not None:
            facts["whole"] = kept_baseline(details.declared, details.baseline)
    else:
        facts = dict(zip(_SHARED, _shared_values(details), strict=True))
        if not isinstance(details, SchemaMetadata) and details.baseline is not None:
            facts["whole"] = kept(details.baseline)
    if resource.unknown or details.unknown:
        unknown = {"record": resource.unknown, "details": details.unknown}
        facts["unknown"] = {part: fields for part, fields in unknown.items() if fields}
    if resource.status is not Status.HEALTHY or details.sync_error or details.drift or facts.get("warning"):
        facts |= _standing(resource)
    return Recorded(
        _name(resource),
        applied=kept(details.declared) if details.declared is not None else None,
        attempts=tuple(map(kept, details.attempted)),
        deployed_at=resource.deployed_at,
        deployed_by=resource.deployed_by,
        config_checksum=resource.config_checksum,
        dependencies=resource.dependencies,
        **facts,
    )


def _standing(resource: Resource) -> dict[str, Any]:
    """Return the facts from which `status_of` derives the status of a record in a document.

    Other engines may have written a status for another reason: it is kept as the status of a failure.
    """
    details, status = resource.metadata, resource.status
    if status is Status.DRIFTED and details.drift:
        failure = Failure(Status.UNKNOWN, details.sync_error) if details.sync_error else None
        return {"drift": details.drift, "failure": failure}
    if not details.drift:
        if status is Status.MISSING and details.sync_error == not_shown(resource.__struct_config__.tag):
            return {"is_missing": True}
        is_warned = isinstance(details, TableMetadata) and details.sync_warning is not None
        if status is Status.UNMANAGED and is_warned and details.sync_error is None:
            return {}
    return {"failure": Failure(status, details.sync_error), "explained": details.drift}


def resource_of(record: AnyRecord) -> Resource:
    """Return a record as documents have it."""
    details: dict[str, Any] = {
        "declared": record.applied and definition_of(record.applied),
        "attempted": tuple(map(attempt_of, record.attempts)),
        "drift": record.differences,
        "sync_error": record.reason,
        "unknown": record.unknown.get("details"),
    }
    frame: dict[str, Any] = {
        "id": resource_id(record.name),
        "deployed_at": record.deployed_at,
        "deployed_by": record.deployed_by,
        "config_checksum": record.config_checksum,
        "status": record.status,
        "dependencies": record.dependencies,
        "unknown": record.unknown.get("record"),
    }
    resource, metadata = _SHAPES[record.kind]
    if is_of_table(record):
        details |= zip(_OF_TABLES, _table_values(record), strict=True)
        details |= {"baseline": baseline_of_record(record), "sync_warning": record.warning}
    else:
        details |= zip(_SHARED, _shared_values(record), strict=True)
        details |= {"baseline": definition_of(record.whole)} if record.whole is not None else {}
    made: Resource = resource(**frame, metadata=metadata(**details))
    return made


def _name(resource: Resource) -> SecurableName:
    name: Any = _NAMES[str(resource.__struct_config__.tag)]
    try:
        made: SecurableName = (
            name.of_key(resource.id) if name is PolicyName else name(*resource.id.split("."))
        )
    except (TypeError, ValueError):
        raise msgspec.ValidationError(f"{resource.id!r} is not a whole name") from None
    return made


def loaded_state(stored: StoredState) -> DeploymentState:
    """Return a deployment state with its records."""
    fields = msgspec.structs.asdict(stored)
    del fields["governance"]
    records = {key: record_of(resource) for key, resource in stored.records.items()}
    return DeploymentState(**fields | {"resources": records})


def stored_state(state: DeploymentState) -> StoredState:
    """Return a deployment state as documents have it."""
    resources = {key: resource_of(record) for key, record in state.resources.items()}
    governance = {key: part for key, part in resources.items() if isinstance(part, _LATER)}
    left = {key: part for key, part in resources.items() if key not in governance}
    return StoredState(**msgspec.structs.asdict(state) | {"resources": left, "governance": governance})
