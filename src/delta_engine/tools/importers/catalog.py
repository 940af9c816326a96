"""The catalog that sources leave: models by name, and changes of their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from delta_engine.aspects.renames import Renames
from delta_engine.errors import ConfigError, RefusedError, SourceLocation
from delta_engine.models import (
    CheckConstraint,
    Column,
    ForeignKey,
    Function,
    PrimaryKey,
    QualifiedName,
    Schema,
    Securable,
    Table,
    View,
    ViewColumn,
)
from delta_engine.models.nested_types import type_at, with_field_at
from delta_engine.models.types import DataType
from delta_engine.tools.importers.reading import Key, NotReadError, Reader

KINDS: Final[Mapping[str, str]] = {
    "table": "table",
    "view": "table",
    "function": "function",
    "schema": "schema",
    "database": "schema",
}
"""Words for securables, and for the namespace of each."""


def kind_of(reader: Reader, *others: str) -> str:
    """Return the word for the kind of a securable.

    Raises:
        NotReadError: no such word follows.
    """
    kind = reader.take(*KINDS, *others)
    if not kind:
        rest = f" {reader.peek(1).text}" if reader.peek(1).lower in KINDS else ""
        raise NotReadError(f"models of DDL declare no {(reader.peek().text + rest).upper()}")
    return kind


class LeftOutError(NotReadError):
    """A statement is about something whose creation was left out, which was said already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read of sources.

    Args:
        home: the catalog and the schema of names that lack them.
        environment: the environment whose server is meant.
        with_checks: whether quality rules become checks.
    """

    home: tuple[str | None, str | None] = (None, None)
    environment: str = ""
    with_checks: bool = False


@dataclass(slots=True)
class Catalog:
    """The models that sources have left so far, with stand-ins for variables.

    Args:
        catalog: the current catalog; None without one.
        schema: the current schema; None without one.
        left_out: the slots of securables whose creation was left out.
        refusals: what else is left out, with the reasons.
        notes: what else to say.
    """

    catalog: str | None = None
    schema: str | None = None
    slots: dict[str, Any] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    refusals: list[RefusedError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def models(self) -> tuple[Securable, ...]:
        """All models, sorted by name."""
        return tuple(sorted(self.slots.values(), key=lambda model: str(model.key)))

    def whole_name(self, parts: Sequence[str], length: int = 3) -> tuple[str, ...]:
        """Return a name with the current catalog and schema for what it lacks.

        Raises:
            NotReadError: there are none, or the name has too many parts.
        """
        if len(parts) > length:
            raise NotReadError(f"{'.'.join(parts)} has more than {length} parts")
        home = (self.catalog, self.schema)[: length - len(parts)]
        if None in home:
            lacks = "catalog" if self.catalog is None else "schema"
            fix = "Name the default catalog and schema, as in: import CATALOG.SCHEMA --from DIR."
            raise NotReadError(f"{'.'.join(parts)} has no {lacks}", fix)
        return tuple(part for part in (*home, *parts) if part is not None)

    def whole_function(self, parts: Sequence[str]) -> str:
        """Return the whole name of a function; as it is written, if the catalog or schema is unknown."""
        try:
            return ".".join(self.whole_name(parts))
        except NotReadError:
            return ".".join(parts)

    def slot(self, kind: str, parts: Sequence[str]) -> str:
        """Return the place of a name: tables and views share one."""
        namespace = KINDS[kind]
        return f"{namespace} {'.'.join(self.whole_name(parts, 2 if namespace == 'schema' else 3))}".lower()

    def find(self, kind: str, parts: Sequence[str], place: SourceLocation) -> Any:
        """Return a model; a schema also if no statement creates it."""
        slot = self.slot(kind, parts)
        if slot in self.slots:
            return self.slots[slot]
        if slot in self.left_out:
            raise LeftOutError(f"{slot} was left out")
        if slot.startswith("schema "):
            return Schema(*self.whole_name(parts, 2), declared_at=place)
        raise NotReadError(
            f"no statement before it creates {slot}", "Import it from the catalog, without --from."
        )

    def find_column(self, parts: Sequence[str], place: SourceLocation) -> tuple[Any, Sequence[str]]:
        """Return the table or view of a column with a dotted name, and the path of the column."""
        lengths = range(min(len(parts) - 1, 3), 0, -1)
        fitting = (length for length in lengths if self.has("table", parts[:length]))
        length = next(fitting, max(len(parts) - 1, 1))
        return self.find("table", parts[:length], place), parts[length:]

    def has(self, kind: str, parts: Sequence[str]) -> bool:
        """Whether a statement creates something of this name."""
        try:
            return self.slot(kind, parts) in {*self.slots, *self.left_out}
        except NotReadError:
            return False

    def add(self, model: Any, *, replaces: bool, keeps: bool) -> None:
        """Add what CREATE makes, with OR REPLACE, which keeps the grants of tables alone, or IF NOT EXISTS."""
        slot = _slot_of(model)
        present = self.slots.get(slot)
        if present is not None and keeps:
            return
        if present is not None and not (replaces and type(present) is type(model)):
            raise NotReadError(
                f"{model.qualified_name} exists already ({present.declared_at})",
                "Remove one of the two, or write CREATE OR REPLACE.",
            )
        self.left_out.discard(slot)
        self.slots[slot] = replace(model, grants=present.grants) if isinstance(present, Table) else model

    def add_table(self, table: Table) -> None:
        """Add a table of a contract or a manifest, or its refusal if the name is taken."""
        try:
            self.add(table, replaces=False, keeps=False)
        except NotReadError as error:
            place = table.declared_at
            self.refusals.append(ConfigError(str(error), location=place, way_out="Remove one of them."))

    def put(self, model: Securable) -> None:
        """Take the changed model of something that exists."""
        self.slots[_slot_of(model)] = model

    def drop(self, kind: str, parts: Sequence[str], *, if_exists: bool) -> None:
        """Remove what DROP drops, and what a schema has in it."""
        slot = self.slot(kind, parts)
        inside = f" {slot.partition(' ')[2]}."
        gone = [key for key in self.slots if key == slot or (slot.startswith("schema ") and inside in key)]
        if not gone and not if_exists and slot not in self.left_out:
            raise NotReadError(f"no statement before it creates {slot}", "Remove it, or write IF EXISTS.")
        for key in gone:
            del self.slots[key]

    def rename(self, model: Table | View, parts: Sequence[str]) -> None:
        """Rename a table or a view; foreign keys of other tables follow."""
        beside = replace(self, catalog=model.catalog_name, schema=model.schema_name)
        new = QualifiedName(*beside.whole_name(parts))
        del self.slots[_slot_of(model)]
        names: Any = {"catalog_name": new.catalog, "schema_name": new.schema}
        names |= {"table_name" if isinstance(model, Table) else "view_name": new.table}
        self.add(replace(model, **names), replaces=False, keeps=False)
        for table in [other for other in self.slots.values() if isinstance(other, Table)]:
            keys = [_following(key, table.qualified_name, model.key, new) for key in table.foreign_keys]
            self.put(replace(table, foreign_keys=tuple(keys)))


def _slot_of(model: Securable) -> str:
    namespace = {Schema: "schema", Function: "function"}.get(type(model), "table")
    return f"{namespace} {model.key}"


def _following(key: ForeignKey, own: QualifiedName, old: str, new: QualifiedName) -> ForeignKey:
    return replace(key, references=own.shortened(new)) if own.resolve(key.references).key == old else key


def with_keys(table: Table, keys: Iterable[Key], catalog: Catalog) -> Table:
    """Return a table with further keys and checks; foreign keys name tables from the table's own place."""
    own = table.qualified_name
    for key in keys:
        match key:
            case PrimaryKey():
                if table.primary_key is not None:
                    raise NotReadError("a table has one primary key", "Remove the other key.")
                table = replace(table, primary_key=key)
            case ForeignKey():
                referenced = QualifiedName(*catalog.whole_name(key.references.split(".")))
                named = replace(key, references=own.shortened(referenced))
                table = replace(table, foreign_keys=(*table.foreign_keys, named))
            case CheckConstraint():
                table = replace(table, checks=(*table.checks, key))
    return table


def without_keys(table: Table, is_kept: Callable[[Key], bool]) -> Table:
    """Return a table with some of its keys and checks."""
    primary_key = table.primary_key
    return replace(
        table,
        primary_key=primary_key if primary_key and is_kept(primary_key) else None,
        foreign_keys=tuple(filter(is_kept, table.foreign_keys)),
        checks=tuple(filter(is_kept, table.checks)),
    )


def place_in(table: Table, column: str) -> int:
    """Return the position of a column."""
    keys = [own.key for own in table.columns]
    if column.lower() not in keys:
        raise NotReadError(f"{table.qualified_name} has no column {column}")
    return keys.index(column.lower())


def with_part(relation: Table | View, path: Sequence[str], change: Callable[[Any], Any]) -> Any:
    """Return a table or a view with a column changed, or a field inside of one."""
    if isinstance(relation, View):
        columns = {column.key: column for column in relation.columns}
        columns[path[0].lower()] = change(columns.get(path[0].lower(), ViewColumn(path[0])))
        return replace(relation, columns=tuple(columns.values()))
    place, steps = place_in(relation, path[0]), path[1:]
    column = relation.columns[place]
    field_type(column, steps)
    changed = (
        replace(column, data_type=with_field_at(column.data_type, tuple(steps), change))
        if steps
        else change(column)
    )
    return replace(relation, columns=(*relation.columns[:place], changed, *relation.columns[place + 1 :]))


def field_type(column: Column, steps: Sequence[str]) -> DataType:
    """Return the type at a place inside a column."""
    data_type = type_at(column.data_type, tuple(steps))
    if data_type is None:
        raise NotReadError(f"column {column.name} has no field {'.'.join(steps)}")
    return data_type


def moved(columns: Iterable[Column], column: Column, after: str | None) -> tuple[Column, ...]:
    """Return columns with one of them first, or after another."""
    rest = [own for own in columns if own.key != column.key]
    keys = [own.key for own in rest]
    if after is not None and after.lower() not in keys:
        raise NotReadError(f"there is no column {after} to place it after")
    place = 0 if after is None else keys.index(after.lower()) + 1
    return (*rest[:place], column, *rest[place:])


def with_column_renamed(table: Table, path: Sequence[str], new: str) -> Table:
    """Return a table with a column renamed, also in its keys and its layout, or with a field renamed."""
    field_type(table.columns[place_in(table, path[0])], path[1:])
    return Renames({tuple(path): (*path[:-1], new)}).applied_to(table)
