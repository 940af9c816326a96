"""The keys that a table's changes add and drop, and the names that they take and free. Pure.

The keys of one schema share their names (Databricks documentation, "CONSTRAINT clause").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from delta_engine.actions import AlignTable, CreateTable
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyAdd, PrimaryKeyDrop, named_primary_key
from delta_engine.compile.compiled_plan import CarriedAction
from delta_engine.models import ForeignKey, QualifiedName

TableChange: TypeAlias = CreateTable | AlignTable
"""A change of one table that stays."""

KeyName: TypeAlias = tuple[str, str, str]
"""A key's name with its catalog and schema, in lower case."""


def key_name(table: QualifiedName, name: str | None) -> KeyName:
    """Return the name of a table's key in the form in which names are compared."""
    return table.catalog.lower(), table.schema.lower(), (name or "").lower()


def changes_of(change: TableChange) -> tuple[CarriedAction, ...]:
    """Return the actions of a table's change, or the creation itself."""
    return change.actions if isinstance(change, AlignTable) else (change,)


def taken_names(table: QualifiedName, changes: Iterable[CarriedAction]) -> Iterator[KeyName]:
    """Yield the names of the added keys."""
    for change in changes:
        match change:
            case CreateTable(desired):
                primary_key = named_primary_key(desired)
                yield from (key_name(table, key.name) for key in desired.foreign_keys)
                if primary_key is not None:
                    yield key_name(table, primary_key.name)
            case PrimaryKeyAdd(name):
                yield key_name(table, name)
            case ForeignKeyAdd(key):
                yield key_name(table, key.name)


def freed_names(table: QualifiedName, changes: Iterable[CarriedAction]) -> Iterator[KeyName]:
    """Yield the names of the dropped keys."""
    for change in changes:
        match change:
            case PrimaryKeyDrop(name):
                yield key_name(table, name)
            case ForeignKeyDrop(key):
                yield key_name(table, key.name)


def added_foreign_keys(changes: Iterable[CarriedAction]) -> Iterator[ForeignKey]:
    """Yield the added foreign keys."""
    for change in changes:
        if isinstance(change, CreateTable):
            yield from change.desired.foreign_keys
        elif isinstance(change, ForeignKeyAdd):
            yield change.desired


def dropped_foreign_keys(changes: Iterable[CarriedAction]) -> Iterator[ForeignKey]:
    """Yield the dropped foreign keys."""
    yield from (change.observed for change in changes if isinstance(change, ForeignKeyDrop))


def referenced_tables(keys: Iterable[ForeignKey]) -> set[str]:
    """Return the tables that foreign keys reference, by `QualifiedName.key`."""
    return {key.references.lower() for key in keys}
