"""The definitions of functions and policies: opaque texts compare on three sides, all else by meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from delta_engine import aspects
from delta_engine.actions import SAFE, Action, Hazard
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Change, RenderContext
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.models import AbacPolicy, Function, Parameter, PolicyFilter, PolicyMask, PolicyScope
from delta_engine.models.types import AtomicType
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.function_states import FunctionState, function_state_of
from delta_engine.state.policy_states import PolicyState, policy_state_of

HIDE = Function("dev", "gov", "hide", "string", "left(v, 3)", [Parameter("v", "string")])
PII = AbacPolicy(
    "pii",
    PolicyScope("schema", "dev.silver"),
    PolicyMask("dev.gov.hide", "m", ["'x'"]),
    ["account users"],
    excepted=["hr"],
    match={"m": "has_tag_value('pii', 'email')"},
)


def actions(desired: Any, observed: Any, record: Recorded[Any] | None = None) -> list[Action]:
    return list(aspects.diff(Comparison.of(desired, observed, record)))


def explained(planned: Iterable[Action]) -> list[Change]:
    return list(aspects.explain(planned))


def function_state(**changes: Any) -> FunctionState:
    return replace(function_state_of(HIDE), **changes)


def policy_state(**changes: Any) -> PolicyState:
    return replace(policy_state_of(PII), **changes)


def test_one_statement_replaces_all_that_differs_of_a_function() -> None:
    observed = function_state(body="upper(v)", comment="old", parameters=(Parameter("v", "string", "'x'"),))
    planned = actions(replace(HIDE, owner="ann", tags={"team": "x"}), observed)
    first = planned[0]
    assert isinstance(first, ReplaceFunction)
    assert first.parts == ("parameters", "body", "comment")
    assert explained([first]) == [
        Change("parameters", "v string = 'x'", "v string"),
        Change("body", "upper(v)", "left(v, 3)"),
        Change("comment", "old", None),
    ]
    context = RenderContext(HIDE.qualified_name, CatalogAddressing(), DATABRICKS)
    assert [sql for _, sql in aspects.render(planned, context)] == [
        "CREATE OR REPLACE FUNCTION `dev`.`gov`.`hide`(`v` string) RETURNS string RETURN left(v, 3)",
        "SET TAG ON FUNCTION `dev`.`gov`.`hide` `team` = `x`",
        "ALTER FUNCTION `dev`.`gov`.`hide` OWNER TO `ann`",
    ]


def test_a_replaced_function_gets_back_what_the_replacement_may_lose() -> None:
    observed = function_state(
        body="v", tags={"a": "1"}, owner="ann", grants={"bob": ("EXECUTE",), "eve": ("EXECUTE", "MANAGE")}
    )
    record = Recorded.of(
        replace(HIDE, grants={"eve": ("EXECUTE", "MANAGE")}), baseline=replace(HIDE, body="x")
    )
    planned = actions(replace(HIDE, grants={"eve": ("EXECUTE",)}), observed, record)
    context = RenderContext(HIDE.qualified_name, CatalogAddressing(), DATABRICKS)
    assert [sql for _, sql in aspects.render(planned, context)][1:] == [
        "GRANT EXECUTE ON FUNCTION `dev`.`gov`.`hide` TO `bob`",
        "GRANT EXECUTE, MANAGE ON FUNCTION `dev`.`gov`.`hide` TO `eve`",
        "SET TAG ON FUNCTION `dev`.`gov`.`hide` `a` = `1`",
        "ALTER FUNCTION `dev`.`gov`.`hide` OWNER TO `ann`",
        "REVOKE MANAGE ON FUNCTION `dev`.`gov`.`hide` FROM `eve`",
    ]


def test_tags_of_functions_are_unset_one_by_one() -> None:
    desired = replace(HIDE, tags={})
    record = Recorded.of(replace(HIDE, tags={"a": "1", "b": "2"}))
    planned = actions(desired, function_state(tags={"a": "1", "b": "2", "other": "3"}), record)
    context = RenderContext(HIDE.qualified_name, CatalogAddressing(), DATABRICKS)
    assert [sql for _, sql in aspects.render(planned, context)] == [
        "UNSET TAG ON FUNCTION `dev`.`gov`.`hide` `a`",
        "UNSET TAG ON FUNCTION `dev`.`gov`.`hide` `b`",
    ]


SHOWN = "left( v , 3 )"
"""The body in the words of a platform."""


@pytest.mark.parametrize(
    ("desired", "observed", "baseline", "is_replaced"),
    [
        pytest.param("left(v, 3)", SHOWN, SHOWN, False, id="as the last apply left it"),
        pytest.param("left(v, 4)", SHOWN, SHOWN, True, id="pending"),
        pytest.param("left(v, 3)", "v", SHOWN, True, id="changed outside the engine"),
        pytest.param("v", "v", SHOWN, False, id="changed outside the engine to what is declared"),
        pytest.param("left(v, 3)", None, SHOWN, False, id="hidden"),
        pytest.param("left(v, 4)", None, SHOWN, True, id="hidden and pending"),
    ],
)
def test_a_body_compares_with_what_was_applied_and_with_what_that_became(
    desired: str, observed: str | None, baseline: str, *, is_replaced: bool
) -> None:
    record = Recorded.of(HIDE, baseline=replace(HIDE, body=baseline))
    planned = actions(replace(HIDE, body=desired), function_state(body=observed), record)
    assert [type(action) for action in planned] == ([ReplaceFunction] if is_replaced else [])


@pytest.mark.parametrize(("observed", "is_replaced"), [("left(v, 3)", False), (SHOWN, True), (None, False)])
def test_without_a_record_the_observed_body_is_compared(observed: str | None, *, is_replaced: bool) -> None:
    assert bool(actions(HIDE, function_state(body=observed))) is is_replaced


def test_a_literal_that_the_engine_respells_is_no_difference() -> None:
    model = replace(HIDE, body="concat(v, 'it''s')")
    assert not actions(model, function_state_of(model))
    assert not actions(model, function_state(body="concat(v, 'it''s')"))


def test_what_a_model_leaves_to_the_platform_is_no_difference() -> None:
    assert not actions(HIDE, function_state(is_deterministic=True))
    assert not actions(replace(HIDE, is_deterministic=True), function_state(is_deterministic=None))
    assert actions(replace(HIDE, is_deterministic=True), function_state(is_deterministic=False))


@pytest.mark.parametrize(("body", "hazards"), [("left(v, 3)", SAFE), ("v", (Hazard.BREAKS_READERS,))])
def test_only_another_comment_of_a_function_is_safe(body: str, hazards: tuple[Hazard, ...]) -> None:
    (action,) = actions(replace(HIDE, comment="new"), function_state(body=body))
    assert action.hazards == hazards


def test_other_types_change_the_signature() -> None:
    desired = replace(HIDE, parameters=(Parameter("v", "int"),), returns=AtomicType("int"))
    (action,) = actions(desired, function_state())
    assert isinstance(action, ReplaceFunction)
    assert action.changes_signature
    assert action.changes_result
    assert not action.changes_body


def test_each_part_of_a_function_is_drift_of_its_own_kind() -> None:
    observed = function_state(body="v", comment="x", returns=None, owner="eve", grants={"bob": ["EXECUTE"]})
    kinds = [
        difference.kind.value
        for difference in aspects.differences(
            Comparison.of(replace(HIDE, owner="ann", grants={"eve": ("EXECUTE",)}), observed)
        )
    ]
    assert kinds == [
        "function_signature",
        "function_body",
        "function_comment",
        "function_grant",
        "function_owner",
    ]


def test_drift_of_a_function_is_accepted_part_by_part() -> None:
    observed = function_state(body="v", comment="x")
    first, *_ = aspects.differences(Comparison.of(HIDE, observed))
    assert aspects.accept(HIDE, observed, [first]) == replace(HIDE, body="v")


@pytest.mark.parametrize(
    "observed",
    [
        {"match": {"M": "hasTag('pii') "}},
        {"to": ("ACCOUNT USERS",), "excepted": ("HR",)},
        {"protection": PolicyMask("DEV.gov.`hide`", "M", ["'x'"])},
    ],
    ids=["condition", "principals", "function"],
)
def test_a_policy_in_other_words_is_no_difference(observed: dict[str, Any]) -> None:
    model = replace(PII, match={"m": "has_tag('pii')"})
    assert not actions(model, policy_state(**{"match": model.match, **observed}))


def test_one_statement_replaces_all_that_differs_of_a_policy() -> None:
    observed = policy_state(to=("eve", "bob"), when="has_tag('x')", comment="old")
    (action,) = actions(PII, observed)
    assert isinstance(action, ReplacePolicy)
    assert action.changes_protection
    assert action.hazards == (Hazard.BREAKS_READERS,)
    assert explained([action]) == [
        Change("when", "has_tag('x')", None),
        Change("to", "bob, eve", "account users"),
        Change("comment", "old", None),
    ]
    context = RenderContext(PII.qualified_name, CatalogAddressing(), DATABRICKS)
    assert [sql for _, sql in aspects.render([action], context)] == [
        "CREATE OR REPLACE POLICY `pii` ON SCHEMA `dev`.`silver` COLUMN MASK `dev`.`gov`.`hide` TO `account users`"
        " EXCEPT `hr` FOR TABLES MATCH COLUMNS has_tag_value('pii', 'email') AS `m` ON COLUMN `m`"
        " USING COLUMNS ('x')"
    ]


def test_only_another_comment_changes_no_protection() -> None:
    (action,) = actions(PII, policy_state(comment="old"))
    assert isinstance(action, ReplacePolicy)
    assert not action.changes_protection
    assert action.hazards == SAFE
    (difference,) = aspects.differences(Comparison.of(PII, policy_state(comment="old")))
    assert difference.kind is DriftKind.POLICY_COMMENT


def test_a_mask_that_became_a_filter_is_accepted() -> None:
    observed = policy_state(protection=PolicyFilter("dev.gov.mine"))
    differences = tuple(aspects.differences(Comparison.of(PII, observed)))
    assert [difference.change.subject for difference in differences] == ["mask", "filter"]
    for accepted in (differences, differences[:1]):
        assert aspects.accept(PII, observed, accepted).protection == PolicyFilter("dev.gov.mine")
