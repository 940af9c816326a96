"""What a run writes into the document: records of tables and schemas by key, its origin, and what its apply did."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

import msgspec

from delta_engine.deployment.definitions import (
    SchemaDefinition,
    TableDefinition,
    define,
    define_schema,
    definition_checksum,
    schema_checksum,
)
from delta_engine.deployment.document import (
    SCHEMA_URI,
    VERSION,
    ApplyActions,
    ApplyRecord,
    Checkpoint,
    DeploymentState,
    EnvironmentRecord,
    Resource,
    ResourceMetadata,
    ResourceType,
    Status,
)
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.state.states import TableState
from delta_engine.state.table_queries import TableVersion
from delta_engine.telemetry.context import new_id

Definition: TypeAlias = TableDefinition | SchemaDefinition

_T = TypeVar("_T")

HALF_DONE: Final = (Status.DEGRADED, Status.UNKNOWN)
"""Statuses of resources that a run of the engine left unfinished: the run's changes are not drift."""


def resource_key(name: QualifiedName | SchemaName) -> str:
    """Return a key in lower case: `table.<catalog>.<schema>.<table>` or `schema.<catalog>.<schema>`."""
    return f"{_type_of(name).value}.{name.key}"


def resource_name(resource: Resource) -> QualifiedName | SchemaName:
    """Return the name of a recorded table or schema."""
    parts = resource.id.split(".")
    return QualifiedName(*parts) if resource.type is ResourceType.TABLE else SchemaName(*parts)


def applied_table(
    model: Table,
    *,
    at: datetime,
    by: str,
    version: TableVersion | None,
    earlier: Resource | None,
    with_others: TableDefinition | None = None,
    settles: bool = True,
) -> Resource:
    """Return the record of a table that matches its model.

    Args:
        with_others: the definition with its unmanaged parts; None if there are none.
        settles: whether the apply settled the attempts of unfinished runs.
    """
    definition = define(model)
    known = earlier.metadata if earlier else ResourceMetadata()
    attempted = () if settles else known.attempted
    return Resource(
        type=ResourceType.TABLE,
        id=str(model.qualified_name),
        deployed_at=at,
        deployed_by=by,
        config_checksum=definition_checksum(definition),
        status=Status.UNKNOWN if attempted else Status.HEALTHY,
        metadata=ResourceMetadata(
            definition=definition,
            delta_table_id=version.table_id if version else None,
            delta_version=version.version if version else None,
            created_at=known.created_at,
            schema_checksum=schema_checksum(definition.columns),
            sync_error=known.sync_error if attempted else None,
            with_others=with_others,
            attempted=attempted,
            unknown=earlier.metadata.unknown if earlier else None,
        ),
        dependencies=_dependencies(model.qualified_name),
        unknown=earlier.unknown if earlier else None,
    )


def applied_schema(
    schema: Schema | SchemaName, *, at: datetime, by: str, earlier: Resource | None = None
) -> Resource:
    """Return the record of an existing schema; an unchanged definition keeps the time and author of `earlier`."""
    if isinstance(schema, SchemaName):
        return _unapplied(schema, Status.HEALTHY, at=at, by=by)
    definition, resource = define_schema(schema), earlier
    if (
        resource is None
        or resource.metadata.schema_definition != definition
        or resource.status is not Status.HEALTHY
    ):
        resource = _unapplied(schema.qualified_name, Status.HEALTHY, at=at, by=by)
    return msgspec.structs.replace(
        resource,
        metadata=ResourceMetadata(
            schema_definition=definition, unknown=earlier.metadata.unknown if earlier else None
        ),
        unknown=earlier.unknown if earlier else None,
    )


def unfinished(
    name: QualifiedName | SchemaName,
    status: Status,
    reason: str,
    *,
    attempted: Iterable[Definition],
    earlier: Resource | None,
) -> Resource:
    """Return the record of a table or schema that a run did not finish; the earlier applied definition stays."""
    resource, new = earlier or _unapplied(name, status), tuple(attempted)
    known = resource.metadata
    metadata = msgspec.structs.replace(
        known,
        sync_error=reason,
        attempted=_joined(known.attempted, (one for one in new if isinstance(one, TableDefinition))),
        attempted_schemas=_joined(
            known.attempted_schemas, (one for one in new if isinstance(one, SchemaDefinition))
        ),
    )
    return msgspec.structs.replace(resource, status=status, metadata=metadata)


def unmanaged_table(name: QualifiedName, earlier: Resource | None = None) -> Resource:
    """Return the record of a table that no model declares, with the attempts of its `earlier` record."""
    return msgspec.structs.replace(
        _unapplied(name, Status.UNMANAGED),
        metadata=ResourceMetadata(
            sync_warning="it stands in a managed schema and is in no model",
            attempted=earlier.metadata.attempted if earlier else (),
        ),
    )


def noted(resource: Resource, observed: TableState) -> Resource:
    """Return a table's record with its creation time and the catalog's column order, where added columns are last."""
    definition = resource.metadata.definition
    if definition is None or not observed.exists:
        return resource
    order = tuple(column.name for column in observed.columns)
    is_as_defined = [name.lower() for name in order] == [one.name.lower() for one in definition.columns]
    metadata = msgspec.structs.replace(
        resource.metadata, created_at=observed.audit.created_at, column_order=() if is_as_defined else order
    )
    return msgspec.structs.replace(resource, metadata=metadata)


def with_version(resource: Resource, version: TableVersion) -> Resource:
    """Return a table's record with its Delta id and version."""
    metadata = msgspec.structs.replace(
        resource.metadata, delta_table_id=version.table_id, delta_version=version.version
    )
    return msgspec.structs.replace(resource, metadata=metadata)


def recorded_version(metadata: ResourceMetadata) -> TableVersion | None:
    """Return the recorded version."""
    if metadata.delta_version is None:
        return None
    return TableVersion(table_id=metadata.delta_table_id, version=metadata.delta_version)


def is_half_done(resource: Resource) -> bool:
    """Whether a run left a table or schema unfinished; a change that the catalog showed late is finished."""
    metadata = resource.metadata
    return bool(metadata.attempted or metadata.attempted_schemas) or (
        resource.status in HALF_DONE and not metadata.lag
    )


def _joined(known: tuple[_T, ...], new: Iterable[_T]) -> tuple[_T, ...]:
    return (*known, *(one for one in new if one not in known))


def _unapplied(
    name: QualifiedName | SchemaName, status: Status, *, at: datetime | None = None, by: str | None = None
) -> Resource:
    return Resource(
        type=_type_of(name),
        id=str(name),
        deployed_at=at,
        deployed_by=by,
        config_checksum=None,
        status=status,
        metadata=ResourceMetadata(),
        dependencies=() if isinstance(name, SchemaName) else _dependencies(name),
    )


def _type_of(name: QualifiedName | SchemaName) -> ResourceType:
    return ResourceType.SCHEMA if isinstance(name, SchemaName) else ResourceType.TABLE


def _dependencies(table: QualifiedName) -> tuple[str, ...]:
    return (resource_key(SchemaName(table.catalog, table.schema)),)


_NAMES_A_SECRET = re.compile(
    r"secret|password|passwd|token|credential|api_?key|access_?key|private_?key", re.I
)

_BLANKED = "(not recorded)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Who deploys what, from where, to where.

    Args:
        who: the user or service principal.
        host: the machine that the run is on.
        run_url: where to watch it; empty if unknown.
        lineage: the commit of the deployed configuration, `git:…`, or `unknown`.
    """

    environment: EnvironmentRecord
    who: str
    host: str
    pid: int
    run_url: str
    lineage: str
    engine_version: str
    platform_version: str


def environment_record(name: str, host: str, variables: Mapping[str, str]) -> EnvironmentRecord:
    """Return the record of an environment, without credentials in the host or the variables."""
    return EnvironmentRecord(
        name=name,
        host=re.sub(r"//[^/@]*@", "//", host),
        variables={
            key: _BLANKED if _NAMES_A_SECRET.search(key) else value for key, value in variables.items()
        },
    )


def first_document(facts: RunFacts, *, now: datetime) -> DeploymentState:
    """Return the document of an environment that has none."""
    return DeploymentState(
        schema_uri=SCHEMA_URI,
        version=VERSION,
        serial=0,
        state_id=new_id(),
        write_id=new_id(),
        recent_write_ids=(),
        lineage="unknown",
        engine_version="",
        platform_version="",
        created_at=now,
        updated_at=now,
        environment=facts.environment,
        resources={},
        metadata=ApplyRecord(
            last_apply_duration=None,
            last_apply_actions=ApplyActions(added=0, changed=0, destroyed=0),
            warnings=(),
            checkpoints=(),
        ),
    )


def described(state: DeploymentState, facts: RunFacts) -> DeploymentState:
    """Return a document with the facts of the run that is about to save it."""
    return msgspec.structs.replace(
        state,
        lineage=facts.lineage,
        engine_version=facts.engine_version,
        platform_version=facts.platform_version,
        environment=facts.environment,
    )


def apply_record(
    actions: ApplyActions, checkpoints: Sequence[Checkpoint], warnings: Sequence[str], *, seconds: float
) -> ApplyRecord:
    """Return the record of an apply: its counts, how far each resource came, its warnings and its duration."""
    return ApplyRecord(
        last_apply_duration=round(seconds, 3),
        last_apply_actions=actions,
        warnings=tuple(warnings),
        checkpoints=tuple(sorted(checkpoints, key=lambda check: check.resource)),
    )
