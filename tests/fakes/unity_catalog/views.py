"""The fake catalog's `information_schema`: its views as rows, and the queries that the reader makes of them.

Column names are those of Databricks' SQL reference. As the real views do, these lower the names of keys' columns, leave
out of types what is said of fields inside, and show what was granted on the schema above as inherited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from delta_engine.backends.sql_runner import Row
from delta_engine.models import ForeignKey, Grants, PrimaryKey, QualifiedName
from delta_engine.models.functions import FunctionLanguage
from delta_engine.models.types import ArrayType, DataType, MapType, StructType, UnsupportedType
from delta_engine.sql.text import quote_ident, shown_type
from delta_engine.state.audits import Audit
from delta_engine.state.function_states import FunctionState
from delta_engine.state.principals import Permissions
from delta_engine.state.states import SchemaState
from tests.fakes.unity_catalog.refusals import Refusal, require
from tests.fakes.unity_catalog.spelling import as_read
from tests.fakes.unity_catalog.stored import Stored
from tests.fakes.unity_catalog.user_views import StoredView

Tables = Mapping[str, Stored]
Schemas = Mapping[str, SchemaState]
Functions = Mapping[str, FunctionState]
UserViews = Mapping[str, tuple[StoredView, bool]]
Rows = Iterator[dict[str, object]]
Place = Mapping[str, object]

VERSION = "2026.40"
"""The version of the SQL warehouse."""

_AUDIT = ("created", "created_by", "last_altered", "last_altered_by")
_TABLE = ("table_catalog", "table_schema", "table_name")
_CONSTRAINT = ("constraint_catalog", "constraint_schema", "constraint_name")
_TAG = ("tag_name", "tag_value")
_ROUTINE = ("specific_catalog", "specific_schema", "specific_name")
_GRANT = ("grantor", "grantee", "privilege_type", "is_grantable", "inherited_from")

VIEWS: Mapping[str, tuple[str, ...]] = {
    "catalogs": ("catalog_name", "catalog_owner", "comment", *_AUDIT),
    "catalog_privileges": ("catalog_name", *_GRANT),
    "schemata": ("catalog_name", "schema_name", "schema_owner", "comment", *_AUDIT),
    "schema_privileges": ("catalog_name", "schema_name", *_GRANT),
    "schema_tags": ("catalog_name", "schema_name", *_TAG),
    "tables": (
        *(*_TABLE, "table_type", "comment", "table_owner", "data_source_format", "storage_path"),
        *_AUDIT,
    ),
    "table_privileges": (*_TABLE, *_GRANT),
    "views": (*_TABLE, "view_definition", "check_option", "is_updatable", "is_insertable_into", "sql_path"),
    "table_tags": ("catalog_name", "schema_name", "table_name", *_TAG),
    "columns": (
        *(*_TABLE, "column_name", "ordinal_position", "column_default", "is_nullable", "full_data_type"),
        *("is_identity", "comment"),
    ),
    "column_tags": ("catalog_name", "schema_name", "table_name", "column_name", *_TAG),
    "column_masks": (*_TABLE, "column_name", "mask_name", "using_columns"),
    "row_filters": (*_TABLE, "filter_name", "target_columns"),
    "routines": (
        *(*_ROUTINE, "routine_catalog", "routine_schema", "routine_name", "routine_type", "data_type"),
        *("full_data_type", "routine_body", "routine_definition", "external_language", "is_deterministic"),
        *("comment", *_AUDIT),
    ),
    "parameters": (
        *(*_ROUTINE, "ordinal_position", "parameter_name", "full_data_type", "parameter_default", "comment"),
    ),
    "routine_privileges": (*_ROUTINE, *_GRANT),
    "table_constraints": (*_CONSTRAINT, *_TABLE, "constraint_type"),
    "key_column_usage": (
        *(*_CONSTRAINT, *_TABLE, "column_name", "ordinal_position", "position_in_unique_constraint"),
    ),
    "referential_constraints": (
        *_CONSTRAINT,
        *("unique_constraint_catalog", "unique_constraint_schema", "unique_constraint_name"),
    ),
}
"""The columns by which the views list themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What queries can ask about: the objects, the views themselves, and who asks, with its groups.

    The own views of renamed catalogs are empty; those of `system` have everything.
    """

    views: Mapping[str, tuple[str, ...]]
    tables: Tables
    schemas: Schemas
    functions: Functions
    user_views: UserViews
    catalogs: Mapping[str, Permissions]
    user: str
    groups: frozenset[str]
    renamed: frozenset[str] = frozenset()


def selected(sql: str, shown: Shown) -> list[Row]:
    """Return the rows of a query of one view, of several with UNION ALL, or of none.

    Counts and sums are zero: tables have no rows, but for the NULLs that tests put there.
    """
    if sql.startswith("SELECT current_version()"):
        return [{"version": VERSION}]
    query = sqlglot.parse_one(sql, dialect="databricks")
    assert isinstance(query, exp.Select | exp.Union)
    if sql.startswith("SELECT CASE WHEN count_if("):
        return [{"verified": None}]  # no row is in the way: there are none
    if sql.startswith(("SELECT count", "SELECT sum(")):
        return [dict.fromkeys(query.named_selects, 0)]
    return list(_selected(query, shown))


def _selected(query: object, shown: Shown) -> Iterator[Row]:
    if isinstance(query, exp.Union):
        yield from _selected(query.left, shown)
        yield from _selected(query.right, shown)
        return
    assert isinstance(query, exp.Select)
    where = query.args.get("where")
    for row in _from(query, shown):
        if where is None or _value(where.this, row, shown):
            is_whole = query.selects[0].name == "*"
            yield (
                row
                if is_whole
                else {
                    selected.alias_or_name: _value(selected.unalias(), row, shown)
                    for selected in query.selects
                }
            )


def _from(query: exp.Select, shown: Shown) -> Iterator[Row]:
    view = query.find(exp.Table)
    if view is None:
        yield {}
        return
    require(view.db == "information_schema", "TABLE_OR_VIEW_NOT_FOUND", str(query))
    catalogs = {name.split(".")[0] for name in shown.schemas}
    require(
        view.catalog in {*catalogs, "system"},
        "NO_SUCH_CATALOG_EXCEPTION",
        f"there is no catalog {view.catalog}",
    )
    for catalog in sorted(catalogs) if view.catalog == "system" else {view.catalog} - shown.renamed:
        yield from _view(view.name, catalog, shown)


def schemas_of(catalog: str, schemas: Schemas) -> list[Row]:
    names = [name.split(".") for name in schemas]
    return [{"databaseName": name} for owner, name in names if owner == catalog]


def _value(node: object, row: Row, shown: Shown) -> object:
    match node:
        case exp.And(this=inner, expression=other):
            return _value(inner, row, shown) and _value(other, row, shown)
        case exp.Or(this=inner, expression=other):
            return _value(inner, row, shown) or _value(other, row, shown)
        case exp.Paren(this=inner):
            return _value(inner, row, shown)
        case exp.EQ(this=inner, expression=other):
            return _value(inner, row, shown) == _value(other, row, shown)
        case exp.In(this=inner, expressions=others):
            return _value(inner, row, shown) in [_value(other, row, shown) for other in others]
        case exp.Coalesce(this=inner, expressions=others):
            values = (_value(other, row, shown) for other in (inner, *others))
            return next((value for value in values if value is not None), None)
        case exp.CurrentUser():
            return shown.user
        case exp.Anonymous(this="is_account_group_member", expressions=[inner]):
            return _value(inner, row, shown) in shown.groups
        case exp.Literal():
            return node.name
        case exp.Column():
            return row[node.name]
    raise Refusal("PARSE_SYNTAX_ERROR", f"the views' grammar has no {node}")


def _view(name: str, catalog: str, shown: Shown) -> Rows:
    if name == "columns":
        yield from _columns_of_views(shown.views)
    if name in _OF_CATALOGS:
        yield from _OF_CATALOGS[name](catalog, shown.catalogs.get(catalog, Permissions()))
    elif name in _OF_SCHEMAS:
        for key, schema in shown.schemas.items():
            if key.startswith(f"{catalog}."):
                yield from _OF_SCHEMAS[name](_schema(key), schema)
    elif name in _OF_FUNCTIONS:
        for key, function in shown.functions.items():
            if key.startswith(f"{catalog}."):
                yield from _OF_FUNCTIONS[name](key, function, shown)
    elif name in _OF_TABLES or name in _OF_VIEWS:
        for stored in shown.tables.values() if name in _OF_TABLES else ():
            if stored.name.catalog == catalog:
                yield from _OF_TABLES[name](stored, shown)
        for key, (view, is_owner) in shown.user_views.items():
            if name in _OF_VIEWS and key.startswith(f"{catalog}."):
                yield from _OF_VIEWS[name](view, is_owner, shown)
    else:
        raise Refusal("TABLE_OR_VIEW_NOT_FOUND", f"there is no view {name}")


def _columns_of_views(views: Mapping[str, tuple[str, ...]]) -> Rows:
    for view, columns in views.items():
        for position, column in enumerate(columns, start=1):
            yield {
                "table_catalog": "any",
                "table_schema": "information_schema",
                "table_name": view,
                "column_name": column,
                "ordinal_position": position,
                **dict.fromkeys(("full_data_type", "is_nullable", "comment", "column_default")),
                "is_identity": "NO",
            }


def _catalogs(catalog: str, holders: Permissions) -> Rows:
    yield {"catalog_name": catalog, "catalog_owner": holders.owner}


def _schemata(place: Place, schema: SchemaState) -> Rows:
    yield {**place, "schema_owner": schema.owner, "comment": schema.comment or None, **_audited(schema.audit)}


def _audited(audit: Audit) -> dict[str, object]:
    audit_values = (audit.created_at, audit.created_by, audit.altered_at, audit.altered_by)
    return dict(zip(_AUDIT, audit_values, strict=True))


def _tables(stored: Stored, _shown: Shown) -> Rows:
    state = stored.state
    yield {
        **_table(stored.name),
        "table_type": "EXTERNAL" if state.location else "MANAGED",
        "data_source_format": "DELTA",
        "comment": state.table_comment or None,
        "table_owner": state.owner,
        "storage_path": storage_path(stored),
        **_audited(state.audit),
    }


def _columns(stored: Stored, _shown: Shown) -> Rows:
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


def _table_constraints(stored: Stored, _shown: Shown) -> Rows:
    for key in _keys(stored):
        kind = "PRIMARY KEY" if isinstance(key, PrimaryKey) else "FOREIGN KEY"
        yield {**_constraint(stored, key.name), "constraint_type": kind}
    for name in stored.state.unique_constraints:  # key_column_usage has the columns of the other kinds only
        yield {**_constraint(stored, name), "constraint_type": "UNIQUE"}


def _key_column_usage(stored: Stored, _shown: Shown) -> Rows:
    for key in _keys(stored):
        for position, column in enumerate(key.columns, start=1):
            yield {
                **_constraint(stored, key.name),
                "column_name": column.lower(),
                "ordinal_position": position,
                "position_in_unique_constraint": position if isinstance(key, ForeignKey) else None,
            }


def _referential_constraints(stored: Stored, shown: Shown) -> Rows:
    for key in stored.state.foreign_keys:
        parent = shown.tables[key.references]
        assert parent.state.primary_key is not None
        yield {
            **_named(stored, key.name),
            "unique_constraint_catalog": parent.name.catalog,
            "unique_constraint_schema": parent.name.schema,
            "unique_constraint_name": parent.state.primary_key.name,
        }


def _column_tags(stored: Stored, _shown: Shown) -> Rows:
    for column in stored.state.columns:
        yield from _tags({**_tagged(stored), "column_name": column.name}, column.tags)


def _row_filters(stored: Stored, _shown: Shown) -> Rows:
    row_filter = as_read(stored).row_filter
    if row_filter:
        columns = _listed(row_filter.columns)
        yield {**_table(stored.name), "filter_name": row_filter.function, "target_columns": columns}


def _column_masks(stored: Stored, _shown: Shown) -> Rows:
    for column in as_read(stored).columns:
        if column.mask:
            yield {
                **_table(stored.name),
                "column_name": column.name,
                "mask_name": column.mask.function,
                "using_columns": _listed(column.mask.using_columns),
            }


def _table_privileges(stored: Stored, shown: Shown) -> Rows:
    above = shown.schemas[f"{stored.name.catalog}.{stored.name.schema}"].grants
    yield from _privileges(_table(stored.name), stored.state.grants)
    yield from _privileges(_table(stored.name), above, "SCHEMA")


def _views(view: StoredView, is_owner: bool, _shown: Shown) -> Rows:
    yield {
        **_of_key(view.key),
        "view_definition": view.query if is_owner else None,
        "check_option": "NONE",
        "is_updatable": "NO",
        "is_insertable_into": "NO",
        "sql_path": None,
    }


def _view_as_table(view: StoredView, _is_owner: bool, _shown: Shown) -> Rows:
    yield {
        **_of_key(view.key),
        "table_type": "VIEW",
        "data_source_format": "UNKNOWN_DATA_SOURCE_FORMAT",
        "comment": view.comment or None,
        "table_owner": view.owner,
        "storage_path": None,
        **_audited(view.audit),
    }


def _columns_of_view(view: StoredView, _is_owner: bool, _shown: Shown) -> Rows:
    for position, (column, output) in enumerate(zip(view.columns, view.outputs, strict=True), start=1):
        yield {
            **_of_key(view.key),
            "column_name": column.name,
            "ordinal_position": position,
            "full_data_type": _full_data_type(output.data_type) if output.data_type else "string",
            "is_nullable": "YES",
            "comment": column.comment or None,
            "column_default": None,
            "is_identity": "NO",
        }


def _tags_of_view(view: StoredView, _is_owner: bool, _shown: Shown) -> Rows:
    yield from _tags(_tagged_key(view.key), view.tags)


def _column_tags_of_view(view: StoredView, _is_owner: bool, _shown: Shown) -> Rows:
    for column in view.columns:
        yield from _tags({**_tagged_key(view.key), "column_name": column.name}, column.tags)


def _privileges_of_view(view: StoredView, _is_owner: bool, shown: Shown) -> Rows:
    yield from _privileges(_of_key(view.key), view.grants)
    yield from _privileges(_of_key(view.key), shown.schemas[view.key.rpartition(".")[0]].grants, "SCHEMA")


def _of_key(key: str) -> dict[str, object]:
    return dict(zip(_TABLE, key.split("."), strict=True))


def _tagged_key(key: str) -> dict[str, object]:
    return dict(zip(("catalog_name", "schema_name", "table_name"), key.split("."), strict=True))


def _routines(key: str, function: FunctionState, _shown: Shown) -> Rows:
    catalog, schema, name = key.split(".")
    is_python = function.language is FunctionLanguage.PYTHON
    full_data_type = _full_data_type(function.returns) if function.returns else None
    yield {
        **_routine(key),
        "routine_catalog": catalog,
        "routine_schema": schema,
        "routine_name": name,
        "routine_type": "FUNCTION",
        "data_type": (full_data_type or "").partition("(")[0].partition("<")[0],
        "full_data_type": full_data_type,
        "routine_body": "EXTERNAL" if is_python else "SQL",
        "routine_definition": function.body,
        "external_language": "PYTHON" if is_python else None,
        "is_deterministic": "NO" if function.is_deterministic is False else "YES",
        "comment": function.comment or None,
        **_audited(function.audit),
    }


def _parameters(key: str, function: FunctionState, _shown: Shown) -> Rows:
    for position, parameter in enumerate(function.parameters):
        yield {
            **_routine(key),
            "ordinal_position": position,
            "parameter_name": parameter.name,
            "full_data_type": _full_data_type(parameter.data_type),
            "parameter_default": parameter.default,
            "comment": parameter.comment or None,
        }


def _routine_privileges(key: str, function: FunctionState, shown: Shown) -> Rows:
    yield from _privileges(_routine(key), function.grants)
    yield from _privileges(_routine(key), shown.schemas[key.rpartition(".")[0]].grants, "SCHEMA")


def _routine(key: str) -> dict[str, object]:
    return dict(zip(_ROUTINE, key.split("."), strict=True))


def _privileges(place: Place, grants: Grants, inherited_from: str = "NONE") -> Rows:
    for principal, privileges in grants.items():
        for privilege in privileges:
            yield {
                **place,
                "grantee": principal,
                "privilege_type": privilege.replace(" ", "_"),
                "inherited_from": inherited_from,
            }


def _tags(place: Place, tags: Mapping[str, str]) -> Rows:
    for tag, value in tags.items():
        yield {**place, "tag_name": tag, "tag_value": value}


_OF_CATALOGS: Mapping[str, Callable[[str, Permissions], Rows]] = {
    "catalogs": _catalogs,
    "catalog_privileges": lambda catalog, holders: _privileges({"catalog_name": catalog}, holders.grants),
}
_OF_SCHEMAS: Mapping[str, Callable[[Place, SchemaState], Rows]] = {
    "schemata": _schemata,
    "schema_privileges": lambda place, schema: _privileges(place, schema.grants),
    "schema_tags": lambda place, schema: _tags(place, schema.tags),
}
_OF_FUNCTIONS: Mapping[str, Callable[[str, FunctionState, Shown], Rows]] = {
    "routines": _routines,
    "parameters": _parameters,
    "routine_privileges": _routine_privileges,
}
_OF_TABLES: Mapping[str, Callable[[Stored, Shown], Rows]] = {
    "tables": _tables,
    "columns": _columns,
    "table_constraints": _table_constraints,
    "key_column_usage": _key_column_usage,
    "referential_constraints": _referential_constraints,
    "table_privileges": _table_privileges,
    "table_tags": lambda stored, _shown: _tags(_tagged(stored), stored.state.tags),
    "column_tags": _column_tags,
    "row_filters": _row_filters,
    "column_masks": _column_masks,
}

_OF_VIEWS: Mapping[str, Callable[[StoredView, bool, Shown], Rows]] = {
    "tables": _view_as_table,
    "views": _views,
    "columns": _columns_of_view,
    "table_tags": _tags_of_view,
    "column_tags": _column_tags_of_view,
    "table_privileges": _privileges_of_view,
}


def storage_path(stored: Stored) -> str:
    return stored.state.location or f"s3://metastore/{stored.name.key}"


def _keys(stored: Stored) -> Iterator[PrimaryKey | ForeignKey]:
    if stored.state.primary_key:
        yield stored.state.primary_key
    yield from stored.state.foreign_keys


def _schema(key: str) -> dict[str, object]:
    catalog, schema = key.split(".")
    return {"catalog_name": catalog, "schema_name": schema}


def _table(name: QualifiedName) -> dict[str, object]:
    return {"table_catalog": name.catalog, "table_schema": name.schema, "table_name": name.table}


def _tagged(stored: Stored) -> dict[str, object]:
    return {**_schema(f"{stored.name.catalog}.{stored.name.schema}"), "table_name": stored.name.table}


def _constraint(stored: Stored, name: str | None) -> dict[str, object]:
    return {**_table(stored.name), **_named(stored, name)}


def _named(stored: Stored, name: str | None) -> dict[str, object]:
    return dict(zip(_CONSTRAINT, (stored.name.catalog, stored.name.schema, name), strict=True))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_ident, names))


def _full_data_type(data_type: DataType) -> str:
    """Return a type as the views spell it: without spaces, and without what is said of fields inside."""
    match data_type:
        case UnsupportedType(text):
            return text
        case ArrayType(element):
            return f"array<{_full_data_type(element)}>"
        case MapType(key, value):
            return f"map<{_full_data_type(key)},{_full_data_type(value)}>"
        case StructType(fields):
            inside = (f"{quote_ident(field.name)}:{_full_data_type(field.data_type)}" for field in fields)
            return f"struct<{','.join(inside)}>"
    return shown_type(data_type)
