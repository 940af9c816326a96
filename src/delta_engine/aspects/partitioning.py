"""Hive-style partitioning, set by CREATE TABLE and fixed afterwards. A rule refuses a change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Comparison, CreateClauses, RenderContext, Sign
from delta_engine.aspects.facet import NAMES, Facet
from delta_engine.models import Part, Table
from delta_engine.sql.tables import sql_partitioned_by
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ChangePartitioning:
    """Partition by other columns, which no platform does."""

    phase: ClassVar[Phase] = Phase.CHANGE_CLUSTERING
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA,)
    desired: tuple[str, ...]
    observed: tuple[str, ...]

    def __post_init__(self) -> None:
        if _keys(self.desired) == _keys(self.observed):
            raise ValueError("the table is partitioned by these columns already")


def diff(comparison: Comparison) -> Iterable[ChangePartitioning]:
    """Yield an action if the columns or their order differ."""
    desired, observed = comparison.desired.partitioned_by, comparison.observed.partitioned_by
    if desired != observed and _keys(desired) != _keys(observed):
        yield ChangePartitioning(desired, observed)


def create(desired: Table, _context: RenderContext) -> CreateClauses:
    """Return the PARTITIONED BY clause."""
    columns = desired.partitioned_by
    return CreateClauses(clauses=(sql_partitioned_by(columns),) if columns else ())


def explain(action: ChangePartitioning) -> Iterable[Change]:
    """Yield both lists of columns."""
    yield Change(
        sign=Sign.CHANGED,
        subject="partitioning",
        observed=described(action.observed),
        desired=described(action.desired),
    )


def accept(model: Table, observed: TableState, _action: ChangePartitioning) -> Table:
    """Return the model with the observed partitioning."""
    return replace(model, partitioned_by=observed.partitioned_by)


def described(columns: tuple[str, ...]) -> str:
    """Return the text of the columns for reports."""
    return f"({', '.join(columns)})" if columns else "none"


def _keys(columns: tuple[str, ...]) -> list[str]:
    return [name.lower() for name in columns]


FACET: Facet[Table, TableState, tuple[str, ...]] = Facet(
    key="partitioned_by",
    declared=lambda table: table.partitioned_by,
    absent=(),
    form=NAMES,
    meaning="the columns of Hive-style partitioning; at creation only",
    observed=lambda table: table.partitioned_by,
    part=Part.COLUMNS,
    title="partitioned_by",
)

ASPECT: Aspect[ChangePartitioning] = Aspect(
    name="partitioning",
    part=Part.COLUMNS,
    actions={ChangePartitioning: None},
    diff=diff,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.PARTITIONING,
    create=create,
)
