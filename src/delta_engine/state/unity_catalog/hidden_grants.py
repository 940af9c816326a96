"""Asks for grants with SHOW GRANTS where the views show fewer than expected.

The views show all grants of an object to its owner. A principal that has `MANAGE` on it sees its own grants alone, and
all of them with SQL commands (Databricks' SQL reference, "TABLE_PRIVILEGES" and "SCHEMA_PRIVILEGES").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.error_conditions import transience
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.models.parts import Grants, by_principal, joined_grants, without_implied
from delta_engine.sql import sql_schema, sql_show_grants
from delta_engine.state.unity_catalog.table_states import grants

_OWN = "OWN"
"""How legacy metastores list the owner, which is no grant."""

_HOLDERS_OF_SCHEMAS = frozenset({"CATALOG", "METASTORE"})
_HOLDERS_OF_TABLES = _HOLDERS_OF_SCHEMAS | {"SCHEMA", "DATABASE"}
"""The types of objects from which tables and schemas inherit grants."""

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Securable:
    """A table or a schema, and its grants in the views.

    Args:
        name: the table's or the schema's name.
        shown: its rows in `table_privileges` or `schema_privileges`.
    """

    name: QualifiedName | SchemaName
    shown: Sequence[Row]


def expected_grants(models: Iterable[Table | Schema]) -> Mapping[str, Grants]:
    """Return the grants that models name, by the key of their table or schema."""
    found: dict[str, Grants] = {}
    for model in models:
        if model.grants:
            found[model.key] = joined_grants(found.get(model.key, {}), model.grants)
    return found


def granted_rows(
    securables: Sequence[Securable], expected: Mapping[str, Grants], runner: SqlRunner, pool: Executor
) -> tuple[Mapping[str, Sequence[Row]], Sequence[CatalogReadError]]:
    """Return the grants of tables and schemas by key, as rows of the views, and why those of others cannot be read.

    They are what the views show. Where that lacks an expected privilege, the answer of SHOW GRANTS is added. Where the
    platform refuses SHOW GRANTS, they are what the views show.

    Args:
        securables: the tables and schemas.
        expected: what `expected_grants` returns.
        runner: runs SHOW GRANTS.
        pool: where it runs, for all objects at the same time.

    Raises:
        StatementError: SHOW GRANTS failed for a reason that may pass, or its answer was lost.
    """
    asked = {
        one.name.key: pool.submit(_asked, one, runner)
        for one in securables
        if one.name.key in expected and not _shows(one, expected[one.name.key])
    }
    rows, refusals = {one.name.key: one.shown for one in securables}, []
    for key, question in asked.items():
        try:
            rows[key] = question.result()
        except CatalogReadError as refusal:
            refusals.append(refusal)
    return rows, refusals


def _shows(securable: Securable, expected: Grants) -> bool:
    held = by_principal(grants(securable.shown))
    return all(
        without_implied(privileges) <= held.get(principal, _NONE)
        for principal, privileges in by_principal(expected).items()
    )


def _asked(securable: Securable, runner: SqlRunner) -> Sequence[Row]:
    """Return what the views show, and what SHOW GRANTS says was granted on the object itself.

    Rows that come from what holds the object have the type of that (Databricks' SQL reference, "SHOW GRANTS":
    `objectType` is what the permission is attached to; a schema is also called DATABASE there).
    """
    match securable.name:
        case QualifiedName() as table:
            sql, holders = f"TABLE {CatalogAddressing().table(table)}", _HOLDERS_OF_TABLES
        case SchemaName(catalog, schema):
            sql, holders = f"SCHEMA {sql_schema(catalog, schema)}", _HOLDERS_OF_SCHEMAS
    sql = sql_show_grants(sql)
    try:
        rows = runner.run(sql)
    except StatementError as error:
        if error.is_outcome_unknown or transience(error):
            raise
        return securable.shown
    told = [_told(row, sql, securable.name) for row in rows]
    return [
        *securable.shown,
        *(
            {"grantee": principal, "privilege_type": privilege}
            for principal, privilege, kind in told
            if str(kind).upper() not in holders and privilege != _OWN
        ),
    ]


def _told(row: Row, sql: str, name: QualifiedName | SchemaName) -> tuple[object, object, object]:
    """Return the principal, the privilege and the type of object in a row of SHOW GRANTS.

    Raises:
        CatalogReadError: the row has other columns than documented, or no principal or privilege.
    """
    told = {column.lower(): value for column, value in row.items()}
    principal, privilege = told.get("principal"), told.get("actiontype")
    if principal is None or privilege is None or "objecttype" not in told:
        raise CatalogReadError(
            f"{sql} answers in another form than documented: a row has the columns {', '.join(row)}, "
            "and Principal, ActionType and ObjectType are needed",
            table=str(name) if isinstance(name, QualifiedName) else None,
            way_out="Report it, or leave the grants of this object out of the models.",
        )
    return principal, privilege, told["objecttype"]
