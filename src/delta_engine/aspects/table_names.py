"""The name of a table, changed if its model names the former one. The data does not move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, takes_ownership
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import NAME, Facet
from delta_engine.backends.capabilities import Feature, RenameTarget
from delta_engine.models import Part, QualifiedName, Table
from delta_engine.sql.tables import sql_rename_table
from delta_engine.sql.text import sql_path
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Rename a table within its schema. Readers of the former name fail afterwards."""

    phase: ClassVar[Phase] = Phase.RENAME_TABLE
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    desired: QualifiedName
    observed: QualifiedName

    def __post_init__(self) -> None:
        if self.desired.key == self.observed.key:
            raise ValueError("the table has this name already")


def _diff(comparison: Comparison) -> Iterable[RenameTable]:
    if comparison.observed.former_name is not None:
        yield RenameTable(comparison.desired.qualified_name, comparison.observed.former_name)


def _render(actions: Sequence[RenameTable], context: RenderContext) -> Iterable[str]:
    for action in actions:
        target = context.table
        if context.capabilities.rename_target is RenameTarget.WITHIN_CATALOG:
            target = sql_path(action.desired.key.split(".")[1:])
        yield sql_rename_table(context.addressing.table(action.observed), target)


def _explain(action: RenameTable) -> Iterable[Change]:
    yield Change("table name", str(action.observed), str(action.desired), is_rename=True)


FACET: Facet[Table, TableState, str | None] = Facet(
    key="renamed_from",
    declared=lambda model: model.renamed_from,
    absent=None,
    form=NAME,
    meaning="the table's former name, in the same schema; its data is kept",
    part=Part.COLUMNS,
    title="renamed_from",
    feature=Feature.TABLE_RENAMES,
)

ASPECT: Aspect[RenameTable] = Aspect(
    name="table name",
    part=Part.COLUMNS,
    actions={RenameTable: takes_ownership("RENAME TO")},
    diff=_diff,
    render=_render,
    explain=_explain,
    drift_kind=lambda _action: DriftKind.TABLE_REPLACED,
    is_in_history=False,
    differences=lambda _comparison: (),
)
