"""Records of tables and columns that got another name: everything on record says it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from delta_engine.actions.policy import NO_POLICY, Policy, Removed
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.codec import decode_state, encode_state
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.resources import (
    applied_record,
    unfinished,
    with_new_name,
    with_settled_renames,
    without_resources,
)
from delta_engine.drift.comparison import compared
from delta_engine.models import (
    Column,
    ForeignKey,
    PrimaryKey,
    QualifiedName,
    Table,
    View,
    ViewName,
    resource_key,
)
from delta_engine.ownership.recorded import Kept, LastChange
from delta_engine.ownership.recorded_models import (
    under_new_names,
    with_models,
    without_done_renames,
)
from delta_engine.state.states import CatalogState
from delta_engine.state.view_states import ABSENT_VIEW, view_state_of
from tests.builders.deployment import NOON, deployment_state
from tests.builders.models import ORDERS, orders

MODEL = orders(Column("id", "bigint"), Column("amount", "int"))


def test_foreign_keys_name_a_table_as_it_is_called_by_now() -> None:
    keys = [ForeignKey(["id"], "dev.silver.orders", ["id"], "up")]
    child = Table("dev", "silver", "items", [Column("id", "bigint")], foreign_keys=keys)
    parent = replace(MODEL, primary_key=PrimaryKey(["id"]), foreign_keys=(replace(keys[0], name="itself"),))
    name = QualifiedName("dev", "silver", "sales")
    state = with_new_name(deployment_state(parent, child), ORDERS, name)
    declared_models = [record.declared for record in with_models(state.resources).values()]
    assert [key.references for model in declared_models if model for key in model.foreign_keys] == [
        str(name),
        str(name),
    ]
    decode_state(encode_state(state), environment="test", where="the document")  # its checksums hold


def test_the_records_of_other_tables_are_as_they_were() -> None:
    """Also those of an older engine, which recorded no dependencies; and none of them costs a checksum."""
    items = Table("dev", "silver", "items", [Column("id", "bigint")])
    state = deployment_state(MODEL, items)
    key = resource_key(items.qualified_name)
    older = replace(state.resources[key], dependencies=())
    state = state.with_resources({**state.resources, key: older})
    renamed = with_new_name(state, ORDERS, QualifiedName("dev", "silver", "sales"))
    assert renamed.resources[key] is older


REVENUE = View("dev", "gold", "Revenue", "SELECT id FROM dev.silver.orders", grants={"bi": ["SELECT"]})
INCOME = replace(REVENUE, view_name="Income", renamed_from=("Revenue",))
VIEWS = deployment_state().with_resources(
    {
        "view.dev.gold.revenue": applied_record(
            REVENUE,
            at=NOON,
            by="ana",
            baseline=replace(REVENUE, query="SELECT orders.id FROM dev.silver.orders"),
        )
    }
)


def test_a_view_that_is_to_be_renamed_is_planned_and_compared_by_its_record() -> None:
    pending = replace(view_state_of(REVENUE), former_name=REVENUE.qualified_name)
    observed = CatalogState(tables={}, views={INCOME.key: pending})
    records = under_new_names(with_models(VIEWS.resources), [INCOME], observed)
    assert records["view.dev.gold.income"].declared == replace(INCOME, renamed_from=())
    planner = TablePlanner(Policy(removed_views=Removed.DROP))
    plan = planner.plan([INCOME], observed, records)
    (align,) = plan.alignments
    assert plan.changes == (align,)
    assert [type(action).__name__ for action in align.actions] == ["RenameView"]
    (resource,) = compared(VIEWS.resources, observed, NO_POLICY, [INCOME], now=NOON).values()
    assert (resource.name, resource.model_name, resource.changes) == (
        REVENUE.qualified_name,
        INCOME.qualified_name,
        (),
    )


def test_the_record_of_a_renamed_view_has_its_new_name() -> None:
    left = CatalogState(tables={}, views={INCOME.key: ABSENT_VIEW})
    assert with_settled_renames(VIEWS, [INCOME], left) is VIEWS
    done = CatalogState(tables={}, views={INCOME.key: view_state_of(INCOME)})
    state = with_settled_renames(VIEWS, [INCOME], done)
    ((key, record),) = state.resources.items()
    assert (key, record.name) == ("view.dev.gold.income", ViewName("dev", "gold", "Income"))
    assert record.declared == replace(INCOME, renamed_from=())
    assert isinstance(record.baseline, View)
    assert record.baseline.query == "SELECT orders.id FROM dev.silver.orders"
    assert decode_state(encode_state(state), environment="test", where="the document")[0] == state
    assert without_done_renames([INCOME], state.resources) == (replace(INCOME, renamed_from=()),)
    assert without_done_renames([INCOME], VIEWS.resources) == (INCOME,)


SALES = QualifiedName("dev", "silver", "sales")
ITEMS = Table("dev", "silver", "items", [Column("id", "bigint")])
ITEMS_KEY = resource_key(ITEMS.qualified_name)
RENAMED_BACK = LastChange(run="undo", at=NOON, undoes="rename", former="dev.silver.Sales")


def renamed_by_a_run(change: LastChange) -> DeploymentState:
    """Return a document after an unfinished change of orders; another run had renamed it and another table."""
    state = deployment_state(replace(MODEL, table_name="Sales"), ITEMS)
    renamed = {
        key: replace(record, change=LastChange(run="rename", at=NOON))
        for key, record in state.resources.items()
    }
    attempt = unfinished(ORDERS, None, attempted=[Kept(MODEL)], earlier=None, change=change)
    return state.with_resources({**renamed, attempt.key: replace(attempt, change=change)})


@pytest.mark.parametrize("key", [resource_key(ORDERS), resource_key(SALES)])
@pytest.mark.parametrize("undoes", ["rename", None], ids=["undo", "sync"])
def test_the_records_of_what_an_unfinished_run_was_renaming_are_forgotten_together(
    key: str, undoes: str | None
) -> None:
    state = renamed_by_a_run(msgspec.structs.replace(RENAMED_BACK, undoes=undoes))
    assert len(state.resources) == 3
    assert [*without_resources(state, [key]).resources] == [ITEMS_KEY]
    assert [*without_resources(state, [ITEMS_KEY]).resources] == [resource_key(SALES), resource_key(ORDERS)]


@pytest.mark.parametrize(
    "change",
    [
        msgspec.structs.replace(RENAMED_BACK, undoes=None, at=NOON - timedelta(seconds=1)),
        msgspec.structs.replace(RENAMED_BACK, undoes="another run", at=NOON - timedelta(seconds=1)),
        msgspec.structs.replace(RENAMED_BACK, former=None),
        msgspec.structs.replace(RENAMED_BACK, former="dev.silver.gone"),
    ],
)
def test_other_unfinished_changes_are_forgotten_alone(change: LastChange) -> None:
    state = renamed_by_a_run(change)
    left = without_resources(state, [resource_key(ORDERS)])
    assert [*left.resources] == [resource_key(SALES), ITEMS_KEY]
    assert resource_key(ORDERS) in without_resources(state, [resource_key(SALES)]).resources
