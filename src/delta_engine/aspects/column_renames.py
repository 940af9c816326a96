"""Renames of columns and fields, which keep their data. The platform adjusts clustering and partitioning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import AlignTable, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, takes_ownership
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import FORMER_FIELD_NAMES, FORMER_NAMES, Facet
from delta_engine.aspects.renames import Renames
from delta_engine.models import Column, Part, Table
from delta_engine.models.nested_types import Path
from delta_engine.models.parts import NO_FORMER_NAMES
from delta_engine.sql.columns import sql_rename_column
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ColumnRename:
    """Rename a column, or the field of the struct at `inside`, a path of desired names."""

    phase: ClassVar[Phase] = Phase.RENAME_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    observed: str
    desired: str
    inside: Path = ()

    def __post_init__(self) -> None:
        if self.desired.lower() == self.observed.lower():
            raise ValueError(f"column {self.desired} already has this name")


def renamed_columns(align: AlignTable) -> Renames:
    """Return the renames of columns, not of fields."""
    renames = align.of_type(ColumnRename)
    return Renames.of_columns({rename.observed: rename.desired for rename in renames if not rename.inside})


def _diff(comparison: Comparison) -> Iterable[ColumnRename]:
    """Yield a rename per column, then per field from the outside in: inner paths use the new names."""
    for observed, desired in comparison.renames.paths.items():
        yield ColumnRename(observed[-1], desired[-1], desired[:-1])


def _render(actions: Sequence[ColumnRename], context: RenderContext) -> Iterable[str]:
    """Yield a statement per rename: no platform accepts several in one."""
    for action in actions:
        yield sql_rename_column(context.table, (*action.inside, action.observed), action.desired)


def _explain(action: ColumnRename) -> Iterable[Change]:
    place = (*action.inside, action.desired)
    yield Change(f"column {'.'.join(place)}", action.observed, action.desired, place=place, is_rename=True)


def _accept(model: Table, _observed: TableState, action: ColumnRename) -> Table:
    renames = Renames({(*action.inside, action.desired): (*action.inside, action.observed)})
    return renames.applied_to(model)


FACET: Facet[Column, Column, tuple[str, ...]] = Facet(
    key="renamed_from",
    declared=lambda model: model.renamed_from,
    absent=(),
    default="none",
    form=FORMER_NAMES,
    meaning="the column's old name, or several with the latest first; its data is kept",
    part=Part.COLUMNS,
    title="renamed_from",
)

FIELDS_FACET: Facet[Column, Column, Mapping[str, tuple[str, ...]]] = Facet(
    key="renamed_fields",
    declared=lambda model: model.renamed_fields,
    absent=NO_FORMER_NAMES,
    form=FORMER_FIELD_NAMES,
    meaning="old names of fields inside, by their current path: `address.postcode: zip`, with `element`, `key` and "
    "`value` as steps. Several old names are a list",
    entry="renamed field",
    part=Part.COLUMNS,
)

ASPECT: Aspect[ColumnRename] = Aspect(
    name="column renames",
    part=Part.COLUMNS,
    actions={ColumnRename: takes_ownership("RENAME COLUMN")},
    diff=_diff,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.COLUMN_RENAMED,
    is_of_columns=True,
)
