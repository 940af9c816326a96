"""Expressions: what counts as the same, what can be a condition, which columns are read."""

import pytest

from delta_engine.sql.expressions import (
    condition_problem,
    expression_problem,
    generation_problem,
    is_same_expression,
    reads,
    referenced_columns,
)


@pytest.mark.parametrize(
    ("expression", "other"),
    [
        ("(A > 0 or `b` != 'x') AND c <> 1.0", '((`a` > 0) OR (b <> "x")) and (C != 1.0)'),
        ("x::int > 1", "CAST(X AS integer) > 1"),
        ("a IS NOT NULL", "not (a is null)"),
        ("my_function(a.B)", "My_Function(`A`.b)"),
        ("((a)) > 1e0", "a > 1E0"),
        ("date '2020-01-01' < d", "DATE'2020-01-01' < D"),
        ("a = 1 and b = 1 and c = 1", "(a = 1 and b = 1) and c = 1"),
        ("a > 1 -- text", "a > 1"),
        (" a >", "a > "),
    ],
)
def test_spelling_makes_no_difference(expression: str, other: str) -> None:
    assert is_same_expression(expression, other)


@pytest.mark.parametrize(
    ("expression", "other"),
    [
        ("a or b and c", "(a or b) and c"),
        ("a - (b - c) > 0", "a - b - c > 0"),
        ("a = 'x'", "a = 'X'"),
        ("a > 1", "a >= 1"),
        ("a > 10", "a > 1"),
        ("a >", "a <"),
        ("a / 2", "a / 2.0"),
        ("a * 1.0", "a * 1.00"),
        ("date_format(d, 'yyyy') > '1'", "date_format(d, 'YYYY') > '1'"),
        ("cast(a as string)", "cast(a as varchar(5))"),
        ("datediff(a, b)", "datediff(day, b, a)"),
        ("size(a) > 0", "array_size(a) > 0"),
    ],
)
def test_meaning_does(expression: str, other: str) -> None:
    assert not is_same_expression(expression, other)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("a > 0 AND exists(b, x -> x > 1)", None),
        ("greatest(a, b) > 1", None),
        ("a > 0) or (1 = 1", "is not a SQL expression"),
        ("a > 0; drop table t", "is not a SQL expression"),
        ("", "is not a SQL expression"),
        ("a > 0 -- really", "contains a comment"),
        ("a in (select 1)", "contains a subquery"),
        ("exists (select 1 from t)", "contains a subquery"),
        ("sum(a) > 1", "reads more than one row"),
        ("sum(a) over (partition by b) > 1", "reads more than one row"),
        ("rank() > 1", "reads more than one row"),
        ("any(a)", "reads more than one row"),
        ("a LIKE ANY ('x', 'y')", None),
        ("try_sum(a) > 1", "reads more than one row"),
        ("count(*) > 1", "reads more than one row"),
        ("explode(a) > 1", "returns several rows for one row"),
        ("stack(1, a) > 1", "returns several rows for one row"),
        ("a > :x", "contains a parameter"),
        ("a > ?", "contains a parameter"),
        ("{x} > 1", "contains a parameter"),
        ("*", "holds a *"),
        ("struct(t.*) IS NULL", "holds a *"),
        ("1;2", "is not a SQL expression"),
        ("a > 0;", "is not a SQL expression"),
        ("if > 1", "is not a SQL expression"),
        ("rand() > 0.5", "returns another value each time"),
        ("uuid() <> a", "returns another value each time"),
        ("current_date() > a", None),
        ("1", "is not a condition"),
        ("(a + 1)", "is not a condition"),
        ("null", "is not a condition"),
        ("a", None),
        ("a > '${x}'", None),
        ("a > `${x}`", "contains ${ outside a string, which Spark reads as a variable"),
    ],
)
def test_conditions_are_about_one_row(expression: str, problem: str | None) -> None:
    assert condition_problem(expression) == problem


def test_values_may_be_anything_that_one_row_gives() -> None:
    assert expression_problem("a + 1") is None
    assert expression_problem("uuid()") == "returns another value each time"
    assert expression_problem("current_timestamp()") is None
    assert generation_problem("a + 1") is None
    assert generation_problem("max(a)") == "reads more than one row"
    for now in ("current_timestamp()", "now()", "current_user", "session_user() = a", "current_timezone()"):
        assert generation_problem(now) == "depends on the time or the user of the query"


def test_columns_are_found_by_their_first_name() -> None:
    assert referenced_columns("Address.zip > 0 and `b c` and exists(d, x -> x > 1)") == {
        "address",
        "b c",
        "d",
    }
    assert referenced_columns("a >") == frozenset()


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        ("list[0] > 1", "list"),
        ("`list`[0] > 1", "list"),
        ("array[0].x > 1", "array"),
        ("ARRAY['k'] > 1", "array"),
        ("payload.list[0] > 1", "payload"),
        ("map[0] > 1", "map"),
    ],
)
def test_columns_that_are_called_like_types_are_columns(expression: str, column: str) -> None:
    assert referenced_columns(expression) == {column}
    assert reads(expression, (column,))
    assert is_same_expression(expression, f"({expression})")


def test_arrays_that_an_expression_makes_are_no_columns() -> None:
    assert referenced_columns("array(1, 2)[0] > list(a)[0]") == {"a"}


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        (("st",), True),
        (("ST", "A"), True),
        (("st", "b"), False),
        (("st", "c"), True),
        (("st", "c", "e"), False),
        (("st", "c", "d", "f"), True),
        (("lines", "x"), True),
        (("a",), False),
    ],
)
def test_nested_places_are_read_with_their_surroundings(path: tuple[str, ...], is_read: bool) -> None:
    assert reads("st.a + `St`.c.D > size(lines[0].x)", path) is is_read


def test_any_word_may_be_a_column_of_an_expression_that_only_the_platform_parses() -> None:
    expression = "case > 0 and `Street No` <> 'zip'"
    assert referenced_columns(expression) == frozenset()
    assert reads(expression, ("CASE",))
    assert reads(expression, ("street no",))
    assert reads(expression, ("case", "inside"))
    assert not reads(expression, ("zip",))


def test_an_expression_of_any_length_is_compared() -> None:
    many = " AND ".join(f"c{number} > 0" for number in range(5000))
    assert is_same_expression(many, many)
    assert not is_same_expression(many, many.replace("c9 > 0", "c9 > 1"))
