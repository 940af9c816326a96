"""Foreign keys that block changes of a plan. Pure.

Unity Catalog refuses to drop a referenced primary key; with CASCADE it also drops the foreign key (databricks-sdk,
`TableConstraintsAPI.delete`). Both sides of a foreign key have one type (Databricks documentation, "CONSTRAINT
clause"); the engine assumes that the type of a column under one cannot change (docs/assumptions.md). So the plan
drops those foreign keys first and adds them again at the end, unless it cannot add them again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import replace

from delta_engine.actions import Action
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.models import ForeignKey, Part, QualifiedName, Reference, Table
from delta_engine.state.states import ABSENT, CatalogState


def with_referencing_keys(
    actions: Mapping[str, tuple[Action, ...]],
    models: Mapping[str, Table],
    state: CatalogState,
    dropped: Collection[str] = (),
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
    found = {}
    for parent in parents:
        for reference in state.tables[parent].referenced_by:
            child = renamed.get(reference.table.key, reference.table.key)
            is_renamed = child != reference.table.key
            known = replace(reference, table=QualifiedName.of_key(child)) if is_renamed else reference
            found[parent, child, reference.name.lower()] = known
    for child, table in state.tables.items():
        for key in table.foreign_keys:
            parent = renamed.get(key.references.lower(), key.references.lower())
            if parent in parents:
                reference = Reference(table=QualifiedName.of_key(child), name=key.name or "")
                found.setdefault((parent, child, _lower(key)), reference)
    references: dict[str, list[Reference]] = defaultdict(list)
    for place in sorted(found):
        references[place[0]].append(found[place])
    return references


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
