"""The order of a plan across its tables: steps, each with those that have to be done before it. Pure.

First all foreign keys go that have to, because they block their parents' keys. Then every table is created or
changed, a parent before the tables that are created with foreign keys to it. Last come the foreign keys of
existing tables, and those that could not be in CREATE TABLE because tables reference each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from delta_engine import aspects
from delta_engine.actions import (
    PHASE_ORDER,
    Action,
    AlignTable,
    CreateTable,
    Phase,
    TableAction,
    TablePlan,
)
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.models import ForeignKey, QualifiedName

_FIRST = PHASE_ORDER[Phase.DROP_FOREIGN_KEYS]
_LAST = PHASE_ORDER[Phase.ADD_FOREIGN_KEYS]

_Part = CreateTable | AlignTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done to one table in one go.

    Args:
        table: the table.
        parts: what is done, in order.
        after: the positions of the steps that have to be done before.
    """

    table: QualifiedName
    parts: tuple[TableAction, ...]
    after: tuple[int, ...] = ()


def drop_steps(plan: TablePlan) -> tuple[Step, ...]:
    """Return the steps that come when all others are over: tables that go, a step each."""
    return tuple(Step(table=drop.table, parts=(drop,)) for drop in plan.drop_tables)


def steps_of(plan: TablePlan) -> tuple[Step, ...]:
    """Return the steps of a plan, but for dropped tables, in an order in which they can be done one by one."""
    actions: dict[str, _Part] = {action.table.key: action for action in plan.create_tables}
    actions |= {action.table.key: action for action in plan.align_tables}
    order, deferred = in_order(_needs(actions))
    split = {key: _split(actions[key], deferred[key]) for key in order}
    steps: list[Step] = []
    done: dict[str, int] = {}
    ways_cleared: dict[str, set[int]] = defaultdict(set)
    for key in sorted(split):
        if split[key].first:
            done[key] = len(steps)
            for cleared in {key, *_referenced(split[key].first)}:
                ways_cleared[cleared].add(len(steps))
            steps.append(Step(table=actions[key].table, parts=split[key].first))
    for key in order:
        if split[key].middle:
            needed = {done[parent] for parent in _referenced(split[key].middle) if parent in done}
            done[key] = len(steps)
            after = tuple(sorted(needed | ways_cleared[key]))
            steps.append(Step(table=actions[key].table, parts=split[key].middle, after=after))
    for key in sorted(split):
        if split[key].last:
            needed = {done[parent] for parent in {key, *_referenced(split[key].last)} if parent in done}
            after = tuple(sorted(needed | ways_cleared[key]))
            steps.append(Step(table=actions[key].table, parts=split[key].last, after=after))
    return tuple(steps)


def in_order(needs: Mapping[str, frozenset[str]]) -> tuple[list[str], Mapping[str, frozenset[str]]]:
    """Return tables with what they need before them, sorted by name where that leaves a choice.

    Where tables need each other, one of them goes first, without what it needs.

    Args:
        needs: which of the tables a table needs, itself left out.

    Returns:
        The order, and what each table goes without.
    """
    pending = {key: set(needed) for key, needed in needs.items()}
    dependants: dict[str, list[str]] = defaultdict(list)
    for key, needed in needs.items():
        for parent in needed:
            dependants[parent].append(key)
    without = dict.fromkeys(needs, frozenset[str]())
    ready = [key for key, needed in pending.items() if not needed]
    heapify(ready)
    names, place = sorted(needs), 0
    order: list[str] = []
    while pending:
        if not ready:
            while names[place] not in pending:
                place += 1
            key = _member_of_a_cycle(pending, names[place])
            without[key] = frozenset(pending[key])
            ready.append(key)
        key = heappop(ready)
        del pending[key]
        order.append(key)
        for dependant in dependants[key]:
            if dependant in pending:
                pending[dependant].discard(key)
                if not pending[dependant]:
                    heappush(ready, dependant)
    return order, without


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    """What is done to a table before all others, in the middle, and after all others."""

    first: tuple[_Part, ...] = ()
    middle: tuple[_Part, ...]
    last: tuple[_Part, ...]


def _needs(actions: Mapping[str, _Part]) -> Mapping[str, frozenset[str]]:
    """Return which tables of a plan have to be there before those that it creates."""
    return {
        key: frozenset(
            parent.references.lower()
            for parent in (action.desired.foreign_keys if isinstance(action, CreateTable) else ())
            if parent.references.lower() in actions
        )
        - {key}
        for key, action in actions.items()
    }


def _member_of_a_cycle(needs: Mapping[str, set[str]], start: str) -> str:
    """Return the first by name of a cycle to which a table leads; every table needs another one."""
    path: dict[str, None] = {}
    key = start
    while key not in path:
        path[key] = None
        key = min(needs[key])
    passed = list(path)
    return min(passed[passed.index(key) :])


def _split(action: _Part, without: frozenset[str]) -> _Split:
    match action:
        case CreateTable(desired):
            late = without | {action.table.key}  # no table is there before it is created
            inline = tuple(key for key in desired.foreign_keys if key.references.lower() not in late)
            added = [ForeignKeyAdd(key) for key in desired.foreign_keys if key.references.lower() in late]
            create = CreateTable(replace(desired, foreign_keys=inline, declared_at=desired.declared_at))
            _, middle, last = _by_time((*aspects.after_create(desired), *added))
            return _Split(
                middle=(create, *_aligned(create, middle)),
                last=tuple(_aligned(create, last)),
            )
        case AlignTable(actions=actions):
            first, middle, last = _by_time(actions)
            return _Split(
                first=tuple(_aligned(action, first)),
                middle=tuple(_aligned(action, middle)),
                last=tuple(_aligned(action, last)),
            )


def _by_time(actions: Iterable[Action]) -> tuple[list[Action], list[Action], list[Action]]:
    """Return what comes before all tables, with the table, and after all tables.

    Only where foreign keys are dropped does anything come before, only where they are added anything after.
    """
    listed = list(actions)
    first = [action for action in listed if PHASE_ORDER[action.phase] <= _FIRST]
    if not any(isinstance(action, ForeignKeyDrop) for action in first):
        first = []
    last = [action for action in listed if PHASE_ORDER[action.phase] >= _LAST]
    if not any(isinstance(action, ForeignKeyAdd) for action in last):
        last = []
    gone = {id(action) for action in (*first, *last)}
    return first, [action for action in listed if id(action) not in gone], last


def _aligned(action: _Part, actions: list[Action]) -> Iterable[AlignTable]:
    if not actions:
        return
    if isinstance(action, AlignTable):
        yield replace(action, actions=tuple(actions))
    else:
        yield AlignTable(action.table, tuple(actions), action.declared_at)


def _referenced(parts: Iterable[_Part]) -> set[str]:
    """Return the tables that foreign keys in these parts point at, by their keys."""
    return {key.references.lower() for part in parts for key in _foreign_keys(part)}


def _foreign_keys(part: _Part) -> Iterable[ForeignKey]:
    match part:
        case CreateTable(desired):
            yield from desired.foreign_keys
        case AlignTable():
            yield from (action.desired for action in part.of_type(ForeignKeyAdd))
            yield from (action.observed for action in part.of_type(ForeignKeyDrop))
