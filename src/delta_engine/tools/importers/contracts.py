"""Writes tables as a data contract of the Open Data Contract Standard, which `odcs` reads back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

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
from delta_engine.tools.importers import odcs

API_VERSION: Final = "v3.1.0"
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_LINE_BREAK: Final = re.compile("[\x85\u2028\u2029]")
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
    places = {(table.catalog_name, table.schema_name) for table in tables}
    if len(places) != 1:
        names = ", ".join(sorted(".".join(place) for place in places))
        raise InvalidCommandError(
            f"the tables are in several schemas: {names}", way_out="Write a contract for each schema."
        )
    ((catalog, schema),) = places
    notes: list[str] = []
    contract = odcs.Contract(
        api_version=API_VERSION,
        kind="DataContract",
        id=tables[0].key if len(tables) == 1 else f"{catalog}.{schema}".lower(),
        name=tables[0].table_name if len(tables) == 1 else schema,
        version=version,
        status="active",
        servers=[
            odcs.Server(
                server=environment, type="databricks", environment=environment, catalog=catalog, schema=schema
            )
        ],
        schema=[_object(table, declared, notes) for table in tables],
    )
    return _yaml(msgspec.to_builtins(contract)), notes


def _yaml(document: object) -> str:
    """Return a document as YAML; PyYAML keeps unusual line breaks in double quotes alone."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def represented(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = '"' if _LINE_BREAK.search(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, represented)
    return yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


def _object(table: Table, declared: Mapping[str, Table], notes: list[str]) -> odcs.Element:
    relationships = (_relationship(table, key, declared, notes) for key in table.foreign_keys)
    return odcs.Element(
        name=table.table_name,
        physical_name=table.table_name,
        logical_type="object",
        physical_type="table",
        description=table.comment or None,
        tags=_tags(table.tags),
        properties=[_property(column, table) for column in table.columns],
        relationships=[*filter(None, relationships)] or None,
        quality=[
            odcs.Quality(
                type="sql",
                name=check.name,
                must_be=0,
                query=f"{odcs.COUNTED}({check.expression}){odcs.IS_VIOLATED}",
            )
            for check in table.checks
        ]
        or None,
        custom_properties=_named(odcs.PRIMARY_KEY_NAME, table.primary_key),
    )


def _property(column: Column, table: Table) -> odcs.Element:
    key = _positions(table.primary_key.columns if table.primary_key else ()).get(column.key)
    partition = _positions(table.partitioned_by).get(column.key)
    return _element(
        column,
        primary_key=True if key else None,
        primary_key_position=key,
        partitioned=True if partition else None,
        partition_key_position=partition,
        tags=_tags(column.tags),
    )


def _positions(columns: Sequence[str]) -> dict[str, int]:
    return {name.lower(): number for number, name in enumerate(columns, start=1)}


def _types(data_type: DataType) -> dict[str, Any]:
    """Return the types of an element, with what is inside of them."""
    physical = {"physical_type": shown_type(data_type)}
    match data_type:
        case StructType(fields):
            return {"logical_type": "object", **physical, "properties": [*map(_element, fields)]}
        case ArrayType(element):
            return {"logical_type": "array", **physical, "items": odcs.Element(**_types(element))}
        case MapType():
            return {"logical_type": "object", **physical}
        case DecimalType():
            return {"logical_type": "number", **physical}
        case CharacterType(_, length):
            return {"logical_type": "string", **physical, "logical_type_options": {"maxLength": length}}
        case AtomicType("timestamp_ntz"):
            return {"logical_type": "timestamp", **physical, "logical_type_options": {"timezone": False}}
        case AtomicType(name) if name in _LOGICAL:
            return {"logical_type": _LOGICAL[name], **physical}
    return physical


def _element(part: Column | StructField, **facts: Any) -> odcs.Element:
    """Return what columns and fields of structs have in common, with further facts."""
    return odcs.Element(
        name=part.name,
        **_types(part.data_type),
        description=part.comment or None,
        required=not part.is_nullable or None,
        **facts,
    )


def _relationship(
    table: Table, key: ForeignKey, declared: Mapping[str, Table], notes: list[str]
) -> odcs.Relationship | None:
    """Return a foreign key as the standard has it, which knows tables of one schema and plain names."""
    referenced = referenced_table(table.qualified_name, key)
    is_near = referenced is not None and referenced.parents == table.qualified_name.parents
    parent = declared.get(referenced.key) if referenced else None
    columns = key.referenced_columns or (parent.primary_key.columns if parent and parent.primary_key else ())
    names = [table.table_name, *key.columns, *columns]
    if referenced is None or not is_near or not columns or not all(map(_PLAIN, [*names, referenced.table])):
        notes.append(
            f"left out: the foreign key of {table.qualified_name} to {key.references}: a contract can only "
            "reference plain names in its own schema"
        )
        return None
    return odcs.Relationship(
        type="foreignKey",
        from_=[f"{table.table_name}.{column}" for column in key.columns],
        to=[f"{referenced.table}.{column}" for column in columns],
        custom_properties=_named(odcs.CONSTRAINT_NAME, key),
    )


def _named(property_name: str, key: PrimaryKey | ForeignKey | None) -> list[odcs.Custom] | None:
    return [odcs.Custom(property=property_name, value=key.name)] if key and key.name else None


def _tags(tags: Mapping[str, str]) -> list[str] | None:
    return [f"{key}:{value}" if value else key for key, value in tags.items()] or None
