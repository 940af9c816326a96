"""The changes of tables and views of a plan, each with those that it waits for, and the circles among them.

The compiler divides and orders the statements of a plan by them, and the rules refuse circles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any, Final

from delta_engine.actions import PHASE_ORDER, Align, Create, Phase, TablePlan, Turn
from delta_engine.sql.function_bodies import call_cycles


def turn_of(phase: Phase | None) -> Turn:
    """Return the change of a table to which the statements of a phase belong; CREATE has none."""
    if phase is None or phase is Phase.RENAME_TABLE:
        return Turn.CREATE
    place = PHASE_ORDER[phase]
    if place <= PHASE_ORDER[Phase.RENAME_COLUMNS]:
        return Turn.RENAME_COLUMNS
    return Turn.ADD_COLUMNS if place < PHASE_ORDER[Phase.DROP_COLUMNS] else Turn.DROP_COLUMNS


def node(key: str, turn: Turn) -> str:
    """Return the name of a change among those that `view_needs` orders."""
    return f"{key} {_RANKS[turn]}"


TURNS: Final = (Turn.CREATE, Turn.RENAME_COLUMNS, Turn.ADD_COLUMNS, Turn.DROP_COLUMNS)
"""The changes of a table, in their order."""

_RANKS: Final = {turn: rank for rank, turn in enumerate(TURNS)}
_VIEW: Final = "view"


def view_node(key: str, setting: int) -> str:
    """Return the name of the change that gives a view one of its queries (`Order.settings`)."""
    return f"{key} {_VIEW}{setting}"


def _is_of_view(name: str) -> bool:
    return name.rpartition(" ")[2].startswith(_VIEW)


def view_changes(plan: TablePlan) -> list[Create[Any] | Align[Any]]:
    """Return the creations and changes of views."""
    return [*plan.of_kind(Create, "view"), *plan.of_kind(Align, "view")]


def linked(needs: Mapping[str, frozenset[str]]) -> Set[str]:
    """Return the parts of tables that wait for a view, or for which one waits."""
    by_views = {part for name, needed in needs.items() if _is_of_view(name) for part in needed}
    waiting = {name for name, needed in needs.items() if any(map(_is_of_view, needed))}
    return by_views | waiting


def circles(plan: TablePlan) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield of each circle of changes that wait for each other a view, and the other tables and views.

    Where a view and its tables wait for each other, other views that wait for these tables have no part in it.
    """
    views, needs = {change.name.key for change in view_changes(plan)}, view_needs(plan)
    for circle in call_cycles(needs):
        of_one_view = [
            smaller
            for view in sorted(views & {*map(_key_of, circle)})
            for smaller in call_cycles(_among(circle, needs, views - {view}))
        ]
        for names in of_one_view or [circle]:
            keys = sorted({*map(_key_of, names)})
            view = next(key for key in keys if key in views)
            yield view, [key for key in keys if key != view]


def _among(
    names: Sequence[str], needs: Mapping[str, frozenset[str]], left_out: Set[str]
) -> Mapping[str, frozenset[str]]:
    """Return what some changes need of each other, without those of some views."""
    kept = {name for name in names if _key_of(name) not in left_out}
    return {name: needs[name] & kept for name in kept}


def _key_of(name: str) -> str:
    return name.rpartition(" ")[0]


def view_needs(plan: TablePlan) -> Mapping[str, frozenset[str]]:
    """Return the changes of tables and views, each with those that it waits for; empty without views."""
    changes = view_changes(plan)
    if not changes:
        return {}
    needs: dict[str, set[str]] = {}
    tables: tuple[Create[Any] | Align[Any], ...] = (*plan.create_tables, *plan.align_tables)
    for table in tables:
        earlier = ""
        for turn in sorted(_turns_of(table), key=_RANKS.__getitem__):
            needs[node(table.name.key, turn)] = {earlier} if earlier else set()
            earlier = node(table.name.key, turn)
    places = {
        change.name.key: [
            (view_node(change.name.key, number), setting)
            for number, setting in enumerate(change.order.settings)
        ]
        for change in changes
    }
    for settings in places.values():
        needs |= {
            name: {name for name, _ in settings[number - 1 : number]}
            for number, (name, _) in enumerate(settings)
        }
    for name, setting in chain.from_iterable(places.values()):
        for key, turn in setting.precedes:
            new = next((new for new, step in places.get(key, ()) if step.is_new), _node_of(key, turn))
            if new in needs:
                needs[new].add(name)
        needs[name] |= {
            places[key][-1][0] if key in places else _node_of(key, turn) for key, turn in setting.follows
        }
    return {name: frozenset(needed & needs.keys() - {name}) for name, needed in needs.items()}


def _node_of(key: str, turn: Turn) -> str:
    return node(key, turn) if turn in _RANKS else ""


def _turns_of(change: Create[Any] | Align[Any]) -> Set[Turn]:
    actions = change.actions if isinstance(change, Align) else ()
    return {turn_of(action.phase) for action in actions} or {Turn.CREATE}
