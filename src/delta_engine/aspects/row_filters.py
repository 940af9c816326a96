"""The row filter, part of CREATE TABLE where a model declares one. A filter that no model ever named is unmanaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    WITH_FUNCTION,
    Aspect,
    Change,
    CreateClauses,
    RenderContext,
    ValueAction,
    takes_manage,
)
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import Facet, Form, written_part
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Part, QualifiedName, RowFilter, Table
from delta_engine.models.open_struct import OpenStruct
from delta_engine.sql.governance import (
    full_function_name,
    sql_drop_row_filter,
    sql_row_filter,
    sql_set_row_filter,
)
from delta_engine.state.states import TableState


class SetRowFilter(ValueAction[RowFilter, RowFilter | None]):
    """Set or replace the row filter. Readers see other rows than before."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.CHANGE_ROW_FILTERS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)


@dataclass(frozen=True, slots=True)
class DropRowFilter:
    """Remove the row filter, with consent. Readers see all rows."""

    phase: ClassVar[Phase] = Phase.CHANGE_ROW_FILTERS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    observed: RowFilter


_Action: TypeAlias = SetRowFilter | DropRowFilter


def _diff(comparison: Comparison) -> Iterable[_Action]:
    """Yield an action if the filter differs. Also drop a filter that reads a column which the plan drops."""
    if comparison.desired.row_filter is None and comparison.observed.row_filter is None:
        return
    changes = tuple(_differences(comparison))
    yield from changes
    observed = _normal(comparison.observed.row_filter, comparison.desired.qualified_name)
    if not changes and observed is not None and comparison.drops_any(observed.columns):
        yield DropRowFilter(observed)


def _differences(comparison: Comparison) -> Iterable[_Action]:
    name = comparison.desired.qualified_name
    desired = _normal(comparison.desired.row_filter, name)
    observed = _normal(comparison.observed.row_filter, name)
    if desired is None:
        if observed is not None and comparison.may_remove(lambda model: model.row_filter):
            yield DropRowFilter(observed)
    elif observed is None or _identity(desired) != _identity(observed):
        yield SetRowFilter(desired, observed)


def _create(desired: Table, _context: RenderContext) -> CreateClauses:
    if desired.row_filter is None:
        return CreateClauses()
    return CreateClauses(clauses=(f"WITH {_clause(desired.row_filter, desired.qualified_name)}",))


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    for action in actions:
        if isinstance(action, SetRowFilter):
            yield sql_set_row_filter(context.table, _clause(action.desired, context.name))
        else:
            yield sql_drop_row_filter(context.table)


def _explain(action: _Action) -> Iterable[Change]:
    desired = action.desired if isinstance(action, SetRowFilter) else None
    yield Change("row filter", _described(action.observed), _described(desired))


def _described(row_filter: RowFilter | None) -> str | None:
    return None if row_filter is None else f"{row_filter.function} ({', '.join(row_filter.columns)})"


def _normal(row_filter: RowFilter | None, table: QualifiedName) -> RowFilter | None:
    return row_filter and RowFilter(str(full_function_name(row_filter.function, table)), row_filter.columns)


def _identity(row_filter: RowFilter) -> tuple[str, tuple[str, ...]]:
    return row_filter.function, tuple(map(str.lower, row_filter.columns))


def _clause(row_filter: RowFilter, table: QualifiedName) -> str:
    return sql_row_filter(full_function_name(row_filter.function, table), row_filter.columns)


class RowFilterDefinition(OpenStruct, frozen=True, kw_only=True):
    """A row filter."""

    function: str
    columns: tuple[str, ...] = ()


FACET: Facet[Table, TableState, RowFilter | None] = Facet(
    key="row_filter",
    declared=lambda model: model.row_filter,
    observed=lambda state: state.row_filter,
    absent=None,
    form=Form(
        recorded_type=RowFilterDefinition | None,
        encode=lambda row_filter: (
            row_filter and RowFilterDefinition(function=row_filter.function, columns=row_filter.columns)
        ),
        decode=lambda row_filter: row_filter and RowFilter(row_filter.function, row_filter.columns),
        written_type=RowFilter | None,
        write=written_part,
        with_texts=lambda row_filter, names, _values: (
            row_filter and replace(row_filter, function=names(row_filter.function))
        ),
        words="mapping",
    ),
    meaning="the [function](#row-filters-and-column-masks) that decides who sees which rows",
    constructor="RowFilter",
    part=Part.ROW_FILTERS,
    title="a row filter",
    feature=Feature.ROW_FILTERS,
)

ASPECT: Aspect[SetRowFilter | DropRowFilter] = Aspect(
    name="row filter",
    part=Part.ROW_FILTERS,
    actions={
        SetRowFilter: takes_manage("SET ROW FILTER", "ROW FILTER clause", WITH_FUNCTION),
        DropRowFilter: takes_manage("DROP ROW FILTER", "ROW FILTER clause"),
    },
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=lambda model, observed, _action: replace(model, row_filter=observed.row_filter),
    drift_kind=lambda _action: DriftKind.ROW_FILTER,
    is_in_history=False,
    create=_create,
)
