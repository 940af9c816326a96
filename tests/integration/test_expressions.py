"""Spark judges which expressions are the same: what counts as a difference in spelling alone gives the same values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyspark.sql import SparkSession

from delta_engine.sql.expressions import is_same_expression

ROWS = (
    "VALUES (1, 2, 2.50, 'Abc', date'2023-12-31', timestamp'2023-12-31 23:30:00', true, array(1, 2)), "
    "(7, -3, 0.10, '', date'2024-03-01', timestamp'2024-01-01 00:10:00', false, array()), "
    "(NULL, 5, NULL, NULL, NULL, NULL, NULL, NULL), "
    "(5, NULL, 1.00, 'é%x', date'2024-02-29', timestamp'2024-02-29 12:00:00', NULL, array(NULL)) "
    "AS t(a, b, n, s, d, ts, f, arr)"
)

EXPRESSIONS = [
    "a / 2",
    "(a + b) * 2 - n",
    "a - (b - 2) > 2",
    "-(a + b) % 2 = 0",
    "(a < b) IS NULL",
    "a > 2 OR (b > 2 AND f)",
    "(a > 2 OR b > 2) AND f",
    "NOT (a = 2 AND b = 2)",
    "NOT (a = b) OR f",
    "(f = (a > 2)) = f",
    "a = 2 OR NOT f AND b != 2",
    "a BETWEEN 1 AND (2 + b)",
    "(a BETWEEN 1 AND 2) OR f",
    "a IN (1, 2) AND (b) NOT IN (2)",
    "a <=> b",
    "a IS NOT NULL AND b IS NULL",
    "a & 2 = 2",
    "CAST(n AS int) > 1",
    "CAST(s AS string) = 'Abc'",
    "CAST(a AS bigint) * 2",
    "n::int + 2",
    "date_format(d, 'yyyy')",
    "to_date('2024-02', 'yyyy-MM') < d",
    "datediff(d, ts)",
    "date_trunc('MONTH', ts) = ts",
    "date'2024-02-29' >= d",
    "size(arr) = 2",
    "length(s) > 2",
    "coalesce(a, 2) + b",
    "substring(s, 2) = 'bc'",
    "s LIKE 'A%' OR s LIKE '%\\\\%%'",
    "upper(s) = 'ABC' OR s = \"\"",
    "exists(arr, x -> (x > 1))",
    "CASE WHEN (a > 2) THEN b ELSE -b END",
    "IF(a > 2, a, b) + 2",
    "interval '1' day + d",
    "1e0 + a",
    "2L * a",
    "get(arr, 0) + 2",
]

REPLACED = [
    ("2", "2.0"),
    ("2", "2.00"),
    ("2", "3"),
    ("1", "'1'"),
    ("2L", "2"),
    ("1e0", "1.0"),
    ("yyyy", "YYYY"),
    ("MM", "mm"),
    ("int", "bigint"),
    ("AS int", "AS integer"),
    ("bigint", "long"),
    ("string", "varchar(2)"),
    ("string", "char(5)"),
    ("CAST(n AS int)", "n::int"),
    ("CAST(n AS int)", "int(n)"),
    ("CAST(", "try_cast("),
    ("size", "array_size"),
    ("length", "octet_length"),
    ("coalesce", "nvl"),
    ("datediff(d, ts)", "datediff(ts, d)"),
    ("datediff(d, ts)", "datediff(day, ts, d)"),
    ("date_trunc('MONTH', ts)", "trunc(ts, 'MONTH')"),
    ("<", "<="),
    ("AND", "OR"),
    ("=", "=="),
    ("!=", "<>"),
    ("NOT ", "! "),
    ("NOT ", ""),
    ("LIKE", "ILIKE"),
    ("'A", "'a"),
    ('""', "''"),
    ("'1' day", "1 day"),
    ("get(arr, 0)", "element_at(arr, 1)"),
    ("x", "y"),
    ("a", "`A`"),
    ("a", "b"),
    (" / ", " div "),
    ("-", "- "),
]


def spellings(expression: str) -> Iterator[str]:
    """Yield other spellings, of the same and of something else."""
    yield f"({expression})"
    yield re.sub(r"'[^']*'|\w+", lambda word: word[0] if "'" in word[0] else word[0].swapcase(), expression)
    for old, new in REPLACED:
        for match in re.finditer(
            rf"(?<![\w`]){re.escape(old)}(?!\w)" if old.isalnum() else re.escape(old), expression
        ):
            yield expression[: match.start()] + new + expression[match.end() :]
    for match in re.finditer(r"\(", expression):
        depth, end = 0, match.start()
        for end in range(match.start(), len(expression)):
            depth += {"(": 1, ")": -1}.get(expression[end], 0)
            if depth == 0:
                break
        yield f"{expression[: match.start()]} {expression[match.end() : end]} {expression[end + 1 :]}"
        for other in range(end + 2, len(expression) + 1):
            yield f"{expression[: match.start()]}({expression[match.start() : other]}){expression[other:]}"


def test_what_counts_as_the_same_gives_the_same_values(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    def values(expression: str) -> object:
        """Return the type and the values, or why there are none."""
        try:
            result = spark.sql(f"SELECT ({expression}) AS found FROM {ROWS}")
            return result.schema[0].dataType, [row.found for row in result.collect()]
        except PySparkException as error:
            return error.getCondition()

    same = [
        (expression, other)
        for expression in EXPRESSIONS
        for other in dict.fromkeys(spellings(expression))
        if other != expression and is_same_expression(expression, other)
    ]
    assert len(same) > 2 * len(EXPRESSIONS)
    expected = {expression: values(expression) for expression in EXPRESSIONS}
    assert [value for value in expected.values() if not isinstance(value, tuple)] == []
    actual = {other: values(other) for _, other in same}
    wrong = [
        pair for pair in same if isinstance(actual[pair[1]], tuple) and actual[pair[1]] != expected[pair[0]]
    ]
    assert wrong == []
