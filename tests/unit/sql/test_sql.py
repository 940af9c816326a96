"""SQL builders: exact text."""

from pathlib import Path

import pytest

from delta_engine.models import QualifiedName
from delta_engine.models.type_text import parse_data_type
from delta_engine.sql import columns, constraints, governance, tables
from delta_engine.sql.queries import sql_describe_table, sql_show_table_properties
from delta_engine.sql.text import escape_sql_literal, quote_ident
from tests.cases.golden_texts import assert_golden_lines

T = "`dev`.`silver`.`orders`"
FUNCTION = QualifiedName("Dev", "security", "by_`region")


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


STATEMENTS = [
    tables.sql_create_schema("dev", "sil`ver"),
    columns.sql_add_columns(T, ["`a` int", "`b` int"]),
    columns.sql_drop_columns(T, [("a",), ("st", "b`c")]),
    columns.sql_set_defaults(T, [("a", "1"), ("b`", "'x'")]),
    columns.sql_drop_defaults(T, ["a", "b"]),
    columns.sql_move_column(T, "a", None),
    columns.sql_move_column(T, "a", "b c"),
    tables.sql_cluster_automatically(T),
    sql_describe_table(T),
    tables.sql_partitioned_by(["a", "b`"]),
    tables.sql_location("s3://it's"),
    columns.sql_rename_column(T, ("st", "element", "a"), "b.c"),
    columns.sql_set_column_comments(T, [(("a",), "x"), (("st", "b"), "")]),
    columns.sql_set_not_null(T, [("a",), ("b",)]),
    columns.sql_drop_not_null(T, [("a",)]),
    columns.sql_change_column_types(T, [(("a",), parse_data_type("bigint"))]),
    tables.sql_set_comment(f"TABLE {T}", "it's"),
    tables.sql_set_table_properties(T, {"b": "2", "a": "1"}),
    tables.sql_unset_table_properties(T, ["a", "b"]),
    constraints.sql_add_constraint(T, constraints.sql_primary_key("pk", ["a", "b"], rely=True)),
    constraints.sql_add_constraint(
        T, constraints.sql_foreign_key("fk", ["a", "b"], "`c`.`s`.`p`", ["x", "y`"])
    ),
    constraints.sql_foreign_key("fk", ["a"], "`p`", ["x"], rely=True),
    constraints.sql_add_check(T, "c`k", "a > 0"),
    constraints.sql_add_check(T, "nn", constraints.sql_not_null_condition("a b")),
    constraints.sql_drop_constraint(T, "pk"),
    constraints.sql_drop_constraint(T, "pk", if_exists=True),
    governance.sql_set_tags(f"TABLE {T}", {"b": "", "it's": "x"}),
    governance.sql_set_tags(f"TABLE {T}", {"pii": "yes"}, "a`b"),
    governance.sql_unset_tags("SCHEMA `dev`.`s`", ["a", "b"]),
    governance.sql_unset_tags(f"TABLE {T}", ["a"], "c"),
    governance.sql_set_owner(f"TABLE {T}", "data`team"),
    governance.sql_grant(f"TABLE {T}", ["MODIFY", "SELECT"], "jo@example.com"),
    governance.sql_revoke("SCHEMA `dev`.`s`", ["USE SCHEMA"], "it's"),
    governance.sql_row_filter(FUNCTION, []),
    governance.sql_set_row_filter(T, governance.sql_row_filter(FUNCTION, ["a", "b`c"])),
    governance.sql_drop_row_filter(T),
    governance.sql_set_mask(T, "a", governance.sql_mask(FUNCTION, [])),
    governance.sql_mask(FUNCTION, ["b", "c"]),
    governance.sql_drop_mask(T, "a"),
    sql_show_table_properties(T),
]


def test_statements(request: pytest.FixtureRequest) -> None:
    assert_golden_lines(STATEMENTS, Path(__file__).parent / "golden" / "statements.sql", request)


def test_functions_with_dots_are_quoted_in_three_parts() -> None:
    function = governance.full_function_name("`F.g`", QualifiedName("Dev", "silver", "orders"))
    assert governance.sql_mask(function, []) == "MASK `dev`.`silver`.`f.g`"
