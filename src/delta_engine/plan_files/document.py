"""The plan file, version 1: the document's classes. They are the published schema's one source.

What the fields mean to people is the business of docs/plan-files.md. Nothing may be in a file that is not here: a file
is only for the version of the engine that wrote it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.deployment.document import Checksum
from delta_engine.deployment.lock_record import Moment

VERSION: Final = 1
SCHEMA_URI: Final = "urn:delta-engine:plan-file:v1"


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every part of a plan file."""


class PlannedStatement(_Part, frozen=True, kw_only=True):
    """One statement.

    Args:
        table: the table that it changes, `catalog.schema.table` in lower case; empty for a schema.
        sql: the statement, as it will be run.
    """

    table: str
    sql: str


class TableFingerprint(_Part, frozen=True, kw_only=True):
    """What a table was when the plan was made.

    Args:
        state: SHA-256 of its definition as the catalog had it; None if there was no such table.
        table_id: Delta's id, for existing tables that the plan changes; another id is another table of that name.
        created_at: when the catalog says that it was created, which tells the others from tables made anew.
    """

    state: Checksum | None = None
    table_id: str | None = None
    created_at: Moment | None = None


class DeploymentFingerprint(_Part, frozen=True, kw_only=True):
    """What the deployment state was when the plan was made.

    Args:
        state_id: the document's identity.
        serial: counts its saves.
        checksum: SHA-256 of it, with what killed runs had left in their journals.
    """

    state_id: str
    serial: Annotated[int, msgspec.Meta(ge=1)]
    checksum: Checksum


class Fingerprints(_Part, frozen=True, kw_only=True):
    """What the plan was made from, as the platform and the deployment state had it.

    Args:
        tables: every table that was read, by `catalog.schema.table` in lower case.
        schemas: SHA-256 of every schema that was read, by `catalog.schema` in lower case; None for one that was not
            there.
        deployment_state: the deployment state; None if nothing had been applied yet.
    """

    tables: dict[str, TableFingerprint]
    schemas: dict[str, Checksum | None]
    deployment_state: DeploymentFingerprint | None


class Options(_Part, frozen=True, kw_only=True):
    """What the command was told.

    Args:
        tables: the globs of `-t`; none for all models.
        allow: the kinds of change that `--allow` named.
        counts_checks: whether rows that added checks refuse were counted (`--preflight`).
    """

    tables: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    counts_checks: bool = False


NO_OPTIONS: Final = Options()


class PolicyRecord(_Part, frozen=True, kw_only=True):
    """What the environment's configuration said of what may be done; `allow` with what the command allowed.

    The fields are those of `policy` in the configuration.
    """

    allow: tuple[str, ...]
    create_schemas: bool
    tags: str
    grants: str
    column_order: str
    removed_tables: str
    rules: tuple[str, ...]
    drift: str


class Origin(_Part, frozen=True, kw_only=True):
    """Where a plan comes from.

    Args:
        made_at: when it was made.
        made_by: by whom.
        lineage: the commit of the configuration, `git:…`, or `unknown`.
    """

    made_at: Moment
    made_by: str
    lineage: str


class PlanFile(_Part, frozen=True, kw_only=True):
    """A plan, the SQL that carries it out, and what it was made from.

    Args:
        schema_uri: names the JSON schema.
        version: the format's version.
        checksum: SHA-256 of the rest as JSON with sorted keys and no blanks.
        engine_version: of the engine that wrote it; no other one applies it.
        environment: what it is for.
        origin: where it comes from.
        options: what the command was told.
        is_partial: whether models were left out.
        policy: what might be done.
        models: SHA-256 of every model's definition, by `catalog.schema.table` in lower case.
        declared_schemas: SHA-256 of every declared schema's definition, by `catalog.schema` in lower case.
        fingerprints: what it was made from.
        plan: the plan as `plan --json` prints it, without the statements and what is left alone.
        statements: all that will be run, in an order in which it can be; those of one table keep their order.
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
