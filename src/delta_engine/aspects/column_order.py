"""The order of columns, changed only under an enforcing policy. `drift.comparison` finds its drift."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import ColumnOrder
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, takes_modify
from delta_engine.aspects.clustering import keys_after, keys_without_statistics
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.statistics import MissingStatistics
from delta_engine.models import Part
from delta_engine.sql.columns import sql_move_column


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """Move a column from behind `former` to behind `after`. None is the front.

    `missing` are the clustering keys that have no statistics before or after the move. A rule refuses them.
    """

    phase: ClassVar[Phase] = Phase.REORDER_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    name: str
    after: str | None
    former: str | None
    missing: MissingStatistics | None = None

    def __post_init__(self) -> None:
        if self.after == self.former:
            raise ValueError(f"column {self.name} is already there")


def _diff(comparison: Comparison) -> Iterator[MoveColumn]:
    """Yield the fewest moves into model order, each building on the previous ones. Undeclared columns stay last."""
    if comparison.policy.column_order is not ColumnOrder.ENFORCE:
        return
    dropped = {column.key for column in comparison.dropped}
    kept = [column for column in comparison.observed.columns if column.key not in dropped]
    present = [column.key for column in (*kept, *comparison.added)]
    names = {column.key: column.name for column in (*kept, *comparison.added)}
    places = {key: place for place, key in enumerate(present)}
    desired_order = [column.key for column in comparison.desired.columns if column.key in places]
    identities = [column.key for column in kept if column.identity and column.key in set(desired_order)]
    movable = [key for key in desired_order if _is_in_order(key, identities, desired_order, places)]
    staying = {movable[position] for position in longest_increasing([places[key] for key in movable])}
    previous: str | None = None
    for key in desired_order:
        if key not in staying:
            place = present.index(key)
            former = present[place - 1] if place else None
            missing = _missing(comparison, present)
            present.remove(key)
            present.insert(present.index(previous) + 1 if previous else 0, key)
            after = names[previous] if previous else None
            missing = missing or _missing(comparison, present)
            yield MoveColumn(names[key], after, names[former] if former else None, missing)
        previous = key


def _missing(comparison: Comparison, present: Sequence[str]) -> MissingStatistics | None:
    """Return the clustering keys without statistics in an order: Delta then moves no column (measured on 4.3.1)."""
    columns = {column.key: column for column in (*comparison.observed.columns, *comparison.desired.columns)}
    return keys_without_statistics(comparison, keys_after(comparison), [columns[key] for key in present])


def longest_increasing(numbers: Sequence[int]) -> list[int]:
    """Return the positions of a longest increasing subsequence, in order."""
    ends: list[int] = []  # the smallest last number of a subsequence of each length
    last: list[int] = []  # and its place
    before: list[int] = []
    for place, number in enumerate(numbers):
        length = bisect_left(ends, number)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [number]
        last[length : length + 1] = [place]
    positions = []
    place = last[-1] if last else -1
    while place >= 0:
        positions.append(place)
        place = before[place]
    return positions[::-1]


def _render(actions: Sequence[MoveColumn], context: RenderContext) -> Iterable[str]:
    return [sql_move_column(context.table, action.name, action.after) for action in actions]


def _explain(action: MoveColumn) -> Iterable[Change]:
    yield Change(f"column {action.name} place", _place(action.former), _place(action.after))


def _is_in_order(
    key: str, identities: Sequence[str], desired_order: Sequence[str], places: Mapping[str, int]
) -> bool:
    """Whether a column is on the right side of every identity column.

    Delta refuses to move identity columns (`DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED`).
    """
    return all(
        (desired_order.index(key) < desired_order.index(fixed)) == (places[key] < places[fixed])
        for fixed in identities
        if fixed != key
    )


def _place(after: str | None) -> str:
    return "first" if after is None else f"after {after}"


ASPECT: Aspect[MoveColumn] = Aspect(
    name="column order",
    part=Part.COLUMNS,
    actions={MoveColumn: takes_modify("ALTER COLUMN … FIRST or AFTER")},
    diff=_diff,
    render=_render,
    explain=_explain,
    drift_kind=lambda _action: DriftKind.COLUMN_ORDER,
)
