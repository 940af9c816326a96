"""Tables that go: what of them is in the way of other tables, and who references them. Pure.

DROP TABLE takes the foreign keys along that reference the table (Databricks documentation, "DROP TABLE").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from delta_engine.actions import Action, DropTable
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.compile.key_names import (
    PlanPart,
    added_foreign_keys,
    dropped_foreign_keys,
    key_name,
    taken_names,
)
from delta_engine.compile.referenced_keys import references
from delta_engine.models import QualifiedName, Reference
from delta_engine.state.states import ABSENT, CatalogState, TableState


def dropped_tables(
    removed: Mapping[QualifiedName, int],
    staying: Sequence[PlanPart],
    in_the_way: Mapping[str, Sequence[Action]],
    state: CatalogState,
) -> tuple[DropTable, ...]:
    """Return the drops of tables, sorted by name.

    Args:
        removed: the tables that go, with how many rows they have.
        staying: what is done to all others.
        in_the_way: drops of foreign keys that have to go for the sake of those, by `QualifiedName.key`.
        state: the snapshot; a table that it does not cover is taken to have no keys.
    """
    gone = {name.key: state.tables.get(name.key, ABSENT) for name in removed}
    taken = {name for part in staying for name in taken_names(part)}
    freed = {
        name.key
        for name in removed
        if (key := gone[name.key].primary_key) is not None and key_name(name, key.name) in taken
    }

    def keys(name: QualifiedName) -> Iterator[Action]:
        table = gone[name.key]
        yield from in_the_way.get(name.key, ())
        for foreign_key in table.foreign_keys:
            drop = ForeignKeyDrop(foreign_key)
            is_awaited = key_name(name, foreign_key.name) in taken or foreign_key.references.lower() in freed
            if is_awaited and drop not in in_the_way.get(name.key, ()):
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
    gone: Mapping[str, TableState], staying: Sequence[PlanPart], state: CatalogState
) -> Mapping[str, list[Reference]]:
    """Return the foreign keys of tables that stay that would point at nothing, by the tables that go."""
    dropped = {(part.table.key, (key.name or "").lower()) for part, key in dropped_foreign_keys(staying)}
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
    for part, key in added_foreign_keys(staying):
        if key.references.lower() in gone:
            lost[key.references.lower()].append(Reference(table=part.table, name=key.name or ""))
    return lost
