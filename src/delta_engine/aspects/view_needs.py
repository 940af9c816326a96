"""The changes of tables and views of a plan, each with those that it waits for, and the circles among them.

The compiler divides and orders the statements of a plan by them, and the rules refuse circles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

from delta_engine.actions import PHASE_ORDER, Align, Create, Order, Phase, TablePlan, Turn


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
_BRIDGE: Final = " bridge"
_BETWEEN: Final = " between"
_WHOLE: Final = " view"
_OF_VIEWS: Final = (_BRIDGE, _BETWEEN, _WHOLE)


def bridge_node(key: str) -> str:
    """Return the name of the first change of a view that reads renamed columns by their position."""
    return f"{key}{_BRIDGE}"


def between_node(key: str) -> str:
    """Return the name of the change of a view that keeps its former query while a table gets other columns."""
    return f"{key}{_BETWEEN}"


def view_node(key: str) -> str:
    """Return the name of the change of a view."""
    return f"{key}{_WHOLE}"


def view_changes(plan: TablePlan) -> list[Create[Any] | Align[Any]]:
    """Return the creations and changes of views."""
    return [*plan.of_kind(Create, "view"), *plan.of_kind(Align, "view")]


def changed_tables(plan: TablePlan) -> list[Create[Any] | Align[Any]]:
    """Return the creations and changes of tables."""
    return [*plan.create_tables, *plan.align_tables]


def linked(needs: Mapping[str, frozenset[str]]) -> Set[str]:
    """Return the parts of tables that wait for a view, or for which one waits."""
    by_views = {part for name, needed in needs.items() if name.endswith(_OF_VIEWS) for part in needed}
    waiting = {name for name, needed in needs.items() if any(part.endswith(_OF_VIEWS) for part in needed)}
    return by_views | waiting


def circles(plan: TablePlan) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield views whose changes wait for each other, or for the table that waits for them, with what is in a circle."""
    pending = {name: set(needed) for name, needed in view_needs(plan).items()}
    while ready := [name for name, needed in pending.items() if not needed]:
        for name in ready:
            del pending[name]
        for needed in pending.values():
            needed -= {*ready}
    stuck = sorted({name.rpartition(" ")[0] for name in pending})
    views = {change.name.key for change in view_changes(plan)}
    for key in stuck:
        if key in views:
            yield key, [other for other in stuck if other != key]
            return


def view_needs(plan: TablePlan) -> Mapping[str, frozenset[str]]:
    """Return the changes of tables and views, each with those that it waits for; empty without views."""
    changes = view_changes(plan)
    if not changes:
        return {}
    needs: dict[str, set[str]] = {}
    for table in changed_tables(plan):
        earlier = ""
        for turn in sorted(_turns_of(table), key=_RANKS.__getitem__):
            needs[node(table.name.key, turn)] = {earlier} if earlier else set()
            earlier = node(table.name.key, turn)
    ends = {
        change.name.key: (
            bridge_node(change.name.key) if change.order.is_ahead else view_node(change.name.key),
            view_node(change.name.key),
        )
        for change in changes
    }
    for first, last in ends.values():
        needs.setdefault(first, set())
        needs.setdefault(last, set()).update({first} - {last})
    _connect(needs, changes, ends)
    return {name: frozenset(needed & needs.keys() - {name}) for name, needed in needs.items()}


def _connect(
    needs: dict[str, set[str]],
    changes: Iterable[Create[Any] | Align[Any]],
    ends: Mapping[str, tuple[str, str]],
) -> None:
    def add(later: str, first: str) -> None:
        if later in needs:
            needs[later].add(first)

    for change in changes:
        first, last = ends[change.name.key]
        for key, turn in change.order.precedes:
            add(ends[key][0] if key in ends else _node_of(key, turn), first)
        for key, turn in change.order.follows:
            add(first, ends[key][1] if key in ends else _node_of(key, turn))
        for key in change.order.bridged if first != last else ():
            add(node(key, Turn.RENAME_COLUMNS), first)
            add(last, node(key, Turn.RENAME_COLUMNS))
            add(node(key, Turn.ADD_COLUMNS), last)
            add(node(key, Turn.DROP_COLUMNS), last)
        if change.order.between:
            _connect_between(needs, change.name.key, change.order, add)


def _connect_between(
    needs: dict[str, set[str]], view: str, order: Order, add: Callable[[str, str], None]
) -> None:
    """Let the former query of a view stand between two changes of tables, and be by position before the first."""
    bridge, between = bridge_node(view), between_node(view)
    needs[between] = {bridge} if order.bridge else set()
    needs[view_node(view)].add(between)
    if order.bridge:
        needs[bridge] = set()
    for key in order.narrowed:
        add(between, node(key, Turn.RENAME_COLUMNS))
        add(node(key, Turn.ADD_COLUMNS), between)
        add(node(key, Turn.DROP_COLUMNS), view_node(view))
    for key in order.bridged:
        add(node(key, Turn.RENAME_COLUMNS), bridge)


def _node_of(key: str, turn: Turn) -> str:
    return node(key, turn) if turn in _RANKS else ""


def _turns_of(change: Create[Any] | Align[Any]) -> Set[Turn]:
    actions = change.actions if isinstance(change, Align) else ()
    return {turn_of(action.phase) for action in actions} or {Turn.CREATE}
