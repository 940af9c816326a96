"""The stages of a table's statements relative to other tables, and the order of interdependent tables. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heappush
from types import MappingProxyType

from delta_engine.actions import PHASE_ORDER, Phase
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.compile.compiled_plan import Statement
from delta_engine.compile.keys import (
    KeyName,
    TableChange,
    added_foreign_keys,
    changes_of,
    freed_names,
    referenced_tables,
    taken_names,
)
from delta_engine.models import QualifiedName


class Stage(IntEnum):
    """The stages of a plan, in order."""

    DROP_FOREIGN_KEYS = 0  # before the primary keys that they reference
    FREE_KEY_NAMES = 1  # drops of primary keys whose names another table takes
    PROTECT = 2  # what strengthens protection, before functions and policies are replaced
    CHANGE = 3  # all statements without a stage of their own
    ADD_FOREIGN_KEYS = 4  # after all primary keys
    CHANGE_RIGHTS = 5  # grants and owner, after the foreign keys of other tables to it


_UNTIL = {Stage.DROP_FOREIGN_KEYS: Phase.DROP_FOREIGN_KEYS, Stage.FREE_KEY_NAMES: Phase.DROP_PRIMARY_KEY}
"""The last phase of each stage before the change."""

_SINCE = {Stage.CHANGE_RIGHTS: Phase.CHANGE_GRANTS, Stage.ADD_FOREIGN_KEYS: Phase.ADD_FOREIGN_KEYS}
"""The first phase of each stage after the change, the latest stage first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """The needs of other tables; `names` maps key names to the tables that add such a key."""

    names: Mapping[KeyName, set[str]]
    referenced: frozenset[str]

    @classmethod
    def of(cls, changes: Iterable[TableChange]) -> Staging:
        """Collect the needs from all changes of tables."""
        names: dict[KeyName, set[str]] = defaultdict(set)
        referenced: set[str] = set()
        for change in changes:
            key = change.table.key
            for name in taken_names(change.table, changes_of(change)):
                names[name].add(key)
            referenced |= referenced_tables(added_foreign_keys(changes_of(change))) - {key}
        return cls(names=names, referenced=frozenset(referenced))

    def stages(
        self, table: QualifiedName, statements: Iterable[Statement], last: Stage = Stage.CHANGE_RIGHTS
    ) -> Mapping[Stage, tuple[Statement, ...]]:
        """Return the statements of a table that stays, by the stages up to a last one that it needs."""
        statements = tuple(statements)
        needed = frozenset(stage for stage in self._needed(table, statements) if stage <= last)
        return divided(statements, needed, min(last, Stage.CHANGE))

    def _needed(self, table: QualifiedName, statements: Iterable[Statement]) -> Iterable[Stage]:
        actions = [action for statement in statements for action in statement.actions]
        if any(isinstance(action, ForeignKeyDrop) for action in actions):
            yield Stage.DROP_FOREIGN_KEYS
        drops = (action for action in actions if isinstance(action, PrimaryKeyDrop))
        if any(self.names.get(name, set()) - {table.key} for name in freed_names(table, drops)):
            yield Stage.FREE_KEY_NAMES
        if any(isinstance(action, ForeignKeyAdd) for action in actions):
            yield Stage.ADD_FOREIGN_KEYS
        if table.key in self.referenced:
            yield Stage.CHANGE_RIGHTS


def divided(
    statements: Iterable[Statement], needed: frozenset[Stage], other: Stage = Stage.CHANGE
) -> Mapping[Stage, tuple[Statement, ...]]:
    """Return statements by stage; those of a stage that is not needed run in another one, with the change."""
    by_stage: dict[Stage, list[Statement]] = defaultdict(list)
    for statement in statements:
        by_stage[_stage(statement.phase, needed, other)].append(statement)
    return {stage: tuple(by_stage[stage]) for stage in by_stage}


def in_order(
    needs: Mapping[str, Set[str]], places: Mapping[str, tuple[int, ...]] = MappingProxyType({})
) -> tuple[list[str], Mapping[str, frozenset[str]]]:
    """Return the tables, each after those that it needs, and by table the needed ones that come only after it.

    Places resolve ties, and then names. A cycle is broken at one table, which comes first. No table needs itself.
    """
    pending = {key: set(needed) for key, needed in needs.items()}
    dependants: dict[str, list[str]] = defaultdict(list)
    for key, needed in needs.items():
        for parent in needed:
            dependants[parent].append(key)
    without = dict.fromkeys(needs, frozenset[str]())
    names, number = sorted(needs, key=lambda key: (places.get(key, ()), key)), 0
    ranks = {key: rank for rank, key in enumerate(names)}
    ready = [ranks[key] for key, needed in pending.items() if not needed]
    heapify(ready)
    order: list[str] = []
    while pending:
        if not ready:
            while names[number] not in pending:
                number += 1
            key = _member_of_a_cycle(pending, names[number])
            without[key] = frozenset(pending[key])
            ready.append(ranks[key])
        key = names[heappop(ready)]
        del pending[key]
        order.append(key)
        for dependant in dependants[key]:
            if dependant in pending:
                pending[dependant].discard(key)
                if not pending[dependant]:
                    heappush(ready, ranks[dependant])
    return order, without


def _stage(phase: Phase | None, needed: frozenset[Stage], other: Stage) -> Stage:
    if phase is not None and needed:
        for stage, last in _UNTIL.items():
            if stage in needed and PHASE_ORDER[phase] <= PHASE_ORDER[last]:
                return stage
        for stage, first in _SINCE.items():
            if stage in needed and PHASE_ORDER[phase] >= PHASE_ORDER[first]:
                return stage
    return other


def _member_of_a_cycle(needs: Mapping[str, set[str]], start: str) -> str:
    """Return the first table by name of a cycle that is reachable from a table; every table needs another one."""
    path: dict[str, None] = {}
    key = start
    while key not in path:
        path[key] = None
        key = min(needs[key])
    passed = list(path)
    return min(passed[passed.index(key) :])
