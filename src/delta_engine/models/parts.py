"""The parts of models: names, keys, checks, filters, grants, and the parts of a table that a model may manage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from types import MappingProxyType
from typing import ClassVar, TypeVar

from delta_engine.telemetry.visible import has_half_a_character


@dataclass(frozen=True, slots=True, order=True)
class QualifiedName:
    """The raw three-part name of a table; compares in lower case, as Unity Catalog stores it."""

    kind: ClassVar[str] = "table"
    is_container: ClassVar[bool] = False
    is_selectable: ClassVar[bool] = True
    catalog: str
    schema: str
    table: str

    @property
    def key(self) -> str:
        """The dotted name in lower case, by which tables compare."""
        return str(self).lower()

    @property
    def parents(self) -> tuple[SchemaName, ...]:
        """The securables that it is in: its schema."""
        return (SchemaName(self.catalog, self.schema),)

    @property
    def parts(self) -> tuple[str, str, str]:
        """The three parts in lower case; only hand-made names have dots in them."""
        return self.catalog.lower(), self.schema.lower(), self.table.lower()

    @classmethod
    def of_key(cls, key: str) -> QualifiedName:
        """Return the table of a key; ValueError for a text that is not a key."""
        parts = key.split(".")
        if len(parts) != 3 or not all(parts) or key != key.lower():
            raise ValueError(f"{key!r} is not catalog.schema.table in lower case")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"

    def resolve(self, text: str) -> QualifiedName:
        """Return the table that a name of one to three parts means next to this table; ValueError for other text."""
        parts = text.split(".")
        if len(parts) > 3 or not all(parts):
            raise ValueError(
                f"{text!r} is not the name of a table: write table, schema.table or catalog.schema.table"
            )
        return QualifiedName(*(self.catalog, self.schema)[: 3 - len(parts)], *parts)

    def shortened(self, other: QualifiedName) -> str:
        """Return the shortest text that `resolve` resolves to another table."""
        if self.catalog.lower() != other.catalog.lower():
            return str(other)
        return other.table if self.schema.lower() == other.schema.lower() else f"{other.schema}.{other.table}"


@dataclass(frozen=True, slots=True)
class SchemaName:
    """The raw two-part name of a schema; compares in lower case, as Unity Catalog stores it."""

    kind: ClassVar[str] = "schema"
    is_container: ClassVar[bool] = True
    is_selectable: ClassVar[bool] = False
    catalog: str
    schema: str

    @property
    def key(self) -> str:
        """The dotted name in lower case, by which schemas compare."""
        return str(self).lower()

    @property
    def parents(self) -> tuple[SchemaName, ...]:
        """The securables that it is in: none that the engine manages."""
        return ()

    @property
    def parts(self) -> tuple[str, str]:
        """The two parts in lower case."""
        return self.catalog.lower(), self.schema.lower()

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}"


@dataclass(frozen=True, slots=True, order=True)
class NameInSchema:
    """The raw three-part name of a securable in a schema; compares in lower case, as Unity Catalog stores it."""

    kind: ClassVar[str]
    is_container: ClassVar[bool] = False
    is_selectable: ClassVar[bool] = True
    catalog: str
    schema: str
    name: str

    @property
    def key(self) -> str:
        """The dotted name in lower case, by which securables of a kind compare."""
        return str(self).lower()

    @property
    def parents(self) -> tuple[SchemaName, ...]:
        """The securables that it is in: its schema."""
        return (SchemaName(self.catalog, self.schema),)

    @property
    def parts(self) -> tuple[str, str, str]:
        """The three parts in lower case."""
        return self.catalog.lower(), self.schema.lower(), self.name.lower()

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.name}"


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


def joined_grants(grants: Grants, other: Grants) -> Grants:
    """Return the privileges of both sides."""
    return to_grants({name: (*grants.get(name, ()), *other.get(name, ())) for name in {**grants, **other}})


def by_principal(grants: Grants) -> Mapping[str, frozenset[str]]:
    """Return privileges by principal in lower case, because principals compare without case."""
    return {principal.lower(): frozenset(privileges) for principal, privileges in grants.items()}


def without_implied(privileges: frozenset[str]) -> frozenset[str]:
    """Return privileges without those that `ALL PRIVILEGES` includes, if it is granted."""
    return privileges & {ALL_PRIVILEGES, *_NEVER_IMPLIED} if ALL_PRIVILEGES in privileges else privileges


Item = TypeVar("Item")

_LISTS = (tuple, list)
_NO_LISTS = (str, bytes, dict, set, frozenset)
"""Iterables that do not count as lists: texts, and collections without an order."""

NOTHING: Mapping[str, str] = MappingProxyType({})
NO_GRANTS: Grants = MappingProxyType({})
NO_FORMER_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def to_text(value: object, what: str, of: str = "") -> str:
    """Return a string; TypeError for other values, ValueError for a surrogate. Messages name `what` and `of`."""
    if type(value) is str and value.isascii():  # most
        return value
    if not isinstance(value, str):
        raise _wrong(value, what, of, "a string")
    if has_half_a_character(value):
        raise ValueError(
            rf"{_subject(what, of)} contains a surrogate (\ud800 to \udfff), which no string may contain: {value!r}. "
            r"Write the character itself, or \U and its eight digits"
        )
    return str.__str__(value)


def to_optional_text(value: object, what: str, of: str = "") -> str | None:
    """Return a text or None; arguments and errors as in `to_text`."""
    return None if value is None else to_text(value, what, of)


def to_former_names(value: object, what: str, of: str = "") -> tuple[str, ...]:
    """Return old names as a tuple, the latest first; None counts as no name, a string as a single name."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (to_text(value, what, of),)
    if not isinstance(value, Iterable) or not _is_list(value):
        raise _wrong(value, what, of, "a string, or a tuple or list of names")
    return tuple([to_text(name, what, of) for name in value])


def to_former_field_names(value: Mapping[str, object], of: str) -> Mapping[str, tuple[str, ...]]:
    """Return former names of fields by path, read-only; errors as in `to_former_names`."""
    if value is NO_FORMER_NAMES:
        return NO_FORMER_NAMES
    if not isinstance(value, Mapping):
        raise _wrong(value, "renamed_fields", of, "a mapping from paths to old names")
    names = {to_text(path, "renamed_fields", of): former for path, former in value.items()}
    by_path = {
        path: to_former_names(former, f"renamed_fields[{path!r}]", of) for path, former in names.items()
    }
    former = {path: by_path[path] for path in sorted(by_path) if by_path[path]}
    return MappingProxyType(former) if former else NO_FORMER_NAMES


def to_flag(value: object, what: str, of: str = "") -> bool:
    """Return a bool; arguments and errors as in `to_text`."""
    if value is True or value is False:
        return value
    raise _wrong(value, what, of, "True or False")


def to_whole_number(value: object, what: str) -> int:
    """Return an int; arguments and errors as in `to_text`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise _wrong(value, what, "", "an integer")


def to_optional(value: Item | None, kind: type[Item], what: str, of: str) -> Item | None:
    """Return an object of a class, or None; other arguments and errors as in `to_text`."""
    if value is None or isinstance(value, kind):
        return value
    raise _wrong(value, what, of, f"None or {kind.__name__}(…)")


def to_items(values: Iterable[Item], kind: type[Item], what: str, of: str = "") -> tuple[Item, ...]:
    """Return objects of a class as a tuple; other arguments and errors as in `to_text`."""
    if type(values) not in _LISTS and not _is_list(values):
        raise _wrong(values, what, of, f"a list of {kind.__name__}s")
    items = tuple(values)
    for item in items:
        if not isinstance(item, kind):
            raise _wrong(item, what, of, f"{kind.__name__}s")
    return items


def to_names(what: str, value: Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple; TypeError for a text, such as `("id")` without the comma, and for unordered values."""
    if isinstance(value, str):
        raise TypeError(f"{what} takes a tuple or list of names, not the string {value!r}")
    if type(value) not in _LISTS and not _is_list(value):
        raise _wrong(value, what, "", "a tuple or list of names")
    return tuple([to_text(name, what) for name in value])


def to_texts(what: str, values: Mapping[str, object]) -> Mapping[str, str]:
    """Return strings by name, read-only; the TypeError for a value of another type shows the string to write."""
    if values == {}:
        return NOTHING
    if not isinstance(values, Mapping):
        raise _wrong(values, what, "", "a mapping of strings")
    texts = {}
    for key, value in values.items():
        if not isinstance(value, str):
            spelled = str(value).lower() if isinstance(value, bool) else str(value)
            hint = f": write {spelled!r}" if isinstance(value, (int, float)) else ""
            raise TypeError(f"{what} takes strings, not {value!r} for {key!r}{hint}")
        texts[to_text(key, what)] = to_text(value, what)
    return read_only(texts)


def to_grants(grants: Mapping[str, Iterable[str]]) -> Mapping[str, tuple[str, ...]]:
    """Return privileges by principal, in upper case, sorted, without duplicates; TypeError for other shapes."""
    if not isinstance(grants, Mapping):
        raise _wrong(grants, "grants", "", "a mapping of privileges by principal")
    if not grants:
        return NO_GRANTS
    granted_to = {to_text(principal, "grants"): granted for principal, granted in grants.items()}
    return MappingProxyType(
        {principal: _privileges(granted_to[principal]) for principal in sorted(granted_to)}
    )


def read_only(mapping: Mapping[str, str]) -> Mapping[str, str]:
    """Return a read-only copy, sorted by key, so that the input's order has no effect."""
    return MappingProxyType({key: mapping[key] for key in sorted(mapping)}) if mapping else NOTHING


def set_fields(target: object, **values: object) -> None:
    """Set the fields of a frozen object during its construction."""
    for name, value in values.items():
        object.__setattr__(target, name, value)


def _is_list(values: object) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, _NO_LISTS)


def _privileges(granted: Iterable[str]) -> tuple[str, ...]:
    in_no_order = sorted(granted, key=str) if isinstance(granted, (set, frozenset)) else granted
    return tuple(
        sorted({privilege.upper().replace("_", " ") for privilege in to_names("grants", in_no_order)})
    )


def _wrong(value: object, what: str, of: str, expected: str) -> TypeError:
    return TypeError(f"{_subject(what, of)} takes {expected}, not {value!r}")


def _subject(what: str, of: str) -> str:
    return f"{what} of {of!r}" if of else what
