"""The name of a table, changed if its model names the former one. The data does not move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, ValueAction, takes_ownership
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import FORMER_TABLE_NAMES, Facet
from delta_engine.backends.capabilities import Capabilities, Feature, RenameTarget
from delta_engine.models import Part, QualifiedName, Table
from delta_engine.sql.tables import sql_rename_table
from delta_engine.sql.text import sql_name, sql_path
from delta_engine.state.states import TableState


class RenameTable(ValueAction[QualifiedName, QualifiedName]):
    """Rename a table within its schema. Readers of the former name fail afterwards."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.RENAME_TABLE
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)

    def is_no_op(self) -> bool:
        """Whether the names differ at most in case."""
        return self.desired.key == self.observed.key


def _diff(comparison: Comparison) -> Iterable[RenameTable]:
    if comparison.observed.former_name is not None:
        yield RenameTable(comparison.desired.qualified_name, comparison.observed.former_name)


def rename_statement(observed: QualifiedName, desired: QualifiedName, capabilities: Capabilities) -> str:
    """Return the statement that renames a table in a catalog, as a platform spells it."""
    is_within = capabilities.rename_target is RenameTarget.WITHIN_CATALOG
    target = desired.parts[1:] if is_within else desired.parts
    return sql_rename_table(sql_name(observed), sql_path(target))


def _render(actions: Sequence[RenameTable], context: RenderContext) -> Iterable[str]:
    return [rename_statement(action.observed, action.desired, context.capabilities) for action in actions]


def _explain(action: RenameTable) -> Iterable[Change]:
    yield Change("table name", str(action.observed), str(action.desired), is_rename=True)


FACET: Facet[Table, TableState, tuple[str, ...]] = Facet(
    key="renamed_from",
    declared=lambda model: model.renamed_from,
    absent=(),
    default="none",
    form=FORMER_TABLE_NAMES,
    meaning="the table's old name in the same schema, or several with the latest first; its data is kept",
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
