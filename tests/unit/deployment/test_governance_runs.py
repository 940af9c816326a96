"""What runs record of functions and policies: as read back, late, failed, killed, no longer declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from delta_engine.actions.drift_policy import DriftPolicy, IgnoreEntry
from delta_engine.actions.policy import Allowance, DestructiveKind, Policy, Removed
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import StatementError
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.models import AbacPolicy, Function, Parameter, PolicyMask, PolicyScope, Securable
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.ownership.recorded import AnyRecord, Status
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import TableQueries
from tests.builders.engines import engine_on
from tests.builders.worlds import Kill
from tests.fakes.platform import recorded
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.unit.deployment.test_unfinished_runs import Faulty

POLICY = Policy(allow=tuple(map(Allowance, DestructiveKind)))

HIDE = Function(
    "dev",
    "silver",
    "hide",
    "string",
    "'***'",
    [Parameter("v", "string")],
    comment="Hides",
    grants={"users": ["EXECUTE"]},
)
OTHER = replace(HIDE, body="upper(v)")
PII = AbacPolicy(
    "pii",
    PolicyScope("schema", "dev.silver"),
    PolicyMask("dev.silver.hide", "mail"),
    ["users"],
    match={"mail": "has_tag('pii')"},
)
KEY, POLICY_KEY = "function.dev.silver.hide", "policy.schema.dev.silver.pii"

HAND_MADE = "CREATE OR REPLACE FUNCTION dev.silver.hide(v STRING) RETURNS STRING COMMENT 'Hides' RETURN v"

Change = Callable[[CatalogState], CatalogState]


class Shown:
    """Reads a catalog as it is, changed by how the platform shows it.

    Args:
        directly: changes the second read as well, or raises.
    """

    def __init__(self, catalog: FakeUnityCatalog, shown: Change, directly: Change | None = None) -> None:
        self._catalog, self._shown, self._directly = catalog, shown, directly or shown

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        return self._shown(self._catalog.snapshot(models))

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        return self._directly(self._catalog.snapshot_directly(models))


def as_it_is(state: CatalogState) -> CatalogState:
    return state


def respelled(state: CatalogState) -> CatalogState:
    """Return a snapshot with bodies in other words."""
    functions = {
        key: replace(function, body=f"( {function.body} )") if function.body else function
        for key, function in state.functions.items()
    }
    return replace(state, functions=functions)


def killed(_state: CatalogState) -> CatalogState:
    raise Kill


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    return FakeUnityCatalog(schemas=("dev.silver",))


def engine(
    catalog: FakeUnityCatalog,
    deployment: Deployment,
    *,
    shown: Change = as_it_is,
    directly: Change | None = None,
    at: str | None = None,
    how: type[BaseException] = StatementError,
    policy: Policy = POLICY,
) -> Orchestrator:
    runner = catalog if at is None else Faulty(catalog, at, how)
    versions = TableQueries(catalog, CatalogAddressing(), parallelism=1)
    reader = Shown(catalog, shown, directly)
    return engine_on(reader, runner, deployment, policy, versions=versions)


def sync(catalog: FakeUnityCatalog, deployment: Deployment, *models: Securable, **settings: Any) -> None:
    engine(catalog, deployment, **settings).sync_tables(models)


def record(deployment: Deployment, key: str = KEY) -> AnyRecord:
    return recorded(deployment).resources[key]


def drift(
    catalog: FakeUnityCatalog, deployment: Deployment, *models: Securable, **settings: Any
) -> list[str]:
    report = report_drift(engine(catalog, deployment, **settings), models)
    return [f"{finding.kind.value} {finding.expected} → {finding.actual}" for _, finding in report.findings()]


def by_hand(catalog: FakeUnityCatalog) -> None:
    """Replace the function as another principal does, who grants what is lost."""
    catalog.by_hand(HAND_MADE, "GRANT EXECUTE ON FUNCTION dev.silver.hide TO `users`")


def is_planned(
    catalog: FakeUnityCatalog, deployment: Deployment, *models: Securable, **settings: Any
) -> bool:
    return bool(engine(catalog, deployment, **settings).plan_tables(models))


def test_what_the_platform_shows_in_other_words_is_neither_planned_nor_drift(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    sync(catalog, deployment, HIDE, PII, shown=respelled)
    assert record(deployment).status is Status.HEALTHY
    assert not is_planned(catalog, deployment, HIDE, PII, shown=respelled)
    assert drift(catalog, deployment, HIDE, PII, shown=respelled) == []
    sync(catalog, deployment, OTHER, PII, shown=respelled)
    assert not is_planned(catalog, deployment, OTHER, PII, shown=respelled)
    by_hand(catalog)
    assert drift(catalog, deployment, OTHER, PII, shown=respelled) == ["function_body ( upper(v) ) → ( v )"]


def test_a_change_of_grants_keeps_what_was_read_back(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    sync(catalog, deployment, HIDE, shown=respelled)
    wider = replace(HIDE, grants={"users": ("EXECUTE",), "auditors": ("EXECUTE",)})
    sync(catalog, deployment, wider, shown=respelled)
    assert not is_planned(catalog, deployment, wider, shown=respelled)
    assert drift(catalog, deployment, wider, shown=respelled) == []


def test_a_catalog_that_shows_the_change_late_is_no_drift(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    sync(catalog, deployment, HIDE)
    before = catalog.snapshot([HIDE])

    def late(state: CatalogState) -> CatalogState:
        return replace(state, functions=before.functions)

    sync(catalog, deployment, OTHER, directly=late)
    assert record(deployment).status is Status.UNKNOWN
    assert drift(catalog, deployment, OTHER, shown=late) == []
    assert drift(catalog, deployment, OTHER) == []
    sync(catalog, deployment, OTHER)
    assert record(deployment).status is Status.HEALTHY
    by_hand(catalog)
    assert drift(catalog, deployment, OTHER) == ["function_body upper(v) → v"]


def test_only_words_are_taken_from_the_second_read(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    def overtaken(state: CatalogState) -> CatalogState:
        key = PII.qualified_name.key
        return replace(state, policies={key: replace(state.policies[key], excepted=("jo",))})

    sync(catalog, deployment, HIDE, PII, directly=overtaken)
    assert record(deployment, POLICY_KEY).status is Status.UNKNOWN
    assert record(deployment, POLICY_KEY).baseline == PII


@pytest.mark.parametrize("shown", [as_it_is, respelled])
def test_a_run_that_is_killed_before_the_second_read_leaves_no_drift(
    catalog: FakeUnityCatalog, deployment: Deployment, shown: Change
) -> None:
    sync(catalog, deployment, HIDE, shown=shown)
    with pytest.raises(Kill):
        sync(catalog, deployment, OTHER, shown=shown, directly=killed)
    assert drift(catalog, deployment, OTHER, shown=shown) == []
    sync(catalog, deployment, OTHER, shown=shown)
    assert record(deployment).status is Status.HEALTHY
    assert not is_planned(catalog, deployment, OTHER, shown=shown)
    assert catalog.functions["dev.silver.hide"].body == "upper(v)"


@pytest.mark.parametrize("how", [StatementError, Kill])
@pytest.mark.parametrize("at", ["CREATE OR REPLACE FUNCTION", "GRANT"])
def test_an_unfinished_run_is_no_drift_and_is_finished(
    catalog: FakeUnityCatalog, deployment: Deployment, at: str, how: type[BaseException]
) -> None:
    sync(catalog, deployment, HIDE)
    with pytest.raises((ApplyFailedError, Kill)):
        sync(catalog, deployment, OTHER, at=at, how=how)
    assert drift(catalog, deployment, OTHER) == []
    sync(catalog, deployment, OTHER)
    function = catalog.functions["dev.silver.hide"]
    assert (function.body, dict(function.grants)) == ("upper(v)", {"users": ("EXECUTE",)})
    assert record(deployment).status is Status.HEALTHY


@pytest.mark.parametrize("how", [StatementError, Kill])
@pytest.mark.parametrize("at", ["CREATE OR REPLACE FUNCTION", "GRANT"])
def test_an_unfinished_run_is_taken_back_with_its_model(
    catalog: FakeUnityCatalog, deployment: Deployment, at: str, how: type[BaseException]
) -> None:
    sync(catalog, deployment, HIDE)
    with pytest.raises((ApplyFailedError, Kill)):
        sync(catalog, deployment, OTHER, at=at, how=how)
    sync(catalog, deployment, HIDE)
    function = catalog.functions["dev.silver.hide"]
    assert (function.body, dict(function.grants)) == ("'***'", {"users": ("EXECUTE",)})


@pytest.mark.parametrize("how", [StatementError, Kill])
def test_a_failed_creation_is_recorded_and_done_again(
    catalog: FakeUnityCatalog, deployment: Deployment, how: type[BaseException]
) -> None:
    with pytest.raises((ApplyFailedError, Kill)):
        sync(catalog, deployment, HIDE, PII, at="CREATE POLICY", how=how)
    left = deployment.peek_replayed()
    assert left is not None
    assert left.resources[POLICY_KEY].attempted == (PII,)
    assert drift(catalog, deployment, HIDE, PII) == []
    sync(catalog, deployment, HIDE, PII)
    assert record(deployment, POLICY_KEY).status is Status.HEALTHY
    assert len(catalog.policies) == 1


def test_what_is_no_longer_declared_keeps_its_record_until_it_is_dropped(
    catalog: FakeUnityCatalog, deployment: Deployment
) -> None:
    sync(catalog, deployment, HIDE, PII)
    sync(catalog, deployment)
    assert record(deployment).declared == HIDE
    assert drift(catalog, deployment) == []
    drops = replace(POLICY, removed_functions=Removed.DROP, removed_policies=Removed.DROP)
    sync(catalog, deployment, policy=drops)
    assert (catalog.functions, catalog.policies) == ({}, [])
    assert not {KEY, POLICY_KEY} & recorded(deployment).resources.keys()


def test_ignored_drift_does_not_enter_the_baseline(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    sync(catalog, deployment, HIDE)
    by_hand(catalog)
    ignores = DriftPolicy(ignores=(IgnoreEntry(resource=KEY, fields=("function_body",), reason="known"),))
    replace(engine(catalog, deployment), drift_policy=ignores).sync_tables([HIDE])
    assert catalog.functions["dev.silver.hide"].body == "v"
    assert drift(catalog, deployment, HIDE) == ["function_body '***' → v"]


def test_a_hidden_body_is_no_drift(catalog: FakeUnityCatalog, deployment: Deployment) -> None:
    sync(catalog, deployment, HIDE)

    def hidden(state: CatalogState) -> CatalogState:
        functions = {key: replace(function, body=None) for key, function in state.functions.items()}
        return replace(state, functions=functions)

    assert drift(catalog, deployment, HIDE, shown=hidden) == []
    assert not is_planned(catalog, deployment, HIDE, shown=hidden)
    sync(catalog, deployment, OTHER, shown=hidden)
    assert not is_planned(catalog, deployment, OTHER)
    assert drift(catalog, deployment, OTHER) == []
