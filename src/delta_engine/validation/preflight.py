"""Looks at the rows that a plan puts conditions on, before any of it runs: one query per table.

NOT NULL is always looked for: a column that holds NULLs is refused with their count, and with how to fill it.
Whether rows meet an added CHECK is counted on demand; the platform looks as well, when it is too late to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.addressing import Addressing
from delta_engine.aspects.aspect import Comparison
from delta_engine.aspects.check_constraints import CheckAdd
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.errors import StatementError, UnsafePlanError
from delta_engine.models import Table
from delta_engine.sql import (
    quote_ident,
    sql_column_alias,
    sql_count_violations,
    sql_not_null_condition,
    sql_null_column,
)
from delta_engine.sql_expressions import is_same_expression
from delta_engine.sql_runner import SqlRunner
from delta_engine.state.states import CatalogState, TableState
from delta_engine.validation.refusals import plan_refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class _Condition:
    """What every row has to meet.

    Args:
        sql: the condition.
        column: the path of the column that becomes NOT NULL; empty for a check.
        check: the check's name; empty for a column.
    """

    sql: str
    column: tuple[str, ...] = ()
    check: str = ""


class Preflight:
    """Counts the rows that stand in a plan's way.

    Args:
        runner: runs the queries.
        addressing: how tables are addressed.
        parallelism: how many queries to have under way at once, at most.
        counts_checks: whether to look at added checks as well.
        notify: is told before rows are counted.
    """

    def __init__(
        self,
        runner: SqlRunner,
        addressing: Addressing,
        *,
        parallelism: int = 4,
        counts_checks: bool = False,
        notify: Callable[[str], None] = lambda _note: None,
    ) -> None:
        self._runner = runner
        self._addressing = addressing
        self._parallelism = parallelism
        self._counts_checks = counts_checks
        self._notify = notify

    def refusals(
        self, plan: TablePlan, models: Sequence[Table], observed: CatalogState
    ) -> tuple[UnsafePlanError, ...]:
        """Return why rows stand in the plan's way, table by table.

        Args:
            plan: the plan.
            models: what the tables shall become.
            observed: the snapshot that the plan was made from.
        """
        by_key = {model.qualified_name.key: model for model in models}
        looked_at = [
            (align, Comparison.of(by_key[align.table.key], observed.table(align.table)), conditions)
            for align in plan.align_tables
            for conditions in [tuple(self._conditions(align, observed.table(align.table)))]
            if conditions
        ]
        if not looked_at:
            return ()
        self._notify(f"counting rows of {len(looked_at)} table{'' if len(looked_at) == 1 else 's'} …")
        with ThreadPoolExecutor(self._parallelism, thread_name_prefix="preflight") as pool:
            found = pool.map(lambda one: tuple(self._looked_at(*one)), looked_at)
        return tuple(refusal for refusals in found for refusal in refusals)

    def _conditions(self, align: AlignTable, observed: TableState) -> Iterator[_Condition]:
        for change in align.of_type(ColumnNullabilityChange):
            if not change.make_nullable:
                path = (change.name, *change.path)
                yield _Condition(sql=sql_not_null_condition(*path), column=path)
        known = {check.name.lower(): check.expression for check in observed.checks}
        for add in align.of_type(CheckAdd) if self._counts_checks else ():
            check = add.desired
            if not is_same_expression(known.get(check.name.lower(), ""), check.expression):
                yield _Condition(sql=check.expression, check=check.name)

    def _looked_at(
        self, align: AlignTable, comparison: Comparison, conditions: Sequence[_Condition]
    ) -> Iterator[UnsafePlanError]:
        table = self._addressing.table(comparison.observed.former_name or align.table)
        sql = sql_count_violations(table, _as_it_will_be(comparison), [one.sql for one in conditions])
        try:
            (row,) = self._runner.run(sql)
        except StatementError as error:
            yield plan_refusal(
                align,
                f"its rows cannot be counted: {error.message.splitlines()[0]}",
                "Ask for SELECT on it: whoever puts conditions on rows has to see them.",
            )
            return
        for condition, count in zip(conditions, _counts(row), strict=True):
            if count:
                yield _violated(align, condition, count, table, comparison)


def _violated(
    align: AlignTable, condition: _Condition, count: int, table: str, comparison: Comparison
) -> UnsafePlanError:
    rows = f"{count:,} row{'' if count == 1 else 's'}"
    if not condition.column:
        return plan_refusal(
            align,
            f"check {condition.check} would not hold for {rows}: {condition.sql}",
            f"Correct them first: SELECT * FROM {table} WHERE NOT coalesce(({condition.sql}), false).",
        )
    former = {name.lower(): former for former, name in comparison.renames.columns}
    first, *inside = condition.column
    name = ".".join(map(quote_ident, (former.get(first.lower(), first), *inside)))
    return plan_refusal(
        align,
        f"it would become NOT NULL, and is NULL in {rows}",
        f"Fill it first: UPDATE {table} SET {name} = … WHERE {name} IS NULL. Then tighten it.",
        ".".join(condition.column),
    )


def _as_it_will_be(comparison: Comparison) -> list[str]:
    """Return the columns that a query has to add for conditions to find what the plan renames and adds."""
    renamed = [sql_column_alias(former, name) for former, name in comparison.renames.columns]
    return renamed + [sql_null_column(column.name, column.data_type) for column in comparison.added]


def _counts(row: Mapping[str, object]) -> list[int]:
    return [int(str(value)) for value in row.values()]
