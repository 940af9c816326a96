"""Hive-style partitioning. A change of it rewrites the table: CREATE OR REPLACE TABLE … AS SELECT from itself.

That is one commit, and a concurrent writer makes it fail (measured on 4.3.1: DELTA_CONCURRENT_APPEND). It loses NOT
NULL, keys and checks, which the same plan brings back, and Delta's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    CreateClauses,
    RenderContext,
    Requirement,
    Right,
    takes_ownership,
)
from delta_engine.aspects.clustering import was_ever_clustered
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.conversions import is_reserved
from delta_engine.aspects.delta_properties import is_of_catalog, is_settable
from delta_engine.aspects.facet import NAMES, Facet
from delta_engine.aspects.protection import protection, write_obstacle
from delta_engine.models import Part, Table
from delta_engine.models.nested_types import has_not_null_field
from delta_engine.models.types import DataType
from delta_engine.sql.backfills import sql_compare_versions
from delta_engine.sql.tables import sql_partitioned_by, sql_rewrite_table
from delta_engine.state.states import REDACTED, TableState, has_tags


@dataclass(frozen=True, slots=True)
class RewriteTable:
    """Rewrite a table with other partitions.

    Args:
        comment: of the table as it is.
        properties: of the table as it is, without those that no statement can set or that the catalog sets.
        location: of an external table; None for a managed one.
        problem: why it cannot be rewritten; empty if it can. A rule refuses it.
        way_out: what to do about that.
    """

    phase: ClassVar[Phase] = Phase.REWRITE_TABLE
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA, Hazard.BREAKS_READERS)
    desired: tuple[str, ...]
    observed: tuple[str, ...]
    comment: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    location: str | None = None
    problem: str = ""
    way_out: str = ""

    def __post_init__(self) -> None:
        if _keys(self.desired) == _keys(self.observed):
            raise ValueError("the table is partitioned by these columns already")


@dataclass(frozen=True, slots=True)
class VerifyRewrite:
    """Verify that a rewrite lost no value and no row of these columns.

    Args:
        problem: why the rewrite of an unfinished run cannot be verified; empty if it can.
        way_out: what to do then.
    """

    phase: ClassVar[Phase] = Phase.VERIFY_REWRITE
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.SCANS_DATA,)
    columns: tuple[tuple[str, DataType], ...]
    problem: str = ""
    way_out: str = ""


_Action: TypeAlias = RewriteTable | VerifyRewrite


def is_rewritten(observed: TableState, attempted: Sequence[Table], declared: Table | None) -> bool:
    """Whether an unfinished run has rewritten a table: it is partitioned as the run attempted, and not as before.

    Args:
        attempted: the models of unfinished runs.
        declared: what was applied before.
    """
    if declared is None or not attempted:
        return False
    present = _keys(observed.partitioned_by)
    is_attempted = any(_keys(model.partitioned_by) == present for model in attempted)
    return is_attempted and _keys(declared.partitioned_by) != present


def rewritten(observed: TableState) -> TableState:
    """Return what a rewrite leaves of a table, for the actions that bring back the rest."""
    columns = (replace(column, is_nullable=True) for column in observed.columns)
    return replace(
        observed,
        columns=tuple(columns),
        primary_key=None,
        foreign_keys=(),
        checks=(),
        not_null_checks=(),
    )


def described(columns: tuple[str, ...]) -> str:
    """Return the text of the columns for reports."""
    return f"({', '.join(columns)})" if columns else "none"


def _diff(comparison: Comparison) -> Iterator[_Action]:
    rewrites = tuple(_differences(comparison))
    yield from rewrites
    if rewrites:
        yield VerifyRewrite(tuple(_verifiable(comparison)))
    elif is_rewritten(comparison.observed, comparison.attempted, comparison.declared):
        yield VerifyRewrite(tuple(_verifiable(comparison)), *(protection(comparison) or ()))


def _differences(comparison: Comparison) -> Iterator[RewriteTable]:
    model, observed = comparison.desired, comparison.observed
    if _keys(model.partitioned_by) == _keys(observed.partitioned_by):
        return
    problem, way_out = next(_problems(comparison), ("", ""))
    yield RewriteTable(
        desired=model.partitioned_by,
        observed=observed.partitioned_by,
        comment=observed.table_comment,
        properties=tuple(sorted(_carried(comparison))),
        location=observed.location,
        problem=problem,
        way_out=way_out,
    )


def _carried(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the properties that a rewrite has to name: CREATE OR REPLACE drops all others."""
    held, declared = comparison.observed.table_properties, comparison.desired.effective_table_properties
    for key, value in held.items():
        if is_settable(key, held) and (key in declared or not is_of_catalog(key)):
            yield key, value


def _verifiable(comparison: Comparison) -> Iterator[tuple[str, DataType]]:
    """Yield the columns that are the same before and after the rewrite, under their names then.

    A rewrite of an unfinished run came before the renames and the new columns of this plan.
    """
    is_pending = _keys(comparison.desired.partitioned_by) != _keys(comparison.observed.partitioned_by)
    changing = {conversion.desired.key for conversion in comparison.conversions}
    former = {} if is_pending else comparison.renames.former_names
    for column in (*comparison.observed.columns, *(comparison.added if is_pending else ())):
        if column.key not in changing and not is_reserved(column):
            yield former.get(column.key, column.name), column.data_type


def _problems(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield each reason against a rewrite, with the way out."""
    model, observed = comparison.desired, comparison.observed
    anew = "Create another table with the partitions, copy the rows, and replace this table."
    if model.manages is not None:
        yield "the model manages only a part of the table", "Change the partitions in the model of its owner."
    if problem := write_obstacle(comparison):
        yield problem
    if has_tags(observed) or has_tags(model):
        reason = "it has tags, which policies may depend on, and a rewrite may lose them for a moment"
        yield reason, f"Drop the tags first, and declare them again afterwards. Or: {anew}"
    if any(column.generated_as is not None or column.identity is not None for column in observed.columns):
        yield "it has generated or identity columns, and a rewrite would lose their expressions", anew
    if any(has_not_null_field(column.data_type) for column in observed.columns):
        yield "it has NOT NULL fields inside columns, which a rewrite would lose", anew
    if REDACTED in observed.table_properties.values():
        yield "it has properties whose values may be secrets, which the engine does not read", anew
    if model.partitioned_by and was_ever_clustered(observed):
        yield "it is or was clustered: Delta cannot replace such a table with a partitioned one", anew
    if observed.unique_constraints:
        listed = ", ".join(observed.unique_constraints)
        reason = (
            f"it has UNIQUE constraints ({listed}), which a rewrite may lose and the engine cannot add again"
        )
        yield reason, "Drop them first, and add them again after the sync."
    if unmanaged := ", ".join(_unmanaged(comparison)):
        yield f"a rewrite would lose what the model does not declare: {unmanaged}", "Declare it first."


def _unmanaged(comparison: Comparison) -> Iterator[str]:
    """Yield the keys and checks that no model declares or has declared."""
    observed, models = comparison.observed, (comparison.desired, *comparison.ours)
    checks = {check.name.lower() for model in models for check in model.checks}
    keys = {(key.name or "").lower() for model in models for key in model.foreign_keys}
    yield from (f"check {check.name}" for check in observed.checks if check.name.lower() not in checks)
    yield from (
        f"foreign key {key.name}" for key in observed.foreign_keys if (key.name or "").lower() not in keys
    )
    if observed.primary_key is not None and all(model.primary_key is None for model in models):
        yield f"primary key {observed.primary_key.name}"


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    for action in actions:
        if isinstance(action, RewriteTable):
            yield sql_rewrite_table(
                context.table,
                partitioned_by=action.desired,
                comment=action.comment,
                properties=dict(action.properties),
                location=action.location,
                clauses=context.collation,
            )
        else:
            yield sql_compare_versions(context.table, action.columns)


def _explain(action: _Action) -> Iterable[Change]:
    if isinstance(action, RewriteTable):
        yield Change("partitioning", described(action.observed), described(action.desired))
    else:
        yield Change("rows after the rewrite", desired="verified")


def _accept(model: Table, observed: TableState, _action: _Action) -> Table:
    return replace(model, partitioned_by=observed.partitioned_by)


def _create(desired: Table, _context: RenderContext) -> CreateClauses:
    clauses = (sql_partitioned_by(desired.partitioned_by),) if desired.partitioned_by else ()
    return CreateClauses(clauses=clauses)


def _keys(columns: tuple[str, ...]) -> list[str]:
    return [name.lower() for name in columns]


FACET: Facet[Table, TableState, tuple[str, ...]] = Facet(
    key="partitioned_by",
    declared=lambda model: model.partitioned_by,
    observed=lambda state: state.partitioned_by,
    absent=(),
    form=NAMES,
    meaning="the columns of Hive-style partitioning; a change rewrites the table: see [Data changes](data-changes.md)",
    part=Part.COLUMNS,
    title="partitioned_by",
)

ASPECT: Aspect[_Action] = Aspect(
    name="partitioning",
    part=Part.COLUMNS,
    actions={
        RewriteTable: takes_ownership("CREATE OR REPLACE TABLE … AS SELECT"),
        VerifyRewrite: Requirement(
            statement="SELECT (verification of a rewrite)",
            right=Right.SELECT,
            demands="`SELECT`",
            source="SELECT",
        ),
    },
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.PARTITIONING,
    create=_create,
)
