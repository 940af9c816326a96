"""What is done to a table when, seen from the other tables of a plan. Pure.

A table that has nothing to do with others has one stage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from delta_engine import aspects
from delta_engine.actions import PHASE_ORDER, Action, AlignTable, CreateTable, DropTable, Phase
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.compile.key_names import KeyName, PlanPart, added_parents, key_name, taken_names

_FIRST, *_, _LAST = Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The parts of what is done to a table.

    Args:
        first: before all else: foreign keys go.
        freeing: when no foreign key is in the way any more: a key goes whose name another table takes.
        middle: all that needs no stage of its own.
        last: when all tables have their keys: foreign keys come.
        final: when others have their foreign keys to it: whoever runs this may lose the right to add them.
    """

    first: tuple[PlanPart, ...] = ()
    freeing: tuple[PlanPart, ...] = ()
    middle: tuple[PlanPart, ...] = ()
    last: tuple[PlanPart, ...] = ()
    final: tuple[PlanPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """What there is to know of a plan's tables to divide what is done to one of them.

    Args:
        deferred: the parents that tables are created without, because they need each other.
        takers: the tables that add keys, by the keys' names.
        referenced: the tables that others come to reference.
    """

    deferred: Mapping[str, frozenset[str]]
    takers: Mapping[KeyName, set[str]]
    referenced: frozenset[str]

    @classmethod
    def of(cls, parts: Iterable[PlanPart], deferred: Mapping[str, frozenset[str]]) -> Staging:
        """Look at all that is done to tables."""
        takers: dict[KeyName, set[str]] = defaultdict(set)
        referenced: set[str] = set()
        for part in parts:
            for name in taken_names(part):
                takers[name].add(part.table.key)
            referenced |= added_parents([part]) - {part.table.key}
        return cls(deferred=deferred, takers=takers, referenced=frozenset(referenced))

    def stages(self, action: PlanPart) -> Stages:
        """Divide what is done to a table that stays."""
        match action:
            case CreateTable(desired):
                late = self.deferred[action.table.key] | {action.table.key}  # not there before it is created
                inline = tuple(key for key in desired.foreign_keys if key.references.lower() not in late)
                added = [ForeignKeyAdd(key) for key in desired.foreign_keys if key.references.lower() in late]
                create = CreateTable(replace(desired, foreign_keys=inline, declared_at=desired.declared_at))
                stages = self._divided(create, [*aspects.after_create(desired), *added])
                return replace(stages, middle=(create, *stages.middle))
            case AlignTable(actions=actions):
                return self._divided(action, list(actions))

    def _divided(self, part: PlanPart, left: list[Action]) -> Stages:
        drops_foreign_keys = any(isinstance(one, ForeignKeyDrop) for one in left)
        frees_a_name = any(isinstance(one, PrimaryKeyDrop) and self._is_awaited(part, one) for one in left)
        adds_foreign_keys = any(isinstance(one, ForeignKeyAdd) for one in left)
        is_referenced = part.table.key in self.referenced
        return Stages(
            first=_taken_out(left, part, drops_foreign_keys, until=Phase.DROP_FOREIGN_KEYS),
            freeing=_taken_out(left, part, frees_a_name, until=Phase.DROP_PRIMARY_KEY),
            final=_taken_out(left, part, is_referenced, since=Phase.CHANGE_GRANTS),
            last=_taken_out(left, part, adds_foreign_keys, since=Phase.ADD_FOREIGN_KEYS),
            middle=_taken_out(left, part),
        )

    def _is_awaited(self, part: PlanPart, drop: PrimaryKeyDrop) -> bool:
        return bool(self.takers.get(key_name(part.table, drop.name), set()) - {part.table.key})


def stages_before_the_drop(drop: DropTable) -> Stages:
    """Return what is done to a table that goes, for the sake of others: keys of it go before."""
    left = list(drop.keys)
    if not left:
        return Stages()
    part = AlignTable(drop.table, drop.keys)
    return Stages(first=_taken_out(left, part, until=Phase.DROP_FOREIGN_KEYS), freeing=_taken_out(left, part))


def _taken_out(
    left: list[Action], part: PlanPart, is_needed: bool = True, *, since: Phase = _FIRST, until: Phase = _LAST
) -> tuple[AlignTable, ...]:
    """Take out the actions of some phases, as an alignment of their table; nothing if no such stage is needed."""
    if not is_needed:
        return ()
    places = range(PHASE_ORDER[since], PHASE_ORDER[until] + 1)
    taken = tuple(one for one in left if PHASE_ORDER[one.phase] in places)
    left[:] = [one for one in left if PHASE_ORDER[one.phase] not in places]
    if not taken:
        return ()
    if isinstance(part, AlignTable):
        return (replace(part, actions=taken),)
    return (AlignTable(part.table, taken, part.declared_at),)
