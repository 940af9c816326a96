"""How the fake catalog's tables describe themselves: as JSON, as CREATE TABLE, by their properties."""

from __future__ import annotations

import json

from delta_engine.models import Column
from delta_engine.sql import quote_ident, sql_data_type, sql_literal
from delta_engine.sql_runner import Row
from delta_engine.types import ArrayType, CharacterType, DataType, DecimalType, MapType, StructType
from tests.fakes.unity_catalog.spelling import as_read, shown_properties
from tests.fakes.unity_catalog.stored import Stored
from tests.fakes.unity_catalog.views import storage_path


def as_json(stored: Stored) -> list[Row]:
    """Return the document of DESCRIBE TABLE EXTENDED … AS JSON."""
    state = as_read(stored)
    document = {
        "table_name": stored.name.table,
        "catalog_name": stored.name.catalog,
        "namespace": [stored.name.schema],
        "columns": [_column(column) for column in state.columns],
        "table_properties": dict(shown_properties(stored.state)),
        "comment": state.table_comment,
        "clustering_information": [{"name": _path(path)} for path in state.cluster_by],
        "partition_columns": list(state.partitioned_by),
        "type": "EXTERNAL" if state.location else "MANAGED",
        "owner": state.owner,
        "location": storage_path(stored),
    }
    return [{"json_metadata": json.dumps(document)}]


def as_create_statement(stored: Stored) -> list[Row]:
    """Return what SHOW CREATE TABLE returns."""
    columns = ",\n  ".join(map(_definition, as_read(stored).columns))
    return [{"createtab_stmt": f"CREATE TABLE {stored.name} (\n  {columns})\nUSING delta"}]


def as_properties(stored: Stored) -> list[Row]:
    """Return what SHOW TBLPROPERTIES returns."""
    clustering = [path.split(".") for path in stored.state.cluster_by]
    shown = {**shown_properties(stored.state)}
    if clustering:
        shown["clusteringColumns"] = json.dumps(clustering)
    return [{"key": key, "value": value} for key, value in shown.items()]


def _column(column: Column) -> dict[str, object]:
    found: dict[str, object] = {
        "name": column.name,
        "type": _data_type(column.data_type),
        "nullable": column.is_nullable,
    }
    if column.comment:
        found["comment"] = column.comment
    if column.default is not None:
        found["default"] = column.default
    return found


def _data_type(data_type: DataType) -> dict[str, object]:
    match data_type:
        case ArrayType(element):
            return {"name": "array", "element_type": _data_type(element), "element_nullable": True}
        case MapType(key, value):
            return {"name": "map", "key_type": _data_type(key), "value_type": _data_type(value)}
        case StructType(fields):
            inside = [Column(one.name, one.data_type, one.is_nullable, one.comment) for one in fields]
            return {"name": "struct", "fields": [_column(one) for one in inside]}
        case DecimalType(precision, scale):
            return {"name": "decimal", "precision": precision, "scale": scale}
        case CharacterType(name, length):
            return {"name": name, "length": length}
    name = sql_data_type(data_type)
    return {"name": "timestamp_ltz" if name == "timestamp" else name}


def _path(path: str) -> str:
    return ".".join(map(quote_ident, path.split(".")))


def _definition(column: Column) -> str:
    text = f"{quote_ident(column.name)} {sql_data_type(column.data_type).upper()}"
    if not column.is_nullable:
        text += " NOT NULL"
    if column.generated_as is not None:
        text += f" GENERATED ALWAYS AS ({column.generated_as})"
    if column.identity is not None:
        how = "ALWAYS" if column.identity.always else "BY DEFAULT"
        start, step = column.identity.start, column.identity.step
        text += f" GENERATED {how} AS IDENTITY (START WITH {start} INCREMENT BY {step})"
    if column.default is not None:
        text += f" DEFAULT {column.default}"
    return f"{text} COMMENT {sql_literal(column.comment)}" if column.comment else text
