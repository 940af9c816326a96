"""SQL builders: exact text."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.models import QualifiedName
from delta_engine.models.types import parse_data_type
from delta_engine.sql.columns import (
    sql_add_columns,
    sql_change_column_types,
    sql_column_definition,
    sql_drop_columns,
    sql_drop_defaults,
    sql_drop_not_null,
    sql_move_column,
    sql_rename_column,
    sql_set_column_comments,
    sql_set_defaults,
    sql_set_not_null,
)
from delta_engine.sql.constraints import (
    sql_add_check,
    sql_add_constraint,
    sql_add_not_null_check,
    sql_add_primary_key,
    sql_drop_constraint,
    sql_foreign_key,
    sql_primary_key,
)
from delta_engine.sql.governance import (
    sql_drop_mask,
    sql_drop_row_filter,
    sql_grant,
    sql_mask,
    sql_revoke,
    sql_row_filter,
    sql_set_mask,
    sql_set_owner,
    sql_set_row_filter,
    sql_set_tags,
    sql_unset_tags,
)
from delta_engine.sql.queries import sql_describe_table, sql_show_table_properties
from delta_engine.sql.tables import (
    sql_cluster_automatically,
    sql_create_schema,
    sql_create_table,
    sql_location,
    sql_partitioned_by,
    sql_set_table_comment,
    sql_set_table_properties,
    sql_unset_table_properties,
)
from delta_engine.sql.text import escape_sql_literal, quote_ident
from tests.cases.golden_lines import assert_golden_lines

T = "`dev`.`silver`.`orders`"
FUNCTION = QualifiedName("Dev", "security", "by_`region")
AWKWARD = 'it\'s a \\ back\\nslash\nnew ${x} line 🎉 "q" -- /* */ ;\t\r'


@pytest.mark.parametrize(
    ("raw", "quoted"),
    [("orders", "`orders`"), ("a`b", "`a``b`"), ("a.b c", "`a.b c`"), ("", "``"), ("Größe", "`Größe`")],
)
def test_quote_ident(raw: str, quoted: str) -> None:
    assert quote_ident(raw) == quoted


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        ("plain", "plain"),
        ("it's", "it\\'s"),
        ("a\\b", "a\\\\b"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("${x}", "$\\{x}"),
        ("$ {x} $", "$ {x} $"),
        ("$${x}", "$$\\{x}"),
        ("\\'", "\\\\\\'"),
        ("🎉", "🎉"),
    ],
)
def test_escape_sql_literal(raw: str, escaped: str) -> None:
    assert escape_sql_literal(raw) == escaped


def test_create_table_is_one_statement_with_everything_in_it() -> None:
    assert (
        sql_create_table(
            T,
            columns=[
                sql_column_definition(("id",), parse_data_type("bigint"), is_nullable=False, comment="it's"),
                sql_column_definition(("b c",), parse_data_type("array<int>")),
            ],
            constraints=[sql_primary_key("pk", ["id"])],
            comment="c",
            properties={"z.z": "1", "a.b": "it's"},
        )
        == "CREATE TABLE `dev`.`silver`.`orders` (\n"
        "  `id` bigint NOT NULL COMMENT 'it\\'s',\n"
        "  `b c` array<int>,\n"
        "  CONSTRAINT `pk` PRIMARY KEY (`id`)\n"
        ")\n"
        "USING delta\n"
        "COMMENT 'c'\n"
        "TBLPROPERTIES ('a.b' = 'it\\'s', 'z.z' = '1')"
    )


def test_create_table_leaves_out_empty_clauses() -> None:
    assert (
        sql_create_table(T, columns=["`id` bigint"], properties={})
        == "CREATE TABLE `dev`.`silver`.`orders` (\n  `id` bigint\n)\nUSING delta"
    )


STATEMENTS = [
    sql_create_schema("dev", "sil`ver"),
    sql_add_columns(T, ["`a` int", "`b` int"]),
    sql_drop_columns(T, [("a",), ("st", "b`c")]),
    sql_set_defaults(T, [("a", "1"), ("b`", "'x'")]),
    sql_drop_defaults(T, ["a", "b"]),
    sql_move_column(T, "a", None),
    sql_move_column(T, "a", "b c"),
    sql_cluster_automatically(T),
    sql_describe_table(T),
    sql_partitioned_by(["a", "b`"]),
    sql_location("s3://it's"),
    sql_rename_column(T, ("st", "element", "a"), "b.c"),
    sql_set_column_comments(T, [(("a",), "x"), (("st", "b"), "")]),
    sql_set_not_null(T, [("a",), ("b",)]),
    sql_drop_not_null(T, [("a",)]),
    sql_change_column_types(T, [(("a",), parse_data_type("bigint"))]),
    sql_set_table_comment(T, "it's"),
    sql_set_table_properties(T, {"b": "2", "a": "1"}),
    sql_unset_table_properties(T, ["a", "b"]),
    sql_add_primary_key(T, "pk", ["a", "b"], rely=True),
    sql_add_constraint(T, sql_foreign_key("fk", ["a", "b"], "`c`.`s`.`p`", ["x", "y`"])),
    sql_foreign_key("fk", ["a"], "`p`", ["x"], rely=True),
    sql_add_check(T, "c`k", "a > 0"),
    sql_add_not_null_check(T, "nn", "a b"),
    sql_drop_constraint(T, "pk"),
    sql_drop_constraint(T, "pk", if_exists=True),
    sql_set_tags(f"TABLE {T}", {"b": "", "it's": "x"}),
    sql_set_tags(f"TABLE {T}", {"pii": "yes"}, "a`b"),
    sql_unset_tags("SCHEMA `dev`.`s`", ["a", "b"]),
    sql_unset_tags(f"TABLE {T}", ["a"], "c"),
    sql_set_owner(f"TABLE {T}", "data`team"),
    sql_grant(f"TABLE {T}", ["MODIFY", "SELECT"], "jo@example.com"),
    sql_revoke("SCHEMA `dev`.`s`", ["USE SCHEMA"], "it's"),
    sql_row_filter(FUNCTION, []),
    sql_set_row_filter(T, sql_row_filter(FUNCTION, ["a", "b`c"])),
    sql_drop_row_filter(T),
    sql_set_mask(T, "a", sql_mask(FUNCTION, [])),
    sql_mask(FUNCTION, ["b", "c"]),
    sql_drop_mask(T, "a"),
    sql_show_table_properties(T),
]


def test_statements(request: pytest.FixtureRequest) -> None:
    assert_golden_lines(STATEMENTS, Path(__file__).parent / "golden" / "statements.sql", request)


def test_an_awkward_comment_stays_one_literal() -> None:
    assert sql_set_table_comment(T, AWKWARD) == (
        f"COMMENT ON TABLE {T} IS 'it\\'s a \\\\ back\\\\nslash\\nnew $\\{{x}} line 🎉 \"q\" -- /* */ ;\\t\\r'"
    )
