"""The order of a plan across its tables: steps, each with those that have to be done before it. Pure.

First all foreign keys go that have to, because they block their parents' keys, and then the keys whose names other
tables take. Then every table is created or changed, a parent before the tables that are created with foreign keys to
it. Then come the foreign keys of existing tables, and those that could not be in CREATE TABLE because tables reference
each other. A table that others come to reference is given away after that. Tables that go do so when all is over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from delta_engine.actions import AlignTable, CreateTable, DropTable, TableAction, TablePlan
from delta_engine.aspects.table_names import RenameTable
from delta_engine.compile.key_names import (
    KeyName,
    PlanPart,
    added_parents,
    dropped_parents,
    freed_names,
    taken_names,
)
from delta_engine.execute.dependency_order import in_order
from delta_engine.execute.stages import Staging, stages_before_the_drop
from delta_engine.models import QualifiedName


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done to one table in one go.

    Args:
        table: the table.
        parts: what is done, in order.
        after: the positions of the steps that have to be done before.
        is_last: whether it waits besides until all steps are over that are not last themselves.
    """

    table: QualifiedName
    parts: tuple[TableAction, ...]
    after: tuple[int, ...] = ()
    is_last: bool = False


def steps_of(plan: TablePlan) -> tuple[Step, ...]:
    """Return the steps of a plan in an order in which they can be done one by one."""
    actions: dict[str, PlanPart] = {action.table.key: action for action in plan.create_tables}
    actions |= {action.table.key: action for action in plan.align_tables}
    order, deferred = in_order(_needs(actions))
    gone = {drop.table.key: drop for drop in plan.drop_tables}
    staging = Staging.of(actions.values(), deferred)
    stages = {key: staging.stages(action) for key, action in actions.items()}
    stages |= {key: stages_before_the_drop(drop) for key, drop in gone.items()}
    steps, names = _Steps(_new_names(plan.align_tables)), sorted(stages)
    for key in names:
        steps.drop_foreign_keys(key, stages[key].first)
    for key in names:
        steps.free_names(key, stages[key].freeing)
    for key in order:
        steps.change(key, stages[key].middle)
    for key in names:
        steps.add_foreign_keys(key, stages[key].last)
    for key in names:
        steps.give_away(key, stages[key].final)
    for key in in_order(_children_first(gone))[0]:
        steps.drop(gone[key])
    return tuple(steps.steps)


class _Steps:
    """Collects the steps, and what each has to wait for.

    Args:
        new_names: the keys of renamed tables by their former ones.
    """

    def __init__(self, new_names: Mapping[str, str]) -> None:
        self.steps: list[Step] = []
        self._new_names = new_names
        self._done: dict[str, int] = {}  # where a table is as it shall be, but for foreign keys
        self._cleared: dict[str, set[int]] = defaultdict(set)  # what comes before changes of a table
        self._uses: dict[str, set[int]] = defaultdict(set)  # what takes rights on a table
        self._freed: dict[KeyName, int] = {}

    def drop_foreign_keys(self, key: str, parts: tuple[PlanPart, ...]) -> None:
        if parts:
            position = self._done[key] = self._add(parts, set())
            parents = {self._new_names.get(parent, parent) for parent in dropped_parents(parts)}
            for cleared in {key, *parents}:
                self._cleared[cleared].add(position)

    def free_names(self, key: str, parts: tuple[PlanPart, ...]) -> None:
        if parts:
            position = self._done[key] = self._add(parts, self._cleared[key])
            self._cleared[key].add(position)

    def change(self, key: str, parts: tuple[PlanPart, ...]) -> None:
        if parts:
            self._done[key] = self._add(parts, self._cleared[key] | self._positions(added_parents(parts)))

    def add_foreign_keys(self, key: str, parts: tuple[PlanPart, ...]) -> None:
        if parts:
            self._add(parts, self._cleared[key] | self._positions({key, *added_parents(parts)}))

    def give_away(self, key: str, parts: tuple[PlanPart, ...]) -> None:
        if parts:
            self._add(parts, self._uses[key])

    def drop(self, drop: DropTable) -> None:
        position = self._add(
            (drop,), self._cleared[drop.table.key] | self._uses[drop.table.key], is_last=True
        )
        for parent in drop.references:
            self._uses[parent.key].add(position)

    def _add(self, parts: tuple[TableAction, ...], after: set[int], *, is_last: bool = False) -> int:
        position, table = len(self.steps), parts[0].table
        changes = [part for part in parts if not isinstance(part, DropTable)]
        names = [name for part in changes for name in taken_names(part)]
        after = after | {self._freed[name] for name in names if name in self._freed}
        self.steps.append(Step(table=table, parts=parts, after=tuple(sorted(after)), is_last=is_last))
        self._freed |= {name: position for part in changes for name in freed_names(part)}
        for used in {table.key, *added_parents(changes)}:
            self._uses[used].add(position)
        return position

    def _positions(self, tables: Iterable[str]) -> set[int]:
        return {self._done[key] for key in tables if key in self._done}


def _needs(actions: Mapping[str, PlanPart]) -> Mapping[str, frozenset[str]]:
    """Return which tables of a plan have to be there before those that it creates."""
    return {
        key: frozenset(added_parents([action]) & actions.keys() - {key})
        if isinstance(action, CreateTable)
        else frozenset()
        for key, action in actions.items()
    }


def _children_first(gone: Mapping[str, DropTable]) -> Mapping[str, frozenset[str]]:
    """Return which tables go before others, because they reference them."""
    children: dict[str, set[str]] = {key: set() for key in gone}
    for key, drop in gone.items():
        for parent in drop.references:
            if parent.key in gone and parent.key != key:
                children[parent.key].add(key)
    return {key: frozenset(found) for key, found in children.items()}


def _new_names(aligned: Iterable[AlignTable]) -> Mapping[str, str]:
    renames = (rename for align in aligned for rename in align.of_type(RenameTable))
    return {rename.observed.key: rename.desired.key for rename in renames}
