"""How the fake catalog's tables describe themselves: as JSON, as CREATE TABLE, by their properties and grants."""

from __future__ import annotations

import json
from collections.abc import Iterable

from delta_engine.backends.sql_runner import Row
from delta_engine.models import Grants
from delta_engine.sql.text import quote_ident, sql_literal
from delta_engine.state.states import SchemaState, TableState
from tests.builders.described_columns import column_definition, json_column
from tests.fakes.unity_catalog.spelling import as_read, shown_properties
from tests.fakes.unity_catalog.stored import Stored
from tests.fakes.unity_catalog.user_views import StoredView
from tests.fakes.unity_catalog.values import VALUE_FACETS
from tests.fakes.unity_catalog.views import storage_path


def as_json(stored: Stored, *, with_keys: bool = False) -> list[Row]:
    """Return the document of DESCRIBE TABLE EXTENDED … AS JSON."""
    state = as_read(stored)
    document = {
        "table_name": stored.name.table,
        "catalog_name": stored.name.catalog,
        "namespace": [stored.name.schema],
        "columns": [json_column(column) for column in state.columns],
        "table_properties": dict(shown_properties(stored.state)),
        "comment": state.table_comment,
        "clustering_information": [{"name": _path(path)} for path in state.cluster_by],
        "partition_columns": list(state.partitioned_by),
        "type": "EXTERNAL" if state.location else "MANAGED",
        "location": storage_path(stored),
        **{
            field: facet.describe(value)
            for field, facet in VALUE_FACETS.items()
            if (value := getattr(state, field)) is not None
        },
        **_policies(state),
        **({"table_constraints": _keys(state)} if with_keys else {}),
    }
    return [{"json_metadata": json.dumps(document)}]


def view_as_json(view: StoredView, *, shows_query: bool) -> list[Row]:
    """Return the document of DESCRIBE TABLE EXTENDED … AS JSON for a view, as Spark 4.1.1 has it (measured).

    The query is hidden from others than the owner, as in `information_schema`: no document says that a description
    shows more.
    """
    catalog, schema, name = view.key.split(".")
    query = view.query if shows_query else None
    document = {
        "table_name": name,
        "catalog_name": catalog,
        "namespace": [schema],
        "columns": [
            {
                "name": column.name,
                "type": {"name": "string"},
                "nullable": True,
                **({"comment": column.comment} if column.comment else {}),
            }
            for column in view.columns
        ],
        "type": "VIEW",
        **({"comment": view.comment} if view.comment else {}),
        "view_text": query,
        "view_original_text": query,
        "view_schema_mode": view.mode.value.upper(),
        "view_query_output_columns": [output.name for output in view.outputs],
        "owner": view.owner,
    }
    return [{"json_metadata": json.dumps(document)}]


def as_schema_description(schema: SchemaState) -> list[Row]:
    """Return the rows of DESCRIBE SCHEMA EXTENDED."""
    items = {"Comment": schema.comment}
    for field, facet in VALUE_FACETS.items():
        items[field.replace("_", " ").title()] = facet.describe(getattr(schema, field)) or ""
    return [
        {"database_description_item": item, "database_description_value": value}
        for item, value in items.items()
    ]


def as_grants(object_type: str, key: str, grants: Grants) -> list[Row]:
    """Return the rows of SHOW GRANTS for what was granted on one object."""
    return [
        {"Principal": principal, "ActionType": privilege, "ObjectType": object_type, "ObjectKey": key}
        for principal, privileges in grants.items()
        for privilege in privileges
    ]


def _policies(state: TableState) -> dict[str, object]:
    """Return the masks and the row filter; what there is none of is left out, as the platform does."""
    policies: dict[str, object] = {}
    masks = [
        {
            "column_name": column.name,
            "function_name": _function(column.mask.function),
            "using_column_names": list(column.mask.using_columns),
        }
        for column in state.columns
        if column.mask
    ]
    if masks:
        policies["column_masks"] = masks
    if state.row_filter:
        columns = list(state.row_filter.columns)
        policies["row_filter"] = {
            "function_name": _function(state.row_filter.function),
            "column_names": columns,
        }
    return policies


def _keys(state: TableState) -> str:
    """Return the keys as one text, in the form of `described_keys`."""
    keys = [f"({key.name},PRIMARY KEY {_idents(key.columns)})" for key in [state.primary_key] if key]
    keys += [
        f"({key.name},FOREIGN KEY {_idents(key.columns)} "
        f"REFERENCES {_path(key.references)} {_idents(key.referenced_columns)})"
        for key in state.foreign_keys
    ]
    return f"[{', '.join(keys)}]"


def _idents(names: Iterable[str]) -> str:
    return f"({', '.join(map(quote_ident, names))})"


def _function(name: str) -> dict[str, str]:
    return dict(zip(("catalog_name", "schema_name", "function_name"), name.split("."), strict=True))


def as_create_statement(stored: Stored) -> list[Row]:
    state = as_read(stored)
    columns = ",\n  ".join(map(column_definition, state.columns))
    partitioning = ", ".join(map(quote_ident, state.partitioned_by))
    clauses = f"\nPARTITIONED BY ({partitioning})" if partitioning else ""
    clauses += f"\nCOMMENT {sql_literal(state.table_comment)}" if state.table_comment else ""
    return [{"createtab_stmt": f"CREATE TABLE {stored.name} (\n  {columns})\nUSING delta{clauses}"}]


def as_properties(stored: Stored) -> list[Row]:
    clustering = [path.split(".") for path in stored.state.cluster_by]
    shown = {**shown_properties(stored.state)}
    if clustering:
        shown["clusteringColumns"] = json.dumps(clustering)
    return [{"key": key, "value": value} for key, value in shown.items()]


def _path(path: str) -> str:
    return ".".join(map(quote_ident, path.split(".")))
