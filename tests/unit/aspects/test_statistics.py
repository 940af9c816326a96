"""Clustering by columns without statistics is refused, and statistics are chosen before clustering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from delta_engine.actions import Phase
from delta_engine.actions.policy import NO_POLICY, ColumnOrder, Policy
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.column_order import MoveColumn
from delta_engine.backends.capabilities import (
    DATABRICKS,
    DATABRICKS_SPARK,
    OPEN_SOURCE,
    OPEN_SOURCE_CATALOG,
    Capabilities,
)
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import Column, Table
from delta_engine.state.states import ABSENT, TableState
from delta_engine.validation.layout_rules import ClusteringColumnsHaveStatistics
from tests.builders.models import catalog_of, observed, orders
from tests.fakes.planning import planned, statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog

WIDE = [Column(f"c{place}", "int") for place in range(40)]
NESTED = [Column("s", f"struct<{', '.join(f'f{place}: int' for place in range(31))}>"), *WIDE]
FOUR = [OPEN_SOURCE, OPEN_SOURCE_CATALOG, DATABRICKS, DATABRICKS_SPARK]


def _refused(model: Table, state: TableState = ABSENT, on: Capabilities = OPEN_SOURCE) -> list[str | None]:
    plan = planned([model], catalog_of([model], state))
    return [refusal.column for refusal in ClusteringColumnsHaveStatistics(on).check(plan, NO_POLICY)]


def _wide(key: str, properties: Mapping[str, str] | None = None, **rest: Any) -> Table:
    return orders(*WIDE, cluster_by=[key], properties=properties, **rest)


@pytest.mark.parametrize("state", [ABSENT, observed(*WIDE)], ids=["new", "existing"])
@pytest.mark.parametrize(
    ("key", "properties", "is_refused"),
    [
        ("c31", {}, False),
        ("c32", {}, True),
        ("c39", {"delta.dataSkippingNumIndexedCols": "40"}, False),
        ("c39", {"delta.DataSkippingNumIndexedCols": "-1"}, False),
        ("c39", {"delta.dataSkippingNumIndexedCols": "39"}, True),
        ("c0", {"delta.dataSkippingNumIndexedCols": "0"}, True),
        (
            "C39",
            {"delta.dataSkippingStatsColumns": "c1, `c39`", "delta.dataSkippingNumIndexedCols": "1"},
            False,
        ),
        ("c2", {"delta.dataSkippingStatsColumns": "c1"}, True),
    ],
)
def test_a_key_needs_statistics(
    key: str, properties: Mapping[str, str], is_refused: bool, state: TableState
) -> None:
    assert _refused(_wide(key, properties), state) == [key] * is_refused


def test_each_field_in_structs_counts() -> None:
    assert _refused(orders(*NESTED, cluster_by=["s.f30", "c0", "c1"])) == ["c1"]
    named = {"delta.dataSkippingStatsColumns": "s"}
    assert _refused(orders(*NESTED, cluster_by=["S.f30", "c0"], properties=named)) == ["c0"]


@pytest.mark.parametrize("on", FOUR, ids=lambda capabilities: capabilities.name)
def test_only_managed_tables_on_databricks_have_no_limit_by_default(on: Capabilities) -> None:
    is_limited = on in (OPEN_SOURCE, OPEN_SOURCE_CATALOG)
    assert (
        _refused(_wide("c39"), on=on) == _refused(_wide("c39"), observed(*WIDE), on) == ["c39"] * is_limited
    )
    outside = "s3://bucket/orders"
    assert _refused(_wide("c39", location=outside), on=on) == ["c39"]
    assert _refused(_wide("c39", location=outside), replace(observed(*WIDE), location=outside), on) == ["c39"]
    assert _refused(_wide("c39", {"delta.dataSkippingStatsColumns": "c1"}), on=on) == ["c39"]


def test_the_order_of_the_table_counts_not_that_of_the_model() -> None:
    first_is_new = orders(Column("new", "int"), *WIDE, cluster_by=["new"])
    assert _refused(first_is_new, observed(*WIDE)) == ["new"]
    assert _refused(_wide("c39"), observed(*reversed(WIDE))) == []


def test_clustering_that_stays_is_not_refused() -> None:
    assert _refused(_wide("c39"), observed(*WIDE, cluster_by=("c39",))) == []


def test_an_undeclared_property_of_the_table_counts() -> None:
    state = observed(*WIDE, properties={"delta.dataSkippingNumIndexedCols": "2"})
    assert _refused(_wide("c2"), state, DATABRICKS) == ["c2"]


def test_automatic_clustering_is_not_refused() -> None:
    assert _refused(orders(*WIDE, cluster_by="AUTO"), on=DATABRICKS) == []


@pytest.mark.parametrize(
    ("observed_properties", "properties"),
    [
        ({"delta.dataSkippingStatsColumns": "c1"}, {"delta.dataSkippingStatsColumns": "c39"}),
        ({"delta.dataSkippingNumIndexedCols": "2"}, {"delta.dataSkippingNumIndexedCols": "-1"}),
    ],
)
def test_statistics_are_chosen_before_the_clustering_that_needs_them(
    observed_properties: dict[str, str], properties: dict[str, str]
) -> None:
    catalog = FakeUnityCatalog()
    state = observed(*WIDE, cluster_by=("c1",), properties=observed_properties)
    model = _wide("c39", {**properties, "a": "b"})
    plan = planned([model], catalog_of([model], state))
    (align,) = plan.align_tables
    phases = [Phase.CHOOSE_STATISTICS, Phase.CHANGE_CLUSTERING, Phase.SET_TABLE_PROPERTIES]
    assert [action.phase for action in align.actions] == phases
    assert [change.missing for change in align.of_type(ChangeClustering)] == [None]
    (entry,) = observed_properties.items()
    columns = ", ".join(f"{column.name} INT" for column in WIDE)
    catalog.run(
        f"CREATE TABLE dev.silver.orders ({columns}) USING delta CLUSTER BY (c1) "
        f"TBLPROPERTIES ('{entry[0]}' = '{entry[1]}')"
    )
    for sql in statements_of(plan):
        catalog.run(sql)
    assert catalog.stored("dev.silver.orders").state.cluster_by == ("c39",)


def test_a_limit_that_the_model_no_longer_declares_goes_before_the_clustering() -> None:
    limited = _wide("c1", {"delta.dataSkippingNumIndexedCols": "2"})
    state = observed(*WIDE, cluster_by=("c1",), properties={"delta.dataSkippingNumIndexedCols": "2"})
    model = _wide("c20", {})
    (align,) = planned([model], catalog_of([model], state), {model.key: limited}).align_tables
    assert [action.phase for action in align.actions] == [Phase.CHOOSE_STATISTICS, Phase.CHANGE_CLUSTERING]
    assert [change.missing for change in align.of_type(ChangeClustering)] == [None]


ENFORCED = Policy(column_order=ColumnOrder.ENFORCE)


@pytest.mark.parametrize(
    ("moved", "key", "is_refused"),
    [
        (["c39"], "c31", True),  # it pushes the key beyond the limit
        (["c39"], "c30", False),
        (["c5"], "c39", True),  # the key is beyond already
    ],
)
def test_columns_move_only_while_the_keys_have_statistics(
    moved: list[str], key: str, is_refused: bool
) -> None:
    first = [column for column in WIDE if column.name in moved]
    model = orders(*first, *(column for column in WIDE if column not in first), cluster_by=[key])
    state = observed(*WIDE, cluster_by=(key,))
    plan = planned([model], catalog_of([model], state), planner=TablePlanner(ENFORCED))
    assert plan.align_tables[0].of_type(MoveColumn)
    refusals = list(ClusteringColumnsHaveStatistics(OPEN_SOURCE).check(plan, ENFORCED))
    assert [refusal.column for refusal in refusals] == [key] * is_refused
    assert all(
        "it has no statistics while columns move: Delta collects" in str(refusal) for refusal in refusals
    )
