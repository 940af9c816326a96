"""Dropped tables: which of their keys block other tables, and which tables reference them. Pure.

DROP TABLE also drops the foreign keys that reference the table (Databricks documentation, "DROP TABLE").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from delta_engine.actions import Action, DropTable
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.compile.keys import (
    TableChange,
    added_foreign_keys,
    changes_of,
    dropped_foreign_keys,
    key_name,
    taken_names,
)
from delta_engine.compile.referenced_keys import references
from delta_engine.models import QualifiedName, Reference
from delta_engine.state.states import ABSENT, CatalogState, TableState


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
            references=tuple(name.resolve(parent) for parent in _parents(gone[name.key])),
            keys=tuple(keys(name)),
            referenced_by=tuple(lost[name.key]),
        )
        for name, rows in sorted(removed.items(), key=lambda item: item[0].key)
    )


def _parents(table: TableState) -> list[str]:
    return sorted({key.references.lower() for key in table.foreign_keys})


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
