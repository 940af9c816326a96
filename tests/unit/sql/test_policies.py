"""Policies: their statements as exact text, and what their conditions say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyMask, PolicyName, PolicyScope
from delta_engine.sql import policies
from delta_engine.sql.tag_conditions import (
    HasTag,
    Negation,
    holds,
    is_same_condition,
    named_tags,
    spelled_condition,
    tag_condition,
)
from tests.cases.golden_texts import assert_golden_lines

SCHEMA = PolicyScope("schema", "Dev.sales")


def mask(**changes: Any) -> AbacPolicy:
    arguments: dict[str, Any] = {
        "scope": SCHEMA,
        "protection": PolicyMask("dev.governance.mask_email", "mail"),
        "to": ["account users"],
        "match": {"mail": "has_tag_value('pii', 'email')"},
    }
    return AbacPolicy("mask_pii", **{**arguments, **changes})


STATEMENTS = [
    policies.sql_create_policy(mask()),
    policies.sql_create_policy(
        mask(
            scope=PolicyScope("table", "dev.sales.or`ders"),
            protection=PolicyMask("Dev.`g b`.Mask", "mail", ["Region", "'it''s'", "-3"]),
            match={"mail": " has_tag('it''s')", "region": "has_tag('${x}') AND NOT has_tag('b')"},
            when="has_tag('sensitive')",
            excepted=["hr", "jo@example.com"],
            comment="it's",
        ),
        replaces=True,
    ),
    policies.sql_create_policy(
        mask(scope=PolicyScope("catalog", "dev"), protection=PolicyFilter("dev.governance.mine"), match={})
    ),
    policies.sql_create_policy(
        mask(protection=PolicyFilter("dev.governance.mine", ["r"]), match={"r": "has_tag('region')"})
    ),
    policies.sql_create_policy(
        mask(
            match={"mail": "has_tag('pii') -- all of them"},
            when="has_tag('a') -- or '--'",
            protection=PolicyMask("dev.governance.mask", "mail", ["1 -- x", "'--'"]),
        )
    ),
    policies.sql_drop_policy(PolicyName(SCHEMA, "mask `pii`")),
    policies.sql_show_policies(PolicyScope("table", "dev.sales.orders")),
    policies.sql_describe_policy(PolicyName(PolicyScope("catalog", "dev"), "mask_pii")),
]


def test_statements(request: pytest.FixtureRequest) -> None:
    assert_golden_lines(STATEMENTS, Path(__file__).parent / "golden" / "policies.sql", request)


@pytest.mark.parametrize("function", ["mask", "g.mask", "a.b.c.d", "", "dev..mask"])
def test_a_policy_needs_the_whole_name_of_its_function(function: str) -> None:
    with pytest.raises(ValueError, match="is not the full name of a function"):
        policies.sql_create_policy(mask(protection=PolicyFilter(function)))


@pytest.mark.parametrize(
    ("argument", "is_constant"),
    [("'DE'", True), ("-3", True), ("1.5", True), ("true", True), ("NULL", True), ("region", False),
     ("upper('a')", False), ("1; DROP TABLE t", False), ("'open", False), ("", False)],
)  # fmt: skip
def test_constants(argument: str, is_constant: bool) -> None:
    assert policies.is_constant(argument) is is_constant


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("hasTag('pii')", "has_tag('pii')"),
        ("HAS_TAG_VALUE( 'pii' ,\"email\")", "has_tag_value('pii', 'email')"),
        ("((has_tag('a')) and (not has_tag('b')))", "has_tag('a') AND NOT has_tag('b')"),
        (
            "not (has_tag('a') or has_tag('b')) and true",
            "NOT (has_tag('a') OR has_tag('b')) AND TRUE",
        ),
        ("has_tag('a') AND (has_tag('b') AND FALSE)", "has_tag('a') AND (has_tag('b') AND FALSE)"),
        ("has_tag('it''s')", "has_tag('it\\'s')"),
    ],
)
def test_conditions_have_one_spelling(text: str, spelled: str) -> None:
    condition = tag_condition(text)
    assert spelled_condition(condition) == spelled
    assert tag_condition(spelled) == condition


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("has_tag(", "is not a SQL condition"),
        ("has_tag('a') = true", "contains something other than"),
        ("is_account_group_member('hr')", "contains something other than"),
        ("has_tag('a'); DROP TABLE t", "contains something other than"),
        ("has_tag(x)", "calls has_tag with other arguments than 1 string literals"),
        ("has_tag('a', 'b')", "calls has_tag with other arguments than 1 string literals"),
        ("hasTagValue('a')", "calls hasTagValue with other arguments than 2 string literals"),
    ],
)
def test_other_texts_are_no_conditions(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("(", r"\(")):
        tag_condition(text)


@pytest.mark.parametrize(
    ("text", "tags", "is_true"),
    [
        ("has_tag('a')", {"a": "1"}, True),
        ("has_tag('a')", {"A": "1"}, False),
        ("has_tag_value('a', '1')", {"a": "1"}, True),
        ("has_tag_value('a', '1')", {"a": ""}, False),
        ("NOT has_tag('a')", {}, True),
        ("has_tag('a') OR has_tag('b') AND has_tag('c')", {"a": ""}, True),
        ("(has_tag('a') OR has_tag('b')) AND has_tag('c')", {"a": ""}, False),
        ("TRUE", {}, True),
    ],
)
def test_conditions_hold(text: str, tags: dict[str, str], is_true: bool) -> None:
    assert holds(tag_condition(text), tags) is is_true


def test_the_tags_of_a_condition() -> None:
    condition = tag_condition("has_tag('a') AND NOT has_tag_value('b', 'c') OR TRUE")
    assert [*named_tags(condition)] == [HasTag("a"), HasTag("b", "c")]
    assert [*named_tags(Negation(HasTag("a")))] == [HasTag("a")]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (None, "", True),
        (None, "  ", True),
        ("hasTag('a')", "has_tag( 'a' )", True),
        ("has_tag('a') AND has_tag('b')", "(hasTag('a') AND hasTag('b'))", True),
        ("has_tag('a')", "has_tag('A')", False),
        ("has_tag('a')", None, False),
        ("tag_of_tomorrow('a',  1)", "tag_of_tomorrow('a', 1)", True),
        ("tag_of_tomorrow('a')", "has_tag('a')", False),
    ],
)
def test_conditions_compare_by_what_they_say(one: str | None, other: str | None, is_same: bool) -> None:
    assert is_same_condition(one, other) is is_same
