"""databricks-sdk lists functions and policies over HTTP, and the engine reads them as the views show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from delta_engine.actions import Align, Create, TablePlan
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.errors import SourceLocation
from delta_engine.models import Securable
from delta_engine.models.functions import Function, Parameter
from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyMask, PolicyScope
from delta_engine.sql.functions import sql_create_function
from delta_engine.sql.policies import sql_create_policy
from delta_engine.state.function_states import FunctionState, function_state_of
from delta_engine.state.governed_tags import GovernedTagReader
from delta_engine.state.policy_states import PolicyState, policy_state_of
from delta_engine.state.unity_catalog.policy_descriptions import listed_policy
from delta_engine.state.unity_catalog.routines import ROUTINE_PRIVILEGES, listed_function
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from delta_engine.state.unmanaged import Unmanaged
from delta_engine.validation.policy_rules import ungoverned_tags
from tests.fakes import governance_api
from tests.fakes.governance_api import FUNCTIONS as FUNCTIONS_PATH
from tests.fakes.governance_api import POLICIES as POLICIES_PATH
from tests.fakes.governance_api import FakeGovernanceApi
from tests.fakes.unity_catalog import FakeUnityCatalog

X = Parameter("x", "string", comment="it's")
FUNCTIONS = [
    Function("dev", "silver", "mask", "string", "'it''s' || x", [X, Parameter("n", "int", default="1 + 1")]),
    Function("dev", "silver", "clean", "string", "return x", [X], language="python", comment="Cleans"),
    Function("dev", "silver", "mine", "boolean", "x = 'DE'", [X], is_deterministic=False),
]
SCHEMA = PolicyScope("schema", "dev.silver")
POLICIES = [
    AbacPolicy(
        "pii",
        SCHEMA,
        PolicyMask("dev.silver.mask", "mail", ["n", "3"]),
        ["account users"],
        excepted=["hr"],
        match={"mail": "has_tag_value('pii', 'it''s')", "n": "has_tag('n')"},
        when="has_tag('a') AND NOT has_tag('b')",
        comment="for HR",
    ),
    AbacPolicy("rows", PolicyScope("catalog", "dev"), PolicyFilter("dev.silver.mine", ["'DE'"]), ["eve"]),
    AbacPolicy("more", SCHEMA, PolicyFilter("dev.silver.mine", ["'FR'"]), ["bob"]),
]


@pytest.fixture
def api() -> Iterator[FakeGovernanceApi]:
    catalog = FakeUnityCatalog()
    for function in FUNCTIONS:
        catalog.run(sql_create_function(function))
    for policy in POLICIES:
        catalog.run(sql_create_policy(policy))
    with governance_api.serving(FakeGovernanceApi(catalog)) as serving:
        yield serving


@pytest.fixture
def client(api: FakeGovernanceApi) -> Any:
    sdk = pytest.importorskip("databricks.sdk")
    return sdk.WorkspaceClient(host=api.host, token="secret")


def test_functions_are_listed_page_by_page_with_their_owners(client: Any) -> None:
    states = {info.name: listed_function(info) for info in client.functions.list("dev", "silver")}
    for function in FUNCTIONS:
        expected = function_state_of(function)
        state = states[function.function_name]
        assert isinstance(state, FunctionState)
        assert state == replace(
            expected,
            owner="ann@example.com",
            is_deterministic=expected.is_deterministic is not False,
        )


def test_a_missing_schema_is_an_error(client: Any) -> None:
    from databricks.sdk.errors import NotFound

    with pytest.raises(NotFound):
        list(client.functions.list("dev", "nowhere"))


def test_policies_are_listed_with_everything_that_a_model_says(client: Any, api: FakeGovernanceApi) -> None:
    own = {info.name: listed_policy(info) for info in client.policies.list_policies("SCHEMA", "dev.silver")}
    whole = client.policies.list_policies("SCHEMA", "dev.silver", include_inherited=True)
    all_of_them = {info.name: listed_policy(info) for info in whole}
    states = {policy.name: policy_state_of(policy) for policy in POLICIES}
    states["pii"] = replace(
        states["pii"], match={**states["pii"].match, "mail": "has_tag_value('pii', 'it\\'s')"}
    )
    assert own == {name: states[name] for name in ("pii", "more")}
    assert all_of_them == states


def test_a_policy_that_grants_is_listed_as_another_one(client: Any, api: FakeGovernanceApi) -> None:
    api.catalog.policies = [replace(api.catalog.policies[0], policy_type="GRANT")]
    (info,) = client.policies.list_policies("SCHEMA", "dev.silver")
    assert listed_policy(info) == Unmanaged("it is a GRANT policy")


def test_both_ways_of_reading_agree(client: Any, api: FakeGovernanceApi) -> None:
    api.catalog.run("GRANT EXECUTE ON FUNCTION dev.silver.mask TO `account users`")
    described = UnityCatalogReader(api.catalog).snapshot([*FUNCTIONS, *POLICIES])
    api.catalog.questions.clear()
    listed = UnityCatalogReader(api.catalog, governance=client).snapshot([*FUNCTIONS, *POLICIES])
    assert {state.owner for state in listed.functions.values()} == {"ann@example.com"}
    assert {key: replace(state, owner=None) for key, state in listed.functions.items()} == described.functions
    assert described.functions["dev.silver.mask"].grants == {"account users": ("EXECUTE",)}
    assert listed.policies == described.policies
    in_sql = [
        sql for sql in api.catalog.questions if "routine" in sql or "POLICY" in sql or "POLICIES" in sql
    ]
    assert in_sql == [ROUTINE_PRIVILEGES.query("dev", ["silver"])]
    listings = [path for path in api.requests if path.endswith("functions") or "policies" in path]
    assert {*listings} == {FUNCTIONS_PATH, f"{POLICIES_PATH}SCHEMA/dev.silver", f"{POLICIES_PATH}CATALOG/dev"}


class _Unreachable:
    """Listings that fail, as without a network."""

    def __init__(self) -> None:
        self.asked = 0
        self.functions = self.policies = self.tag_policies = self

    def list(
        self,
        catalog_name: str,
        schema_name: str,
        *,
        include_browse: bool | None = None,
        max_results: int | None = None,
    ) -> Any:
        self.asked += 1
        raise TimeoutError(f"{catalog_name}.{schema_name}")

    def list_tag_policies(self) -> Any:
        self.asked += 1
        raise TimeoutError("tags")

    def list_policies(self, on_securable_type: str, on_securable_fullname: str) -> Any:
        self.asked += 1
        raise TimeoutError(on_securable_fullname)


def test_a_listing_that_fails_is_read_in_sql_from_then_on(api: FakeGovernanceApi) -> None:
    listing = _Unreachable()
    reader, in_sql = UnityCatalogReader(api.catalog, governance=listing), UnityCatalogReader(api.catalog)
    models: list[Securable] = [*FUNCTIONS, *POLICIES]
    assert reader.snapshot(models) == in_sql.snapshot(models)
    asked = listing.asked
    assert reader.snapshot(models) == in_sql.snapshot(models)
    assert listing.asked == asked


def test_an_older_sdk_without_policies_reads_them_in_sql(client: Any, api: FakeGovernanceApi) -> None:
    older: Any = SimpleNamespace(functions=client.functions)
    state = UnityCatalogReader(api.catalog, governance=older).snapshot(POLICIES)
    assert state == UnityCatalogReader(api.catalog).snapshot(POLICIES)


def test_what_may_not_be_listed_is_read_in_sql(client: Any, api: FakeGovernanceApi) -> None:
    api.refused = {"dev.silver"}
    models: list[Securable] = [*FUNCTIONS, *POLICIES]
    state = UnityCatalogReader(api.catalog, governance=client).snapshot(models)
    assert state == UnityCatalogReader(api.catalog).snapshot(models)


def test_a_hidden_function_is_listed_without_its_body(client: Any, api: FakeGovernanceApi) -> None:
    api.catalog.user = "bob"
    api.catalog.hides_bodies = True
    states = UnityCatalogReader(api.catalog, governance=client).snapshot(FUNCTIONS).functions
    assert {state.body for state in states.values()} == {None}


def test_governed_tags_are_listed(client: Any, api: FakeGovernanceApi) -> None:
    api.catalog.known_tags = frozenset({"a", "b", "n"})
    assert GovernedTagReader(client).read() == frozenset({"a", "b", "n"})
    placed = replace(POLICIES[0], declared_at=SourceLocation("policies.yml", 3))
    replaced = Align(placed.qualified_name, (ReplacePolicy(placed, PolicyState(), ("comment",)),))
    for change in (Create(placed), replaced):
        (refusal,) = ungoverned_tags(TablePlan((change,)), GovernedTagReader(client))
        assert str(refusal) == (
            "policies.yml:3: policy pii on schema dev.silver: its conditions name tags that are not governed: pii. "
            "Create the governed tags first, or correct the conditions. Keys are case-sensitive."
        )


@pytest.mark.parametrize("hides", ["an empty list", "a refusal", "no listing"])
def test_tags_that_cannot_be_listed_are_not_judged(
    client: Any, api: FakeGovernanceApi, hides: str, caplog: pytest.LogCaptureFixture
) -> None:
    api.catalog.known_tags = frozenset() if hides == "an empty list" else frozenset({"other"})
    api.refused |= {"tags"} if hides == "a refusal" else set()
    reader = GovernedTagReader(None if hides == "no listing" else client)
    assert [*ungoverned_tags(TablePlan((Create(POLICIES[0]),)), reader)] == []
    assert ("governed tags not listed" in caplog.text) is (hides == "a refusal")
    api.requests.clear()
    assert [*ungoverned_tags(TablePlan((Create(FUNCTIONS[0]),)), reader)] == []
    assert api.requests == []
