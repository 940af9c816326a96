"""What a table's own description says: the data, the port that reads it, and the form `DESCRIBE … AS JSON`.

The views lack properties (with checks), clustering, and which columns are generated or identity columns (their
`is_identity` is always NO).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, TypeGuard

from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, ColumnMask, QualifiedName, RowFilter, read_only
from delta_engine.models.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    UnsupportedType,
    parse_data_type,
)
from delta_engine.state.catalog_reader import readable_column
from delta_engine.state.unity_catalog.keys import TableKeys, described_keys

_DEFAULT_COLLATION = "utf8_binary"
_OTHER_NAMES = {"timestamp_ltz": "timestamp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDetails:
    """A table as it describes itself.

    Args:
        columns: in order, without tags; with masks where the description has them.
        properties: all properties, checks and clustering included.
        comment: empty for none.
        cluster_by: None where only the properties have it.
        table_type: `MANAGED`, `EXTERNAL`, …; None where the description lacks it, as for the next three.
        row_filter: where the description has it.
    """

    columns: tuple[Column, ...]
    properties: Mapping[str, str]
    comment: str = ""
    cluster_by: tuple[str, ...] | None = None
    partitioned_by: tuple[str, ...] = ()
    table_type: str | None = None
    owner: str | None = None
    location: str | None = None
    keys: TableKeys | None = None
    row_filter: RowFilter | None = None

    @property
    def shows_policies(self) -> bool:
        """Whether the description has a mask or a row filter. Older descriptions never have them."""
        return self.row_filter is not None or any(column.mask for column in self.columns)

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", read_only(self.properties))


Answer: TypeAlias = TableDetails | CatalogReadError | None
"""A table's details, why they are unreadable, or None for a missing table."""

DetailsQuery: TypeAlias = Callable[[], Mapping[str, Answer]]
"""One query; returns answers by `QualifiedName.key`."""


class TableDetailsReader(Protocol):
    """Reads the details of tables."""

    def queries(self, tables: Sequence[QualifiedName]) -> Sequence[DetailsQuery]:
        """Return the queries that read the details of tables, to run in any order and in parallel.

        A query raises `StatementError` if the platform refuses it for a reason other than the table.
        """
        ...


def has_undescribed_columns(details: TableDetails) -> bool:
    """Whether the table may have generated or identity columns that the description does not show as such.

    A table that has such columns, or once had, lists the feature (Delta protocol, "Table features").
    """
    shown = {
        "delta.feature.generatedColumns": any(column.generated_as for column in details.columns),
        "delta.feature.identityColumns": any(column.identity for column in details.columns),
    }
    return any(feature in details.properties and not is_shown for feature, is_shown in shown.items())


def has_old_protocol(details: TableDetails) -> bool:
    """Whether the protocol allows generated or identity columns without listing the feature.

    Writer version 4 brought generated columns, 6 identity columns, and 7 listed features (Delta protocol).
    """
    return details.properties.get("delta.minWriterVersion") in ("4", "5", "6")


def parse_description(table: QualifiedName, text: str) -> TableDetails:
    """Parse the JSON document of `DESCRIBE TABLE EXTENDED … AS JSON` (docs: "DESCRIBE TABLE").

    Types are objects: `{"name": "decimal", "precision": 18, "scale": 2}`. Recent runtimes add `column_masks` and
    `row_filter`, in the form that dbt-databricks reads since its pull request 1432.

    Raises:
        CatalogReadError: the document is malformed, or has a type that the engine does not know.
    """
    try:
        document = json.loads(text)
        masks = dict(map(_mask, _objects(document.get("column_masks") or [])))
        columns = tuple(_column(table, column, masks) for column in _objects(document["columns"]))
        row_filter = document.get("row_filter")
        properties = {key: _text(value) for key, value in document["table_properties"].items()}
        clustering = document.get("clustering_information")
        return TableDetails(
            columns=columns,
            properties=properties,
            comment=_optional_text(document.get("comment")) or "",
            cluster_by=None if clustering is None else tuple(_clustering(clustering)),
            partitioned_by=tuple(map(_text, document.get("partition_columns") or ())),
            table_type=_optional_text(document.get("type")),
            owner=_optional_text(document.get("owner")),
            location=_optional_text(document.get("location")),
            keys=described_keys(str(document["table_constraints"]))
            if "table_constraints" in document
            else None,
            row_filter=None if row_filter is None else _row_filter(row_filter),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CatalogReadError(
            f"its description as JSON is not of the documented form: {error!r}",
            table=str(table),
            way_out="Report it, with what DESCRIBE TABLE EXTENDED … AS JSON returns for this table.",
        ) from error


def _column(table: QualifiedName, column: Mapping[str, object], masks: Mapping[str, ColumnMask]) -> Column:
    found = readable_column(
        table,
        _text(column["name"]),
        _data_type(column["type"]),
        is_nullable=_flag(column.get("nullable", True)),
        comment=_optional_text(column.get("comment")) or "",
        default=_optional_text(column.get("default")),
    )
    return replace(found, mask=masks[found.key]) if found.key in masks else found


def _mask(mask: Mapping[str, object]) -> tuple[str, ColumnMask]:
    """Return a column's name in lower case, and its mask."""
    columns = mask.get("using_column_names") or []
    return _text(mask["column_name"]).lower(), ColumnMask(_function(mask["function_name"]), _texts(columns))


def _row_filter(row_filter: Mapping[str, object]) -> RowFilter:
    return RowFilter(_function(row_filter["function_name"]), _texts(row_filter.get("column_names") or []))


def _function(value: object) -> str:
    match value:
        case {"catalog_name": str(catalog), "schema_name": str(schema), "function_name": str(function)}:
            return f"{catalog}.{schema}.{function}"
    raise ValueError(f"a function's name in three parts is wanted, not {value!r}")


def _data_type(value: object) -> DataType:
    match value:
        case {"name": "array", "element_type": element}:
            return ArrayType(_data_type(element))
        case {"name": "map", "key_type": key, "value_type": item}:
            return MapType(_data_type(key), _data_type(item))
        case {"name": "struct", "fields": [_, *_] as fields}:
            return StructType(tuple(map(_field, _objects(fields))))
        case {"name": "decimal", "precision": precision, "scale": scale}:
            return parse_data_type(f"decimal({precision},{scale})")
        case {"name": "char" | "varchar" as name, "length": length}:
            return parse_data_type(f"{name}({length})")
        case {"name": "string", "collation": str() as collation} if collation.lower() != _DEFAULT_COLLATION:
            return UnsupportedType(
                f"string collate {collation}", "Delta tables hold the default collation only"
            )
        case {"name": str() as name}:
            return parse_data_type(_OTHER_NAMES.get(name, name))
    return UnsupportedType(str(value), "Delta tables cannot store it")


def _field(field: Mapping[str, object]) -> StructField:
    return StructField(
        name=_text(field["name"]),
        data_type=_data_type(field["type"]),
        is_nullable=_flag(field.get("nullable", True)),
        comment=_optional_text(field.get("comment")) or "",
    )


def _clustering(value: object) -> Sequence[str]:
    """Return the clustering columns; unusual names are quoted here, such as `` `a b`.c ``."""
    return [
        _text(column["name"]).replace("``", "\0").replace("`", "").replace("\0", "`")
        for column in _objects(value)
    ]


def _texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise ValueError(f"a list of texts is wanted, not {value!r}")
    return list(map(_text, value))


def _objects(value: object) -> Sequence[Mapping[str, object]]:
    if not isinstance(value, list) or not all(map(_is_object, value)):
        raise ValueError(f"a list of objects is wanted, not {value!r}")
    return value


def _is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, dict)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a text is wanted, not {value!r}")
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"true or false is wanted, not {value!r}")
    return value
