"""Models: the tables and schemas that a team declares.

Python and YAML give the same model: it accepts lists or tuples, SQL type strings or pyspark types. Names stay raw;
`sql` quotes them. A model refuses what has no canonical form, and in Python code repeated names (`construction`);
`validation` refuses the rest.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from delta_engine.errors import SourceLocation
from delta_engine.models.construction import refuse_repetitions, refuse_unsupported_types
from delta_engine.models.fills import FillBy, Using
from delta_engine.models.parts import (
    NO_FORMER_NAMES,
    NOTHING,
    CheckConstraint,
    ColumnMask,
    ForeignKey,
    Grants,
    Identity,
    Part,
    PrimaryKey,
    QualifiedName,
    Reference,
    RowFilter,
    SchemaName,
    read_only,
    set_fields,
    to_flag,
    to_former_field_names,
    to_former_names,
    to_grants,
    to_items,
    to_names,
    to_optional,
    to_optional_text,
    to_text,
    to_texts,
)
from delta_engine.models.type_forms import TypeLike, to_data_type
from delta_engine.models.types import DataType

__all__ = [
    "AUTO",
    "DEFAULT_TABLE_PROPERTIES",
    "OPTIMIZATION_SETTINGS",
    "CheckConstraint",
    "Column",
    "ColumnMask",
    "FillBy",
    "ForeignKey",
    "Grants",
    "Identity",
    "Part",
    "PrimaryKey",
    "QualifiedName",
    "Reference",
    "RowFilter",
    "Schema",
    "SchemaName",
    "Table",
    "Using",
    "read_only",
]

DEFAULT_TABLE_PROPERTIES: Mapping[str, str] = MappingProxyType({})
"""The default properties of every table: none. An environment sets its own (`defaults.table_properties`)."""

AUTO = "AUTO"
"""`Table(cluster_by=AUTO)`: the platform chooses the columns by which a table is clustered."""

OPTIMIZATION_SETTINGS = ("enable", "disable", "inherit")
"""The values of `predictive_optimization`."""


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
        renamed_from: the column's former name, or several with the latest first; its data is kept. They have no effect
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
        put(self, "name", to_text(name, "name"))
        put(self, "data_type", to_data_type(data_type))
        put(self, "is_nullable", to_flag(is_nullable, "is_nullable", name))
        put(self, "comment", to_text(comment, "comment", name))
        put(self, "default", to_optional_text(default, "default", name))
        put(self, "generated_as", to_optional_text(generated_as, "generated_as", name))
        put(self, "identity", to_optional(identity, Identity, "identity", name))
        put(self, "tags", to_texts("tags", tags) if tags else NOTHING)
        put(self, "mask", to_optional(mask, ColumnMask, "mask", name))
        put(self, "renamed_from", to_former_names(renamed_from, "renamed_from", name))
        put(self, "renamed_fields", to_former_field_names(renamed_fields, name))
        put(self, "using", _to_using(using, name))
        put(self, "declared_at", declared_at or _calling_line())

    @property
    def key(self) -> str:
        """The name in lower case, by which columns compare."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, init=False)
class Table:
    """A declared table.

    Args:
        catalog_name: the raw name; may hold `${variables}` until the configuration replaces them.
        comment: the empty string means no comment.
        table_properties: properties to set; other properties are unmanaged.
        primary_key: column names, or a `PrimaryKey` for an explicit name or RELY.
        cluster_by: the columns of liquid clustering, or fields in structs (`address.country`), in order; `AUTO` lets
            the platform choose.
        partitioned_by: the columns of Hive-style partitioning, in order; at creation only.
        row_filter: the function that decides which rows a reader sees.
        owner: None leaves the owner unmanaged.
        grants: privileges by principal; other principals are unmanaged, unless the policy says otherwise.
        predictive_optimization: `enable`, `disable` or `inherit`; None leaves it unmanaged.
        location: the folder of an external table's files; None for a managed table. At creation only.
        fill_by: the ranges by which `using` of its columns gives existing rows their values; None for all at once.
        renamed_from: the table's former name, or several with the latest first; its data is kept. They have no effect
            after the rename.
        manages: the parts that the model manages; None for all of them.
        default_table_properties: the defaults that `table_properties` overrides.
        declared_at: the place of the declaration; by default the calling line of Python.

    Raises:
        InvalidModelError: the engine does not manage the type of a column; or, without `declared_at`, the table names a
            column, a constraint or a column of a key twice.
        TypeError: an argument has the wrong type.
        ValueError: `manages` names something that is no `Part`, or a text has an unpaired surrogate.
    """

    catalog_name: str
    schema_name: str
    table_name: str
    columns: tuple[Column, ...]
    comment: str = ""
    table_properties: Mapping[str, str] = field(default_factory=dict)
    primary_key: PrimaryKey | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[CheckConstraint, ...] = ()
    cluster_by: tuple[str, ...] = ()
    clusters_automatically: bool = False
    partitioned_by: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    row_filter: RowFilter | None = None
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    location: str | None = None
    predictive_optimization: str | None = None
    fill_by: FillBy | None = None
    renamed_from: tuple[str, ...] = ()
    manages: frozenset[Part] | None = None
    default_table_properties: Mapping[str, str] = field(default_factory=dict)
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

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
        foreign_keys: Iterable[ForeignKey] = (),
        checks: Iterable[CheckConstraint] = (),
        cluster_by: Sequence[str] = (),
        clusters_automatically: bool = False,
        partitioned_by: Sequence[str] = (),
        tags: Mapping[str, str] = NOTHING,
        row_filter: RowFilter | None = None,
        owner: str | None = None,
        grants: Mapping[str, Iterable[str]] = MappingProxyType({}),
        location: str | None = None,
        predictive_optimization: str | None = None,
        fill_by: FillBy | None = None,
        renamed_from: str | Sequence[str] | None = None,
        manages: Iterable[str | Part] | None = None,
        default_table_properties: Mapping[str, str] = DEFAULT_TABLE_PROPERTIES,
        declared_at: SourceLocation | None = None,
    ) -> None:
        is_automatic = isinstance(cluster_by, str) and cluster_by.upper() == AUTO
        set_fields(
            self,
            catalog_name=to_text(catalog_name, "catalog_name", table_name),
            schema_name=to_text(schema_name, "schema_name", table_name),
            table_name=to_text(table_name, "table_name"),
            columns=to_items(columns, Column, "columns", table_name),
            comment=to_text(comment, "comment", table_name),
            table_properties=to_texts(
                "table_properties", {} if table_properties is None else table_properties
            ),
            primary_key=_to_primary_key(primary_key),
            foreign_keys=to_items(foreign_keys, ForeignKey, "foreign_keys", table_name),
            checks=to_items(checks, CheckConstraint, "checks", table_name),
            cluster_by=() if is_automatic else to_names("cluster_by", cluster_by),
            clusters_automatically=is_automatic or to_flag(clusters_automatically, "clusters_automatically"),
            partitioned_by=to_names("partitioned_by", partitioned_by),
            tags=to_texts("tags", tags),
            row_filter=to_optional(row_filter, RowFilter, "row_filter", table_name),
            owner=to_optional_text(owner, "owner", table_name),
            grants=to_grants(grants),
            location=to_optional_text(location, "location", table_name),
            predictive_optimization=_to_setting(predictive_optimization, table_name),
            fill_by=to_optional(fill_by, FillBy, "fill_by", table_name),
            renamed_from=to_former_names(renamed_from, "renamed_from", table_name),
            manages=_to_parts(manages),
            default_table_properties=to_texts("default_table_properties", default_table_properties),
            declared_at=declared_at or _calling_line(),
        )
        refuse_unsupported_types(self)
        if declared_at is None and self.declared_at is not None:  # files are judged as a whole, by the rules
            refuse_repetitions(self)

    @property
    def qualified_name(self) -> QualifiedName:
        """The table's raw three-part name."""
        return QualifiedName(self.catalog_name, self.schema_name, self.table_name)

    @property
    def key(self) -> str:
        """`QualifiedName.key`, without creating a `QualifiedName`."""
        return f"{self.catalog_name}.{self.schema_name}.{self.table_name}".lower()

    @property
    def effective_table_properties(self) -> Mapping[str, str]:
        """The defaults merged with the table's own properties, read-only, sorted by key."""
        if not self.default_table_properties:
            return self.table_properties
        return read_only({**self.default_table_properties, **self.table_properties})

    def is_about(self, part: Part) -> bool:
        """Whether the model manages a part of its table."""
        return self.manages is None or part in self.manages


@dataclass(frozen=True, slots=True, init=False)
class Schema:
    """A declared schema.

    Args:
        comment: None leaves the comment unmanaged; the empty string clears it.
        predictive_optimization: as for a `Table`; tables without a setting of their own inherit it.
        owner: None leaves the owner unmanaged.
        grants: privileges by principal; other principals are unmanaged, unless the policy says otherwise.
        declared_at: the place of the declaration; by default the calling line of Python.
    """

    catalog_name: str
    schema_name: str
    comment: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    predictive_optimization: str | None = None
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        catalog_name: str,
        schema_name: str,
        comment: str | None = None,
        *,
        tags: Mapping[str, str] = NOTHING,
        owner: str | None = None,
        grants: Mapping[str, Iterable[str]] = MappingProxyType({}),
        predictive_optimization: str | None = None,
        declared_at: SourceLocation | None = None,
    ) -> None:
        set_fields(
            self,
            catalog_name=to_text(catalog_name, "catalog_name", schema_name),
            schema_name=to_text(schema_name, "schema_name"),
            comment=to_optional_text(comment, "comment", schema_name),
            tags=to_texts("tags", tags),
            owner=to_optional_text(owner, "owner", schema_name),
            grants=to_grants(grants),
            predictive_optimization=_to_setting(predictive_optimization, schema_name),
            declared_at=declared_at or _calling_line(),
        )

    @property
    def qualified_name(self) -> SchemaName:
        """The two-part name."""
        return SchemaName(self.catalog_name, self.schema_name)

    @property
    def key(self) -> str:
        """The dotted name in lower case, by which schemas compare."""
        return self.qualified_name.key


def _to_primary_key(value: PrimaryKey | Sequence[str] | None) -> PrimaryKey | None:
    if value is None or isinstance(value, PrimaryKey):
        return value
    columns = to_names("primary_key", value)
    return PrimaryKey(columns) if columns else None


def _to_using(value: Using | str | None, of: str) -> Using | None:
    if value is None or isinstance(value, Using):
        return value
    return Using(to_text(value, "using", of))


def _to_setting(value: str | None, of: str) -> str | None:
    if value is None or value in OPTIMIZATION_SETTINGS:
        return value
    raise ValueError(
        f"predictive_optimization of {of} is {value!r}: write {', '.join(OPTIMIZATION_SETTINGS)}"
    )


def _to_parts(names: Iterable[str | Part] | None) -> frozenset[Part] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"manages takes a tuple or list of parts, not the string {names!r}")
    known = {part.value: part for part in Part}
    found = [name.value if isinstance(name, Part) else to_text(name, "manages") for name in names]
    for name in found:
        if name not in known:
            raise ValueError(f"manages knows no part {name!r}: write {', '.join(known)}")
    return frozenset(known[name] for name in found)


def _calling_line() -> SourceLocation | None:
    """Return the line that calls a constructor; None if that is the engine, which declares nothing."""
    frame = sys._getframe(2)
    file = frame.f_code.co_filename
    return None if file.startswith(_OF_NO_DECLARATION) else SourceLocation(file, frame.f_lineno)


_OF_NO_DECLARATION: Final = (f"{Path(__file__).parents[1]}{os.sep}", dataclasses.__file__)
