"""What changes do to the protection of tables, and the order that follows from it.

What strengthens it comes first in a plan, then changes whose direction is unknown, and what weakens it comes last
(tests/properties/test_governed_orders.py proves why).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Final

from delta_engine.actions import PHASE_ORDER, Action, Align, AlignTable, Create, Drop, Phase, TablePlan
from delta_engine.aspects.backfill_actions import (
    AbandonConversion,
    DropFormerColumn,
    ExpandColumn,
    FillColumn,
    FillSwappedColumn,
)
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldDrop
from delta_engine.aspects.function_definition import COMMENT_FACET, ReplaceFunction
from delta_engine.aspects.grants import GrantPrivileges, RevokePrivileges
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.aspects.tags import SetColumnTags, SetTableTags, UnsetColumnTags, UnsetTableTags
from delta_engine.models import (
    AbacPolicy,
    Column,
    ColumnMask,
    FunctionName,
    PolicyName,
    QualifiedName,
    RowFilter,
    SecurableName,
)
from delta_engine.models.parts import ALL_PRIVILEGES


class Direction(IntEnum):
    """What a change does to protection, in the order in which a plan has them."""

    STRENGTHENS = 0
    UNKNOWN = 1
    WEAKENS = 2


_RIGHTS: Final = (GrantPrivileges, RevokePrivileges)
_READS: Final = frozenset({"SELECT", ALL_PRIVILEGES})
_DROPS: Final = (ColumnDrop, FieldDrop, DropFormerColumn)


def direction(action: Action) -> Direction | None:
    """Return what an action on a table does to its protection; None for one that does not change it."""
    match action:
        case SetColumnMask(observed=None) | SetRowFilter(observed=None):
            return Direction.STRENGTHENS
        case SetTableTags(tags) | SetColumnTags(entries=tags):
            is_new = all(tag.observed is None for tag in tags)
            return Direction.STRENGTHENS if is_new else Direction.UNKNOWN
        case RevokePrivileges() if reads(action):
            return Direction.STRENGTHENS
        case ColumnDrop() | FieldDrop() | DropFormerColumn() | AbandonConversion():
            return Direction.STRENGTHENS  # its values are seen no more
        case ExpandColumn(present=Column()):  # it drops the column of an earlier run
            return Direction.STRENGTHENS
        case UnsetColumnTags(before_drop=True):  # the drop follows before policies see it
            return None
        case SetColumnMask() | SetRowFilter():
            return Direction.UNKNOWN
        case DropColumnMask() | DropRowFilter() | UnsetTableTags() | UnsetColumnTags() | GrantPrivileges():
            return Direction.WEAKENS
        case (
            FillColumn() | FillSwappedColumn()
        ):  # the new values may show more of those that they are computed from
            return Direction.WEAKENS
    return None


def reads(action: GrantPrivileges | RevokePrivileges) -> bool:
    """Whether it is about the right to read."""
    return not _READS.isdisjoint(action.privileges)


def directed_actions(align: AlignTable) -> tuple[list[Action], list[Action], list[Action]]:
    """Divide the actions of a table by what they do to its protection.

    Returns:
        Those that strengthen it, with what they may need, such as added columns, or other clustering; those whose
        direction is unknown; all others.
    """
    first: list[Action] = []
    swaps: list[Action] = []
    rest: list[Action] = []
    drops_first = _drops_any(align) and not needed_before_drops(align)
    last = Phase.DROP_COLUMNS if drops_first else Phase.SET_TAGS
    for action in align.actions:
        way = None if isinstance(action, _DROPS) else direction(action)
        is_early = PHASE_ORDER[action.phase] <= PHASE_ORDER[last]
        is_first = way is Direction.STRENGTHENS or (way is None and is_early)
        (swaps if way is Direction.UNKNOWN else first if is_first else rest).append(action)
    return first, swaps, rest


def needed_before_drops(align: AlignTable) -> tuple[Action, ...]:
    """Return what keeps the drops of columns behind what weakens protection.

    A filter or mask that reads a dropped column has to go before it. Data changes may read dropped columns, and need
    the protection that the plan gives.
    """
    dropped = {drop.observed.key for drop in align.of_type(ColumnDrop)}
    needed = []
    for action in align.actions if _drops_any(align) else ():
        read: Iterable[str] = ()
        match action:
            case SetRowFilter(observed=RowFilter(columns=columns)) | DropRowFilter(
                RowFilter(columns=columns)
            ):
                read = columns
            case SetColumnMask(observed=ColumnMask() as mask) | DropColumnMask(observed=mask):
                read = mask.using_columns
        if _is_data_change(action) or not dropped.isdisjoint(map(str.lower, read)):
            needed.append(action)
    return tuple(needed)


def _drops_any(align: AlignTable) -> bool:
    return any(isinstance(action, _DROPS) for action in align.actions)


def _is_data_change(action: Action) -> bool:
    place = PHASE_ORDER[action.phase]
    return PHASE_ORDER[Phase.FILL_COLUMNS] <= place <= PHASE_ORDER[Phase.VERIFY_REWRITE]


def is_out_of_order(align: AlignTable) -> bool:
    """Whether the phases of a table's actions have what may show more before what shows less.

    Tags act later than any statement, and a column that is added has nothing to show.
    """
    directed = [(action, way) for action in align.actions if (way := direction(action)) is not None]
    if len(directed) < 2:  # most tables of a large plan
        return False
    added = {action.desired.key for action in align.of_type(ColumnAdd)}
    loosest = Direction.STRENGTHENS
    skipped = (GrantPrivileges, *_DROPS) if needed_before_drops(align) else (GrantPrivileges,)
    for action, way in directed:
        if isinstance(action, skipped):
            continue
        is_new = isinstance(action, SetColumnMask) and action.name.lower() in added
        if way < loosest and not (is_new or isinstance(action, SetTableTags | SetColumnTags)):
            return True
        loosest = max(loosest, way)
    return False


def directions_within(plan: TablePlan) -> Callable[[str], frozenset[Direction]]:
    """Return what tells, by a schema's key, what a plan does to the protection of its tables, besides rights."""
    ways: dict[str, set[Direction | None]] = defaultdict(set)
    for change in plan.changes:
        match change:
            case Align(QualifiedName() as name):
                of_table = {direction(action) for action in change.actions if not isinstance(action, _RIGHTS)}
                ways[name.key.rpartition(".")[0]] |= of_table
            case Align():
                for key in reach(change):
                    ways[".".join(key.split(".")[:2])].add(Direction.UNKNOWN)
            case Create(AbacPolicy()):
                ways[""].add(Direction.STRENGTHENS)
            case Drop(PolicyName()):
                ways[""].add(Direction.WEAKENS)

    def within(schema: str) -> frozenset[Direction]:
        return frozenset(way for level in levels(schema) for way in ways.get(level, ()) if way is not None)

    return within


def place_of(key: str, action: Action) -> str:
    """Return what a table's change of unknown direction is about, as `waits_of_swaps` names it."""
    match action:
        case SetColumnMask(column):
            return _place(key, column.lower())
        case SetRowFilter():
            return _place(key, None)
    return f"{_place(key, getattr(action, 'column', None))} tags"


def waits_of_swaps(plan: TablePlan) -> Mapping[str, frozenset[str]]:
    """Return the changes of unknown direction of a plan, each with those that it waits for.

    A function is replaced after what leaves it, and before what arrives at it.
    """
    waits: dict[str, set[str]] = {node: set() for node in _swaps(plan)}
    for action in _of_type(plan, ReplaceFunction):
        node = node_of(action.desired.qualified_name)
        for use in action.uses:
            place = use.policy or _place(use.table, use.column)
            if place in waits and use.is_before:
                waits[node].add(place)
            if place in waits and use.is_after:
                waits[place].add(node)
        for other in (f"function {key}" for key in action.left):
            if other in waits:
                waits[other].add(node)
        waits[node] |= {f"function {key}" for key in action.gained} & waits.keys()
    return {node: frozenset(needed - {node}) for node, needed in waits.items()}


def node_of(name: SecurableName) -> str:
    """Return what `waits_of_swaps` calls a replaced function or policy."""
    return f"function {name.key}" if isinstance(name, FunctionName) else str(name).lower()


def _swaps(plan: TablePlan) -> Iterator[str]:
    for align in plan.alignments:
        for action in align.actions:
            if isinstance(action, ReplaceFunction | ReplacePolicy):
                yield node_of(align.name)
            elif align.name.kind == "table" and direction(action) is Direction.UNKNOWN:
                yield place_of(align.name.key, action)


def _of_type(plan: TablePlan, action_type: type[Any]) -> Iterable[Any]:
    return (action for align in plan.alignments for action in align.of_type(action_type))


def _place(table: str, column: str | None) -> str:
    return table if column is None else f"{table}.{column}"


def reach(align: Align[Any]) -> Iterator[str]:
    """Yield the keys of the securables whose tables a replaced function or policy may show otherwise."""
    for action in align.actions:
        match action:
            case ReplacePolicy() if action.changes_protection:
                yield action.desired.scope.key
            case ReplaceFunction() if action.parts != (COMMENT_FACET.key,):
                yield from (use.table for use in action.uses if use.table)


def levels(key: str) -> Iterator[str]:
    """Yield the keys of a securable and of all that it is in, beginning with the empty one of the metastore."""
    yield ""
    parts = key.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1) if key)
