"""Records as documents have them, version 2: the classes from which the published schema is generated."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import attrgetter, or_
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from delta_engine.aspects import KINDS
from delta_engine.aspects.kind import Kind
from delta_engine.deployment.definitions import (
    attempt_of,
    baseline_of_record,
    definition_of,
    kept,
    kept_baseline,
)
from delta_engine.deployment.document import Checksum, DeploymentState
from delta_engine.deployment.stored_definitions import (
    PLAIN_DEFINITIONS,
    Baseline,
    TableDefinition,
    by_key,
    struct_of,
)
from delta_engine.models import SecurableName, Table, resource_id
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
)
from delta_engine.telemetry.visible import in_plural


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
        lag: how the catalog differed right after the apply, or may still come to differ; no drift for an hour.
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


class Resource(OpenStruct, frozen=True, kw_only=True, tag_field="type"):
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
    if TYPE_CHECKING:
        metadata: Any  # the details of its kind


def _details_of(kind: Kind) -> Any:
    """Return the details of a kind; those of tables are written out above."""
    if kind.model is Table:
        return TableMetadata
    word, definition = kind.word, PLAIN_DEFINITIONS[kind.word]
    baseline = [] if word in _FIRST_KINDS else [("baseline", definition | None, None)]
    attempted: Any = tuple[definition, ...]  # type: ignore[valid-type]  # it is generated
    keys = [("declared", definition | None, None), *baseline, ("attempted", attempted, ())]
    doc = f"""The details of one {word}. All of them are optional.

    Args:
        declared: the {word} as it was last applied, if it is declared.
        baseline: how the platform showed it right after that apply; None if that is the same.
        attempted: what unfinished runs attempted since.
    """
    return struct_of(f"{word.title()}Metadata", keys, _Metadata, doc=doc)


def _resource_of(kind: Kind) -> Any:
    """Return the record of a kind."""
    keys = [("metadata", _DETAILS[kind.word])]
    doc = f"One {kind.word}.\n\nArgs:\n    metadata: its details."
    return struct_of(f"{kind.word.title()}Resource", keys, Resource, doc=doc, tag=kind.word)


_FIRST_KINDS: Final = ("table", "schema")
"""The kinds in `resources`, which every engine of this format reads."""
_DETAILS: Final[Mapping[str, Any]] = {kind.word: _details_of(kind) for kind in KINDS}
_RESOURCES: Final[Mapping[str, Any]] = {kind.word: _resource_of(kind) for kind in KINDS}
_FIRST_RESOURCES: Any = reduce(or_, (_RESOURCES[word] for word in _FIRST_KINDS))
_LATER_RESOURCES: Any = reduce(or_, (_RESOURCES[word] for word in _RESOURCES if word not in _FIRST_KINDS))

if TYPE_CHECKING:
    AnyResource: TypeAlias = Resource
else:
    AnyResource = _FIRST_RESOURCES | _LATER_RESOURCES

_StateKeys: Any = struct_of(
    "_StateKeys",
    [
        ("resources", by_key(_FIRST_RESOURCES)),
        ("governance", by_key(_LATER_RESOURCES), msgspec.field(default_factory=dict)),
    ],
    DeploymentState,
)


class StoredState(_StateKeys):  # type: ignore[misc]  # its keys follow from the kinds
    """A deployment state as documents have it."""

    if TYPE_CHECKING:
        resources: dict[str, Resource]
        governance: dict[str, Resource]

    @property
    def records(self) -> dict[str, Resource]:
        """The records of all kinds, by key."""
        return {**self.resources, **self.governance}


StoredState.__doc__ = f"""{DeploymentState.__doc__}
        governance: {in_plural(word for word in _RESOURCES if word not in _FIRST_KINDS)} by key, such as
            `function.<catalog>.<schema>.<function>` and `policy.<kind of scope>.<scope>.<policy>`, lower case. Engines
            that know neither keep this field.
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
_KINDS: Final = {kind.word: kind for kind in KINDS}


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
        if (baseline := getattr(details, "baseline", None)) is not None:  # schemas have none
            facts["whole"] = kept(baseline)
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
    if is_of_table(record):
        details |= zip(_OF_TABLES, _table_values(record), strict=True)
        details |= {"baseline": baseline_of_record(record), "sync_warning": record.warning}
    else:
        details |= zip(_SHARED, _shared_values(record), strict=True)
        details |= {"baseline": definition_of(record.whole)} if record.whole is not None else {}
    made: Resource = _RESOURCES[record.kind](**frame, metadata=_DETAILS[record.kind](**details))
    return made


def _name(resource: Resource) -> SecurableName:
    try:
        return _KINDS[str(resource.__struct_config__.tag)].named(resource.id)
    except (TypeError, ValueError):
        raise msgspec.ValidationError(f"{resource.id!r} is not a whole name") from None


def loaded_state(stored: StoredState) -> DeploymentState:
    """Return a deployment state with its records."""
    fields = msgspec.structs.asdict(stored)
    del fields["governance"]
    records = {key: record_of(resource) for key, resource in stored.records.items()}
    return DeploymentState(**fields | {"resources": records})


def stored_state(state: DeploymentState) -> StoredState:
    """Return a deployment state as documents have it."""
    resources = {key: resource_of(record) for key, record in state.resources.items()}
    first = {key: part for key, part in resources.items() if key.partition(".")[0] in _FIRST_KINDS}
    later = {key: part for key, part in resources.items() if key not in first}
    return StoredState(**msgspec.structs.asdict(state) | {"resources": first, "governance": later})
