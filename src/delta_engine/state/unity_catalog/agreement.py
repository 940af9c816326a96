"""Whether the views and a table itself speak of the same table: where they do not, neither is believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, QualifiedName
from delta_engine.sql import sql_data_type
from delta_engine.sql_runner import Row
from delta_engine.state.catalog_reader import readable_column
from delta_engine.state.unity_catalog.information_schema import optional_text
from delta_engine.state.unity_catalog.table_details import TableDetails
from delta_engine.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    MapType,
    StructType,
    parse_data_type,
)

_LAGGING = (
    "Run it again in a minute: the views of information_schema can lag behind. If it stays, run "
    "REPAIR TABLE … SYNC METADATA."
)

_NEVER_NULL = ("column_name", "full_data_type", "is_nullable")


def require_agreement(
    name: QualifiedName, table: Row | None, columns: Sequence[Row], details: TableDetails
) -> None:
    """Refuse a table of which the views say something else than it says itself.

    Args:
        name: the table.
        table: its row in `tables`.
        columns: its rows in `columns`, in any order.
        details: what it says itself.

    Raises:
        CatalogReadError: a column differs, the files are elsewhere, or a row is not whole.
    """
    if not columns:
        raise CatalogReadError(
            "its columns are not visible to you", table=str(name), way_out="Ask for SELECT on it."
        )
    ordered = sorted(columns, key=lambda row: int(str(row["ordinal_position"])))
    shown = [_shown(name, row) for row in ordered]
    if [column.key for column in shown] != [column.key for column in details.columns]:
        raise _contradiction(name, f"the columns {_names(shown)}", _names(details.columns))
    for one, other in zip(shown, details.columns, strict=True):
        if _shape(one) != _shape(other):
            raise _contradiction(name, _spoken(one), _spoken(other), other.name)
    path = table["storage_path"] if table else None
    if path and details.location and str(path).rstrip("/") != details.location.rstrip("/"):
        raise _contradiction(name, f"the location {path}", details.location)


def _shown(table: QualifiedName, row: Row) -> Column:
    """Return a column as the views show it."""
    name = optional_text(row["column_name"])
    lacking = [key for key in _NEVER_NULL if row[key] is None]
    if name is None or lacking:
        raise CatalogReadError(
            f"information_schema.columns has a row that is not whole: {', '.join(lacking)} is None",
            table=str(table),
            column=name,
            way_out=_LAGGING,
        )
    return readable_column(
        table,
        name,
        parse_data_type(str(row["full_data_type"])),
        is_nullable=str(row["is_nullable"]).upper() == "YES",
        comment=str(row["comment"] or ""),
    )


def _shape(column: Column) -> tuple[DataType, bool, str]:
    return _plain(column.data_type), column.is_nullable, column.comment


def _plain(data_type: DataType) -> DataType:
    """Return a type without what the views may leave out: lengths, and what is said of the fields inside."""
    match data_type:
        case CharacterType():
            return AtomicType("string")
        case ArrayType(element):
            return ArrayType(_plain(element))
        case MapType(key, value):
            return MapType(_plain(key), _plain(value))
        case StructType(fields):
            return StructType(
                tuple(
                    replace(
                        field,
                        name=field.name.lower(),
                        data_type=_plain(field.data_type),
                        is_nullable=True,
                        comment="",
                    )
                    for field in fields
                )
            )
    return data_type


def _contradiction(table: QualifiedName, shown: str, own: str, column: str | None = None) -> CatalogReadError:
    return CatalogReadError(
        f"information_schema shows {shown}, the table itself {own}",
        table=str(table),
        column=column,
        way_out=_LAGGING,
    )


def _spoken(column: Column) -> str:
    nullability = "" if column.is_nullable else " NOT NULL"
    return f"{sql_data_type(column.data_type)}{nullability}, comment {column.comment!r}"


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)
