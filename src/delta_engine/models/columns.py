"""A column of a table, and the line of Python that declares one."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from sys import intern
from typing import Final

from delta_engine.errors import SourceLocation
from delta_engine.models.fills import Using
from delta_engine.models.parts import (
    NO_FORMER_NAMES,
    NOTHING,
    ColumnMask,
    Identity,
    to_flag,
    to_former_field_names,
    to_former_names,
    to_optional,
    to_optional_text,
    to_text,
    to_texts,
)
from delta_engine.models.type_forms import TypeLike, to_data_type
from delta_engine.models.types import DataType


@dataclass(frozen=True, slots=True, init=False)
class Column:
    """A declared or observed column.

    Args:
        name: the raw name; keeps its case, compares without it.
        data_type: a SQL type string, a pyspark `DataType`, or a canonical type.
        is_nullable: False makes the column NOT NULL.
        comment: the empty string means no comment.
        default: the SQL expression for rows without a value.
        generated_as: the SQL expression from which the platform computes the values; at creation only.
        identity: how the platform generates ascending values; at creation only.
        mask: the function through which readers see the column.
        renamed_from: the column's old name, or several with the latest first; it keeps its data. They have no effect
            after the rename.
        renamed_fields: former names of nested fields by their current path: `{"address.postcode": "zip"}`, with
            `element`, `key` and `value` as steps into arrays and maps. A field may have several, the latest first.
        using: the SQL expression that computes the values of existing rows, from the columns before the change, or a
            `Using`. It has no effect after the change.
        declared_at: the place of the declaration, for messages; by default the calling line of Python.
    """

    name: str
    data_type: DataType
    is_nullable: bool = True
    comment: str = ""
    default: str | None = None
    generated_as: str | None = None
    identity: Identity | None = None
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    mask: ColumnMask | None = None
    renamed_from: tuple[str, ...] = ()
    renamed_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    using: Using | None = None
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        name: str,
        data_type: TypeLike,
        is_nullable: bool = True,
        comment: str = "",
        *,
        default: str | None = None,
        generated_as: str | None = None,
        identity: Identity | None = None,
        tags: Mapping[str, str] = NOTHING,
        mask: ColumnMask | None = None,
        renamed_from: str | Sequence[str] | None = None,
        renamed_fields: Mapping[str, str | Sequence[str]] = NO_FORMER_NAMES,
        using: Using | str | None = None,
        declared_at: SourceLocation | None = None,
    ) -> None:
        put = object.__setattr__  # there are half a million columns: `set_fields` takes twice as long
        put(self, "name", intern(to_text(name, "name")))  # tables have columns of the same names
        put(self, "data_type", to_data_type(data_type))
        put(self, "is_nullable", to_flag(is_nullable, "is_nullable", name))
        put(self, "comment", to_text(comment, "comment", name))
        put(self, "default", to_optional_text(default, "default", name))
        put(self, "generated_as", to_optional_text(generated_as, "generated_as", name))
        put(self, "identity", None if identity is None else to_optional(identity, Identity, "identity", name))
        put(self, "tags", to_texts("tags", tags) if tags else NOTHING)
        put(self, "mask", None if mask is None else to_optional(mask, ColumnMask, "mask", name))
        put(self, "renamed_from", to_former_names(renamed_from, "renamed_from", name))
        put(self, "renamed_fields", to_former_field_names(renamed_fields, name))
        put(self, "using", None if using is None else _to_using(using, name))
        put(self, "declared_at", declared_at or calling_line())

    @property
    def key(self) -> str:
        """The name in lower case, by which columns compare."""
        return self.name.lower()


def calling_line() -> SourceLocation | None:
    """Return the line that calls a constructor; None if that is the engine, which declares nothing."""
    frame = sys._getframe(2)
    file = frame.f_code.co_filename
    return None if file.startswith(_OF_NO_DECLARATION) else _line(file, frame.f_lineno)


@cache
def _line(file: str, number: int) -> SourceLocation:
    """Return a line of Python; the columns that a loop declares share it."""
    return SourceLocation(file, number)


_OF_NO_DECLARATION: Final = (f"{Path(__file__).parents[1]}{os.sep}", dataclasses.__file__)


def _to_using(value: Using | str | None, of: str) -> Using | None:
    if value is None or isinstance(value, Using):
        return value
    return Using(to_text(value, "using", of))
