"""Column masks: the functions through which readers see a column. A new column has its mask from the start.

A mask that no model ever named is unmanaged. A column keeps its mask until it is dropped, so that no reader sees it
unmasked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import assert_never

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext, Sign, with_column
from delta_engine.aspects.facet import Facet, Form, written_part
from delta_engine.aspects.functions import full_function_name
from delta_engine.aspects.rights import WITH_FUNCTION, takes_manage
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Column, ColumnMask, Part, QualifiedName, Table
from delta_engine.models.open_struct import OpenStruct
from delta_engine.sql.governance import sql_drop_mask, sql_mask, sql_set_mask
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class SetColumnMask:
    """Set or replace the mask of a column. Readers see other values than before."""

    phase: ClassVar[Phase] = Phase.CHANGE_COLUMN_MASKS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    column: str
    desired: ColumnMask
    observed: ColumnMask | None

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"column {self.column} has this mask already")


@dataclass(frozen=True, slots=True)
class DropColumnMask:
    """Remove the mask of a column, with consent. Readers see the raw values."""

    phase: ClassVar[Phase] = Phase.CHANGE_COLUMN_MASKS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    column: str
    observed: ColumnMask


def diff(comparison: Comparison) -> Iterable[SetColumnMask | DropColumnMask]:
    """Yield an action per mask that differs, or that blocks a drop because it reads the dropped column."""
    changes = tuple(differences(comparison))
    yield from changes
    changed = {change.column for change in changes}
    for _, present in comparison.shared if comparison.dropped else ():
        mask = _normal(present.mask, comparison.desired.qualified_name)
        if mask and present.name not in changed and comparison.drops_any(mask.using_columns):
            yield DropColumnMask(present.name, mask)
    yield from _after_adding(comparison)


def differences(comparison: Comparison) -> Iterable[SetColumnMask | DropColumnMask]:
    """Yield an action per shared column whose function or further columns differ."""
    masked = [pair for pair in comparison.differing if pair[0].mask != pair[1].mask]
    if not masked:
        return
    name = comparison.desired.qualified_name
    known = {column.key for model in comparison.ours for column in model.columns if column.mask is not None}
    for column, present in masked:
        desired, observed = _normal(column.mask, name), _normal(present.mask, name)
        if desired is None:
            if observed is not None and present.key in known:
                yield DropColumnMask(present.name, observed)
        elif observed is None or _identity(desired) != _identity(observed):
            yield SetColumnMask(present.name, desired, observed)


def mask_clause(column: Column, table: QualifiedName, added: Collection[str] = ()) -> str:
    """Return the MASK clause; empty without a mask or if it reads a column in `added`, which has to exist first."""
    if column.mask is None or _takes(column.mask, added):
        return ""
    return f" {_clause(column.mask, table)}"


def render(actions: Sequence[SetColumnMask | DropColumnMask], context: RenderContext) -> Iterable[str]:
    """Yield one statement per column."""
    for action in actions:
        match action:
            case SetColumnMask(column, desired):
                yield sql_set_mask(context.table, column, _clause(desired, context.name))
            case DropColumnMask(column):
                yield sql_drop_mask(context.table, column)
            case other:
                assert_never(other)


def explain(action: SetColumnMask | DropColumnMask) -> Iterable[Change]:
    """Yield both functions with the further columns that they read."""
    subject = f"column {action.column} mask"
    match action:
        case SetColumnMask(_, desired, None):
            yield Change(sign=Sign.ADDED, subject=subject, desired=describe(desired))
        case SetColumnMask(_, desired, ColumnMask() as observed):
            yield Change(
                sign=Sign.CHANGED, subject=subject, observed=describe(observed), desired=describe(desired)
            )
        case DropColumnMask(_, observed):
            yield Change(sign=Sign.REMOVED, subject=subject, observed=describe(observed))


def accept(model: Table, observed: TableState, action: SetColumnMask | DropColumnMask) -> Table:
    """Return the model with the observed mask of the column."""
    masks = {column.key: column.mask for column in observed.columns}
    mask = masks.get(action.column.lower())
    return with_column(model, action.column, lambda column: replace(column, mask=mask))


def describe(mask: ColumnMask) -> str:
    """Return the text of a mask for reports."""
    return f"{mask.function} ({', '.join(mask.using_columns)})" if mask.using_columns else mask.function


def _normal(mask: ColumnMask | None, table: QualifiedName) -> ColumnMask | None:
    if mask is None:
        return None
    return ColumnMask(str(full_function_name(mask.function, table)), mask.using_columns)


def _identity(mask: ColumnMask) -> tuple[str, tuple[str, ...]]:
    return mask.function, tuple(map(str.lower, mask.using_columns))


def _after_adding(comparison: Comparison) -> Iterable[SetColumnMask]:
    """Yield the masks of new columns that read other new columns: those have to exist first."""
    added = {column.key for column in comparison.added}
    for column in comparison.added:
        mask = _normal(column.mask, comparison.desired.qualified_name)
        if mask is not None and _takes(mask, added):
            yield SetColumnMask(column.name, mask, None)


def _takes(mask: ColumnMask, columns: Collection[str]) -> bool:
    return any(name.lower() in columns for name in mask.using_columns)


def _clause(mask: ColumnMask, table: QualifiedName) -> str:
    return sql_mask(full_function_name(mask.function, table), mask.using_columns)


class MaskDefinition(OpenStruct, frozen=True, kw_only=True):
    """A column mask."""

    function: str
    using_columns: tuple[str, ...] = ()


def _as_mask(definition: MaskDefinition | None) -> ColumnMask | None:
    return ColumnMask(definition.function, definition.using_columns) if definition else None


FACET: Facet[Column, Column, ColumnMask | None] = Facet(
    key="mask",
    declared=lambda column: column.mask,
    absent=None,
    form=Form(
        recorded_type=MaskDefinition | None,
        encode=lambda one: one and MaskDefinition(function=one.function, using_columns=one.using_columns),
        decode=_as_mask,
        written_type=str | ColumnMask | None,
        read=lambda _place, mask: ColumnMask(mask) if isinstance(mask, str) else mask,
        write=lambda mask: written_part(mask, "function"),
        with_texts=lambda one, names, _values: one and replace(one, function=names(one.function)),
        words="text or mapping",
    ),
    meaning="the [function](#row-filters-and-column-masks) through which readers see the column",
    constructor="ColumnMask",
    short="function",
    observed=lambda column: column.mask,
    part=Part.ROW_FILTERS,
    title="column masks",
    feature=Feature.COLUMN_MASKS,
)

ASPECT: Aspect[SetColumnMask | DropColumnMask] = Aspect(
    name="column masks",
    part=Part.ROW_FILTERS,
    actions={
        SetColumnMask: takes_manage("ALTER COLUMN … SET MASK", "Column mask clause", WITH_FUNCTION),
        DropColumnMask: takes_manage("ALTER COLUMN … DROP MASK", "Column mask clause"),
    },
    diff=diff,
    differences=differences,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.COLUMN_MASK,
    is_of_columns=True,
)
