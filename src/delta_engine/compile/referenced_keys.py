"""Primary keys that a plan drops while foreign keys of other tables reference them. Pure.

A platform refuses to drop such a key, or, told CASCADE, silently loses the others': so the plan drops those
foreign keys first and adds them again at the end. What it cannot add again it does not touch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from delta_engine.actions import Action
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.models import ForeignKey, Part, QualifiedName, Table
from delta_engine.state.states import CatalogState, Reference


def with_referencing_keys(
    actions: Mapping[str, tuple[Action, ...]], models: Mapping[str, Table], state: CatalogState
) -> Mapping[str, tuple[Action, ...]]:
    """Return the actions with the foreign keys that stand in the way dropped and added again.

    Args:
        actions: what existing tables need, by `QualifiedName.key`.
        models: the declared tables, resolved, by the same key.
        state: the snapshot.

    Returns:
        The same; every dropped primary key says which foreign keys the plan leaves to point at it.
    """
    parents = {key for key, needed in actions.items() if _drops_primary_key(needed)}
    if not parents:
        return actions
    completed = {key: list(needed) for key, needed in actions.items()}
    dropped = {
        (key, _lower(action.observed))
        for key, needed in actions.items()
        for action in needed
        if isinstance(action, ForeignKeyDrop)
    }
    left: dict[str, list[Reference]] = defaultdict(list)
    for parent, reference in _references(parents, state):
        if (reference.table.key, reference.name.lower()) in dropped:
            continue
        remade = _remade(reference, models, state)
        if remade:
            completed.setdefault(reference.table.key, []).extend(remade)
        else:
            left[parent].append(reference)
    return {key: tuple(_with_references(needed, left[key])) for key, needed in completed.items()}


def _drops_primary_key(needed: Iterable[Action]) -> bool:
    return any(isinstance(action, PrimaryKeyDrop) for action in needed)


def _references(parents: set[str], state: CatalogState) -> Iterator[tuple[str, Reference]]:
    """Yield (table, foreign key that points there), sorted, as both sides know of it."""
    found = {
        (parent, reference.table.key, reference.name.lower()): reference
        for parent in parents
        for reference in state.tables[parent].referenced_by
    }
    for child, table in state.tables.items():
        for key in table.foreign_keys:
            parent = key.references.lower()
            if parent in parents:
                reference = Reference(table=QualifiedName(*child.split(".")), name=key.name or "")
                found.setdefault((parent, child, _lower(key)), reference)
    for place in sorted(found):
        yield place[0], found[place]


def _remade(reference: Reference, models: Mapping[str, Table], state: CatalogState) -> tuple[Action, ...]:
    """Return the drop and the add of a foreign key that stays declared; nothing for one that is not."""
    model, table = models.get(reference.table.key), state.tables.get(reference.table.key)
    if model is None or table is None or not model.is_about(Part.CONSTRAINTS):
        return ()
    observed = [key for key in table.foreign_keys if _lower(key) == reference.name.lower()]
    desired = [key for key in model.foreign_keys if _lower(key) == reference.name.lower()]
    if not observed or not desired:
        return ()
    return ForeignKeyDrop(observed[0]), ForeignKeyAdd(desired[0])


def _with_references(needed: Iterable[Action], left: list[Reference]) -> Iterator[Action]:
    for action in needed:
        yield replace(action, referenced_by=tuple(left)) if isinstance(action, PrimaryKeyDrop) else action


def _lower(key: ForeignKey) -> str:
    return (key.name or "").lower()
