"""Refuses a table if the views and its own description differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, QualifiedName
from delta_engine.models.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    MapType,
    StructType,
    parse_data_type,
)
from delta_engine.sql.text import sql_data_type
from delta_engine.state.catalog_reader import require_known_type
from delta_engine.state.unity_catalog.information_schema import LAGGING, optional_text
from delta_engine.state.unity_catalog.table_details import TableDetails

_NEEDED = ("column_name", "full_data_type", "is_nullable", "ordinal_position")
"""The values that a row of `columns` always has."""


def require_agreement(
    name: QualifiedName, table: Row | None, columns: Sequence[Row], details: TableDetails
) -> None:
    """Refuse a table whose rows in the views (`tables`, `columns`) are incomplete or differ from its description."""
    if not columns:
        raise CatalogReadError(
            "its columns are not visible to you", table=str(name), way_out="Ask for SELECT on it."
        )
    shown = [_shown(name, row) for row in sorted(columns, key=_position)]
    if [one.name.lower() for one in shown] != [column.key for column in details.columns]:
        theirs = ", ".join(one.name for one in shown)
        raise _contradiction(name, f"the columns {theirs}", ", ".join(c.name for c in details.columns))
    for one, column in zip(shown, details.columns, strict=True):
        if not one.is_like(column):
            require_known_type(name, one.name, one.data_type)
            raise _contradiction(name, str(one), str(_Shown.of(column)), column.name)
    path = table["storage_path"] if table else None
    if path and details.location and str(path).rstrip("/") != details.location.rstrip("/"):
        raise _contradiction(name, f"the location {path}", details.location)


class _Shown(NamedTuple):
    name: str
    data_type: DataType
    is_nullable: bool
    comment: str

    @classmethod
    def of(cls, column: Column) -> _Shown:
        """Return a column as the views should show it."""
        return cls(column.name, column.data_type, column.is_nullable, column.comment)

    def is_like(self, column: Column) -> bool:
        """Whether a column is as the views show it; their types may omit lengths, comments and NOT NULL."""
        return (
            self.is_nullable == column.is_nullable
            and self.comment == column.comment
            and (self.data_type == column.data_type or _plain(self.data_type) == _plain(column.data_type))
        )

    def __str__(self) -> str:
        nullability = "" if self.is_nullable else " NOT NULL"
        return f"{sql_data_type(self.data_type)}{nullability}, comment {self.comment!r}"


def _position(row: Row) -> int:
    """Return the position of a column; 0 for a row without one, which `_shown` refuses."""
    return int(str(row["ordinal_position"] or 0))


def _shown(table: QualifiedName, row: Row) -> _Shown:
    name, kind, nullable = row["column_name"], row["full_data_type"], row["is_nullable"]
    if None in (name, kind, nullable, row["ordinal_position"]):
        missing = [key for key in _NEEDED if row[key] is None]
        raise CatalogReadError(
            f"information_schema.columns has a row that is not whole: {', '.join(missing)} is None",
            table=str(table),
            column=optional_text(name),
            way_out=LAGGING,
        )
    is_nullable = str(nullable).upper() == "YES"
    return _Shown(str(name), parse_data_type(str(kind)), is_nullable, str(row["comment"] or ""))


def _plain(data_type: DataType) -> DataType:
    """Return a type without what the views may omit: lengths, and comments and NOT NULL of nested fields."""
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
        way_out=LAGGING,
    )
