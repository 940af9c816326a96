"""The deployment state, version 2: the document's classes, from which the published schema is generated.

docs/deployment-state.md explains the fields. A document is a value: `msgspec.structs.replace` makes the next one. The
functions build what a run writes besides resources: its origin, and what its apply did.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final, TypeAlias

import msgspec

from delta_engine.actions.policy import Consent
from delta_engine.deployment.stored_definitions import Baseline, SchemaDefinition, TableDefinition
from delta_engine.models.open_struct import Moment, OpenStruct

VERSION: Final = 2
SCHEMA_URI: Final = "urn:delta-engine:deployment-state:v2"
KEPT_WRITE_IDS: Final = 20
"""How many earlier write ids a document remembers. They identify a save whose answer was lost."""
KEPT_APPLIED_PLANS: Final = 20
"""How many applied plan files a document remembers."""

Checksum = Annotated[str, msgspec.Meta(pattern="^sha256:[0-9a-f]{64}$")]
Count = Annotated[int, msgspec.Meta(ge=0)]


class ResourceType(Enum):
    """What a resource is."""

    TABLE = "table"
    SCHEMA = "schema"


class Status(Enum):
    """The status of a resource."""

    HEALTHY = "healthy"  # as it was last applied
    DEGRADED = "degraded"  # applied in part
    FAILED = "failed"  # nothing of the last change was applied
    UNKNOWN = "unknown"  # a run that was changing it was interrupted
    MISSING = "missing"  # applied once, and does not exist any more
    DRIFTED = "drifted"  # changed outside the engine
    UNMANAGED = "unmanaged"  # exists in a managed schema and is in no model


class Difference(OpenStruct, frozen=True, kw_only=True):
    """A field in which a resource differs from what was applied; None on a side: it does not exist there."""

    field: str
    expected: str | None
    actual: str | None


class AcceptedDrift(OpenStruct, frozen=True, kw_only=True):
    """Drift that was accepted and waits for its model; until a run sees model and catalog agree, it stays drift.

    Args:
        kind: the kind of drift.
        field: what was changed, as reports name it.
        by: the principal that accepted it.
    """

    kind: str
    field: str
    expected: str | None
    actual: str | None
    by: str
    at: Moment


class LastChange(OpenStruct, frozen=True, kw_only=True):
    """The run that last changed a resource, for its undo.

    Args:
        run: the run's id: the write_id of the document that it saved, unless it was killed.
        is_new: whether the run created the resource.
        needs_restore: whether the run lost or changed values, so that only RESTORE undoes it.
        version: Delta's version of the table before such a run; None if it is unknown.
        undoes: the run that it undoes; None for a sync or a revert.
    """

    run: str
    at: Moment
    is_new: bool = False
    needs_restore: bool = False
    version: Count | None = None
    undoes: str | None = None


class _Metadata(OpenStruct, frozen=True, kw_only=True):
    """The details that tables and schemas share.

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
    drift: tuple[Difference, ...] = ()
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
    lag: tuple[Difference, ...] = ()
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


class _Resource(OpenStruct, frozen=True, kw_only=True, tag_field="type"):
    """One table or schema.

    Args:
        id: its qualified name, as declared.
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

    @property
    def type(self) -> ResourceType:
        """What it is."""
        return ResourceType.TABLE


class SchemaResource(_Resource, frozen=True, kw_only=True, tag_field="type", tag="schema"):
    """One schema."""

    metadata: SchemaMetadata

    @property
    def type(self) -> ResourceType:
        """What it is."""
        return ResourceType.SCHEMA


Resource: TypeAlias = TableResource | SchemaResource
"""A record of either kind."""


class EnvironmentRecord(OpenStruct, frozen=True, kw_only=True):
    """The environment of the document; values of variables that name secrets are blanked."""

    name: str
    host: str
    variables: dict[str, str]


class ApplyActions(OpenStruct, frozen=True, kw_only=True):
    """How many tables and schemas the last apply touched."""

    added: Count
    changed: Count
    destroyed: Count


class Checkpoint(OpenStruct, frozen=True, kw_only=True):
    """How far the last apply came with one table.

    Args:
        resource: the table's key.
        status: its status after the apply.
        statements_done: how many of its statements succeeded.
        statement: the one that failed, if one did.
        error: the platform's message about it.
    """

    resource: str
    status: Status
    statements_done: Count
    statement: str | None = None
    error: str | None = None


class ApplyRecord(OpenStruct, frozen=True, kw_only=True):
    """What the last apply did; the duration is in seconds."""

    last_apply_duration: float | None
    last_apply_actions: ApplyActions
    warnings: tuple[str, ...]
    checkpoints: tuple[Checkpoint, ...]


class AppliedPlan(OpenStruct, frozen=True, kw_only=True):
    """A plan file that was applied.

    Args:
        checksum: the plan file's.
        applied_at: when the apply ended; when it began, if it was interrupted.
        applied_by: the principal that applied it.
        is_whole: whether all of it was applied.
    """

    checksum: Checksum
    applied_at: Moment
    applied_by: str
    is_whole: bool


class UsedConsent(OpenStruct, frozen=True, kw_only=True):
    """An entry of `conf/consents.yml` that allowed a change which was applied.

    Args:
        change: the kind of change, the table and its part, in lower case.
        expires: the last day of the entry, which distinguishes it from a later one for the same change.
        run: the id of the run that applied the change.
    """

    change: str
    expires: str
    run: str
    at: Moment


class DeploymentState(OpenStruct, frozen=True, kw_only=True):
    """What this engine last applied in one environment.

    Args:
        schema_uri: names the JSON schema.
        version: the format's major version.
        serial: counts the saves.
        state_id: the document's identity, which never changes; `lineage` changes with every deployed commit.
        write_id: unique per save.
        recent_write_ids: those of the latest earlier saves, newest first.
        lineage: the commit of the deployed configuration, `git:…`, or `unknown`.
        engine_version: of the engine that saved it.
        platform_version: of the platform that it deployed to.
        created_at: when the first document was saved.
        updated_at: when this one was.
        updated_by: the principal that saved it; None if an older engine did.
        synced_at: when it was last compared with the catalog.
        environment: the environment.
        resources: by key, `table.<catalog>.<schema>.<table>` and `schema.<catalog>.<schema>`, lower case.
        metadata: what the last apply did.
        applied_plans: the plan files that were applied, newest first; only the latest are kept.
        used_consents: the consents that were used, as long as the configuration has their entries.
    """

    schema_uri: str = msgspec.field(name="$schema")
    version: Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)]
    serial: Count
    state_id: str
    write_id: str
    recent_write_ids: tuple[str, ...]
    lineage: str
    engine_version: str
    platform_version: str
    created_at: Moment
    updated_at: Moment
    updated_by: str | None = None
    synced_at: Moment | None = None
    environment: EnvironmentRecord
    resources: dict[str, Resource]
    metadata: ApplyRecord
    applied_plans: tuple[AppliedPlan, ...] = ()
    used_consents: tuple[UsedConsent, ...] = ()

    def with_applied_plan(self, plan: AppliedPlan) -> DeploymentState:
        """Return the document with one more applied plan file."""
        others = (known for known in self.applied_plans if known.checksum != plan.checksum)
        kept = (plan, *others)[:KEPT_APPLIED_PLANS]
        return msgspec.structs.replace(self, applied_plans=kept)


def consent_key(consent: Consent) -> tuple[str, str]:
    """Return the change and the last day of an entry, as `UsedConsent` has them."""
    return str(consent).lower(), str(consent.expires)
