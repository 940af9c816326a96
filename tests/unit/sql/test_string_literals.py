"""String literals of expressions: each form becomes the one that every reader reads alike."""

import pytest

from delta_engine.models import SchemaName
from delta_engine.models.types import AtomicType
from delta_engine.sql.backfills import sql_converted
from delta_engine.sql.columns import sql_default, sql_generation, sql_set_defaults
from delta_engine.sql.constraints import sql_add_check
from delta_engine.sql.expressions import (
    is_same_expression,
    is_text_literal,
    referenced_columns,
    with_column_renamed,
)
from delta_engine.sql.failing_rows import failure_condition
from delta_engine.sql.queries import sql_violation
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.view_queries import lost_reads


@pytest.mark.parametrize(
    ("written", "portable"),
    [
        ("status IN ('new', 'it''s')", r"status IN ('new', 'it\'s')"),
        ("'it' 's'", "'its'"),
        ("'a'\n\t\"b\" r'c'", "'abc'"),
        ("'a' /* '' */ 'b' -- it's\n'c'", "'abc'"),
        ('"it\'s"', r"'it\'s'"),
        ('"a""b" "a\'\'b"', r"""'a"ba\'\'b'"""),
        (r"r'^\d+\'", r"'^\\d+\\'"),
        (r"""R"a'b\" """, r"'a\'b\\' "),
        ("r'a''b'", "'ab'"),
        (r"'a\d\%\_'", r"'ad\\%\\_'"),
        (r"'\u0041\U0001F600\101\400\x'", "'A😀A400x'"),
        (r"'\ud83d\ude00'", "'😀'"),
        (r"'\ud83d' || '\ud83d' '\ude00'", "'?' || '😀'"),
        (r"'\0' '12'", r"'\u000012'"),
        ("'${x}'", r"'$\{x}'"),
        ("'a\nb'", r"'a\nb'"),
        ("a > 1 AND `it's` < 2", "a > 1 AND `it's` < 2"),
        ("`r'` = 'x'", "`r'` = 'x'"),
        ("a > 1 -- it's", "a > 1 -- it's"),
        ("a /* it's */ > 'x'", "a /* it's */ > 'x'"),
        ("'x' /* a */ = b /* c */ 'd'", "'x' /* a */ = b /* c */ 'd'"),
        ("bar'x'", "bar'x'"),
        ("date\"2020-01-01\" < X'1F'", "date'2020-01-01' < X'1F'"),
        ("x '1F' = X /* a */ \"2E\"", "x'1F' = X'2E'"),
        ("'not closed", "'not closed"),
    ],
)
def test_literals_are_written_in_one_form(written: str, portable: str) -> None:
    assert with_portable_literals(written) == portable


def test_every_statement_with_an_expression_sends_that_form() -> None:
    assert sql_add_check("t", "c", "a <> 'it''s'") == r"ALTER TABLE t ADD CONSTRAINT `c` CHECK (a <> 'it\'s')"
    assert sql_default(r"r'\d'") == r"DEFAULT '\\d'"
    assert sql_set_defaults("t", [("a", "'it''s'")]).endswith(r"SET DEFAULT 'it\'s'")
    assert sql_generation("a || 'it''s'", None) == r"GENERATED ALWAYS AS (a || 'it\'s')"
    assert sql_converted("a || '${x}'", AtomicType("string")) == r"CAST((a || '$\{x}') AS string)"
    assert sql_violation("a <> 'it' 's'") == "NOT coalesce((a <> 'its'), false)"
    assert failure_condition("cast(a || 'it''s' AS int)") == (
        r"(TRY_CAST(a || 'it\'s' AS INT) IS NULL AND (a || 'it\'s') IS NOT NULL)"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("s = 'it''s'", r"( s = 'it\'s' )"),
        ("s = 'it''s'", 's = "it\'s"'),
        ("s = 'it' 's'", "s = 'its'"),
        (r"s RLIKE r'\d+'", r"s RLIKE '\\d+'"),
        (r"s = 'a\d'", "s = 'ad'"),
        ("s = '${x}'", r"s = '$\{x}'"),
        ("x'1F' = b", "x '1F' = b"),
        ("date'2020-01-01' < d", "date '2020-01-01' < d"),
    ],
)
def test_literals_that_spark_reads_alike_are_equal(first: str, second: str) -> None:
    assert is_same_expression(first, second)
    assert is_same_expression(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("status IN ('new', 'it''s')", "status IN ( 'new' , 'it' 's' )"),
        ("s = 'it''s'", "s = 'its'"),
        (r"s = r'\d'", r"s = '\d'"),
        (r"s = 'a\n'", r"s = r'a\n'"),
        (r"s = '\%'", "s = '%'"),
        ("s = '${x}'", r"s = '$\\{x}'"),
        ("concat('a', 'b') = s", "'ab' = s"),
        ("s = 'it''s", "s = 'it'"),
    ],
)
def test_literals_that_spark_reads_differently_never_are(first: str, second: str) -> None:
    assert not is_same_expression(first, second)
    assert not is_same_expression(second, first)


def test_columns_are_found_behind_every_literal() -> None:
    assert referenced_columns(r"concat(r'\', a, ' b ') = c") == {"a", "c"}
    assert with_column_renamed("a || 'it''s a' || a", "a", "`b`") == r"`b` || 'it\'s a' || `b`"
    assert is_text_literal("'it' 's'")
    assert [
        read.table for read in lost_reads(r"SELECT r'\' FROM t", SchemaName("d", "s"), {"d.s.t"}, {})
    ] == ["d.s.t"]
