"""The types of existing columns. Compared in canonical form, never as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext, Sign, with_column
from delta_engine.drift_policy import DriftKind
from delta_engine.models import Table
from delta_engine.sql import sql_change_column_types, sql_data_type
from delta_engine.state.states import TableState
from delta_engine.types import DataType, is_same_type


@dataclass(frozen=True, slots=True)
class ColumnTypeChange:
    """Change a column's type in place."""

    phase: ClassVar[Phase] = Phase.CHANGE_COLUMN_TYPES
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    name: str
    desired: DataType
    observed: DataType

    def __post_init__(self) -> None:
        if is_same_type(self.desired, self.observed):
            raise ValueError(f"column {self.name} already has this type")


def diff(comparison: Comparison) -> Iterable[ColumnTypeChange]:
    """Yield a change per shared column whose type differs."""
    for desired, observed in comparison.shared:
        if not is_same_type(desired.data_type, observed.data_type):
            yield ColumnTypeChange(observed.name, desired.data_type, observed.data_type)


def render(actions: Sequence[ColumnTypeChange], context: RenderContext) -> Iterable[str]:
    """Yield one ALTER COLUMN for all columns."""
    yield sql_change_column_types(context.table, [(action.name, action.desired) for action in actions])


def explain(action: ColumnTypeChange) -> Iterable[Change]:
    """Yield both types."""
    yield Change(
        sign=Sign.CHANGED,
        subject=f"column {action.name} type",
        observed=sql_data_type(action.observed),
        desired=sql_data_type(action.desired),
    )


def accept(model: Table, _observed: TableState, action: ColumnTypeChange) -> Table:
    """Return the model with the column's type as it is."""
    return with_column(model, action.name, lambda column: replace(column, data_type=action.observed))


ASPECT: Aspect[ColumnTypeChange] = Aspect(
    name="column types",
    action_types=(ColumnTypeChange,),
    diff=diff,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.COLUMN_TYPE,
)
