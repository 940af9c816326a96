"""Functions and policies of Unity Catalog, from rows of views, descriptions, and listings of databricks-sdk."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from delta_engine.errors import CatalogReadError
from delta_engine.models.functions import Function, FunctionLanguage, Parameter
from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyMask, PolicyScope
from delta_engine.models.types import AtomicType, DecimalType
from delta_engine.state.audits import Audit
from delta_engine.state.function_states import FunctionState, function_state_of
from delta_engine.state.policy_states import PolicyState, policy_state_of
from delta_engine.state.unity_catalog.policy_descriptions import (
    described_policy,
    listed_policy,
    shown_policies,
)
from delta_engine.state.unity_catalog.routines import (
    PARAMETERS,
    ROUTINE_PRIVILEGES,
    ROUTINES,
    by_routine,
    function_states,
    listed_function,
)
from delta_engine.state.unmanaged import Unmanaged

CREATED = datetime(2026, 11, 25, 8, 30, tzinfo=timezone.utc)


def routine(**changes: Any) -> dict[str, object]:
    row: dict[str, object] = {
        "specific_catalog": "dev",
        "specific_schema": "governance",
        "specific_name": "mask_email",
        "routine_type": "FUNCTION",
        "data_type": "STRING",
        "full_data_type": "STRING",
        "routine_body": "SQL",
        "routine_definition": "upper(email)",
        "external_language": None,
        "is_deterministic": "YES",
        "comment": None,
        "created": CREATED,
        "created_by": "ann",
        "last_altered": CREATED,
        "last_altered_by": "jo",
    }
    return {**row, **changes}


def named(**values: object) -> dict[str, object]:
    return {"specific_schema": "governance", "specific_name": "mask_email", **values}


def parameter(position: int, name: str, data_type: str, **changes: Any) -> dict[str, object]:
    row = {"ordinal_position": position, "parameter_name": name, "full_data_type": data_type}
    return named(**{**row, "parameter_default": None, "comment": None, **changes})


def test_functions_are_read_from_two_views() -> None:
    states = function_states(
        [
            routine(),
            routine(specific_name="clean", external_language="PYTHON", routine_definition="return x"),
        ],
        [
            parameter(1, "scale", "DECIMAL(18,2)", parameter_default="1.5"),
            parameter(0, "email", "STRING", comment="the mail"),
        ],
    )
    mask, clean = states["governance", "mask_email"], states["governance", "clean"]
    assert isinstance(mask, FunctionState)
    assert mask.parameters == (
        Parameter("email", "string", comment="the mail"),
        Parameter("scale", DecimalType(18, 2), default="1.5"),
    )
    assert mask.signature == (AtomicType("string"), DecimalType(18, 2))
    assert (mask.body, mask.is_deterministic, mask.owner, mask.tags) == ("upper(email)", True, None, {})
    assert (mask.audit.created_at, mask.audit.altered_by) == (CREATED, "jo")
    assert isinstance(clean, FunctionState)
    assert (clean.language, clean.body, clean.parameters) == (FunctionLanguage.PYTHON, "return x", ())


def test_an_owner_is_read_where_the_view_shows_one() -> None:
    state = function_states([routine(routine_owner="ann")], ())["governance", "mask_email"]
    assert isinstance(state, FunctionState)
    assert state.owner == "ann"


def test_a_hidden_body_is_unknown_not_empty() -> None:
    state = function_states([routine(routine_definition=None)], ())["governance", "mask_email"]
    assert isinstance(state, FunctionState)
    assert state.body is None


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"routine_type": "PROCEDURE", "data_type": None, "full_data_type": None}, "a procedure"),
        ({"data_type": "TABLE", "full_data_type": "TABLE"}, "a table function"),
        ({"external_language": "SCALA"}, "a function in SCALA"),
    ],
)
def test_other_routines_are_named(changes: dict[str, object], kind: str) -> None:
    assert function_states([routine(**changes)], ()) == {
        ("governance", "mask_email"): Unmanaged(f"it is {kind}")
    }


@pytest.mark.parametrize(
    ("view", "row"),
    [
        (ROUTINES, routine(specific_name=None)),
        (PARAMETERS, parameter(0, "x", "STRING", full_data_type=None)),
        (ROUTINE_PRIVILEGES, named(grantee=None, privilege_type="EXECUTE")),
    ],
)
def test_rows_that_are_not_whole_are_refused(view: Any, row: Any) -> None:
    with pytest.raises(CatalogReadError, match=f"information_schema.{view.name} has a row without"):
        by_routine(view, [row])


def test_a_function_without_a_result_is_unreadable() -> None:
    answer = function_states([routine(full_data_type=None)], ())["governance", "mask_email"]
    assert str(answer).startswith("function dev.governance.mask_email: the platform does not show the type")


@pytest.mark.parametrize("view", [ROUTINES, PARAMETERS, ROUTINE_PRIVILEGES])
def test_the_views_are_asked_for_the_schemas_of_models(view: Any) -> None:
    assert "specific_schema IN ('g', 'h')" in view.query("dev", ["h", "g"])


def catalog() -> Any:
    return pytest.importorskip("databricks.sdk.service.catalog")


def test_a_listed_function_has_its_owner() -> None:
    sdk = catalog()
    info = sdk.FunctionInfo.from_dict(
        {
            "full_name": "dev.governance.mask_email",
            "full_data_type": "DECIMAL(18,2)",
            "data_type": "DECIMAL",
            "routine_body": "EXTERNAL",
            "external_language": "PYTHON",
            "routine_definition": "return email",
            "is_deterministic": False,
            "owner": "ann",
            "created_at": 1764059400000,
            "updated_by": "jo",
            "input_params": {
                "parameters": [
                    {"name": "b", "type_text": "int", "type_name": "INT", "position": 1, "parameter_default": "3"},
                    {"name": "a", "type_text": "string", "type_name": "STRING", "position": 0, "comment": "x"},
                ]
            },
        }
    )  # fmt: skip
    state = listed_function(info)
    assert state == FunctionState(
        returns=DecimalType(18, 2),
        body="return email",
        parameters=(Parameter("a", "string", comment="x"), Parameter("b", "int", default="3")),
        language=FunctionLanguage.PYTHON,
        is_deterministic=False,
        owner="ann",
    )
    assert isinstance(state, FunctionState)
    assert state.audit.created_at == datetime(2025, 11, 25, 8, 30, tzinfo=timezone.utc)


def test_a_listed_table_function_is_another_routine() -> None:
    sdk = catalog()
    info = sdk.FunctionInfo.from_dict({"data_type": "TABLE_TYPE", "routine_body": "SQL"})
    assert listed_function(info) == Unmanaged("it is a table function")


HALF = "half \ud800"


@pytest.mark.parametrize(
    ("of_function", "of_parameter"),
    [
        ({"comment": HALF}, {}),
        ({"routine_definition": HALF}, {}),
        ({}, {"comment": HALF}),
        ({}, {"parameter_default": HALF}),
    ],
)
def test_a_function_with_half_a_character_is_unreadable_alone(
    of_function: dict[str, object], of_parameter: dict[str, object]
) -> None:
    other = routine(specific_name="other")
    parameters = [parameter(0, "email", "STRING", **of_parameter)]
    answers = function_states([routine(**of_function), other], parameters)
    assert isinstance(answers["governance", "other"], FunctionState)
    refusal = answers["governance", "mask_email"]
    assert isinstance(refusal, CatalogReadError)
    assert refusal.securable == "function dev.governance.mask_email"


def test_a_listed_function_with_half_a_character_is_unreadable() -> None:
    listed = {"name": "email", "type_text": "string", "type_name": "STRING", "position": 0, "comment": HALF}
    info = catalog().FunctionInfo.from_dict(
        {
            "full_name": "dev.governance.mask_email",
            "full_data_type": "STRING",
            "data_type": "STRING",
            "routine_body": "SQL",
            "routine_definition": "email",
            "input_params": {"parameters": [listed]},
        }
    )
    assert isinstance(listed_function(info), CatalogReadError)


def test_the_state_of_a_declared_function() -> None:
    model = Function("dev", "g", "f", "string", " 'it''s' ", [Parameter("x", "int")], tags={"a": "b"})
    state = function_state_of(model)
    assert (state.body, state.tags, state.signature) == ("'it\\'s'", {"a": "b"}, model.signature)


MASK = PolicyState(
    protection=PolicyMask("dev.governance.mask_email", "mail", ("region", "'a, (b'")),
    to=("account users", "o'brien@example.com"),
    excepted=("hr",),
    match={"mail": "has_tag_value('pii', 'email')", "region": "has_tag('region') AND has_tag('x')"},
    when="has_tag('sensitive')",
    comment="it's, for HR",
)
DESCRIBED = {
    "Name": "mask_pii",
    "On Securable Type": "SCHEMA",
    "On Securable": "dev.sales",
    "Comment": "it's, for HR",
    "To Principals": "account users, o'brien@example.com",
    "Except Principals": "hr",
    "For Securable Type": "TABLE",
    "When Condition": "hasTag('sensitive')",
    "Match Columns": "has_tag_value('pii', 'email') AS mail, hasTag('region') AND hasTag('x') AS region",
    "Policy Type": "COLUMN_MASK",
    "  Function Name": "dev.governance.mask_email",
    "  On Column": "mail",
    "  Using Columns": "region, 'a, (b'",
    "Governed Tags": "pii:email",
    "Created By": "ann",
    "Created At": "2025-12-31 AD at 19:41:07 UTC",
    "Updated By": "jo",
    "Updated At": "2026-01-01 AD at 22:01:17 UTC",
}


def description(**changes: str | None) -> list[dict[str, object]]:
    values = {
        key: changes.get(key.strip().replace(" ", "_").lower(), value) for key, value in DESCRIBED.items()
    }
    return [{"info_name": key, "info_value": value} for key, value in values.items() if value is not None]


def test_a_mask_is_described() -> None:
    state = described_policy(description())
    assert state == MASK
    assert isinstance(state, PolicyState)
    assert state.audit == Audit(
        created_at=datetime(2025, 12, 31, 19, 41, 7, tzinfo=timezone.utc),
        created_by="ann",
        altered_at=datetime(2026, 1, 1, 22, 1, 17, tzinfo=timezone.utc),
        altered_by="jo",
    )


@pytest.mark.parametrize("shown", [None, "yesterday", "2026-01-01 AD at 22:01:17 CET"])
def test_a_moment_in_another_form_is_unknown(shown: str | None) -> None:
    state = described_policy(description(updated_at=shown))
    assert isinstance(state, PolicyState)
    assert (state.audit.altered_at, state.audit.altered_by) == (None, "jo")


def test_a_filter_of_every_table_is_described() -> None:
    rows = [
        {"a": "To Principals", "b": "account users"},
        {"a": "Policy Type", "b": "ROW_FILTER"},
        {"a": "  Function Name", "b": "dev.g.mine"},
    ]
    assert described_policy(rows) == PolicyState(protection=PolicyFilter("dev.g.mine"), to=("account users",))


def test_a_policy_that_grants_is_another_one() -> None:
    assert described_policy(description(policy_type="GRANT")) == Unmanaged("it is a GRANT policy")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"function_name": None}, "DESCRIBE POLICY shows no function name: it has comment, "),
        ({"on_column": None}, "DESCRIBE POLICY shows no on column"),
        ({"to_principals": None}, "DESCRIBE POLICY shows no to principals"),
        ({"policy_type": None}, "DESCRIBE POLICY shows no policy type"),
        ({"match_columns": "hasTag('a')"}, "shows a matched column without an alias: hasTag"),
        ({"match_columns": "hasTag('a AS b"}, "DESCRIBE POLICY shows no list"),
    ],
)
def test_another_form_of_a_description_is_refused(changes: dict[str, str | None], reason: str) -> None:
    with pytest.raises(CatalogReadError) as caught:
        described_policy(description(**changes))
    assert reason in caught.value.reason


def test_shown_policies() -> None:
    assert shown_policies([{"Policy Name": "b"}, {"Policy Name": "a", "Policy Type": "GRANT"}]) == ["a", "b"]
    with pytest.raises(CatalogReadError, match="SHOW POLICIES names no policy: name"):
        shown_policies([{"name": "a"}])


def policy_info(**changes: Any) -> Any:
    facts = {
        "name": "mask_pii",
        "policy_type": "POLICY_TYPE_COLUMN_MASK",
        "for_securable_type": "TABLE",
        "to_principals": list(MASK.to),
        "except_principals": ["hr"],
        "when_condition": MASK.when,
        "comment": MASK.comment,
        "match_columns": [{"alias": alias, "condition": text} for alias, text in MASK.match.items()],
        "column_mask": {
            "function_name": "dev.governance.mask_email",
            "on_column": "mail",
            "using": [{"alias": "region"}, {"constant": "'a, (b'"}],
        },
        "updated_at": 1764059400000,
    }
    return catalog().PolicyInfo.from_dict({**facts, **changes})


def test_a_listed_mask_is_the_described_one() -> None:
    assert listed_policy(policy_info()) == MASK


def test_a_listed_filter() -> None:
    info = policy_info(
        policy_type="POLICY_TYPE_ROW_FILTER",
        column_mask=None,
        row_filter={"function_name": "dev.g.mine"},
        match_columns=None,
        when_condition="",
        comment=None,
        except_principals=None,
    )
    assert listed_policy(info) == PolicyState(protection=PolicyFilter("dev.g.mine"), to=MASK.to)


def test_other_listed_policies_are_named() -> None:
    info = policy_info(policy_type="POLICY_TYPE_GRANT", column_mask=None)
    assert listed_policy(info) == Unmanaged("it is a GRANT policy")
    mask = {"function_name": "dev.g.f", "on_column": "mail", "using": [{}]}
    assert listed_policy(policy_info(column_mask=mask)) == Unmanaged(
        "its function takes an expression that is computed for each query"
    )


def test_the_state_of_a_declared_policy() -> None:
    assert isinstance(MASK.protection, PolicyMask)
    model = AbacPolicy(
        "mask_pii",
        PolicyScope("schema", "dev.sales"),
        MASK.protection,
        MASK.to,
        excepted=MASK.excepted,
        match=MASK.match,
        when=MASK.when,
        comment=MASK.comment,
    )
    assert policy_state_of(model) == MASK
