"""The row filter, which a new table has from the start. A filter that no model ever named is unmanaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import assert_never

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Comparison, CreateClauses, RenderContext, Sign
from delta_engine.aspects.facet import Facet, Form, written_part
from delta_engine.aspects.functions import full_function_name
from delta_engine.aspects.rights import WITH_FUNCTION, takes_manage
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Part, QualifiedName, RowFilter, Table
from delta_engine.models.open_struct import OpenStruct
from delta_engine.sql.governance import sql_drop_row_filter, sql_row_filter, sql_set_row_filter
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class SetRowFilter:
    """Set or replace the row filter. Readers see other rows than before."""

    phase: ClassVar[Phase] = Phase.CHANGE_ROW_FILTERS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    desired: RowFilter
    observed: RowFilter | None

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError("the table has this row filter already")


@dataclass(frozen=True, slots=True)
class DropRowFilter:
    """Remove the row filter, with consent. Readers see all rows."""

    phase: ClassVar[Phase] = Phase.CHANGE_ROW_FILTERS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    observed: RowFilter


def diff(comparison: Comparison) -> Iterable[SetRowFilter | DropRowFilter]:
    """Yield an action if the filter differs, or blocks a drop because it reads the dropped column."""
    if comparison.desired.row_filter is None and comparison.observed.row_filter is None:
        return
    changes = tuple(differences(comparison))
    yield from changes
    observed = _normal(comparison.observed.row_filter, comparison.desired.qualified_name)
    if not changes and observed is not None and comparison.drops_any(observed.columns):
        yield DropRowFilter(observed)


def differences(comparison: Comparison) -> Iterable[SetRowFilter | DropRowFilter]:
    """Yield an action if function or columns differ."""
    name = comparison.desired.qualified_name
    desired = _normal(comparison.desired.row_filter, name)
    observed = _normal(comparison.observed.row_filter, name)
    if desired is None:
        if observed is not None and any(model.row_filter for model in comparison.ours):
            yield DropRowFilter(observed)
    elif observed is None or _identity(desired) != _identity(observed):
        yield SetRowFilter(desired, observed)


def create(desired: Table, _context: RenderContext) -> CreateClauses:
    """Return the WITH ROW FILTER clause."""
    if desired.row_filter is None:
        return CreateClauses()
    return CreateClauses(clauses=(f"WITH {_clause(desired.row_filter, desired.qualified_name)}",))


def render(actions: Sequence[SetRowFilter | DropRowFilter], context: RenderContext) -> Iterable[str]:
    """Yield one SET ROW FILTER or one DROP ROW FILTER."""
    for action in actions:
        match action:
            case SetRowFilter(desired):
                yield sql_set_row_filter(context.table, _clause(desired, context.name))
            case DropRowFilter():
                yield sql_drop_row_filter(context.table)
            case other:
                assert_never(other)


def explain(action: SetRowFilter | DropRowFilter) -> Iterable[Change]:
    """Yield both functions with their columns."""
    match action:
        case SetRowFilter(desired, None):
            yield Change(sign=Sign.ADDED, subject="row filter", desired=describe(desired))
        case SetRowFilter(desired, RowFilter() as observed):
            yield Change(
                sign=Sign.CHANGED,
                subject="row filter",
                observed=describe(observed),
                desired=describe(desired),
            )
        case DropRowFilter(observed):
            yield Change(sign=Sign.REMOVED, subject="row filter", observed=describe(observed))


def accept(model: Table, observed: TableState, _action: SetRowFilter | DropRowFilter) -> Table:
    """Return the model with the observed filter."""
    return replace(model, row_filter=observed.row_filter)


def describe(row_filter: RowFilter) -> str:
    """Return the text of a filter for reports."""
    return f"{row_filter.function} ({', '.join(row_filter.columns)})"


def _normal(row_filter: RowFilter | None, table: QualifiedName) -> RowFilter | None:
    if row_filter is None:
        return None
    return RowFilter(str(full_function_name(row_filter.function, table)), row_filter.columns)


def _identity(row_filter: RowFilter) -> tuple[str, tuple[str, ...]]:
    return row_filter.function, tuple(map(str.lower, row_filter.columns))


def _clause(row_filter: RowFilter, table: QualifiedName) -> str:
    return sql_row_filter(full_function_name(row_filter.function, table), row_filter.columns)


class RowFilterDefinition(OpenStruct, frozen=True, kw_only=True):
    """A row filter."""

    function: str
    columns: tuple[str, ...] = ()


def _as_row_filter(definition: RowFilterDefinition | None) -> RowFilter | None:
    return RowFilter(definition.function, definition.columns) if definition else None


FACET: Facet[Table, TableState, RowFilter | None] = Facet(
    key="row_filter",
    declared=lambda table: table.row_filter,
    absent=None,
    form=Form(
        recorded_type=RowFilterDefinition | None,
        encode=lambda one: one and RowFilterDefinition(function=one.function, columns=one.columns),
        decode=_as_row_filter,
        written_type=RowFilter | None,
        write=written_part,
        with_texts=lambda one, names, _values: one and replace(one, function=names(one.function)),
        words="mapping",
    ),
    meaning="the [function](#row-filters-and-column-masks) that decides who sees which rows",
    constructor="RowFilter",
    observed=lambda table: table.row_filter,
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
    diff=diff,
    differences=differences,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.ROW_FILTER,
    create=create,
)
