"""The parts of models: names, keys, checks, filters, grants, and the parts of a table that a model may manage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, unique

from delta_engine.models.values import (
    set_fields,
    to_flag,
    to_grants,
    to_names,
    to_optional_text,
    to_text,
    to_whole_number,
)


@dataclass(frozen=True, slots=True, order=True)
class QualifiedName:
    """The raw three-part name of a table; compares in lower case, as Unity Catalog stores it."""

    catalog: str
    schema: str
    table: str

    @property
    def key(self) -> str:
        """The dotted name in lower case, by which tables compare."""
        return str(self).lower()

    @classmethod
    def of_key(cls, key: str) -> QualifiedName:
        """Return the table of a key; ValueError for a text that is no key."""
        parts = key.split(".")
        if len(parts) != 3 or not all(parts) or key != key.lower():
            raise ValueError(f"{key!r} is not catalog.schema.table in lower case")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"

    def resolve(self, text: str) -> QualifiedName:
        """Return the table that a name of one to three parts means beside this one; ValueError for other text."""
        parts = text.split(".")
        if len(parts) > 3 or not all(parts):
            raise ValueError(f"{text!r} is not a table's name: write table, schema.table or the whole name")
        return QualifiedName(*(self.catalog, self.schema)[: 3 - len(parts)], *parts)

    def shortened(self, other: QualifiedName) -> str:
        """Return the shortest text that `resolve` resolves to another table."""
        if self.catalog.lower() != other.catalog.lower():
            return str(other)
        return other.table if self.schema.lower() == other.schema.lower() else f"{other.schema}.{other.table}"


@dataclass(frozen=True, slots=True)
class SchemaName:
    """The raw two-part name of a schema; compares in lower case, as Unity Catalog stores it."""

    catalog: str
    schema: str

    @property
    def key(self) -> str:
        """The dotted name in lower case, by which schemas compare."""
        return str(self).lower()

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A foreign key, seen from the referenced table: `table` has the key, `name` is the catalog's spelling."""

    table: QualifiedName
    name: str


@unique
class Part(Enum):
    """A part of a table that a model may manage (`Table(manages=…)`)."""

    COLUMNS = "columns"  # existence, types, NOT NULL, defaults
    COMMENTS = "comments"
    PROPERTIES = "properties"
    CONSTRAINTS = "constraints"  # keys and checks
    CLUSTERING = "clustering"
    TAGS = "tags"
    ROW_FILTERS = "row_filters"  # the row filter and the column masks
    GRANTS = "grants"
    OWNER = "owner"


@dataclass(frozen=True, slots=True, init=False)
class PrimaryKey:
    """A primary key.

    Args:
        columns: the raw column names, in key order.
        name: None derives the constraint's name from table and columns.
        rely: lets the optimizer trust the key (Databricks); the platform does not report it.
    """

    columns: tuple[str, ...]
    name: str | None = None
    rely: bool = False

    def __init__(self, columns: Iterable[str], name: str | None = None, rely: bool = False) -> None:
        set_fields(
            self,
            columns=to_names("columns", columns),
            name=to_optional_text(name, "name"),
            rely=to_flag(rely, "rely"),
        )


@dataclass(frozen=True, slots=True, init=False)
class ForeignKey:
    """A foreign key: informational, as Unity Catalog has it.

    Args:
        columns: the raw column names, in key order.
        references: the referenced table: `table`, `schema.table` or the whole name.
        referenced_columns: its columns, in key order; empty for its primary key.
        name: None derives the constraint's name from table and columns.
        rely: lets the optimizer trust the key (Databricks); the platform does not report it.
    """

    columns: tuple[str, ...]
    references: str
    referenced_columns: tuple[str, ...] = ()
    name: str | None = None
    rely: bool = False

    def __init__(
        self,
        columns: Iterable[str],
        references: str | QualifiedName,
        referenced_columns: Iterable[str] = (),
        name: str | None = None,
        rely: bool = False,
    ) -> None:
        set_fields(
            self,
            columns=to_names("columns", columns),
            references=(
                str(references)
                if isinstance(references, QualifiedName)
                else to_text(references, "references")
            ),
            referenced_columns=to_names("referenced_columns", referenced_columns),
            name=to_optional_text(name, "name"),
            rely=to_flag(rely, "rely"),
        )


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """A named SQL condition that every row must meet; the platform enforces it."""

    name: str
    expression: str

    def __post_init__(self) -> None:
        set_fields(
            self,
            name=to_text(self.name, "name"),
            expression=to_text(self.expression, "expression", self.name),
        )


@dataclass(frozen=True, slots=True)
class Identity:
    """A column whose values the platform generates in steps.

    Args:
        start: the first value.
        step: the distance to the next value; not zero.
        always: True refuses values from writers (ALWAYS); False accepts them (BY DEFAULT).
    """

    start: int = 1
    step: int = 1
    always: bool = True

    def __post_init__(self) -> None:
        set_fields(
            self,
            start=to_whole_number(self.start, "start"),
            step=to_whole_number(self.step, "step"),
            always=to_flag(self.always, "always"),
        )


@dataclass(frozen=True, slots=True, init=False)
class ColumnMask:
    """A function (`catalog.schema.function`) through which readers see a column.

    Args:
        using_columns: the columns passed to the function after the masked one.
    """

    function: str
    using_columns: tuple[str, ...] = ()

    def __init__(self, function: str, using_columns: Iterable[str] = ()) -> None:
        set_fields(
            self,
            function=to_text(function, "function"),
            using_columns=to_names("using_columns", using_columns),
        )


@dataclass(frozen=True, slots=True, init=False)
class RowFilter:
    """A function (`catalog.schema.function`) of the table's `columns` that decides which rows a reader sees."""

    function: str
    columns: tuple[str, ...] = ()

    def __init__(self, function: str, columns: Iterable[str] = ()) -> None:
        set_fields(self, function=to_text(function, "function"), columns=to_names("columns", columns))


Grants = Mapping[str, tuple[str, ...]]
"""Privileges by principal: upper case, sorted."""

ALL_PRIVILEGES = "ALL PRIVILEGES"
_NEVER_IMPLIED = frozenset({"MANAGE", "EXTERNAL USE SCHEMA"})
"""Privileges that `ALL PRIVILEGES` does not include."""


def joined_grants(one: Grants, other: Grants) -> Grants:
    """Return the privileges of both sides."""
    return to_grants({name: (*one.get(name, ()), *other.get(name, ())) for name in {**one, **other}})


def by_principal(grants: Grants) -> Mapping[str, frozenset[str]]:
    """Return privileges by principal in lower case, because principals compare without case."""
    return {principal.lower(): frozenset(privileges) for principal, privileges in grants.items()}


def without_implied(privileges: frozenset[str]) -> frozenset[str]:
    """Return privileges without those that `ALL PRIVILEGES` includes, if it is granted."""
    return privileges & {ALL_PRIVILEGES, *_NEVER_IMPLIED} if ALL_PRIVILEGES in privileges else privileges
