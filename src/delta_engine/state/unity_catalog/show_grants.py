"""Completes grants with SHOW GRANTS if the views show fewer than expected.

The views show all grants of an object to its owner. A principal with `MANAGE` sees only its own grants in them, and all
grants with SQL commands (docs: "TABLE_PRIVILEGES", "SCHEMA_PRIVILEGES").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TypeAlias

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.error_conditions import (
    is_forbidden,
    is_missing_schema,
    is_missing_table,
    is_unsupported,
)
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import QualifiedName, Schema, SchemaName, Table, View, ViewName
from delta_engine.models.functions import Function, FunctionName
from delta_engine.models.parts import Grants, by_principal, joined_grants, without_implied
from delta_engine.sql.functions import function_securable
from delta_engine.sql.governance import sql_show_grants
from delta_engine.sql.tables import sql_schema
from delta_engine.sql.views import view_securable
from delta_engine.state.failed_reads import require_answers
from delta_engine.state.unity_catalog.information_schema import grants

GrantedName: TypeAlias = QualifiedName | SchemaName | FunctionName | ViewName
"""The name of a securable with grants."""

_OWN = "OWN"
"""The owner in legacy metastores. It is not a grant."""

_PARENTS_OF_SCHEMAS = frozenset({"CATALOG", "METASTORE"})
_PARENTS_OF_TABLES = _PARENTS_OF_SCHEMAS | {"SCHEMA", "DATABASE"}
"""The types of objects from which tables, views, functions and schemas inherit grants."""

_NONE: frozenset[str] = frozenset()


def expected_grants(models: Iterable[Table | Schema | Function | View]) -> Mapping[str, Grants]:
    """Return the grants that models declare, by the key of their securable."""
    grants: dict[str, Grants] = {}
    for model in models:
        if model.grants:
            grants[model.key] = joined_grants(grants.get(model.key, {}), model.grants)
    return grants


def granted_rows(
    shown: Mapping[GrantedName, Sequence[Row]],
    expected: Mapping[str, Grants],
    runner: SqlRunner,
    pool: Executor,
) -> tuple[Mapping[str, Sequence[Row]], Sequence[CatalogReadError]]:
    """Return the grants of securables by key, as rows of the views, and why others are unreadable.

    `shown` are the rows of views of privileges. If they lack an `expected` privilege, SHOW
    GRANTS adds rows, unless the principal may not run it or the platform does not support it.
    """
    queries = {
        name.key: pool.submit(_complete_rows, name, rows, runner)
        for name, rows in shown.items()
        if name.key in expected and not _shows(rows, expected[name.key])
    }
    rows, refusals = {name.key: shown_rows for name, shown_rows in shown.items()}, []
    for key, query in queries.items():
        try:
            rows[key] = query.result()
        except CatalogReadError as refusal:
            refusals.append(refusal)
    return rows, refusals


def _shows(rows: Sequence[Row], expected: Grants) -> bool:
    held = by_principal(grants(rows))
    return all(
        without_implied(privileges) <= held.get(principal, _NONE)
        for principal, privileges in by_principal(expected).items()
    )


def _complete_rows(name: GrantedName, shown: Sequence[Row], runner: SqlRunner) -> Sequence[Row]:
    """Return the rows of the views, and those of SHOW GRANTS that were granted on the object itself.

    Inherited grants have the parent's type (docs: "SHOW GRANTS", `objectType`); a schema is also called DATABASE.
    """
    match name:
        case QualifiedName() as table:
            sql, parents = f"TABLE {CatalogAddressing().table(table)}", _PARENTS_OF_TABLES
        case FunctionName():
            sql, parents = function_securable(name), _PARENTS_OF_TABLES
        case ViewName():
            sql, parents = view_securable(name), _PARENTS_OF_TABLES
        case SchemaName(catalog, schema):
            sql, parents = f"SCHEMA {sql_schema(catalog, schema)}", _PARENTS_OF_SCHEMAS
    sql = sql_show_grants(sql)
    try:
        rows = runner.run(sql)
    except StatementError as error:
        if (
            is_forbidden(error)
            or is_unsupported(error)
            or is_missing_table(error)
            or is_missing_schema(error)
        ):
            return shown
        raise _unreadable(name, error) from error
    parsed = [_parsed(row, sql, name) for row in rows]
    return [
        *shown,
        *(
            {"grantee": principal, "privilege_type": privilege}
            for principal, privilege, kind in parsed
            if str(kind).upper() not in parents and privilege != _OWN
        ),
    ]


def _unreadable(name: GrantedName, error: StatementError) -> CatalogReadError:
    """Return the refusal of an object whose grants are unknown: without them, all would count as revoked."""
    require_answers(error, f"the grants of {name.kind} {name}")
    return CatalogReadError(
        f"its grants cannot be read: {error.first_line}",
        table=str(name) if isinstance(name, QualifiedName) else None,
        securable=None if isinstance(name, QualifiedName) else f"{name.kind} {name}",
        way_out="Run the command again. If the error persists, remove its grants from the models.",
    )


def _parsed(row: Row, sql: str, name: GrantedName) -> tuple[object, object, object]:
    values = {column.lower(): value for column, value in row.items()}
    principal, privilege = values.get("principal"), values.get("actiontype")
    if principal is None or privilege is None or "objecttype" not in values:
        raise CatalogReadError(
            f"{sql} returns another form than documented: a row has the columns {', '.join(row)}, "
            "and Principal, ActionType and ObjectType are needed",
            table=str(name) if isinstance(name, QualifiedName) else None,
            securable=None if isinstance(name, QualifiedName) else f"{name.kind} {name}",
            way_out="Report it, or remove the grants of this object from the models.",
        )
    return principal, privilege, values["objecttype"]
