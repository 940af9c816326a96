"""What the parts of a plan do to keys: which they add and drop, and the names that they take and free. Pure.

The keys of one schema share their names (Databricks documentation, "CONSTRAINT clause").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from delta_engine.actions import AlignTable, CreateTable
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyAdd, PrimaryKeyDrop, named_primary_key
from delta_engine.models import ForeignKey, QualifiedName

PlanPart: TypeAlias = CreateTable | AlignTable
"""What is done to one table that stays."""

KeyName: TypeAlias = tuple[str, str, str]
"""A key's name with its catalog and schema, in lower case."""


def key_name(table: QualifiedName, name: str | None) -> KeyName:
    """Return the name of a key of a table as it compares with those of others."""
    return table.catalog.lower(), table.schema.lower(), (name or "").lower()


def taken_names(part: PlanPart) -> Iterator[KeyName]:
    """Yield the names of the keys that are added."""
    if isinstance(part, CreateTable):
        key = named_primary_key(part.desired)
        names = [key.name] if key else []
    else:
        names = [action.name for action in part.of_type(PrimaryKeyAdd)]
    names += [key.name for _, key in added_foreign_keys([part])]
    yield from (key_name(part.table, name) for name in names)


def freed_names(part: PlanPart) -> Iterator[KeyName]:
    """Yield the names of the keys that are dropped."""
    yield from (key_name(part.table, key.name) for _, key in dropped_foreign_keys([part]))
    if isinstance(part, AlignTable):
        yield from (key_name(part.table, drop.name) for drop in part.of_type(PrimaryKeyDrop))


def added_foreign_keys(parts: Iterable[PlanPart]) -> Iterator[tuple[PlanPart, ForeignKey]]:
    """Yield the foreign keys that are added, each after the part that does it."""
    for part in parts:
        if isinstance(part, CreateTable):
            yield from ((part, key) for key in part.desired.foreign_keys)
        else:
            yield from ((part, action.desired) for action in part.of_type(ForeignKeyAdd))


def dropped_foreign_keys(parts: Iterable[PlanPart]) -> Iterator[tuple[PlanPart, ForeignKey]]:
    """Yield the foreign keys that are dropped, each after the part that does it."""
    for part in parts:
        if isinstance(part, AlignTable):
            yield from ((part, action.observed) for action in part.of_type(ForeignKeyDrop))


def added_parents(parts: Iterable[PlanPart]) -> set[str]:
    """Return the tables that foreign keys come to point at, by their `QualifiedName.key`."""
    return {key.references.lower() for _, key in added_foreign_keys(parts)}


def dropped_parents(parts: Iterable[PlanPart]) -> set[str]:
    """Return the tables that foreign keys cease to point at, by the keys of the names that they had so far."""
    return {key.references.lower() for _, key in dropped_foreign_keys(parts)}
