"""Counts rows that violate the conditions of a plan before it runs, with one query per table.

NULLs in columns that become NOT NULL are always counted, violations of added CHECKs unless that is switched off: the
platform checks them only during the apply, after other statements. Values that `using` computes are counted as they
will be, and the query computes all of them: if it fails, a second one counts the rows for which they fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.aspects.backfill_actions import FillColumn
from delta_engine.aspects.backfills import future_values
from delta_engine.aspects.check_constraints import CheckAdd
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.conversions import set_aside
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.backends.sql_runner import Row, SqlRunner, query_each
from delta_engine.errors import StatementError, UnsafePlanError
from delta_engine.models import Table
from delta_engine.models.nested_types import lower_path
from delta_engine.sql.backfills import sql_checksum, sql_converted
from delta_engine.sql.constraints import sql_not_null_condition
from delta_engine.sql.expressions import is_same_expression, reads
from delta_engine.sql.failing_rows import failure_condition
from delta_engine.sql.queries import (
    sql_as_it_will_be,
    sql_column_alias,
    sql_count_violations,
    sql_count_where,
    sql_null,
    sql_select,
    sql_violation,
)
from delta_engine.sql.text import quote_ident, sql_path
from delta_engine.state.states import CatalogState, TableState
from delta_engine.telemetry.context import spoken
from delta_engine.telemetry.visible import counted
from delta_engine.validation.rules import DEFAULTS_FILL_NO_ROWS, plan_refusal, quoted_text

_NEEDS_SELECT = "Ask for SELECT on it: the engine has to count the rows that violate a new condition."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """A condition for every row: of a column that becomes NOT NULL, by its path, or of a named check."""

    sql: str
    column: tuple[str, ...] = ()
    check: str = ""


@dataclass(frozen=True, slots=True)
class Preflight:
    """Counts the rows that violate a plan; `notify` is called before each count.

    Args:
        counts_checks: whether to count the rows that added CHECKs refuse.
    """

    runner: SqlRunner
    addressing: Addressing
    _: KW_ONLY
    parallelism: int = 4
    counts_checks: bool = True
    notify: Callable[[str], None] = lambda _note: None

    def refusals(
        self, plan: TablePlan, models: Sequence[Table], observed: CatalogState
    ) -> tuple[UnsafePlanError, ...]:
        """Return a refusal per violated condition, table by table."""
        by_key = {model.qualified_name.key: model for model in models}
        conditional = [
            (align, by_key[align.table.key], observed.table(align.table), conditions)
            for align in plan.align_tables
            for conditions in [tuple(self._conditions(align, observed.table(align.table)))]
            if conditions or align.of_type(FillColumn)
        ]
        if not conditional:
            return ()
        self.notify(f"counting rows of {counted(len(conditional), 'table')} …")
        violations = query_each(
            lambda arguments: tuple(self._violations(*arguments)), conditional, self.parallelism
        )
        return tuple(refusal for _, refusals in violations for refusal in refusals)

    def _conditions(self, align: AlignTable, observed: TableState) -> Iterator[_Condition]:
        for change in align.of_type(ColumnNullabilityChange):
            if not change.make_nullable:
                path = (change.name, *change.path)
                yield _Condition(sql=sql_not_null_condition(*path), column=path)
        stored = {check.name.lower(): check.expression for check in observed.checks}
        filled = [fill.name for fill in align.of_type(FillColumn)]
        for add in align.of_type(CheckAdd) if self.counts_checks else ():
            check = add.desired
            holds_now = is_same_expression(stored.get(check.name.lower(), ""), check.expression)
            if not holds_now or any(reads(check.expression, (name,)) for name in filled):
                yield _Condition(sql=check.expression, check=check.name)

    def _violations(
        self, align: AlignTable, model: Table, observed: TableState, conditions: Sequence[_Condition]
    ) -> Iterator[UnsafePlanError]:
        comparison = Comparison.of(model, observed)
        table = self.addressing.table(observed.former_name or align.table)
        fills = align.of_type(FillColumn)
        values = {**_filled_again(fills), **future_values(comparison)}
        rows = _rows(table, comparison, observed, values)
        filled = [column for column in model.columns if fills and column.key in values]
        computed = [sql_checksum(column.name, column.data_type) for column in filled]
        query = sql_count_violations(rows, [condition.sql for condition in conditions], computed)
        try:
            answer = self.runner.run(query)
        except StatementError as error:
            named = {column.name: values[column.key] for column in filled}
            if failures := list(self._failures(align, table, named, error)):
                yield from failures
                return
            yield plan_refusal(
                align,
                f"its {'new values cannot be computed' if fills else 'rows cannot be counted'}: {error.first_line}",
                _way_out(error, query, fills, conditions),
                fills[0].name if fills else None,
            )
            return
        counts = _counts(answer, len(conditions))
        if counts is None:
            yield plan_refusal(
                align,
                "its rows cannot be counted: the platform returned no count",
                f"Plan again. If it fails again, try the query: {query}",
            )
            return
        for condition, count in zip(conditions, counts, strict=True):
            if count:
                violated = counted(count, "row")
                if condition.column:
                    yield plan_refusal(
                        align,
                        *_null_rows(
                            condition.column,
                            violated,
                            table,
                            sql_path(_former_path(condition.column, comparison)),
                            _default_of(model, condition.column),
                        ),
                    )
                else:
                    yield plan_refusal(
                        align,
                        f"check {condition.check} would not hold for {violated}: {condition.sql}",
                        f"Correct them first: SELECT * FROM {rows} WHERE {sql_violation(condition.sql)}.",
                    )

    def _failures(
        self, align: AlignTable, table: str, values: Mapping[str, str], error: StatementError
    ) -> Iterator[UnsafePlanError]:
        """Yield the columns whose values cannot be computed for some rows, as far as these can be told."""
        told = ((name, failure_condition(value)) for name, value in values.items())
        failing = {name: condition for name, condition in told if condition is not None}
        try:
            answer = self.runner.run(sql_count_where(table, failing.values())) if failing else ()
        except StatementError:  # the first error says more
            return
        counts = [int(str(row[f"rows_{place}"])) for row in answer for place in range(len(failing))]
        for (name, condition), count in zip(failing.items(), counts, strict=True):
            if count:
                yield plan_refusal(
                    align,
                    f"its using fails for {counted(count, 'row')}. The platform says: {error.first_line}",
                    "Correct it, or let it give NULL for them (nullif, try_cast, try_divide). See them: "
                    f"SELECT * FROM {table} WHERE {condition}",
                    name,
                )


def _counts(answer: Sequence[Row], conditions: int) -> list[int] | None:
    """Return how many rows violate each condition; None if the answer does not say it."""
    row = next(iter(answer), {})
    counts = [row.get(f"violations_{place}") for place in range(conditions)]
    return None if None in counts else [int(str(count)) for count in counts]


def _way_out(
    error: StatementError, query: str, fills: Sequence[FillColumn], conditions: Sequence[_Condition]
) -> str:
    """Return the fix for rows that cannot be counted."""
    if fills:
        return f"Correct its using, and try it: {query}"
    has_check = any(condition.check for condition in conditions)
    if is_forbidden(error):
        uncounted = spoken("--no-preflight", "preflight=False")
        return (
            f"{_NEEDS_SELECT} To add CHECKs without a count, pass {uncounted}."
            if has_check
            else _NEEDS_SELECT
        )
    correct = "correct the check, and " if has_check else ""
    return f"Plan again. If it fails again, {correct}try the query: {query}"


def _default_of(model: Table, path: tuple[str, ...]) -> str | None:
    """Return the default of a column; None for fields, which have no default."""
    return next(
        (column.default for column in model.columns if (column.key,) == tuple(map(str.lower, path))), None
    )


def _null_rows(
    path: Sequence[str], violated: str, table: str, name: str, default: str | None
) -> tuple[str, str, str]:
    """Return why a column does not become NOT NULL, the way out, and the column.

    Args:
        name: its present name in SQL.
    """
    reason = f"it would become NOT NULL, but is NULL in {violated}"
    reason += f": {DEFAULTS_FILL_NO_ROWS}" if default is not None else ""
    value = "…" if default is None else default
    using = quoted_text(f"coalesce({name}, {value})")
    by_hand = f"UPDATE {table} SET {name} = {value} WHERE {name} IS NULL."
    return (
        reason,
        f"Define a value for these rows (using: {using}), or fill them by hand: {by_hand}",
        ".".join(path),
    )


def _filled_again(fills: Iterable[FillColumn]) -> dict[str, str]:
    """Return the SQL of filled columns by key, as far as they exist: an unfinished run may have added them."""
    return {
        fill.name.lower(): f"coalesce({quote_ident(fill.name)}, {sql_converted(fill.using, fill.data_type)})"
        for fill in fills
        if not fill.is_converted
    }


def _rows(table: str, comparison: Comparison, observed: TableState, values: Mapping[str, str]) -> str:
    """Return the SQL of a table's rows with their future columns and fields, NULL for new ones without values."""
    present_columns = set_aside(observed, comparison.desired)[0].columns
    so_far = {
        same.key: column for column, same in zip(present_columns, comparison.observed.columns, strict=True)
    }
    columns = []
    for desired, renamed in comparison.shared:
        if desired.key in values:
            columns.append(sql_column_alias(values[desired.key], desired.name))
            continue
        present = so_far[renamed.key]
        place = quote_ident(present.name)
        there = sql_as_it_will_be(place, present.data_type, renamed.data_type, desired.data_type)
        columns.append(sql_column_alias(there, renamed.name))
    columns += [
        sql_column_alias(values.get(column.key) or sql_null(column.data_type), column.name)
        for column in comparison.added
    ]
    is_the_same = {*columns} <= {quote_ident(column.name) for column in observed.columns}
    return table if is_the_same else sql_select(table, columns)


def _former_path(path: Sequence[str], comparison: Comparison) -> list[str]:
    first, *inside = path
    former = comparison.renames.former_names
    fields = {lower_path(new): old[-1] for old, new in comparison.renames.fields.items()}
    places = (tuple(map(str.lower, path[:depth])) for depth in range(2, len(path) + 1))
    return [
        former.get(first.lower(), first),
        *(fields.get(place, name) for place, name in zip(places, inside, strict=True)),
    ]
