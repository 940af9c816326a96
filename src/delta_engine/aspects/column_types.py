"""The types of existing columns, compared in canonical form and changed in place where Delta widens them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, takes_modify
from delta_engine.aspects.changed_models import with_type
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.delta_properties import iceberg_property
from delta_engine.models import Part, Reference, Table
from delta_engine.models.nested_types import (
    Path,
    TypePair,
    Widening,
    is_widened_by_iceberg,
    widening,
    with_type_at,
)
from delta_engine.models.types import CharacterType, DataType, is_same_type
from delta_engine.sql.columns import sql_change_column_types
from delta_engine.sql.text import shown_type
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ColumnTypeChange:
    """Change the type at `path` of a column in place.

    Args:
        referenced_by: the foreign keys over it that stay.
        refused_with: the property with which Delta refuses this widening; empty if it takes it. A rule refuses it.
    """

    phase: ClassVar[Phase] = Phase.CHANGE_COLUMN_TYPES
    name: str
    desired: DataType
    observed: DataType
    path: Path = ()
    referenced_by: tuple[Reference, ...] = ()
    refused_with: str = ""

    def __post_init__(self) -> None:
        if is_same_type(self.desired, self.observed):
            raise ValueError(f"column {self.name} already has this type")

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Readers need the table feature, except for a longer text."""
        return SAFE if self.widening is Widening.NOTHING else (Hazard.BREAKS_READERS,)

    @property
    def widening(self) -> Widening:
        """The kind of widening that the change needs. Spark changes no CHAR or VARCHAR inside a column (measured).

        To `string`, the statement succeeds and the length stays; to a longer one, it fails (4.1.1 with Delta 4.3.1).
        """
        is_inside = bool(self.path) and isinstance(self.observed, CharacterType)
        return Widening.IMPOSSIBLE if is_inside else widening(self.observed, self.desired)


def _diff(comparison: Comparison) -> Iterable[ColumnTypeChange]:
    for pair in comparison.types:
        name, *inside = pair.path
        refused_with = _refused_with(comparison, pair)
        yield ColumnTypeChange(name, pair.desired, pair.observed, tuple(inside), refused_with=refused_with)


def _refused_with(comparison: Comparison, pair: TypePair) -> str:
    if is_widened_by_iceberg(pair.observed, pair.desired):
        return ""
    observed, declared = comparison.observed.table_properties, comparison.desired.effective_table_properties
    return iceberg_property(observed) or iceberg_property(declared)


def _render(actions: Sequence[ColumnTypeChange], context: RenderContext) -> Iterable[str]:
    changes = [((action.name, *action.path), action.desired) for action in actions]
    return [sql_change_column_types(context.table, together) for together in context.together([changes])]


def _explain(action: ColumnTypeChange) -> Iterable[Change]:
    place, types = (action.name, *action.path), (action.observed, action.desired)
    before, after = map(shown_type, types)
    yield Change(f"column {'.'.join(place)} type", before, after, place=place, types=types)


def _accept(model: Table, _observed: TableState, action: ColumnTypeChange) -> Table:
    return with_type(model, action.name, lambda whole: with_type_at(whole, action.path, action.observed))


ASPECT: Aspect[ColumnTypeChange] = Aspect(
    name="column types",
    part=Part.COLUMNS,
    actions={ColumnTypeChange: takes_modify("ALTER COLUMN … TYPE")},
    diff=_diff,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.COLUMN_TYPE,
    is_of_columns=True,
)
