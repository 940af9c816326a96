"""The classes of the plan file, version 2, the source of its published schema, and its error.

docs/plan-files.md explains the fields. Unknown fields are refused: a file is only for the engine version that wrote it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.deployment.document import Checksum
from delta_engine.errors import RefusedError, SourceLocation
from delta_engine.models.open_struct import Moment

VERSION: Final = 2
SCHEMA_URI: Final = "urn:delta-engine:plan-file:v2"


class PlanFileError(RefusedError):
    """A plan file that cannot be used, or not in this environment.

    Args:
        where: the path as the user named it; empty for a plan that was never written.
    """

    topic = "unusable-plan-file"

    def __init__(self, reason: str, *, where: str, way_out: str) -> None:
        self.where = where
        super().__init__(reason, location=SourceLocation(where) if where else None, way_out=way_out)


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every part of a plan file."""


class PlannedStatement(_Part, frozen=True, kw_only=True):
    """One statement.

    Args:
        table: the table that it changes, `catalog.schema.table` in lower case; empty for a schema.
        sql: the statement's text.
    """

    table: str
    sql: str


class TableFingerprint(_Part, frozen=True, kw_only=True):
    """A table when the plan was made.

    Args:
        state: SHA-256 of its definition in the catalog; None if it did not exist.
        table_id: Delta's id, for existing tables that the plan changes; a new table of the same name has another id.
        created_at: its creation time in the catalog, which identifies the other tables.
    """

    state: Checksum | None = None
    table_id: str | None = None
    created_at: Moment | None = None


class DeploymentFingerprint(_Part, frozen=True, kw_only=True):
    """What the deployment state had of the plan's tables and schemas when the plan was made.

    Args:
        state_id: the document's identity; None if nothing had been applied yet.
        records: SHA-256 of the record of every table and schema that the plan touches, by its key in the document, with
            the journals of killed runs; None for one without an applied or attempted model. These are what the plan
            changes, and the tables that foreign keys connect with it.
    """

    state_id: str | None
    records: dict[str, Checksum | None]

    @property
    def touched(self) -> frozenset[str]:
        """The names of the tables and schemas that the plan touches, in lower case."""
        return frozenset(key.partition(".")[2] for key in self.records)


class Fingerprints(_Part, frozen=True, kw_only=True):
    """What the plan was made from.

    Args:
        tables: every table that was read, by `catalog.schema.table` in lower case.
        schemas: SHA-256 of every schema that was read, by `catalog.schema` in lower case; None for one that did
            not exist.
        deployment_state: the records of what the plan touches.
    """

    tables: dict[str, TableFingerprint]
    schemas: dict[str, Checksum | None]
    deployment_state: DeploymentFingerprint


class ChangedTables(_Part, frozen=True, kw_only=True):
    """What `--changed-since` chose in one project.

    Args:
        since: the commit, branch or tag, as the command named it.
        tables: the declared tables whose declaration changed, or that are new.
        removed: the tables that are no longer declared.
    """

    since: str
    tables: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Options(_Part, frozen=True, kw_only=True):
    """The options of the command.

    Args:
        tables: the globs of `-t`; none for all models.
        allow: the kinds of change that `--allow` named.
        counts_checks: whether the rows were counted that added checks refuse; false for `--no-preflight`.
        undoes: the id of the run that the plan undoes; None for a plan of the models.
        changed: the tables that `--changed-since` chose; None without the option, or if all count as changed.
        skips_refused: whether it leaves out the tables that cannot be undone (`--skip-refused`).
    """

    tables: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    counts_checks: bool = True
    undoes: str | None = None
    skips_refused: bool = False
    changed: ChangedTables | None = None


NO_OPTIONS: Final = Options()


class PolicyRecord(_Part, frozen=True, kw_only=True):
    """The environment's `policy`; `allow` includes what the command allowed."""

    allow: tuple[str, ...]
    create_schemas: bool
    tags: str
    grants: str
    column_order: str
    removed_tables: str
    rules: tuple[str, ...]
    max_rewrite_bytes: int | None
    drift: str


class Origin(_Part, frozen=True, kw_only=True):
    """The origin of a plan.

    Args:
        made_at: when it was made.
        made_by: the principal that made it.
        lineage: the commit of the configuration, `git:…`, or `unknown`.
    """

    made_at: Moment
    made_by: str
    lineage: str


class PlanFile(_Part, frozen=True, kw_only=True):
    """A plan, its statements, and what it was made from.

    Args:
        schema_uri: names the JSON schema.
        version: the format's version.
        checksum: SHA-256 of all other fields as JSON with sorted keys and no whitespace.
        engine_version: the version of the engine that wrote it; no other version applies it.
        environment: the name of the environment that it is for.
        origin: when, by whom and from which commit it was made.
        options: the options of the command.
        is_partial: whether the command selected only some models.
        policy: which changes were allowed.
        models: SHA-256 of every model's definition, by `catalog.schema.table` in lower case.
        declared_schemas: SHA-256 of every declared schema's definition, by `catalog.schema` in lower case.
        fingerprints: fingerprints of what it was made from.
        plan: the plan as `plan --json` prints it, without statements and unmanaged parts.
        statements: every statement, in an order in which they can run; those of one table run in this order.
    """

    schema_uri: str = msgspec.field(name="$schema")
    version: Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)]
    checksum: Checksum
    engine_version: str
    environment: str
    origin: Origin
    options: Options
    is_partial: bool
    policy: PolicyRecord
    models: dict[str, Checksum]
    declared_schemas: dict[str, Checksum]
    fingerprints: Fingerprints
    plan: dict[str, Any]
    statements: tuple[PlannedStatement, ...]


def planned_statements(compiled: CompiledPlan) -> tuple[PlannedStatement, ...]:
    """Return the statements of a compiled plan as a plan file has them."""
    return tuple(
        PlannedStatement(table=step.table_key, sql=statement.sql)
        for step in compiled.steps
        for statement in step.statements
    )
