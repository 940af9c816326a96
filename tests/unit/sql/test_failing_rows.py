"""The conditions of rows for which an expression fails. tests/integration holds them against Spark."""

from __future__ import annotations

import pytest

from delta_engine.sql.failing_rows import failure_condition

CAST = "(TRY_CAST(a AS INT) IS NULL AND a IS NOT NULL)"
DIVIDED = "(TRY_DIVIDE(1, b) IS NULL AND b IS NOT NULL)"


@pytest.mark.parametrize(
    ("expression", "condition"),
    [
        ("a::int", CAST),
        ("int(a)", CAST),
        ("CAST((cast(a as int)) AS int)", CAST),
        ("1 / b", DIVIDED),
        ("upper(cast(a as int))", CAST),
        ("a div b", "((a DIV NULLIF(b, 0)) IS NULL AND a IS NOT NULL AND b IS NOT NULL)"),
        ("mod(a, b)", "(TRY_MOD(a, b) IS NULL AND a IS NOT NULL AND b IS NOT NULL)"),
        ("to_date(a)", "(TRY_CAST(a AS DATE) IS NULL AND a IS NOT NULL)"),
        ("to_date(a, 'd/M/y')", "(TRY_CAST(TRY_TO_TIMESTAMP(a, 'd/M/y') AS DATE) IS NULL AND a IS NOT NULL)"),
        ("a[1]", "(a IS NOT NULL AND 1 >= size(a))"),
        ("element_at(a, -2)", "(a IS NOT NULL AND abs((-2)) > size(a))"),
        ("element_at + 1", "(TRY_ADD(element_at, 1) IS NULL AND element_at IS NOT NULL)"),
        ("cast(element_at as int)", "(TRY_CAST(element_at AS INT) IS NULL AND element_at IS NOT NULL)"),
        ("nullif(1 / b, 0)", DIVIDED),
        ("CASE WHEN b = 0 THEN 0 ELSE 1 / b END", f"CASE WHEN (b = 0) THEN false ELSE {DIVIDED} END"),
        ("CASE b WHEN 0 THEN 1 / b END", f"CASE WHEN b = 0 THEN {DIVIDED} ELSE false END"),
        ("if(b = 0, 0, 1 / b)", f"CASE WHEN (b = 0) THEN false ELSE {DIVIDED} END"),
        ("nvl2(b, 1 / b, 0)", f"CASE WHEN b IS NOT NULL THEN {DIVIDED} ELSE false END"),
        (
            "coalesce(c, 1 / b)",
            f"CASE WHEN c IS NOT NULL THEN false WHEN {DIVIDED} THEN true "
            "WHEN TRY_DIVIDE(1, b) IS NOT NULL THEN false ELSE false END",
        ),
        (
            "b <> 0 AND 1 / b > 2",
            f"CASE WHEN NOT coalesce((b <> 0), true) THEN false ELSE {DIVIDED} END",
        ),
        ("b = 0 OR 1 / b > 2", f"CASE WHEN coalesce((b = 0), false) THEN false ELSE {DIVIDED} END"),
    ],
)
def test_rows_fail_where_a_tolerant_form_gives_null(expression: str, condition: str) -> None:
    assert failure_condition(expression) == condition


@pytest.mark.parametrize(
    "expression",
    [
        "upper(a)",
        "coalesce(a, 'x')",
        "CASE WHEN a THEN b END",
        "m['key']",
        "element_at(m, 'key')",
        "DATE'2026-01-01'",
        "make_date(a, b, c)",
        "transform(a, x -> upper(x))",
    ],
)
def test_nothing_is_told_of_what_has_no_tolerant_form(expression: str) -> None:
    assert failure_condition(expression) is None


@pytest.mark.parametrize(
    "expression", ["transform(a, x -> cast(x AS int))", "decode(a, 1, 1 / b)", "(", "/ ".join(["a"] * 400)]
)
def test_rows_that_cannot_be_told_are_not_told(expression: str) -> None:
    assert failure_condition(expression) is None
