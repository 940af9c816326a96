"""Deployment states as bytes: format, migration, validation, checksums, and the published JSON schema.

The facets in `delta_engine.aspects` encode the parts of a securable (`definitions`).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import msgspec

from delta_engine.config.json_schema import described_schema
from delta_engine.deployment.document import SCHEMA_URI, VERSION, DeploymentState
from delta_engine.deployment.errors import CorruptStateError, NewerStateError
from delta_engine.deployment.stored_records import (
    Resource,
    StoredState,
    loaded_state,
    resource_of,
    stored_state,
)
from delta_engine.models.open_struct import UNKNOWN_KEY, canonical_checksum, decode_open, encode_open
from delta_engine.ownership.recorded import AnyRecord
from delta_engine.telemetry.context import command
from delta_engine.telemetry.garbage import no_garbage_collection


class _Header(msgspec.Struct):
    version: Any = 0


def restore_hint() -> str:
    """Return the user's remedy for an unusable document."""
    return f"{command('state versions')} lists earlier ones, {command('state restore')} brings one back."


def lost_document(trace: str, where: str) -> CorruptStateError:
    """Return the error for a document that is gone; `trace` is what shows that there was one."""
    return CorruptStateError(
        f"the document is gone, although {trace}",
        where=where,
        way_out=f"{restore_hint()} If the environment's first run still works, wait for it. To forget what was applied "
        f"and adopt all tables as they are now: {command('state start-over')}.",
    )


def encode_state(state: DeploymentState) -> bytes:
    """Return a document as indented JSON."""
    with no_garbage_collection():
        return msgspec.json.format(encode_open(stored_state(state)), indent=2)


def encode_record(record: AnyRecord) -> bytes:
    """Return a record as indented JSON."""
    return msgspec.json.format(encode_open(resource_of(record)), indent=2)


def details_of(record: AnyRecord) -> dict[str, Any]:
    """Return the details of a record by their names in documents."""
    return msgspec.structs.asdict(resource_of(record).metadata)


def decode_state(data: bytes, *, environment: str, where: str) -> tuple[DeploymentState, int]:
    """Parse a document of any known format, read for an environment; return it with the format of its stored form.

    Raises:
        CorruptStateError: it is incomplete or invalid, or a manual edit broke it.
        NewerStateError: a newer engine wrote it.
    """
    if not data.strip():
        raise CorruptStateError("the document is empty", where=where, way_out=restore_hint())
    with _corrupt_unless_valid(where), no_garbage_collection():
        version = known_format(data, where)
        if version == VERSION:
            stored = decode_open(data, StoredState)
        else:
            raw = migrate(msgspec.json.decode(data), version, to=VERSION, environment=environment)
            stored = decode_open(msgspec.json.encode(raw), StoredState)
        for key, resource in stored.records.items():
            _verify(key, resource, where)
        state = loaded_state(stored)
    return state, version


def published_schema() -> str:
    """Return the indented JSON schema of documents, the content of `docs/schemas/deployment-state-v2.json`."""
    return described_schema(
        StoredState,
        uri=SCHEMA_URI,
        title="Delta Engine deployment state",
        renamed={"schema_uri": "$schema"},
        hidden=UNKNOWN_KEY,
    ).replace(StoredState.__name__, DeploymentState.__name__)


def known_format(data: bytes, where: str) -> int:
    """Return the format of a document or journal.

    Raises:
        NewerStateError: a newer engine wrote it.
    """
    version = msgspec.json.decode(data, type=_Header).version
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise CorruptStateError(f"its version is {version!r}", where=where, way_out=restore_hint())
    if version > VERSION:
        raise NewerStateError(
            f"it is of format {version}, and this engine knows formats up to {VERSION}",
            where=where,
            way_out="Upgrade delta-engine.",
        )
    return version


def _verify(key: str, resource: Resource, where: str) -> None:
    kind = resource.__struct_config__.tag
    if key != f"{kind}.{resource.id}".lower():
        raise _edited(f"the record under {key} is of {kind} {resource.id}", where)
    definition, checksum = resource.metadata.declared, resource.config_checksum
    has_none = kind == "schema" and checksum is None  # as older engines left it
    if definition is not None and not has_none and canonical_checksum(definition) != checksum:
        raise _edited(f"the definition of {key} does not match its config_checksum", where)


def _edited(what: str, where: str) -> CorruptStateError:
    return CorruptStateError(f"{what}: it was edited by hand", where=where, way_out=restore_hint())


@contextmanager
def _corrupt_unless_valid(where: str) -> Iterator[None]:
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptStateError(
            f"it is not a valid deployment state: {error}", where=where, way_out=restore_hint()
        ) from None


RawDocument: TypeAlias = dict[str, Any]


def migrate(document: RawDocument, version: int, *, to: int, environment: str) -> RawDocument:
    """Return a document in a newer format (see `step_lines`); raise `msgspec.ValidationError` if it violates its own.

    A step works on its own frozen copy of the old shape, never on the live classes. It is deterministic: reading a
    document twice gives the same identity.
    """
    for step in range(version, to):
        document = _STEPS[step](document, environment) | {"version": step + 1}
    return document


def step_lines(version: int) -> tuple[str, ...]:
    """Return what each step from a format to the current one changes, a line each."""
    return tuple(f"format {step} → {step + 1}: {_STEP_CHANGES[step]}" for step in range(version, VERSION))


class _ResourceV0(msgspec.Struct):
    type: str
    id: str
    deployed_at: str | None = None
    deployed_by: str | None = None
    status: str = "unknown"
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class _DocumentV0(msgspec.Struct):
    serial: int
    updated_at: str
    resources: dict[str, _ResourceV0]
    engine_version: str = "unknown"
    created_at: str | None = None


def _migrate_v0_to_v1(document: RawDocument, environment: str) -> RawDocument:
    old = msgspec.convert(document, _DocumentV0)
    digest = hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()
    return {
        "$schema": "urn:delta-engine:deployment-state:v1",
        "version": 1,
        "serial": old.serial,
        "state_id": str(uuid.uuid5(uuid.NAMESPACE_OID, digest)),
        "write_id": digest[:32],
        "recent_write_ids": [],
        "lineage": "unknown",
        "engine_version": old.engine_version,
        "platform_version": "unknown",
        "created_at": old.created_at or old.updated_at,
        "updated_at": old.updated_at,
        "environment": {"name": environment, "host": "", "variables": {}},
        "resources": {key: _resource_v1(resource) for key, resource in old.resources.items()},
        "metadata": {
            "last_apply_duration": None,
            "last_apply_actions": {"added": 0, "changed": 0, "destroyed": 0},
            "warnings": [],
            "checkpoints": [],
        },
    }


def _resource_v1(old: _ResourceV0) -> RawDocument:
    definition = old.metadata.get("definition")
    return {
        "type": old.type,
        "id": old.id,
        "deployed_at": old.deployed_at,
        "deployed_by": old.deployed_by,
        "config_checksum": definition and _checksum_v1(definition),
        "status": old.status,
        "metadata": old.metadata,
        "dependencies": [],
    }


def _checksum_v1(definition: RawDocument) -> str:
    """Return the checksum as format 1 defines it: SHA-256 of the definition's JSON with sorted keys."""
    return f"sha256:{hashlib.sha256(msgspec.json.encode(definition, order='sorted')).hexdigest()}"


class _DocumentV1(msgspec.Struct):
    resources: dict[str, _ResourceV1]


class _ResourceV1(msgspec.Struct):
    type: Literal["table", "schema"]
    metadata: _MetadataV1


class _DefinitionV1(msgspec.Struct):
    columns: list[RawDocument]


class _MetadataV1(msgspec.Struct):
    definition: RawDocument | None = None
    with_others: RawDocument | None = None
    attempted: list[RawDocument] = []
    schema_definition: RawDocument | None = None
    attempted_schemas: list[RawDocument] = []


def _migrate_v1_to_v2(document: RawDocument, _environment: str) -> RawDocument:
    msgspec.convert(document, _DocumentV1)
    resources = {key: resource_v2(resource) for key, resource in document["resources"].items()}
    return {**document, "$schema": "urn:delta-engine:deployment-state:v2", "resources": resources}


def resource_v2(resource: RawDocument) -> RawDocument:
    """Return the record of a document or journal of format 1 in format 2.

    Format 1 repeated the whole definition in `with_others`; the baseline of format 2 has only what differs.
    """
    old = msgspec.convert(resource, _ResourceV1).metadata
    is_table = resource["type"] == "table"
    declared = old.definition if is_table else old.schema_definition
    new = {
        "declared": declared,
        "baseline": _baseline_v2(declared, old.with_others) if declared and old.with_others else None,
        "attempted": old.attempted if is_table else old.attempted_schemas,
    }
    kept = {key: value for key, value in resource["metadata"].items() if key not in _MOVED_IN_V2}
    return {**resource, "metadata": kept | {key: value for key, value in new.items() if value}}


_MOVED_IN_V2 = frozenset(field.name for field in msgspec.structs.fields(_MetadataV1))


def _baseline_v2(declared: RawDocument, whole: RawDocument) -> RawDocument:
    declared_columns, whole_columns = (
        msgspec.convert(side, _DefinitionV1).columns for side in (declared, whole)
    )
    columns = [column for column in whole_columns if column not in declared_columns]
    differing = {key: value for key, value in whole.items() if value != declared.get(key)}
    return differing | {"columns": columns} if columns else differing


_STEPS: Mapping[int, Callable[[RawDocument, str], RawDocument]] = {
    0: _migrate_v0_to_v1,
    1: _migrate_v1_to_v2,
}
"""The step that leaves each version; it takes the document and the environment's name."""

_STEP_CHANGES: Mapping[int, str] = {
    0: "adds state_id, write_id, lineage, environment, dependencies, and the checksums of definitions",
    1: "replaces definition and with_others by declared, baseline and attempted",
}
