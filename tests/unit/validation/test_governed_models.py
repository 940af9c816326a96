"""What is wrong with declared functions and policies, alone and where they meet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from delta_engine.actions import Create, Drop, TablePlan
from delta_engine.aspects.policy_reach import inherited_tags, reaches
from delta_engine.errors import InvalidModelError, SourceLocation
from delta_engine.models import Column, ColumnMask, RowFilter, Schema, Table
from delta_engine.models.functions import Function, Parameter
from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyMask, PolicyName, PolicyScope
from delta_engine.models.type_text import parse_data_type
from delta_engine.state.policy_states import PolicyState
from delta_engine.state.states import CatalogState
from delta_engine.state.unmanaged import Unmanaged
from delta_engine.validation.function_rules import FunctionsFit, NoCircularCalls, fits, use_problems
from delta_engine.validation.policy_rules import (
    PoliciesFit,
    argument_problems,
    call_problems,
    crowded_scopes,
    meeting_problems,
    too_many_policies,
    unknown_tags,
)
from delta_engine.validation.rules import Problem

FILE = SourceLocation("functions.yml", 1)
MAIL = Parameter("email", "string")
SCHEMA = PolicyScope("schema", "dev.sales")


def function(name: str = "mask_email", body: str = "upper(email)", **changes: Any) -> Function:
    arguments: dict[str, Any] = {"returns": "string", "parameters": [MAIL], **changes}
    return Function("dev", "governance", name, body=body, declared_at=FILE, **arguments)


def reasons(problems: Iterable[Problem | InvalidModelError]) -> list[str]:
    found = list(problems)
    assert all(problem.way_out for problem in found)
    return [problem.reason for problem in found]


def test_a_good_function_has_no_problems() -> None:
    good = function(
        parameters=[
            MAIL,
            Parameter("a `b`", "int", default="1 + 2"),
            Parameter("c", "string", default="'x'"),
        ],
        tags={"team": "hr"},
        grants={"account users": ["EXECUTE"]},
        owner="platform",
    )
    assert reasons(FunctionsFit().check([good])) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": "a b"}, "its name 'a b' has a character that is not allowed here: ' '"),
        ({"name": ""}, "its name '' is empty"),
        ({"name": "${x}"}, "its name '${x}' has a character that is not allowed here: '${'"),
        ({"body": "RETURN email"}, "its body begins with RETURN, which the engine writes"),
        (
            {"parameters": [MAIL, Parameter("EMAIL", "int")]},
            "it has parameter 'email' twice (names ignore case)",
        ),
        (
            {"parameters": [Parameter("a\nb", "int")]},
            "its parameter 'a\\nb' has a character that is not allowed here: '\\n'",
        ),
        (
            {"parameters": [Parameter("a", "int", default="(SELECT 1)")]},
            "the default of its parameter a contains a subquery",
        ),
        (
            {"parameters": [MAIL, Parameter("a", "string", default="email || 'x'")]},
            "the default of its parameter a reads email",
        ),
        (
            {"parameters": [Parameter("a", "int", default="1"), MAIL]},
            "its parameter a has a default, but the later email does not",
        ),
        ({"tags": {"a.b": "c"}}, "tag key 'a.b' has a character that is not allowed here: '.'"),
        ({"grants": {"hr": ["SELECT"]}}, "it grants SELECT to 'hr', which does not apply there"),
        ({"owner": " "}, "its owner has no name"),
    ],
)  # fmt: skip
def test_a_function_has_the_problem(changes: dict[str, Any], reason: str) -> None:
    assert reasons(FunctionsFit().check([function(**changes)])) == [reason]


def test_functions_that_call_themselves_are_found() -> None:
    functions = [
        function("f", "dev.governance.f(email)"),
        function("g", "governance.h(email)"),
        function("h", "dev.governance.g(dev.elsewhere.k(email))"),
        function("i", "dev.governance.g(email)"),
    ]
    refusals = [(refusal.securable, refusal.reason) for refusal in NoCircularCalls().check(functions)]
    assert refusals == [
        ("function dev.governance.f", "it calls itself"),
        ("function dev.governance.g", "dev.governance.g and dev.governance.h call each other"),
    ]


def table(*columns: Column, **changes: Any) -> Table:
    return Table("dev", "sales", "orders", columns, declared_at=FILE, **changes)


def masked(function_name: str = "dev.governance.mask_email", *using: str, kind: str = "string") -> Table:
    mask = ColumnMask(function_name, using)
    return table(Column("Mail", kind, mask=mask), Column("region", "string"), Column("n", "int"))


@pytest.mark.parametrize(
    ("model", "changes", "reason"),
    [
        (masked(), {}, None),
        (masked("governance.mask_email"), {}, None),
        (masked("elsewhere"), {"returns": "int"}, None),
        (masked(kind="varchar(3)"), {}, None),
        (
            masked("dev.governance.mask_email", "region"),
            {"parameters": [MAIL, Parameter("r", "string")]},
            None,
        ),
        (masked(), {"parameters": [MAIL, Parameter("r", "string", default="'x'")]}, None),
        (
            masked(),
            {"parameters": [MAIL, Parameter("r", "string")]},
            "its mask {} gets 1 argument but takes 2",
        ),
        (
            masked("dev.governance.mask_email", "region"),
            {"parameters": [Parameter("a", "string", default="'x'")]},
            "its mask {} gets 2 arguments but takes 0 to 1",
        ),
        (masked(kind="int"), {}, "its mask {} takes string as email, but gets int"),
        (masked(), {"returns": "int"}, "its mask {} takes string and returns int"),
        (
            masked(),
            {"language": "python", "body": "return email"},
            "its mask {} is a Python function, and Databricks accepts only SQL functions there",
        ),
        (
            table(Column("r", "string"), row_filter=RowFilter("dev.governance.mask_email", ["R"])),
            {},
            "its row filter {} returns string",
        ),
        (
            table(Column("r", "int"), row_filter=RowFilter("dev.governance.mask_email", ["r"])),
            {"returns": "boolean"},
            "its row filter {} takes string as email, but gets int",
        ),
    ],
)
def test_masks_and_filters_fit_their_functions(
    model: Table, changes: dict[str, Any], reason: str | None
) -> None:
    found = list(use_problems(model, {"dev.governance.mask_email": function(**changes)}))
    expected = [] if reason is None else [reason.format("dev.governance.mask_email")]
    assert reasons(found) == expected
    if model.row_filter is None and found:
        assert isinstance(found[0].column, Column)


@pytest.mark.parametrize(
    ("argument", "parameter", "is_fit"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("char(3)", "string", True),
        ("string", "varchar(3)", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,4)", True),
        ("decimal(10,2)", "decimal(11,4)", False),
        ("date", "timestamp", True),
        ("timestamp", "date", False),
        ("struct<A: int>", "struct<a: int>", True),
        ("array<int>", "array<bigint>", False),
    ],
)
def test_types_that_convert_implicitly(argument: str, parameter: str, is_fit: bool) -> None:
    assert fits(parse_data_type(argument), parse_data_type(parameter)) is is_fit


def policy(name: str = "mask_pii", **changes: Any) -> AbacPolicy:
    arguments: dict[str, Any] = {
        "scope": SCHEMA,
        "protection": PolicyMask("dev.governance.mask_email", "mail"),
        "to": ["account users"],
        "match": {"mail": "has_tag_value('pii', 'email')"},
    }
    return AbacPolicy(name, **{**arguments, **changes}, declared_at=FILE)


PII = {"pii": "email"}
FILTER = PolicyFilter("dev.governance.mine")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"protection": FILTER, "match": {}}, None),
        ({"protection": PolicyMask("dev.g.f", "MAIL", ["mail", "'DE'", "3"])}, None),
        ({"name": "a b"}, "its name 'a b' has a character that is not allowed here: ' '"),
        ({"protection": PolicyMask("g.f", "mail")}, "its function: 'g.f' is not the full name of a function"),
        ({"to": []}, "it applies to no principal"),
        ({"to": [" "]}, "a principal that it names has no name"),
        ({"to": ["hr"], "excepted": ["HR"]}, "it names 'hr' twice"),
        ({"to": [f"g{n}" for n in range(21)]}, "it names 21 principals, but a policy allows 20"),
        (
            {"match": {"mail": "has_tag('a')", "b": "has_tag('a')", "c": "has_tag('a')", "d": "has_tag('a')"}},
            "it matches 4 columns, but a policy allows 3",
        ),
        ({"match": {"mail": "has_tag('a')", "MAIL": "has_tag('b')"}}, "it matches 'mail' twice"),
        (
            {"when": "is_member('x')"},
            "when: \"is_member('x')\" contains something other than has_tag, has_tag_value, AND, OR and NOT",
        ),
        ({"match": {"mail": "has_tag("}}, "match.mail: 'has_tag(' is not a SQL condition"),
        ({"match": {"other": "has_tag('a')"}}, "it masks 'mail', which match does not define"),
        (
            {"protection": PolicyMask("dev.g.f", "mail", ["region"])},
            "it passes 'region', which is neither in match nor a constant",
        ),
        (
            {"protection": PolicyFilter("dev.g.f", ["upper('a')"]), "match": {}},
            "it passes \"upper('a')\", which is neither in match nor a constant",
        ),
    ],
)  # fmt: skip
def test_policies_alone(changes: dict[str, Any], reason: str | None) -> None:
    assert reasons(PoliciesFit().check([policy(**changes)])) == ([] if reason is None else [reason])


def test_a_scope_takes_a_number_of_policies() -> None:
    on_table = PolicyScope("table", "dev.sales.orders")
    policies = [policy(f"p{number}", scope=on_table) for number in range(51)]
    policies += [policy(f"p{number}") for number in range(100)]
    ((first, problem),) = too_many_policies(policies)
    assert first.name == "p0"
    assert problem.reason == "it is one of 51 policies on table dev.sales.orders, which allows 50"
    assert list(too_many_policies(policies[1:])) == []


def test_a_scope_takes_a_number_of_policies_with_those_of_others() -> None:
    on_table = PolicyScope("table", "dev.sales.orders")
    names = [PolicyName(on_table, f"p{number}") for number in range(50)]
    managed, others = names[:30], names[30:]
    observed = CatalogState(
        tables={},
        policies={name.key: PolicyState() for name in managed} | {"schema.dev.sales.other": PolicyState()},
        other_policies={name.key: Unmanaged("grants rights") for name in others},
    )
    created = Create(policy("new", scope=on_table))
    (refusal,) = crowded_scopes(TablePlan((created,)), observed)
    assert str(refusal) == (
        "functions.yml:1: policy new on table dev.sales.orders: table dev.sales.orders would have 51 policies, but it "
        "allows 50. Drop other policies first, or define this policy on another level."
    )
    assert [*crowded_scopes(TablePlan((created, Drop(names[0]))), observed)] == []


TAGGED = table(Column("Mail", "string", tags=PII), Column("region", "string", tags={"r": ""}))


@pytest.mark.parametrize(
    ("changes", "targets"),
    [
        ({}, ["mail"]),
        ({"scope": PolicyScope("catalog", "dev")}, ["mail"]),
        ({"scope": PolicyScope("schema", "dev.other")}, []),
        ({"match": {"mail": "has_tag('nope')"}}, []),
        ({"match": {"mail": "has_tag('pii')", "b": "has_tag('nope')"}}, []),
        ({"match": {"mail": "has_tag('pii') OR has_tag('r')"}}, ["mail", "region"]),
        ({"when": "has_tag('sensitive')"}, ["mail"]),  # inherited
        ({"when": "has_tag('nope')"}, []),
        ({"when": "broken("}, []),
        ({"protection": FILTER, "match": {}}, [None]),
    ],
)
def test_policies_reach_what_they_match(changes: dict[str, Any], targets: list[str | None]) -> None:
    found = reaches(TAGGED.qualified_name, TAGGED, [policy(**changes)], {"sensitive": ""})
    assert [reach.column for reach in found] == targets


def meeting(model: Table, *policies: AbacPolicy) -> list[str]:
    return reasons(meeting_problems(reaches(model.qualified_name, model, policies, {})))


OTHER = PolicyMask("dev.governance.stars", "mail")


def test_two_different_masks_that_meet_are_refused() -> None:
    assert meeting(TAGGED, policy("a"), policy("b")) == []
    assert meeting(TAGGED, policy("a"), policy("b", protection=OTHER)) == [
        "policy a on schema dev.sales and policy b on schema dev.sales mask it with different functions or arguments, "
        "so Databricks refuses every query"
    ]
    constant = PolicyMask("dev.governance.mask_email", "mail", ["'x'"])
    assert len(meeting(TAGGED, policy("a"), policy("b", protection=constant))) == 1
    assert meeting(TAGGED, policy("a"), policy("b", protection=OTHER, match={"mail": "has_tag('r')"})) == []
    apart = policy("b", protection=OTHER, to=["hr"])
    assert len(meeting(TAGGED, policy("a"), apart)) == 1
    assert meeting(TAGGED, policy("a", excepted=["HR"]), apart) == []
    assert meeting(TAGGED, apart, policy("c", excepted=["HR"])) == []


def test_a_mask_of_the_table_meets_policies() -> None:
    mask = ColumnMask("dev.governance.mask_email")
    model = table(Column("Mail", "string", tags=PII, mask=mask))
    assert meeting(model, policy()) == []
    assert meeting(model, policy(protection=OTHER)) == [
        "its own mask and policy mask_pii on schema dev.sales mask it with different functions or arguments, "
        "so Databricks refuses every query"
    ]


def test_two_different_filters_that_meet_are_refused() -> None:
    model = table(Column("r", "string"), row_filter=RowFilter("dev.governance.mine", ["r"]))
    found = meeting(model, policy(protection=FILTER, match={}))
    assert found == [
        "its own row filter and policy mask_pii on schema dev.sales filter its rows with different functions "
        "or arguments, so Databricks refuses every query"
    ]
    same = PolicyFilter("dev.governance.mine", ["c"])
    tagged = table(Column("r", "string", tags={"r": ""}), row_filter=model.row_filter)
    assert meeting(tagged, policy(protection=same, match={"c": "has_tag('r')"})) == []


def test_arguments_of_policies_are_single_unmasked_columns() -> None:
    several = policy(protection=PolicyFilter("dev.g.f", ["c"]), match={"c": "has_tag('pii') OR has_tag('r')"})
    assert reasons(argument_problems(TAGGED, [several], {})) == [
        "policy mask_pii on schema dev.sales passes 'c', which matches several columns: mail, region"
    ]
    passes = policy("rows", protection=PolicyFilter("dev.g.f", ["c"]), match={"c": "has_tag('pii')"})
    assert reasons(argument_problems(TAGGED, [policy(), passes], {})) == [
        "policy rows on schema dev.sales passes it to its function, and policy mask_pii on schema dev.sales masks it, "
        "so Databricks refuses every query"
    ]
    assert reasons(argument_problems(TAGGED, [passes], {})) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        (
            {"parameters": [Parameter("a", "int")]},
            "policy {}: dev.governance.mask_email takes int as a, but gets string",
        ),
        ({"returns": "int"}, "policy {}: dev.governance.mask_email takes string and returns int"),
    ],
)  # fmt: skip
def test_functions_of_policies_fit_the_matched_columns(changes: dict[str, Any], reason: str | None) -> None:
    if "parameters" in changes:
        changes = {**changes, "returns": "int"}
    found = call_problems(
        TAGGED,
        reaches(TAGGED.qualified_name, TAGGED, [policy()], {}),
        {"dev.governance.mask_email": function(**changes)},
    )
    assert reasons(found) == ([] if reason is None else [reason.format("mask_pii on schema dev.sales")])


def test_tags_that_are_not_governed() -> None:
    model = policy(when="has_tag('a') AND NOT has_tag('b')")
    assert unknown_tags(model, frozenset({"a"})) == ["b", "pii"]


def test_a_table_inherits_the_tags_of_its_schema() -> None:
    schemas = [Schema("dev", "other", tags={"x": ""}), Schema("DEV", "Sales", tags={"sensitive": ""})]
    assert inherited_tags(TAGGED.qualified_name, schemas) == {"sensitive": ""}
    assert inherited_tags(TAGGED.qualified_name, []) == {}
