"""Values for existing rows, computed by `using` (docs/data-changes.md).

A column of another type is converted: the new column is added under a reserved name, filled, verified, and takes the
name of the former one, which is dropped last. New and tightened columns are filled in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    RenderContext,
    Requirement,
    Right,
    takes_modify,
    takes_ownership,
)
from delta_engine.aspects.backfill_actions import (
    AbandonConversion,
    BackfillAction,
    BlockedFill,
    DropFormerColumn,
    ExpandColumn,
    FillColumn,
    FillRanges,
    FillSwappedColumn,
    SwapColumn,
    VerifyRows,
    VerifySwappedRows,
)
from delta_engine.aspects.changed_models import with_column
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.conversions import ConversionStage, new_name, old_name
from delta_engine.aspects.facet import Facet, Form, written_part
from delta_engine.aspects.fill_obstacles import obstacles
from delta_engine.models import Column, FillBy, Part, Table, Using
from delta_engine.models.open_struct import OpenStruct
from delta_engine.sql.backfills import (
    sql_compare_versions,
    sql_converted,
    sql_fill,
    sql_give,
    sql_refuse_rows,
)
from delta_engine.sql.columns import (
    sql_add_columns,
    sql_column_definition,
    sql_drop_columns,
    sql_drop_not_null,
    sql_rename_column,
)
from delta_engine.sql.expressions import gives_null_on_purpose, referenced_columns
from delta_engine.sql.governance import sql_unset_tags
from delta_engine.sql.text import quote_ident, shown_type
from delta_engine.state.states import TableState


def future_values(comparison: Comparison) -> Mapping[str, str]:
    """Return the SQL of the values that a plan computes, from the rows as they are, by column key."""
    values = {}
    former = comparison.renames.former_names
    for column in comparison.filled:
        value = sql_converted(_using(column).expression, column.data_type)
        is_new = any(column.key == added.key for added in comparison.added)
        values[column.key] = (
            value if is_new else f"coalesce({quote_ident(former.get(column.key, column.name))}, {value})"
        )
    for conversion in comparison.conversions:
        if conversion.desired.using is None or conversion.is_abandoned:
            continue
        last = _refill(conversion.desired)
        match conversion.progress.stage:
            case ConversionStage.SWAPPED:
                values[conversion.desired.key] = (
                    f"coalesce({quote_ident(conversion.desired.name)}, {last.value})"
                )
            case ConversionStage.SWAPPING:
                new = quote_ident(new_name(conversion.observed.name))
                values[conversion.desired.key] = f"coalesce({new}, {last.value})"
            case _:
                values[conversion.desired.key] = sql_converted(
                    conversion.desired.using.expression, conversion.desired.data_type
                )
    return values


_BEFORE_SWAP: Final = (ConversionStage.NOT_BEGUN, ConversionStage.FILLING)


def _diff(comparison: Comparison) -> Iterator[BackfillAction]:
    """Yield what is left to do, from the place that an earlier run has reached."""
    if not comparison.conversions and not comparison.filled:
        return
    blocked = [BlockedFill(*obstacle) for obstacle in obstacles(comparison)]
    if blocked:
        yield from blocked
        return
    ranges = _ranges(comparison)
    fills = [_fill(column, column.name, ranges) for column in comparison.filled]
    swapped: list[FillSwappedColumn] = []
    for conversion in comparison.conversions:
        desired, observed, stage = conversion.desired, conversion.observed, conversion.progress.stage
        if conversion.is_abandoned:
            yield AbandonConversion(observed, stage, _tag_keys(conversion.progress.new))
            continue
        if stage in _BEFORE_SWAP:
            if conversion.added is None:
                yield ExpandColumn(desired, observed, conversion.progress.new)
            fills.append(_fill(desired, observed.name, ranges, is_converted=True))
        if conversion.is_pending:
            yield SwapColumn(desired, observed, is_begun=stage is ConversionStage.SWAPPING)
        swapped.append(_refill(desired))
        left = observed if conversion.is_pending else conversion.progress.old
        yield DropFormerColumn(desired.name, _tag_keys(left))
    assigned = {fill.name.lower() for fill in fills} | {fill.name.lower() for fill in swapped}
    columns = comparison.observed.columns
    untouched = tuple((column.name, column.data_type) for column in columns if column.key not in assigned)
    if fills:
        former = [
            conversion.observed
            for conversion in comparison.conversions
            if conversion.progress.stage in _BEFORE_SWAP
        ]
        yield from fills
        yield VerifyRows(tuple(fills), (*untouched, *((column.name, column.data_type) for column in former)))
    if swapped:
        yield from swapped
        yield VerifySwappedRows(tuple(swapped), untouched)


def _tag_keys(column: Column | None) -> tuple[str, ...]:
    return tuple(column.tags) if column is not None else ()


def _using(column: Column) -> Using:
    return column.using or Using("")  # a column without one is an obstacle, or its conversion is given up


def _fill(column: Column, name: str, ranges: FillRanges | None, *, is_converted: bool = False) -> FillColumn:
    using = _using(column)
    return FillColumn(name, column.data_type, using.expression, is_converted, using.deterministic, ranges)


def _ranges(comparison: Comparison) -> FillRanges | None:
    """Return the declared ranges; None if their column is new, or changes in the same plan."""
    by = comparison.desired.fill_by
    if by is None or comparison.drops_any([by.column]):
        return None
    key = by.column.lower()
    changing = {pair.path[0].lower() for pair in comparison.types}
    changing |= {conversion.desired.key for conversion in comparison.conversions}
    changing |= {column.key for column in comparison.filled}
    changing |= {name.lower() for pair in comparison.renames.columns.items() for name in pair}
    there = {column.key: column for column in comparison.observed.columns}
    if key in changing or key not in there:
        return None
    return FillRanges(there[key].name, there[key].data_type, by.bounds)


def _refill(column: Column) -> FillSwappedColumn:
    using = _using(column)
    return FillSwappedColumn(column.name, column.data_type, using.expression, using.deterministic)


def _differences(comparison: Comparison) -> Iterator[SwapColumn]:
    """Yield the types that conversions change; fills make no difference that others do not show."""
    for conversion in comparison.converted:
        yield SwapColumn(conversion.desired, conversion.observed)


def _accept(model: Table, _observed: TableState, action: BackfillAction) -> Table:
    if not isinstance(action, SwapColumn):
        return model
    data_type = action.observed.data_type
    return with_column(model, action.desired.name, lambda column: replace(column, data_type=data_type))


def _render(actions: Sequence[BackfillAction], context: RenderContext) -> Iterator[str]:
    fills = [action for action in actions if isinstance(action, FillColumn | FillSwappedColumn)]
    computed = [fill.assignment for fill in fills if fill.is_deterministic]
    given = [fill.assignment for fill in fills if not fill.is_deterministic]
    ranges = next((fill.ranges for fill in fills if isinstance(fill, FillColumn) and fill.ranges), None)
    for within in (*(ranges.conditions if ranges else ()), ""):  # the last one also fills what no range has
        if computed:
            yield sql_fill(context.table, computed, within)
        if given:
            yield sql_give(context.table, given, within)
    yield from _expansion([action for action in actions if isinstance(action, ExpandColumn)], context)
    for action in actions:
        match action:
            case VerifyRows(verified, untouched):
                yield from (_lost_values(fill, context.table) for fill in verified if _is_suspicious(fill))
                yield sql_compare_versions(context.table, untouched)
            case VerifySwappedRows(refilled, untouched):
                yield from (_missing_values(fill, context.table) for fill in refilled if _is_told(fill))
                yield sql_compare_versions(context.table, untouched)
            case SwapColumn(desired, observed, is_begun):
                yield from _swap(desired, observed, context, is_begun=is_begun)
            case AbandonConversion(observed, stage, tags):
                if stage is ConversionStage.SWAPPING:
                    yield sql_rename_column(context.table, [old_name(observed.name)], observed.name)
                yield from _drops({new_name(observed.name): tags}, context)
    yield from _drops(
        {old_name(action.name): action.tags for action in actions if isinstance(action, DropFormerColumn)},
        context,
    )


def _drops(columns: Mapping[str, Iterable[str]], context: RenderContext) -> Iterator[str]:
    """Yield the drop of columns, by name with the keys of their tags: governed ones block it."""
    for name, tags in columns.items():
        if keys := [*tags]:
            yield sql_unset_tags(context.securable, keys, name)
    if columns:
        yield sql_drop_columns(context.table, [[name] for name in columns])


def _expansion(actions: Sequence[ExpandColumn], context: RenderContext) -> Iterator[str]:
    leftovers = [action.present for action in actions if action.present is not None]
    yield from _drops({column.name: column.tags for column in leftovers}, context)
    if actions:
        yield sql_add_columns(context.table, map(_new_definition, actions))


def _new_definition(action: ExpandColumn) -> str:
    """Return the definition of the new column: nullable until every row has a value."""
    desired, former = action.desired, action.observed.name
    definition = sql_column_definition((new_name(former),), desired.data_type, comment=desired.comment)
    return f"{definition} AFTER {quote_ident(former)}"


def _swap(desired: Column, observed: Column, context: RenderContext, *, is_begun: bool) -> Iterator[str]:
    """Yield the renames. The old column becomes nullable first: writers no longer know it."""
    if not is_begun:
        if not observed.is_nullable:
            yield sql_drop_not_null(context.table, [[observed.name]])
        yield sql_rename_column(context.table, [observed.name], old_name(observed.name))
    yield sql_rename_column(context.table, [new_name(observed.name)], desired.name)


def _is_told(fill: FillSwappedColumn) -> bool:
    """Whether rows that lack a value can be told from those that have to."""
    return fill.is_deterministic or not gives_null_on_purpose(fill.using)


def _is_suspicious(fill: FillColumn) -> bool:
    """Whether a NULL is a fault where every column that the expression reads has a value."""
    return not gives_null_on_purpose(fill.using)


def _lost_values(fill: FillColumn, table: str) -> str:
    """Return the query that fails if `using` gave NULL for values."""
    read = [f"{quote_ident(name)} IS NOT NULL" for name in sorted(referenced_columns(fill.using))]
    if not fill.is_converted:
        read = [
            condition for condition in read if condition != f"{quote_ident(fill.name.lower())} IS NOT NULL"
        ]
    lost = " AND ".join([f"{quote_ident(fill.target)} IS NULL", *read])
    return sql_refuse_rows(table, lost, _without_value(fill.name, table, lost))


def _missing_values(fill: FillSwappedColumn, table: str) -> str:
    """Return the query that fails if a row has a value in the former column alone."""
    lost = f"{quote_ident(fill.name)} IS NULL AND {fill.value} IS NOT NULL"
    if not fill.is_deterministic:  # no aggregate computes such values
        read = [f"{quote_ident(name)} IS NOT NULL" for name in sorted(referenced_columns(fill.source))]
        lost = " AND ".join([f"{quote_ident(fill.name)} IS NULL", *read])
    return sql_refuse_rows(table, lost, _without_value(fill.name, table, lost))


def _without_value(column: str, table: str, condition: str) -> str:
    return (
        f"rows have no value in {column} after its using. See them: SELECT * FROM {table} WHERE {condition}"
    )


def _explain(action: BackfillAction) -> Iterable[Change]:
    match action:
        case ExpandColumn(desired, observed):
            yield Change(f"column {new_name(observed.name)}", desired=shown_type(desired.data_type))
        case FillColumn(name, _, using):
            yield Change(f"column {name} values", desired=using)
        case SwapColumn(desired, observed):
            types = (observed.data_type, desired.data_type)
            before, after = map(shown_type, types)
            yield Change(f"column {desired.name} type", before, after, place=(desired.name,), types=types)
        case DropFormerColumn(name):
            yield Change(f"column {old_name(name)}", observed="the former values")
        case AbandonConversion(observed):
            yield Change(f"column {new_name(observed.name)}", observed="an abandoned conversion")
        case VerifyRows(fills) | VerifySwappedRows(fills):
            names = ", ".join(fill.name for fill in fills)
            yield Change(f"rows after filling {names}", desired="verified")
        case FillSwappedColumn(name):
            yield Change(f"column {name} values", desired="of rows that were added meanwhile")
        case BlockedFill(name, reason):
            yield Change(f"column {name} values", desired=reason)


class UsingDefinition(OpenStruct, frozen=True, kw_only=True):
    """How to compute the values of existing rows."""

    expression: str
    deterministic: bool = True


FACET: Facet[Column, Column, Using | None] = Facet(
    key="using",
    declared=lambda model: model.using,
    absent=None,
    form=Form(
        recorded_type=UsingDefinition | None,
        encode=lambda using: (
            using and UsingDefinition(expression=using.expression, deterministic=using.deterministic)
        ),
        decode=lambda using: using and Using(using.expression, using.deterministic),
        written_type=str | Using | None,
        read=lambda _place, using: Using(using) if isinstance(using, str) else using,
        write=lambda using: written_part(using, "expression"),
        words="string or mapping",
    ),
    meaning="the SQL expression for the values of existing rows when the column is new, gets another type or becomes "
    "NOT NULL, or `expression` with `deterministic: false`: see [Data changes](data-changes.md)",
    constructor="Using",
    takes_text=True,
    part=Part.COLUMNS,
    title="using",
)


class FillByDefinition(OpenStruct, frozen=True, kw_only=True):
    """The ranges by which a table gets its values."""

    column: str
    bounds: tuple[str, ...]


FILL_BY_FACET: Facet[Table, TableState, FillBy | None] = Facet(
    key="fill_by",
    declared=lambda model: model.fill_by,
    absent=None,
    form=Form(
        recorded_type=FillByDefinition | None,
        encode=lambda fill_by: fill_by and FillByDefinition(column=fill_by.column, bounds=fill_by.bounds),
        decode=lambda fill_by: fill_by and FillBy(fill_by.column, fill_by.bounds),
        written_type=FillBy | None,
        write=written_part,
        words="mapping",
    ),
    meaning="`column` and `bounds` of the ranges by which `using` gives a very large table its values: see "
    "[Data changes](data-changes.md#very-large-tables)",
    constructor="FillBy",
    part=Part.COLUMNS,
    title="fill_by",
)


def _takes_update(statement: str) -> Requirement:
    return Requirement(
        statement=statement, right=Right.MODIFY, demands="`SELECT` and `MODIFY`", source="UPDATE"
    )


def _takes_select(statement: str) -> Requirement:
    return Requirement(statement=statement, right=Right.SELECT, demands="`SELECT`", source="SELECT")


ASPECT: Aspect[BackfillAction] = Aspect(
    name="backfills",
    part=Part.COLUMNS,
    actions={
        ExpandColumn: takes_modify("ADD COLUMNS (conversion)"),
        FillColumn: _takes_update("UPDATE … SET (using)"),
        VerifyRows: _takes_select("SELECT (verification)"),
        SwapColumn: takes_ownership("RENAME COLUMN (conversion)"),
        FillSwappedColumn: _takes_update("UPDATE … SET (using, after the swap)"),
        VerifySwappedRows: _takes_select("SELECT (verification, after the swap)"),
        DropFormerColumn: takes_modify("DROP COLUMNS (conversion)"),
        AbandonConversion: takes_ownership("DROP COLUMNS (an abandoned conversion)"),
        BlockedFill: None,
    },
    diff=_diff,
    differences=_differences,
    accept=_accept,
    render=_render,
    explain=_explain,
    drift_kind=lambda _action: DriftKind.COLUMN_TYPE,
    is_of_columns=True,
)
