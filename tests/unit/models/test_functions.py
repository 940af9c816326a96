"""Functions and policies as models: what may be given, and what it becomes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from delta_engine.errors import InvalidModelError, SourceLocation
from delta_engine.models.functions import (
    Function,
    FunctionLanguage,
    FunctionName,
    Parameter,
    repeated_parameters,
)
from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyMask, PolicyScope, ScopeKind
from delta_engine.models.types import AtomicType

IN_A_FILE = SourceLocation("conf/models/functions.yml", 3)
SCHEMA = PolicyScope("schema", "Dev.sales")


def mask_email(**changes: Any) -> Function:
    arguments = {
        "returns": "string",
        "body": "CASE WHEN is_account_group_member('hr') THEN email ELSE '***' END",
        "parameters": [Parameter("email", "STRING")],
    }
    return Function("Dev", "governance", "mask_email", **{**arguments, **changes})


def test_a_function_has_a_name_a_key_and_a_signature() -> None:
    function = mask_email()
    assert function.qualified_name == FunctionName("Dev", "governance", "mask_email")
    assert function.key == "dev.governance.mask_email"
    assert function.signature == (AtomicType("string"),)
    assert function.returns == AtomicType("string")


def test_a_function_in_python_code_knows_its_line_and_compares_without_it() -> None:
    first, second = mask_email(), mask_email()
    assert first.declared_at is not None
    assert first.declared_at.file == __file__
    assert first == second
    assert first != replace(first, body="email")


def test_the_file_of_a_body_is_not_compared() -> None:
    assert mask_email(body_file="mask.sql") == mask_email()


@pytest.mark.parametrize("language", ["python", "PYTHON", FunctionLanguage.PYTHON])
def test_a_language_is_a_name_or_a_member(language: Any) -> None:
    assert mask_email(language=language).language is FunctionLanguage.PYTHON


@pytest.mark.parametrize(
    ("language", "reason"),
    [
        ("scala", "the engine does not manage such functions"),
        ("JAVA", "the engine does not manage such functions"),
        ("pandas", "the engine does not know it"),
    ],
)
def test_another_language_is_refused_by_name(language: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"language of 'mask_email' is '{language}': {reason}"):
        mask_email(language=language)


@pytest.mark.parametrize("returns", ["table(a int)", "TABLE<a: int>"])
def test_a_table_function_is_refused_by_name(returns: str) -> None:
    with pytest.raises(InvalidModelError) as caught:
        mask_email(returns=returns, declared_at=IN_A_FILE)
    assert "function Dev.governance.mask_email, result" in str(caught.value)
    assert "the engine does not manage table functions" in str(caught.value)
    assert caught.value.location == IN_A_FILE


def test_an_unknown_type_of_a_parameter_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidModelError, match=r"parameter email: type 'strng' .* Did you mean 'string'\?"):
        mask_email(parameters=[Parameter("email", "strng")])


def test_two_parameters_of_one_name_are_refused_in_python_and_left_to_the_rules_in_files() -> None:
    parameters = [Parameter("a", "int"), Parameter("A", "int")]
    with pytest.raises(InvalidModelError, match="it has parameter 'a' twice"):
        mask_email(parameters=parameters)
    function = mask_email(parameters=parameters, declared_at=IN_A_FILE)
    assert [reason for reason, _, _ in repeated_parameters(function.parameters)] == [
        "it has parameter 'a' twice (names ignore case)"
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"parameters": "email"},
        {"parameters": [("email", "string")]},
        {"is_deterministic": "yes"},
        {"comment": None},
        {"body": 7},
        {"grants": ["hr"]},
        {"language": 1},
    ],
)
def test_arguments_of_other_types_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        mask_email(**wrong)


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ValueError, match="contains a surrogate"):
        mask_email(body="'\ud83d'")


def test_grants_and_tags_have_one_form() -> None:
    function = mask_email(grants={"hr": ["execute"], "account users": ["EXECUTE"]}, tags={"b": "1", "a": ""})
    assert list(function.grants.items()) == [("account users", ("EXECUTE",)), ("hr", ("EXECUTE",))]
    assert list(function.tags) == ["a", "b"]


def mask_pii(**changes: Any) -> AbacPolicy:
    arguments: dict[str, Any] = {
        "scope": SCHEMA,
        "protection": PolicyMask("dev.governance.mask_email", "mail"),
        "to": ["account users"],
        "match": {"mail": "has_tag_value('pii', 'email')"},
    }
    return AbacPolicy("Mask_PII", **{**arguments, **changes})


def test_a_policy_has_a_key_of_its_scope_and_name() -> None:
    assert mask_pii().key == "schema.dev.sales.mask_pii"
    assert str(mask_pii().qualified_name) == "Mask_PII on schema Dev.sales"
    assert mask_pii(scope=PolicyScope("catalog", "dev")).key == "catalog.dev.mask_pii"


def test_a_scope_covers_the_tables_in_it() -> None:
    assert SCHEMA.covers("dev.sales.orders")
    assert not SCHEMA.covers("dev.sales2.orders")
    assert PolicyScope(ScopeKind.TABLE, "dev.sales.orders").covers("dev.sales.orders")
    assert not PolicyScope(ScopeKind.TABLE, "dev.sales.orders").covers("dev.sales.orders2")
    assert PolicyScope(ScopeKind.CATALOG, "dev").covers("dev.sales.orders")


@pytest.mark.parametrize(
    ("kind", "name", "form"),
    [
        ("catalog", "dev.sales", "catalog"),
        ("schema", "sales", "catalog.schema"),
        ("schema", "dev.", "catalog.schema"),
        ("table", "dev.sales", "catalog.schema.table"),
    ],
)
def test_a_scope_needs_the_whole_name(kind: str, name: str, form: str) -> None:
    with pytest.raises(ValueError, match=f"is not the full name of a {kind}: write {form}$"):
        PolicyScope(kind, name)


def test_a_scope_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="volume"):
        PolicyScope("volume", "dev.sales.files")


def test_the_columns_of_a_policy_keep_their_order() -> None:
    match = {"b": "has_tag('b')", "a": "has_tag('a')"}
    assert list(mask_pii(match=match).match) == ["b", "a"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope": "dev.sales"},
        {"protection": "dev.governance.mask_email"},
        {"to": "account users"},
        {"excepted": None},
        {"match": "has_tag('pii')"},
        {"match": {"mail": True}},
        {"when": 1},
    ],
)
def test_arguments_of_other_types_are_refused_in_policies(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        mask_pii(**wrong)


def test_a_filter_takes_a_list_of_arguments() -> None:
    assert PolicyFilter("dev.g.f", ["region", "'DE'"]).using == ("region", "'DE'")
    with pytest.raises(TypeError, match="not the string"):
        PolicyFilter("dev.g.f", "region")
