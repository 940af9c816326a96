"""Functions: their statements as exact text, and what is read of their bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_engine.models.functions import Function, FunctionName, Parameter
from delta_engine.sql import functions
from delta_engine.sql.function_bodies import (
    MAX_BODY_BYTES,
    body_doubt,
    body_problem,
    call_cycles,
    called_functions,
)
from tests.cases.golden_texts import assert_golden_lines

NAME = FunctionName("Dev", "governance", "mask `it`")


def sql_function(body: str, **changes: Any) -> Function:
    arguments: dict[str, Any] = {"returns": "string", "parameters": [Parameter("email", "string")], **changes}
    return Function("dev", "governance", "mask_email", body=body, **arguments)


def python_function(body: str) -> Function:
    return sql_function(body, language="python")


STATEMENTS = [
    functions.sql_create_function(sql_function("regexp_replace(email, '^[^@]+', '***')")),
    functions.sql_create_function(sql_function("  'it''s' || email -- ${x}\n"), replaces=True),
    functions.sql_create_function(
        sql_function(
            "SELECT max(a) FROM dev.governance.allowed",
            parameters=[
                Parameter("a `b`", "decimal(18,2)", default="1.5", comment="what's it"),
                Parameter("s", "struct<x: int>", default="named_struct('x', 'it''s')"),
            ],
            comment="Shows ${x}",
            is_deterministic=False,
            returns="array<int>",
        )
    ),
    functions.sql_create_function(sql_function("1", parameters=[], returns="int", is_deterministic=True)),
    functions.sql_drop_function(NAME),
    functions.sql_drop_function_if_exists(NAME),
    functions.sql_describe_function(NAME),
    functions.sql_set_function_tag(NAME, "cost `center`", "hr dept"),
    functions.sql_set_function_tag(NAME, "pii", ""),
    functions.sql_unset_function_tag(NAME, "cost `center`"),
]


def test_statements(request: pytest.FixtureRequest) -> None:
    assert_golden_lines(STATEMENTS, Path(__file__).parent / "golden" / "functions.sql", request)


@pytest.mark.parametrize(
    ("body", "quote"),
    [("return email", "$$"), ("return '$$'", "$py1$"), ("return '$$ $py1$'", "$py2$"), ("return '$'", "$$")],
)
def test_a_python_body_stands_in_dollars_that_it_does_not_contain(body: str, quote: str) -> None:
    sql = functions.sql_create_function(python_function(body))
    assert sql.endswith(f" RETURNS string LANGUAGE PYTHON AS {quote}\n{body}\n{quote}")
    assert sql.count(quote) == 2


def test_a_python_body_keeps_its_indentation_and_inner_lines() -> None:
    body = "\nif email:\n    return email\n\nreturn None\n"
    assert functions.submitted_body(python_function(body)) == body.strip("\n")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("email", None),
        ("SELECT 1", None),
        ("(SELECT max(a) FROM t)", None),
        ("email -- ends in a comment; with a semicolon (", None),
        ("concat(email, ';(', '${x}')", None),
        ("'" + "a" * 100_000 + "'", None),
        (" \n", "its body is empty"),
        ("'" + "a" * MAX_BODY_BYTES + "'", "its body is larger than 1 MiB"),
        ("email\0", "its body contains a NUL character"),
        ("email -- ${x}", "its body contains ${, which Spark reads as a variable"),
        ("RETURN email", "its body begins with RETURN, which the engine writes"),
        ("email;", "its body contains a semicolon"),
        ("email; DROP TABLE t", "its body contains a semicolon"),
        ("upper(email", "its body has an unmatched parenthesis"),
        ("email) RETURN (1", "its body has an unmatched parenthesis"),
        ("'email", "its body is not SQL: a string, a quoted name or a comment does not end"),
        ("email /* note", "its body is not SQL: a string, a quoted name or a comment does not end"),
    ],
)
def test_what_no_platform_runs_is_a_problem(body: str, problem: str | None) -> None:
    found = body_problem(sql_function(body))
    assert (found and found[0]) == problem
    assert found is None or found[1]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("return email", None),
        ("return email; x = (", None),
        ("return '$$'", None),
        ("return f'${email}'", "its body contains ${, which Spark reads as a variable"),
        ("\n\n", "its body is empty"),
    ],
)
def test_problems_of_python_bodies(body: str, problem: str | None) -> None:
    found = body_problem(python_function(body))
    assert (found and found[0]) == problem


@pytest.mark.parametrize(
    ("function", "doubt"),
    [
        (sql_function("CASE WHEN is_account_group_member('hr') THEN email ELSE '***' END"), None),
        (sql_function("WITH a AS (SELECT 1 AS b) SELECT b FROM a"), None),
        (sql_function("email +"), "sqlglot does not read its body as SQL"),
        (sql_function("email email"), "sqlglot does not read its body as SQL"),
        (sql_function("DROP TABLE t"), "sqlglot does not read its body as SQL"),
        (python_function("def f(x):\n    return x\nreturn f(email)"), None),
        (python_function("    x = 1\n    return x"), None),
        (python_function("return email +"), "its body is not valid Python in line 1: invalid syntax"),
        (python_function("x = email"), "its body returns nothing: write return"),
    ],
)
def test_what_a_parser_does_not_read_is_a_doubt(function: Function, doubt: str | None) -> None:
    assert body_doubt(function) == doubt


@pytest.mark.parametrize(
    ("body", "called"),
    [
        ("upper(email) || is_account_group_member('hr')", []),
        ("dev.governance.clean(email)", ["dev.governance.clean"]),
        ("CASE WHEN Dev.g.is_hr() THEN g.len(email) ELSE `dev`.`g b`.`f.g`(email) END", [
            "dev.g b.f.g", "dev.g.is_hr", "dev.g.len",
        ]),
        ("transform(xs, x -> dev.default.f(x))", ["dev.default.f"]),
        ("dev . governance . clean (email)", ["dev.governance.clean"]),
        ("'dev.g.f(x)' -- dev.g.h(x)", []),
        ("(SELECT max(t.a) FROM dev.g.t AS t WHERE t.a IN (1, 2)) + a.b.c", []),
        ("(SELECT 1 FROM dev.g.rows(3))", ["dev.g.rows"]),
        ("not SQL (", []),
    ],
)  # fmt: skip
def test_called_functions(body: str, called: list[str]) -> None:
    assert sorted(name.key for name in called_functions(sql_function(body))) == called


def test_a_python_body_calls_no_functions() -> None:
    function = python_function("return dev.g.f(email)")
    assert not called_functions(function)


@pytest.mark.parametrize(
    ("calls", "cycles"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"a"}}, [("a",)]),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [("a", "b")]),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d", "a"}}, [("b", "c"), ("d",)]),
        ({"a": {"elsewhere"}}, []),
    ],
)
def test_call_cycles(calls: dict[str, set[str]], cycles: list[tuple[str, ...]]) -> None:
    assert call_cycles(calls) == cycles


def test_calls_without_circles_are_followed_once() -> None:
    calls = {str(number): {str(number + 1)} for number in range(30_000)}
    assert call_cycles(calls) == []
