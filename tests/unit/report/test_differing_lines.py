"""Texts of several lines in plans, such as queries and bodies: the lines that differ, not both texts."""

from __future__ import annotations

from delta_engine.actions import Align, Create, TablePlan
from delta_engine.aspects.view_definition import AlterViewQuery
from delta_engine.drift.drifted_resources import NO_UNDONE_DRIFT
from delta_engine.models import View, ViewColumn, ViewName
from delta_engine.report.change_tree import differing_lines, leaf_lines
from delta_engine.report.plan_tree import plan_branches
from delta_engine.state.view_states import view_state_of

QUERY = "SELECT id,\n\tsum(amount) AS total\nFROM dev.silver.orders\nGROUP BY id"


def view(query: str) -> View:
    return View("dev", "gold", "v", query)


def tree(*changes: Align[ViewName] | Create[View]) -> list[str]:
    return [*leaf_lines(tuple(plan_branches(TablePlan(changes), NO_UNDONE_DRIFT)))]


def test_a_changed_query_shows_the_lines_that_differ() -> None:
    desired = view(QUERY.replace("sum", "max"))
    action = AlterViewQuery(desired, view_state_of(view(QUERY)), ("query",))
    assert tree(Align(desired.qualified_name, (action,))) == [
        "└── ~ view dev.gold.v",
        "    └── ~ query  [breaks readers]",
        "        ├── - \\tsum(amount) AS total",
        "        └── + \\tmax(amount) AS total",
    ]


def test_a_new_query_of_several_lines_has_a_line_each() -> None:
    assert tree(Create(view(QUERY)))[1:] == [
        "    └── + query",
        "        ├── + SELECT id,",
        "        ├── + \\tsum(amount) AS total",
        "        ├── + FROM dev.silver.orders",
        "        └── + GROUP BY id",
    ]
    commented = View(
        "dev", "gold", "v", "SELECT 1 AS a", comment="One", columns=[ViewColumn("a", "A number")]
    )
    assert tree(Create(commented))[1:] == [
        "    ├── + query: SELECT 1 AS a",
        "    ├── + column a comment: 'A number'",
        "    └── + view comment: 'One'",
    ]


def test_a_long_text_is_cut() -> None:
    before, after = ("\n".join(f"{word} {number}" for number in range(30)) for word in ("a", "b"))
    lines = differing_lines(repr(before), repr(after))
    assert len(lines) == 41
    assert lines[-1].text == "and 20 more lines: --json shows them"


def test_texts_of_one_line_and_equal_lines_are_shown_whole() -> None:
    assert differing_lines("'a'", "'b'") == ()
    assert differing_lines(repr("a\nb"), repr("a\nb\n")) == ()
    assert differing_lines("'broken\\n", "other") == ()


def test_several_quoted_values_are_shown_as_they_are() -> None:
    lines = differing_lines("'a', 'b'", repr("a\nb"))
    assert [*leaf_lines(lines)] == ["├── - 'a', 'b'", "├── + a", "└── + b"]


def test_a_text_that_gets_a_second_line_keeps_its_first() -> None:
    assert [*leaf_lines(differing_lines(repr("a"), repr("a\nb")))] == ["└── + b"]
    assert [*leaf_lines(differing_lines(repr("a\nb"), repr("a")))] == ["└── - b"]
