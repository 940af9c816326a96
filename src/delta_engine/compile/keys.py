"""Primary and foreign keys across the tables of a plan. Pure.

The keys of one schema share their names (Databricks documentation, "CONSTRAINT clause"). Unity Catalog refuses to drop
a referenced primary key; with CASCADE it also drops the foreign key (databricks-sdk, `TableConstraintsAPI.delete`).
Both sides of a foreign key have one type ("CONSTRAINT clause"); the engine assumes that the type of a column under one
cannot change (docs/assumptions.md). So the plan drops those foreign keys first and adds them again at the end, unless
it cannot add them again. DROP TABLE also drops the foreign keys that reference the table ("DROP TABLE").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeAlias

from delta_engine.actions import Action, AlignTable, CarriedAction, CreateTable, DropTable
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyAdd, PrimaryKeyDrop, named_primary_key
from delta_engine.models import ForeignKey, Part, QualifiedName, Reference, Table
from delta_engine.state.states import ABSENT, CatalogState, TableState

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


def with_referencing_keys(
    actions: Mapping[str, tuple[Action, ...]],
    models: Mapping[str, Table],
    state: CatalogState,
    dropped: Collection[str],
) -> Mapping[str, tuple[Action, ...]]:
    """Return the actions with the drops and adds of the foreign keys that block them, also for dropped tables.

    An action that unmanaged foreign keys still block names them. The keys of dropped tables are not added again.
    """
    blocked = {key for key, needed in actions.items() if any(map(_is_blocked, needed))}
    if not blocked:
        return actions
    pointing_at = references(blocked, state)
    completed = {key: list(needed) for key, needed in actions.items()}
    done = {
        (key, _lower(action.observed))
        for key, needed in actions.items()
        for action in needed
        if isinstance(action, ForeignKeyDrop)
    }
    for key in sorted(blocked):
        for action in actions[key]:
            for reference in _blocking(action, key, pointing_at[key], state):
                remade = () if _place(reference) in done else _remade(reference, models, state, dropped)
                if remade:
                    done.add(_place(reference))
                    completed.setdefault(reference.table.key, []).extend(remade)
    return {
        key: tuple(
            _with_remaining(action, _blocking(action, key, pointing_at[key], state), done)
            for action in needed
        )
        for key, needed in completed.items()
    }


def references(parents: Set[str], state: CatalogState) -> Mapping[str, list[Reference]]:
    """Return the observed foreign keys to tables, sorted; tables that the plan renames have their new names."""
    renamed = {table.former_name.key: key for key, table in state.tables.items() if table.former_name}
    by_key = {}
    for parent in parents:
        for reference in state.tables[parent].referenced_by:
            child = renamed.get(reference.table.key, reference.table.key)
            is_renamed = child != reference.table.key
            renamed_reference = (
                replace(reference, table=QualifiedName.of_key(child)) if is_renamed else reference
            )
            by_key[parent, child, reference.name.lower()] = renamed_reference
    for child, table in state.tables.items():
        for key in table.foreign_keys:
            parent = renamed.get(key.references.lower(), key.references.lower())
            if parent in parents:
                reference = Reference(table=QualifiedName.of_key(child), name=key.name or "")
                by_key.setdefault((parent, child, _lower(key)), reference)
    references: dict[str, list[Reference]] = defaultdict(list)
    for place in sorted(by_key):
        references[place[0]].append(by_key[place])
    return references


def dropped_tables(
    removed: Mapping[QualifiedName, int],
    staying: Sequence[TableChange],
    blocking: Mapping[str, Sequence[Action]],
    state: CatalogState,
) -> tuple[DropTable, ...]:
    """Return the drops of the `removed` tables and their numbers of rows, sorted by name.

    Args:
        staying: the changes of all other tables.
        blocking: drops of foreign keys that other changes need first, by `QualifiedName.key`.
        state: a table that the snapshot does not cover counts as one without keys.
    """
    if not removed:
        return ()
    gone = {name.key: state.tables.get(name.key, ABSENT) for name in removed}
    taken = {name for change in staying for name in taken_names(change.table, changes_of(change))}
    freed = {
        name.key
        for name in removed
        if (key := gone[name.key].primary_key) is not None and key_name(name, key.name) in taken
    }

    def keys(name: QualifiedName) -> Iterator[Action]:
        table = gone[name.key]
        yield from blocking.get(name.key, ())
        for foreign_key in table.foreign_keys:
            drop = ForeignKeyDrop(foreign_key)
            is_awaited = key_name(name, foreign_key.name) in taken or foreign_key.references.lower() in freed
            if is_awaited and drop not in blocking.get(name.key, ()):
                yield drop
        if table.primary_key is not None and name.key in freed:
            yield PrimaryKeyDrop(table.primary_key.name or "", table.primary_key.columns)

    lost = _lost_references(gone, staying, state)
    return tuple(
        DropTable(
            name,
            rows,
            references=tuple(map(name.resolve, sorted(referenced_tables(gone[name.key].foreign_keys)))),
            keys=tuple(keys(name)),
            referenced_by=tuple(lost[name.key]),
        )
        for name, rows in sorted(removed.items(), key=lambda item: item[0].key)
    )


def _is_blocked(action: Action) -> bool:
    return isinstance(action, PrimaryKeyDrop | ColumnTypeChange)


def _blocking(
    action: Action, key: str, pointing_here: Iterable[Reference], state: CatalogState
) -> Iterator[Reference]:
    """Yield the foreign keys that block an action.

    Keys have the former names of columns, which is harmless: renaming a column drops its keys anyway.
    """
    if isinstance(action, PrimaryKeyDrop):
        yield from pointing_here
    elif isinstance(action, ColumnTypeChange):
        table, name = state.tables[key], action.name.lower()
        if table.primary_key is not None and name in map(str.lower, table.primary_key.columns):
            yield from pointing_here
        for own in table.foreign_keys:
            if name in map(str.lower, own.columns):
                yield Reference(table=QualifiedName.of_key(key), name=own.name or "")


def _remade(
    reference: Reference, models: Mapping[str, Table], state: CatalogState, dropped: Collection[str]
) -> tuple[Action, ...]:
    """Return the drop and the add of a declared foreign key, or only the drop if its table is dropped."""
    model, table = models.get(reference.table.key), state.tables.get(reference.table.key, ABSENT)
    observed = [key for key in table.foreign_keys if _lower(key) == reference.name.lower()]
    if observed and reference.table.key in dropped:
        return (ForeignKeyDrop(observed[0]),)
    if model is None or not model.is_about(Part.CONSTRAINTS):
        return ()
    desired = [key for key in model.foreign_keys if _lower(key) == reference.name.lower()]
    if not observed or not desired:
        return ()
    return ForeignKeyDrop(observed[0], is_remade=True), ForeignKeyAdd(desired[0])


def _with_remaining(action: Action, blocking: Iterable[Reference], done: set[tuple[str, str]]) -> Action:
    left = tuple(reference for reference in blocking if _place(reference) not in done)
    if left and isinstance(action, PrimaryKeyDrop | ColumnTypeChange):
        return replace(action, referenced_by=left)
    return action


def _place(reference: Reference) -> tuple[str, str]:
    return reference.table.key, reference.name.lower()


def _lower(key: ForeignKey) -> str:
    return (key.name or "").lower()


def _lost_references(
    gone: Mapping[str, TableState], staying: Sequence[TableChange], state: CatalogState
) -> Mapping[str, list[Reference]]:
    """Return the foreign keys of other tables that the drops would break, by dropped table."""
    dropped = {
        (change.table.key, (key.name or "").lower())
        for change in staying
        for key in dropped_foreign_keys(changes_of(change))
    }
    pointing_at = references(gone.keys() & state.tables.keys(), state)
    lost = {
        key: [
            reference
            for reference in pointing_at[key]
            if reference.table.key not in gone
            and (reference.table.key, reference.name.lower()) not in dropped
        ]
        for key in gone
    }
    for change in staying:
        for key in added_foreign_keys(changes_of(change)):
            if key.references.lower() in gone:
                lost[key.references.lower()].append(Reference(table=change.table, name=key.name or ""))
    return lost
