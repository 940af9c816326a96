"""Column masks: the functions through which readers see a column. A new column has its mask from the start.

A mask that no model ever named is unmanaged. A column keeps its mask until it is dropped, so that no reader sees it
unmasked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeAlias

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    WITH_FUNCTION,
    Aspect,
    Change,
    ColumnValueAction,
    RenderContext,
    takes_manage,
)
from delta_engine.aspects.changed_models import with_column
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import Facet, Form, written_part
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Column, ColumnMask, Part, QualifiedName, Table
from delta_engine.models.open_struct import OpenStruct
from delta_engine.sql.governance import full_function_name, sql_drop_mask, sql_mask, sql_set_mask
from delta_engine.state.states import TableState


class SetColumnMask(ColumnValueAction[ColumnMask, ColumnMask | None]):
    """Set or replace the mask of a column. Readers see other values than before."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.CHANGE_COLUMN_MASKS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)


@dataclass(frozen=True, slots=True)
class DropColumnMask:
    """Remove the mask of a column, with consent. Readers see the raw values."""

    phase: ClassVar[Phase] = Phase.CHANGE_COLUMN_MASKS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    name: str
    observed: ColumnMask


_Action: TypeAlias = SetColumnMask | DropColumnMask


def _diff(comparison: Comparison) -> Iterable[_Action]:
    """Yield an action per mask that differs, blocks a drop because it reads the dropped column, or has to wait."""
    changes = tuple(_differences(comparison))
    yield from changes
    name, changed = comparison.desired.qualified_name, {change.name for change in changes}
    for _, present in comparison.shared if comparison.dropped else ():
        mask = _normal(present.mask, name)
        if mask and present.name not in changed and comparison.drops_any(mask.using_columns):
            yield DropColumnMask(present.name, mask)
    added = {column.key for column in comparison.added}
    for column in comparison.added:
        mask = _normal(column.mask, name)
        if mask and not added.isdisjoint(map(str.lower, mask.using_columns)):  # those have to exist first
            yield SetColumnMask(column.name, mask, None)


def _differences(comparison: Comparison) -> Iterable[_Action]:
    """Yield an action per shared column whose function or further columns differ."""
    masked = [pair for pair in comparison.differing if pair[0].mask != pair[1].mask]
    if not masked:
        return
    name = comparison.desired.qualified_name
    for column, present in masked:
        desired, observed = _normal(column.mask, name), _normal(present.mask, name)
        if desired is None:
            if observed is not None and comparison.may_remove(partial(_masks, present.key)):
                yield DropColumnMask(present.name, observed)
        elif observed is None or _identity(desired) != _identity(observed):
            yield SetColumnMask(present.name, desired, observed)


def _masks(key: str, model: Table) -> bool:
    return any(column.mask is not None for column in model.columns if column.key == key)


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    for action in actions:
        if isinstance(action, SetColumnMask):
            function = full_function_name(action.desired.function, context.name)
            clause = sql_mask(function, action.desired.using_columns)
            yield sql_set_mask(context.table, action.name, clause)
        else:
            yield sql_drop_mask(context.table, action.name)


def _explain(action: _Action) -> Iterable[Change]:
    desired = action.desired if isinstance(action, SetColumnMask) else None
    yield Change(f"column {action.name} mask", _described(action.observed), _described(desired))


def _accept(model: Table, observed: TableState, action: _Action) -> Table:
    mask = {column.key: column.mask for column in observed.columns}.get(action.name.lower())
    return with_column(model, action.name, lambda column: replace(column, mask=mask))


def _described(mask: ColumnMask | None) -> str | None:
    if mask is None:
        return None
    return f"{mask.function} ({', '.join(mask.using_columns)})" if mask.using_columns else mask.function


def _normal(mask: ColumnMask | None, table: QualifiedName) -> ColumnMask | None:
    return mask and ColumnMask(str(full_function_name(mask.function, table)), mask.using_columns)


def _identity(mask: ColumnMask) -> tuple[str, tuple[str, ...]]:
    return mask.function, tuple(map(str.lower, mask.using_columns))


class MaskDefinition(OpenStruct, frozen=True, kw_only=True):
    """A column mask."""

    function: str
    using_columns: tuple[str, ...] = ()


FACET: Facet[Column, Column, ColumnMask | None] = Facet(
    key="mask",
    declared=lambda model: model.mask,
    observed=lambda state: state.mask,
    absent=None,
    form=Form(
        recorded_type=MaskDefinition | None,
        encode=lambda mask: mask and MaskDefinition(function=mask.function, using_columns=mask.using_columns),
        decode=lambda mask: mask and ColumnMask(mask.function, mask.using_columns),
        written_type=str | ColumnMask | None,
        read=lambda _place, mask: ColumnMask(mask) if isinstance(mask, str) else mask,
        write=lambda mask: written_part(mask, "function"),
        with_texts=lambda mask, names, _values: mask and replace(mask, function=names(mask.function)),
        words="string or mapping",
    ),
    meaning="the [function](#row-filters-and-column-masks) through which readers see the column",
    constructor="ColumnMask",
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
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.COLUMN_MASK,
    is_in_history=False,
    is_of_columns=True,
)
