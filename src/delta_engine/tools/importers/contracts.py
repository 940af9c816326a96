"""Writes tables as a data contract of the Open Data Contract Standard, which `odcs` reads back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from delta_engine.errors import InvalidCommandError
from delta_engine.models import Column, ForeignKey, PrimaryKey, Table
from delta_engine.models.constraints import referenced_table
from delta_engine.models.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_engine.sql.text import shown_type
from delta_engine.tools.importers.odcs import CONSTRAINT_NAME, COUNTED, IS_VIOLATED, PRIMARY_KEY_NAME

API_VERSION: Final = "v3.1.0"
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_LOGICAL: Final = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
    **{"date": "date", "boolean": "boolean", "string": "string", "binary": "string"},
}


def contract_text(
    tables: Sequence[Table], declared: Mapping[str, Table], environment: str, version: str
) -> tuple[str, list[str]]:
    """Return a contract of tables of one schema, and notes on what the standard cannot say.

    Args:
        declared: the tables that foreign keys may reference, by key.

    Raises:
        InvalidCommandError: the tables are in several schemas.
    """
    import yaml

    places = {(table.catalog_name, table.schema_name) for table in tables}
    if len(places) != 1:
        names = ", ".join(sorted(".".join(place) for place in places))
        raise InvalidCommandError(
            f"the tables are in several schemas: {names}", way_out="Write a contract for each schema."
        )
    ((catalog, schema),) = places
    notes: list[str] = []
    whole = tables[0].key if len(tables) == 1 else f"{catalog}.{schema}".lower()
    document = {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": whole,
        "name": tables[0].table_name if len(tables) == 1 else schema,
        "version": version,
        "status": "active",
        "servers": [
            {
                "server": environment,
                "type": "databricks",
                "environment": environment,
                "catalog": catalog,
                "schema": schema,
            }
        ],
        "schema": [_object(table, declared, notes) for table in tables],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110), notes


def _object(table: Table, declared: Mapping[str, Table], notes: list[str]) -> dict[str, Any]:
    relationships = (_relationship(table, key, declared, notes) for key in table.foreign_keys)
    return _without_empty(
        {
            "name": table.table_name,
            "physicalName": table.table_name,
            "physicalType": "table",
            "logicalType": "object",
            "description": table.comment,
            "tags": _tags(table.tags),
            "properties": [_property(column, table) for column in table.columns],
            "relationships": [*filter(None, relationships)],
            "quality": [
                {
                    "name": check.name,
                    "type": "sql",
                    "query": f"{COUNTED}({check.expression}){IS_VIOLATED}",
                    "mustBe": 0,
                }
                for check in table.checks
            ],
            "customProperties": _named(PRIMARY_KEY_NAME, table.primary_key),
        }
    )


def _property(column: Column, table: Table) -> dict[str, Any]:
    keys = [name.lower() for name in table.primary_key.columns] if table.primary_key else []
    partitions = [name.lower() for name in table.partitioned_by]
    return _without_empty(
        {
            "name": column.name,
            **_typed(column.data_type),
            "required": not column.is_nullable,
            "primaryKey": column.key in keys,
            "primaryKeyPosition": column.key in keys and keys.index(column.key) + 1,
            "partitioned": column.key in partitions,
            "partitionKeyPosition": column.key in partitions and partitions.index(column.key) + 1,
            "description": column.comment,
            "tags": _tags(column.tags),
        }
    )


def _typed(data_type: DataType) -> dict[str, Any]:
    """Return the types of a property, with what is inside of them."""
    physical = {"physicalType": shown_type(data_type)}
    match data_type:
        case StructType(fields):
            return {"logicalType": "object", **physical, "properties": [_field(field) for field in fields]}
        case ArrayType(element):
            return {"logicalType": "array", **physical, "items": _typed(element)}
        case MapType():
            return {"logicalType": "object", **physical}
        case DecimalType():
            return {"logicalType": "number", **physical}
        case CharacterType(_, length):
            return {"logicalType": "string", **physical, "logicalTypeOptions": {"maxLength": length}}
        case AtomicType("timestamp_ntz"):
            return {"logicalType": "timestamp", **physical, "logicalTypeOptions": {"timezone": False}}
        case AtomicType(name) if name in _LOGICAL:
            return {"logicalType": _LOGICAL[name], **physical}
    return physical


def _field(field: StructField) -> dict[str, Any]:
    return _without_empty(
        {
            "name": field.name,
            **_typed(field.data_type),
            "required": not field.is_nullable,
            "description": field.comment,
        }
    )


def _relationship(
    table: Table, key: ForeignKey, declared: Mapping[str, Table], notes: list[str]
) -> dict[str, Any] | None:
    """Return a foreign key as the standard has it, which knows tables of one schema and plain names."""
    referenced = referenced_table(table.qualified_name, key)
    is_near = referenced is not None and referenced.parents == table.qualified_name.parents
    parent = declared.get(referenced.key) if referenced else None
    columns = key.referenced_columns or (parent.primary_key.columns if parent and parent.primary_key else ())
    names = [table.table_name, *key.columns, *columns]
    if referenced is None or not is_near or not columns or not all(map(_PLAIN, [*names, referenced.table])):
        notes.append(
            f"left out: the foreign key of {table.qualified_name} to {key.references}: a contract references "
            "plain names of its own schema"
        )
        return None
    return _without_empty(
        {
            "type": "foreignKey",
            "from": [f"{table.table_name}.{column}" for column in key.columns],
            "to": [f"{referenced.table}.{column}" for column in columns],
            "customProperties": _named(CONSTRAINT_NAME, key),
        }
    )


def _named(property_name: str, key: PrimaryKey | ForeignKey | None) -> list[dict[str, str]]:
    return [{"property": property_name, "value": key.name}] if key and key.name else []


def _tags(tags: Mapping[str, str]) -> list[str]:
    return [f"{key}:{value}" if value else key for key, value in tags.items()]


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in ("", [], False)}
