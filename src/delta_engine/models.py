"""Models: the tables that a team declares.

A model says what a table should look like. It is written by people, as Python or YAML, and takes
whatever is natural there: lists or tuples, SQL type strings or pyspark types. Names stay raw: quoting
belongs to `sql`. What may be declared is the business of `validation.rules`; refused right here is only
what has no canonical form, such as an unknown type.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from delta_engine.errors import InvalidModelError, SourceLocation
from delta_engine.types import DataType, TypeLike, first_unsupported, to_data_type

DEFAULT_TABLE_PROPERTIES: Mapping[str, str] = MappingProxyType({})
"""What every table gets when nobody says otherwise: nothing. Teams set their own defaults per
environment (`defaults.table_properties` in the configuration)."""


@dataclass(frozen=True, slots=True, order=True)
class QualifiedName:
    """The raw three-part name of a table. Compares as Unity Catalog stores it: in lower case."""

    catalog: str
    schema: str
    table: str

    @property
    def key(self) -> str:
        """The name by which two spellings of the same table meet: dotted, in lower case."""
        return str(self).lower()

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True, init=False)
class Column:
    """A declared or observed column.

    Args:
        name: the raw name; keeps its case, compares without it.
        data_type: a SQL type string, a pyspark `DataType`, or a canonical type.
        is_nullable: False makes the column NOT NULL.
        comment: free text; the empty string means no comment.
        location: where it was declared, for messages.
    """

    name: str
    data_type: DataType
    is_nullable: bool = True
    comment: str = ""
    location: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        name: str,
        data_type: TypeLike,
        is_nullable: bool = True,
        comment: str = "",
        *,
        location: SourceLocation | None = None,
    ) -> None:
        _set(
            self,
            name=name,
            data_type=to_data_type(data_type),
            is_nullable=is_nullable,
            comment=comment,
            location=location,
        )

    @property
    def key(self) -> str:
        """The name by which columns compare: in lower case."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, init=False)
class PrimaryKey:
    """A primary key: its columns in order, and its name where one is wanted other than the derived one.

    Args:
        columns: the raw column names, in key order.
        name: the constraint's name; None derives one from table and columns.
        rely: lets the optimizer trust the key (Databricks); it cannot be read back.
    """

    columns: tuple[str, ...]
    name: str | None = None
    rely: bool = False

    def __init__(self, columns: Iterable[str], name: str | None = None, rely: bool = False) -> None:
        _set(self, columns=tuple(columns), name=name, rely=rely)


@dataclass(frozen=True, slots=True, init=False)
class Table:
    """A declared table.

    Args:
        catalog_name: the raw catalog name; may hold `${variables}` until the configuration fills them in.
        schema_name: the raw schema name.
        table_name: the raw table name.
        columns: the columns, in order.
        comment: free text; the empty string means no comment.
        table_properties: properties to set; those it does not name are left alone.
        primary_key: column names, or a `PrimaryKey` for a name of its own or RELY.
        cluster_by: the columns of liquid clustering, in order; empty for none.
        default_table_properties: what `table_properties` overrides.
        location: where it was declared; found by itself for tables made in Python.

    Raises:
        InvalidModelError: a column has a type that Delta cannot store.
    """

    catalog_name: str
    schema_name: str
    table_name: str
    columns: tuple[Column, ...]
    comment: str = ""
    table_properties: Mapping[str, str] = field(default_factory=dict)
    primary_key: PrimaryKey | None = None
    cluster_by: tuple[str, ...] = ()
    default_table_properties: Mapping[str, str] = field(default_factory=dict)
    location: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        catalog_name: str,
        schema_name: str,
        table_name: str,
        columns: Sequence[Column],
        comment: str = "",
        table_properties: Mapping[str, str] | None = None,
        primary_key: PrimaryKey | Sequence[str] | None = None,
        *,
        cluster_by: Sequence[str] = (),
        default_table_properties: Mapping[str, str] = DEFAULT_TABLE_PROPERTIES,
        location: SourceLocation | None = None,
    ) -> None:
        _set(
            self,
            catalog_name=catalog_name,
            schema_name=schema_name,
            table_name=table_name,
            columns=tuple(columns),
            comment=comment,
            table_properties=read_only(table_properties or {}),
            primary_key=_to_primary_key(primary_key),
            cluster_by=_to_names(cluster_by),
            default_table_properties=read_only(default_table_properties),
            location=location or _calling_line(),
        )
        self._refuse_unsupported_types()

    @property
    def qualified_name(self) -> QualifiedName:
        """The table's raw three-part name."""
        return QualifiedName(self.catalog_name, self.schema_name, self.table_name)

    @property
    def effective_table_properties(self) -> Mapping[str, str]:
        """The defaults merged with the table's own properties, read-only, sorted by key."""
        return read_only({**self.default_table_properties, **self.table_properties})

    def _refuse_unsupported_types(self) -> None:
        for column in self.columns:
            unsupported = first_unsupported(column.data_type)
            if unsupported:
                raise InvalidModelError(
                    f"type {unsupported.text!r} cannot be used: {unsupported.reason}",
                    table=str(self.qualified_name),
                    column=column.name,
                    location=column.location or self.location,
                    way_out="Use a Spark SQL type that Delta stores, such as bigint or decimal(18,2).",
                )


def read_only(mapping: Mapping[str, str]) -> Mapping[str, str]:
    """Return a read-only copy, sorted by key so that it reads the same whatever the order of input."""
    return MappingProxyType({key: mapping[key] for key in sorted(mapping)})


def _set(target: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(target, name, value)


def _to_primary_key(value: PrimaryKey | Sequence[str] | None) -> PrimaryKey | None:
    if value is None or isinstance(value, PrimaryKey):
        return value
    if isinstance(value, str):
        raise TypeError(f"primary_key takes a tuple or list of column names, not the string {value!r}")
    return PrimaryKey(value) if value else None


def _to_names(value: Sequence[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError(f"cluster_by takes a tuple or list of column names, not the string {value!r}")
    return tuple(value)


def _calling_line() -> SourceLocation | None:
    """Return the line of Python outside this module that is making a table."""
    frame = sys._getframe(2)
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno)
