"""The look at rows before anything runs: which query, what is refused, and what is never asked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import StatementError
from delta_engine.models import CheckConstraint, Column, Table
from delta_engine.state.states import ABSENT, TableState
from delta_engine.validation.preflight import Preflight
from tests.builders.models import catalog_of
from tests.cases.golden_texts import assert_golden_lines
from tests.fakes.recording_sql_runner import RecordingSqlRunner


class CountingRows(RecordingSqlRunner):
    def __init__(self, *counts: int) -> None:
        super().__init__()
        self._counts = counts

    def run(self, sql: str) -> Sequence[Row]:
        super().run(sql)
        return [{f"violations_{place}": str(count) for place, count in enumerate(self._counts)}]


def orders(*columns: Column, checks: Sequence[CheckConstraint] = ()) -> Table:
    return Table("dev", "silver", "orders", columns, checks=checks)


def looked(
    model: Table, state: TableState, runner: RecordingSqlRunner, *, counts_checks: bool = True
) -> list[str]:
    """Plan, and return what the look at the rows refuses."""
    snapshot = catalog_of([model], state)
    plan = TablePlanner().plan([model], snapshot)
    preflight = Preflight(runner, CatalogAddressing(), counts_checks=counts_checks)
    return [str(refusal).partition(": ")[2] for refusal in preflight.refusals(plan, [model], snapshot)]


class Refusing(RecordingSqlRunner):
    def __init__(
        self, condition: str = "INSUFFICIENT_PERMISSIONS", message: str = "no SELECT\nfor you"
    ) -> None:
        super().__init__()
        self._condition, self._message = condition, message

    def run(self, sql: str) -> Sequence[Row]:
        super().run(sql)
        raise StatementError(self._message, sql=sql, error_class=self._condition)


class FailingRows(RecordingSqlRunner):
    """A platform that fails to compute values, and counts the rows; None if it cannot do that, either."""

    def __init__(self, *counts: int | None) -> None:
        super().__init__()
        self._counts = counts

    def run(self, sql: str) -> Sequence[Row]:
        super().run(sql)
        if "sum(" in sql or None in self._counts:
            raise StatementError(
                "[DIVIDE_BY_ZERO] Division by zero.\nJVM", sql=sql, error_class="DIVIDE_BY_ZERO"
            )
        return [{f"rows_{place}": str(count) for place, count in enumerate(self._counts)}]


CONVERTED = orders(
    Column("id", "bigint", is_nullable=False, using="coalesce(id, 0)"),
    Column("amount", "int", using="cast(replace(amount, ',', '') AS int)"),
    Column("ratio", "double", using="10 / share"),
    Column("share", "int"),
)
CONVERTED_BEFORE = (Column("id", "bigint"), Column("amount", "string"), Column("share", "int"))
ADDED = orders(Column("id", "bigint"), Column("made", "date", using="make_date(id, 1, 1)"))
RENAMED = orders(
    Column("id", "bigint", is_nullable=False, renamed_from="key"),
    Column("note", "string"),
    checks=[CheckConstraint("noted", "length(note) > id")],
)
NESTED = orders(
    Column(
        "place",
        "struct<code: string not null, inner: struct<y: int, z: int>>",
        renamed_from="address",
        renamed_fields={"code": "zip", "inner.y": "x"},
    ),
    Column("lines", "array<struct<a: int, c: int>>", renamed_fields={"element.a": "b"}),
    Column("named", "map<string, struct<a: int, n: int>>"),
    Column("same", "array<struct<a: int>>"),
    checks=[CheckConstraint("coded", "place.code <> '' AND lines[0].c > 0")],
)
NESTED_BEFORE = (
    Column("address", "struct<zip: string, inner: struct<x: int, z: int>>"),
    Column("lines", "array<struct<b: int>>"),
    Column("named", "map<string, struct<a: int>>"),
    Column("Same", "array<struct<a: int>>"),
)
REQUIRED = orders(*(Column(name, "int", is_nullable=False) for name in ("a", "b", "C d")))
CHECKED = orders(Column("id", "bigint"), checks=[CheckConstraint("half", "10 / id > 2")])
LOOKS: dict[str, tuple[Table, Sequence[Column], RecordingSqlRunner]] = {
    "nulls-in-one-query": (
        REQUIRED,
        [Column(n, "int") for n in ("a", "b", "C d")],
        CountingRows(1_234, 0, 1),
    ),
    "renamed-and-added-columns": (RENAMED, [Column("key", "bigint")], CountingRows(3, 7)),
    "renamed-and-added-fields": (NESTED, NESTED_BEFORE, CountingRows(2, 3)),
    "rows-whose-values-fail": (CONVERTED, CONVERTED_BEFORE, FailingRows(0, 1_002, 1)),
    "rows-that-cannot-be-told": (CONVERTED, CONVERTED_BEFORE, FailingRows(None)),
    "values-that-fail-elsewhere": (ADDED, [Column("id", "bigint")], FailingRows(0)),
    "values-that-can-be-computed": (CONVERTED, CONVERTED_BEFORE, CountingRows(0)),
    "checks-that-cannot-be-counted": (
        CHECKED,
        CHECKED.columns,
        Refusing("DIVIDE_BY_ZERO", "Division by zero."),
    ),
    "checks-that-may-not-be-counted": (CHECKED, CHECKED.columns, Refusing()),
    "checks-of-converted-columns": (
        replace(CONVERTED, checks=CHECKED.checks),
        CONVERTED_BEFORE,
        CountingRows(0, 1, 2),
    ),
    "checks-while-the-platform-is-throttled": (
        CHECKED,
        CHECKED.columns,
        Refusing("REQUEST_LIMIT_EXCEEDED", "too many requests"),
    ),
    "checks-without-an-answer": (CHECKED, CHECKED.columns, RecordingSqlRunner()),
    "checks-without-a-count": (CHECKED, CHECKED.columns, CountingRows()),
    "rows-that-may-not-be-counted": (REQUIRED, [Column(n, "int") for n in ("a", "b", "C d")], Refusing()),
}


@pytest.mark.parametrize("name", LOOKS)
def test_rows_are_counted_and_refused_with_a_way_out(name: str, request: pytest.FixtureRequest) -> None:
    model, columns, runner = LOOKS[name]
    refused = looked(model, TableState(columns=tuple(columns)), runner)
    lines = [*runner.statements, *refused]
    assert_golden_lines(lines, Path(__file__).parent / "preflight" / f"{name}.txt", request)


def test_checks_are_counted_unless_they_hold_already_or_it_is_switched_off() -> None:
    columns = (Column("id", "int"),)
    checks = [CheckConstraint("positive", "id > 0"), CheckConstraint("small", "id < 9")]
    state = TableState(columns=columns, checks=(CheckConstraint("small", "(ID < 9)"),))
    asked = CountingRows(0)
    assert looked(orders(*columns, checks=checks), state, asked) == []
    assert len(asked.statements) == 1
    assert "id > 0" in asked.statements[0]
    assert "9" not in asked.statements[0]
    not_asked = CountingRows()
    assert looked(orders(*columns, checks=checks), state, not_asked, counts_checks=False) == []
    assert not_asked.statements == []
    widened = orders(Column("id", "bigint"), checks=checks[1:])
    assert looked(widened, state, not_asked) == []
    assert not_asked.statements == []


def test_a_check_that_holds_is_counted_if_its_column_gets_other_values() -> None:
    check = CheckConstraint("positive", "amount > 0")
    model = orders(Column("amount", "int", using="cast(amount AS int) - 1"), checks=[check])
    state = TableState(columns=(Column("amount", "string"),), checks=(check,))
    (refused,) = looked(model, state, CountingRows(3))
    assert refused.partition(": ")[2].startswith("check positive would not hold for 3 rows: amount > 0. ")


def test_nothing_is_asked_of_new_tables_and_of_columns_that_become_nullable() -> None:
    runner = CountingRows()
    required = orders(Column("id", "int", is_nullable=False), checks=[CheckConstraint("positive", "id > 0")])
    assert looked(required, ABSENT, runner) == []
    assert looked(orders(Column("id", "int")), TableState(columns=required.columns), runner) == []
    assert runner.statements == []


def test_fields_inside_structs_that_are_null_are_not_null_themselves() -> None:
    runner = CountingRows(0)
    model = orders(Column("st", "struct<a: int not null>"))
    state = TableState(columns=(Column("st", "struct<a: int>"),))
    assert looked(model, state, runner) == []
    assert "(`st` IS NULL OR `st`.`a` IS NOT NULL)" in runner.statements[0]


def test_a_value_is_computed_from_the_former_name() -> None:
    runner = CountingRows(0)
    model = orders(
        Column("id", "bigint"),
        Column("area", "string", is_nullable=False, renamed_from="region", using="'x'"),
    )
    assert not looked(model, TableState(columns=(Column("id", "bigint"), Column("region", "string"))), runner)
    assert "coalesce(`region`, CAST(('x') AS string)) AS `area`" in runner.statements[0]
