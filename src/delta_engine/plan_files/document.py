"""The classes of the plan file, version 3, the source of its published schema, and its error.

docs/ci.md explains the fields. Unknown fields are refused: a file is only for the engine version that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from delta_engine.aspects import KINDS
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.deployment.document import Checksum
from delta_engine.errors import RefusedError, SourceLocation
from delta_engine.models import SchemaName
from delta_engine.models.open_struct import Moment, Struct
from delta_engine.report.planned_actions import PlannedChange
from delta_engine.telemetry.visible import plural

VERSION: Final = 3
SCHEMA_URI: Final = "urn:delta-engine:plan-file:v3"


class PlanFileError(RefusedError):
    """A plan file that cannot be used, or not in this environment.

    Args:
        where: the path as the user named it; empty for a plan that was never written.
    """

    topic = "unusable-plan-file"

    def __init__(self, reason: str, *, where: str, way_out: str) -> None:
        self.where = where
        super().__init__(reason, location=SourceLocation(where) if where else None, way_out=way_out)


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of every part of a plan file."""


class PlannedStatement(_Part, frozen=True, kw_only=True):
    """One statement.

    Args:
        table: the table that it changes, `catalog.schema.table` in lower case; empty for a schema.
        sql: the statement's text.
    """

    table: str
    sql: str


class TouchedResource(_Part, frozen=True, kw_only=True):
    """A table or schema that the plan changes, or a table that a foreign key connects with one, when it was planned.

    Args:
        observed: SHA-256 of its definition in the catalog; None if it did not exist, or was not read under this name.
        declared: SHA-256 of its model, the same as `config_checksum` in the deployment state; None without a model.
        recorded: SHA-256 of its record in the deployment state, with the journals of killed runs; None for a record
            without an applied or attempted model.
        table_id: Delta's id, for existing tables that the plan changes; a new table of the same name has another id.
        created_at: its creation time in the catalog, which identifies the others.
    """

    observed: Checksum | None = None
    declared: Checksum | None = None
    recorded: Checksum | None = None
    table_id: str | None = None
    created_at: Moment | None = None


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
    """The environment's `policy`; `allow` includes what the command allowed. Older files lack the fields with None."""

    allow: tuple[str, ...]
    create_schemas: bool
    tags: str
    grants: str
    column_order: str
    removed_tables: str
    rules: tuple[str, ...]
    max_rewrite_bytes: int | None
    drift: str
    removed_functions: str | None = None
    removed_policies: str | None = None
    removed_views: str | None = None


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
    """A plan, its statements, and what it touches.

    Args:
        schema_uri: names the JSON schema.
        version: the format's version.
        checksum: SHA-256 of all other fields as JSON with sorted keys and no whitespace.
        engine_version: the version of the engine that wrote it; no other version applies it.
        environment: the name of the environment that it is for.
        origin: when, by whom and from which commit it was made.
        options: the options of the command.
        policy: which changes were allowed.
        state_id: the identity of the deployment state; None if nothing had been applied yet.
        touched: what the plan touches, by its key in the deployment state.
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
    policy: PolicyRecord
    state_id: str | None
    touched: dict[str, TouchedResource]
    plan: dict[str, Any]
    statements: tuple[PlannedStatement, ...]


def planned_statements(compiled: CompiledPlan) -> tuple[PlannedStatement, ...]:
    """Return the statements of a compiled plan as a plan file has them."""
    return tuple(
        PlannedStatement(table=step.table_key, sql=statement.sql)
        for step in compiled.steps
        for statement in step.statements
    )


class _Action(msgspec.Struct, frozen=True):
    changes: tuple[PlannedChange, ...] = ()  # of a table
    change: PlannedChange | None = None  # of a schema


class _Securable(msgspec.Struct, frozen=True):
    change: str = "create"
    actions: tuple[_Action, ...] = ()

    def changes(self, kind: str) -> Iterator[PlannedChange]:
        for action in self.actions:
            yield from action.changes
            yield from filter(None, [action.change])
        if not self.actions:
            yield PlannedChange(sign="", subject=f"{self.change} {kind}", observed=None, desired=None)


_LISTS: Final[Mapping[str, str]] = {
    "create_schemas": SchemaName.kind,
    "align_schemas": SchemaName.kind,
    **{plural(kind.word): kind.word for kind in KINDS if kind.name is not SchemaName},
}
"""The lists of a plan's JSON, with the kind of their securables."""


def reviewed_changes(plan: Mapping[str, Any]) -> Mapping[tuple[str, str], Sequence[PlannedChange]]:
    """Return the changes in a plan's JSON, by the name of their securable in lower case and their subject.

    Raises:
        msgspec.ValidationError: it has another shape.
    """
    changes: dict[tuple[str, str], list[PlannedChange]] = {}
    for key, kind in _LISTS.items():
        for securable in msgspec.convert(plan.get(key, ()), tuple[dict[str, Any], ...]):
            name = msgspec.convert(securable.get(kind, ""), str).lower()
            name = name if kind in ("table", "schema") else f"{kind} {name}"
            for change in msgspec.convert(securable, _Securable).changes(kind):
                changes.setdefault((name, change.subject), []).append(change)
    return changes
