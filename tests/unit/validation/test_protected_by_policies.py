"""Values are computed under the policies that models declare as under those that reach a table already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from delta_engine.actions import Create, TablePlan
from delta_engine.actions.policy import Allowance, Policy
from delta_engine.aspects.governed_tables import GovernedPlan
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import AbacPolicy, Column, PolicyFilter, PolicyMask, PolicyScope, Table
from delta_engine.state.effective_policies import EffectivePolicyReader
from delta_engine.state.policy_states import PolicyState, policy_state_of
from delta_engine.state.principals import PrincipalReader
from delta_engine.state.states import CatalogState, TableState
from delta_engine.validation.protected_data import ProtectedData
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.policies import Policy as Stored

ID = Column("id", "bigint", is_nullable=False)
ORDERS = Table("dev", "silver", "orders", [ID, Column("day", "int", using="1", is_nullable=False)])
OBSERVED = TableState(columns=(ID, Column("day", "int")))
ENGINE = FakeUnityCatalog().user


def policy(name: str = "mine", *, excepted: tuple[str, ...] = (), **changes: Any) -> AbacPolicy:
    arguments: dict[str, Any] = {
        "scope": PolicyScope("schema", "dev.silver"),
        "protection": PolicyFilter("dev.g.mine"),
        "to": ["account users"],
        **changes,
    }
    return AbacPolicy(name, excepted=excepted, **arguments)


def refusals(
    *created: AbacPolicy,
    managed: tuple[AbacPolicy, ...] = (),
    effective: tuple[Stored, ...] = (),
    table: TableState = OBSERVED,
    desired: Table = ORDERS,
) -> list[str]:
    catalog = FakeUnityCatalog(schemas=("dev.silver",))
    catalog.run("CREATE TABLE `dev`.`silver`.`orders` (`id` BIGINT NOT NULL, `day` INT) USING delta")
    catalog.policies = [*effective]
    states: dict[str, PolicyState] = {each.key: policy_state_of(each) for each in managed}
    observed = CatalogState(tables={ORDERS.key: table}, policies=states)
    plan = TablePlanner().plan([desired], observed)
    plan = TablePlan((*plan.changes, *map(Create, created)))
    asks = ProtectedData(
        EffectivePolicyReader(catalog), catalog, CatalogAddressing(), principals=PrincipalReader(catalog)
    )
    allowed = Policy(allow=(Allowance.parse("backfill_column"),))
    return [refusal.reason for refusal in asks.refusals(GovernedPlan(plan, observed), [desired], allowed)]


EFFECTIVE = (Stored(name="mine", securable="dev.silver", excepted=frozenset({ENGINE})),)
HIDES = "these policies (ABAC) may hide some of them from the engine"


def test_a_policy_that_the_plan_creates_counts() -> None:
    (reason,) = refusals(policy())
    assert reason.endswith(f"{HIDES}: mine of schema dev.silver (ROW_FILTER)")
    tagged = policy(protection=PolicyMask("dev.g.f", "c"), match={"c": "has_tag('pii')"})
    assert refusals(tagged) == []


def test_a_new_policy_counts_that_masks_a_column_which_the_model_no_longer_has() -> None:
    masked = policy(protection=PolicyMask("dev.g.f", "c"), match={"c": "has_tag('pii')"})
    mail = Column("mail", "string", tags={"pii": "email"})
    (reason,) = refusals(masked, table=TableState(columns=(*OBSERVED.columns, mail)))
    assert reason.endswith(f"{HIDES}: mine of schema dev.silver (COLUMN_MASK)")


def test_a_new_policy_counts_that_needs_a_new_column_and_one_which_the_plan_drops() -> None:
    tagged = policy(
        protection=PolicyMask("dev.g.f", "c", ["d"]), match={"c": "has_tag('pii')", "d": "has_tag('key')"}
    )
    mail = Column("mail", "string", tags={"pii": "email"})
    desired = replace(ORDERS, columns=(*ORDERS.columns, Column("salt", "string", tags={"key": "1"})))
    (reason,) = refusals(tagged, table=TableState(columns=(*OBSERVED.columns, mail)), desired=desired)
    assert reason.endswith(f"{HIDES}: mine of schema dev.silver (COLUMN_MASK)")


@pytest.mark.parametrize("principal", [ENGINE, ENGINE.upper(), "account users"])
def test_a_policy_that_excepts_the_engine_does_not(principal: str) -> None:
    assert refusals(policy(excepted=(principal,))) == []


def test_no_consent_is_needed_for_an_existing_policy_of_which_the_engine_knows_that_it_is_excepted() -> None:
    known = policy(excepted=(ENGINE,))
    assert refusals(managed=(known,), effective=EFFECTIVE) == []
    (reason,) = refusals(effective=EFFECTIVE)
    assert reason.endswith("mine of schema dev.silver (ROW_FILTER)")
    other = Stored(name="theirs", securable="dev", excepted=frozenset({ENGINE}))
    (reason,) = refusals(managed=(known,), effective=(*EFFECTIVE, other))
    assert reason.endswith(f"{HIDES}: theirs of catalog dev (ROW_FILTER)")
