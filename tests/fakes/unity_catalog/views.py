"""The fake catalog's `information_schema`: its views as rows, and the queries that the reader makes of them.

Column names are those of Databricks' SQL reference. As the real views do, these lower the names of keys' columns, leave
out of types what is said of fields inside, and show what was granted on the schema above as inherited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import sqlglot
from sqlglot import exp

from delta_engine.models import QualifiedName
from delta_engine.sql import quote_ident, sql_data_type
from delta_engine.sql_runner import Row
from delta_engine.state.states import SchemaState
from delta_engine.types import ArrayType, DataType, MapType, StructType
from tests.fakes.unity_catalog.refusals import Refusal, require
from tests.fakes.unity_catalog.spelling import as_read
from tests.fakes.unity_catalog.stored import Stored

Tables = Mapping[str, Stored]
Schemas = Mapping[str, SchemaState]
Rows = Iterator[dict[str, object]]


def selected(sql: str, tables: Tables, schemas: Schemas, renamed: Collection[str] = ()) -> list[Row]:
    """Return the rows of a query of one view: columns of it, and a condition of AND, IN, = and coalesce.

    Args:
        sql: the query.
        tables: all tables.
        schemas: all schemas.
        renamed: the catalogs that were renamed: their own views are empty. Those of `system` have everything.
    """
    query = sqlglot.parse_one(sql, dialect="databricks")
    assert isinstance(query, exp.Select)
    view = query.find(exp.Table)
    require(view is not None and view.db == "information_schema", "TABLE_OR_VIEW_NOT_FOUND", sql)
    assert view is not None
    known = {name.split(".")[0] for name in schemas}
    require(
        view.catalog in {*known, "system"}, "NO_SUCH_CATALOG_EXCEPTION", f"there is no catalog {view.catalog}"
    )
    where = query.args.get("where")
    shown = sorted(known) if view.catalog == "system" else {view.catalog} - {*renamed}
    rows = (row for catalog in shown for row in _view(view.name, catalog, tables, schemas))
    found = [row for row in rows if where is None or _value(where.this, row)]
    names = [column.name for column in query.selects]
    return [row if names == ["*"] else {name: row[name] for name in names} for row in found]


def schemas_of(catalog: str, schemas: Schemas) -> list[Row]:
    """Return the rows of SHOW SCHEMAS."""
    names = [name.split(".") for name in schemas]
    return [{"databaseName": name} for owner, name in names if owner == catalog]


def _value(node: exp.Expression, row: Row) -> object:
    match node:
        case exp.And(this=one, expression=other):
            return _value(one, row) and _value(other, row)
        case exp.EQ(this=one, expression=other):
            return _value(one, row) == _value(other, row)
        case exp.In(this=one, expressions=others):
            return _value(one, row) in [_value(other, row) for other in others]
        case exp.Coalesce(this=one, expressions=others):
            values = (_value(other, row) for other in (one, *others))
            return next((value for value in values if value is not None), None)
        case exp.Literal():
            return node.name
        case exp.Column():
            return row[node.name]
    raise Refusal("PARSE_SYNTAX_ERROR", f"the views' grammar has no {node}")


def _view(name: str, catalog: str, tables: Tables, schemas: Schemas) -> Rows:
    here = [stored for stored in tables.values() if stored.name.catalog == catalog]
    if name in _OF_TABLES:
        for stored in here:
            yield from _OF_TABLES[name](stored)
    elif name in _OF_SCHEMAS:
        for key, schema in schemas.items():
            if key.startswith(f"{catalog}."):
                yield from _OF_SCHEMAS[name](key, schema)
    elif name == "referential_constraints":
        for stored in here:
            yield from _referential_constraints(stored, tables)
    elif name == "table_privileges":
        for stored in here:
            yield from _table_privileges(stored, schemas)
    else:
        raise Refusal("TABLE_OR_VIEW_NOT_FOUND", f"there is no view {name}")


def _schemata(key: str, schema: SchemaState) -> Rows:
    audit = schema.audit
    yield {
        **_schema(key),
        "schema_owner": schema.owner,
        "comment": schema.comment or None,
        "created": audit.created_at,
        "created_by": audit.created_by,
        "last_altered": audit.altered_at,
        "last_altered_by": audit.altered_by,
    }


def _schema_tags(key: str, schema: SchemaState) -> Rows:
    for tag, value in schema.tags.items():
        yield {**_schema(key), "tag_name": tag, "tag_value": value}


def _schema_privileges(key: str, schema: SchemaState) -> Rows:
    for principal, privileges in schema.grants.items():
        for privilege in privileges:
            yield {
                **_schema(key),
                "grantee": principal,
                "privilege_type": privilege.replace(" ", "_"),
                "inherited_from": "NONE",
            }


def _tables(stored: Stored) -> Rows:
    state = stored.state
    yield {
        **_table(stored.name),
        "table_type": "EXTERNAL" if state.location else "MANAGED",
        "data_source_format": "DELTA",
        "comment": state.table_comment or None,
        "table_owner": state.owner,
        "storage_path": storage_path(stored),
        **dict.fromkeys(("created", "created_by", "last_altered", "last_altered_by")),
    }


def _columns(stored: Stored) -> Rows:
    for position, column in enumerate(as_read(stored).columns, start=1):
        yield {
            **_table(stored.name),
            "column_name": column.name,
            "ordinal_position": position,
            "full_data_type": _full_data_type(column.data_type),
            "is_nullable": "YES" if column.is_nullable else "NO",
            "comment": column.comment or None,
            "column_default": column.default,
            "is_identity": "NO",
        }


def _table_constraints(stored: Stored) -> Rows:
    state = stored.state
    if state.primary_key:
        yield {**_constraint(stored, state.primary_key.name), "constraint_type": "PRIMARY KEY"}
    for key in state.foreign_keys:
        yield {**_constraint(stored, key.name), "constraint_type": "FOREIGN KEY"}


def _key_column_usage(stored: Stored) -> Rows:
    for key in (stored.state.primary_key, *stored.state.foreign_keys):
        is_foreign = key is not stored.state.primary_key
        for position, column in enumerate(key.columns if key else (), start=1):
            assert key is not None
            yield {
                **_constraint(stored, key.name),
                "column_name": column.lower(),
                "ordinal_position": position,
                "position_in_unique_constraint": position if is_foreign else None,
            }


def _referential_constraints(stored: Stored, tables: Tables) -> Rows:
    for key in stored.state.foreign_keys:
        parent = tables[key.references]
        assert parent.state.primary_key is not None
        yield {
            **_constraint(stored, key.name),
            "unique_constraint_catalog": parent.name.catalog,
            "unique_constraint_schema": parent.name.schema,
            "unique_constraint_name": parent.state.primary_key.name,
        }


def _table_tags(stored: Stored) -> Rows:
    for tag, value in stored.state.tags.items():
        yield {**_tagged(stored), "tag_name": tag, "tag_value": value}


def _column_tags(stored: Stored) -> Rows:
    for column in stored.state.columns:
        for tag, value in column.tags.items():
            yield {**_tagged(stored), "column_name": column.name, "tag_name": tag, "tag_value": value}


def _row_filters(stored: Stored) -> Rows:
    row_filter = as_read(stored).row_filter
    if row_filter:
        yield {
            **_table(stored.name),
            "filter_name": row_filter.function,
            "target_columns": _listed(row_filter.columns),
        }


def _column_masks(stored: Stored) -> Rows:
    for column in as_read(stored).columns:
        if column.mask:
            yield {
                **_table(stored.name),
                "column_name": column.name,
                "mask_name": column.mask.function,
                "using_columns": _listed(column.mask.using_columns),
            }


def _table_privileges(stored: Stored, schemas: Schemas) -> Rows:
    above = schemas[f"{stored.name.catalog}.{stored.name.schema}"].grants
    for grants, inherited_from in ((stored.state.grants, "NONE"), (above, "SCHEMA")):
        for principal, privileges in grants.items():
            for privilege in privileges:
                yield {
                    **_table(stored.name),
                    "grantee": principal,
                    "privilege_type": privilege.replace(" ", "_"),
                    "inherited_from": inherited_from,
                }


_OF_SCHEMAS: Mapping[str, Callable[[str, SchemaState], Rows]] = {
    "schemata": _schemata,
    "schema_tags": _schema_tags,
    "schema_privileges": _schema_privileges,
}
_OF_TABLES: Mapping[str, Callable[[Stored], Rows]] = {
    "tables": _tables,
    "columns": _columns,
    "table_constraints": _table_constraints,
    "key_column_usage": _key_column_usage,
    "table_tags": _table_tags,
    "column_tags": _column_tags,
    "row_filters": _row_filters,
    "column_masks": _column_masks,
}


def storage_path(stored: Stored) -> str:
    """Return where a table's files are."""
    return stored.state.location or f"s3://metastore/{stored.name.key}"


def _schema(key: str) -> dict[str, object]:
    catalog, schema = key.split(".")
    return {"catalog_name": catalog, "schema_name": schema}


def _table(name: QualifiedName) -> dict[str, object]:
    return {"table_catalog": name.catalog, "table_schema": name.schema, "table_name": name.table}


def _tagged(stored: Stored) -> dict[str, object]:
    return {**_schema(f"{stored.name.catalog}.{stored.name.schema}"), "table_name": stored.name.table}


def _constraint(stored: Stored, name: str | None) -> dict[str, object]:
    return {
        **_table(stored.name),
        "constraint_catalog": stored.name.catalog,
        "constraint_schema": stored.name.schema,
        "constraint_name": name,
    }


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_ident, names))


def _full_data_type(data_type: DataType) -> str:
    """Return a type as the views spell it: without spaces, and without what is said of fields inside."""
    match data_type:
        case ArrayType(element):
            return f"array<{_full_data_type(element)}>"
        case MapType(key, value):
            return f"map<{_full_data_type(key)},{_full_data_type(value)}>"
        case StructType(fields):
            inside = (f"{quote_ident(one.name)}:{_full_data_type(one.data_type)}" for one in fields)
            return f"struct<{','.join(inside)}>"
    return sql_data_type(data_type)
