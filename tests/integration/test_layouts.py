"""Clustering and reserved names on real Delta: it refuses what the engine refuses, and takes what the engine plans."""

from __future__ import annotations

import pytest

from delta_engine.actions.policy import NO_POLICY
from delta_engine.backends.capabilities import OPEN_SOURCE
from delta_engine.errors import StatementError
from delta_engine.models import Column
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql.tables import sql_alter_clustering
from delta_engine.state.states import ABSENT
from delta_engine.validation.layout_rules import ClusteringColumnsHaveStatistics
from tests.builders.engines import apply_anyway, engine_over
from tests.builders.models import catalog_of, orders
from tests.fakes.planning import planned

WIDE = [Column(f"c{place}", "int") for place in range(40)]
NESTED = [Column("s", "struct<a: int, b: array<struct<x: int, y: int>>, c: struct<d: int>>"), *WIDE]


@pytest.mark.parametrize(
    ("columns", "key", "properties"),
    [
        (WIDE, "c31", {}),
        (WIDE, "c32", {}),
        (NESTED, "c28", {}),
        (NESTED, "c29", {}),
        (NESTED, "s.c.d", {"delta.dataSkippingNumIndexedCols": "3"}),
        (NESTED, "c0", {"delta.dataSkippingNumIndexedCols": "3"}),
        (WIDE, "c39", {"delta.dataSkippingNumIndexedCols": "-1"}),
        (WIDE, "c39", {"delta.dataSkippingStatsColumns": "`c1`, C39"}),
        (NESTED, "s.a", {"delta.dataSkippingStatsColumns": "s.c"}),
        (NESTED, "s.c.d", {"delta.dataSkippingStatsColumns": "s.c"}),
    ],
)
def test_delta_clusters_by_the_columns_that_the_rule_allows(
    backend: Backend, columns: list[Column], key: str, properties: dict[str, str]
) -> None:
    plain = orders(*columns, properties=properties)
    engine_over(backend).sync_tables([plain])
    clustered = orders(*columns, properties=properties, cluster_by=[key])
    plan = planned([clustered], catalog_of([clustered], ABSENT))
    refused = [*ClusteringColumnsHaveStatistics(OPEN_SOURCE).check(plan, NO_POLICY)]
    table = backend.addressing.table(clustered.qualified_name)
    statement = sql_alter_clustering(table, [key.split(".")])
    if refused:
        with pytest.raises(StatementError) as refusal:
            backend.runner.run(statement)
        assert refusal.value.error_class == "DELTA_CLUSTERING_COLUMN_MISSING_STATS"
    else:
        backend.runner.run(statement)


def test_a_table_clustered_by_fields_follows_its_model(backend: Backend) -> None:
    engine = engine_over(backend)
    mapped = {"delta.columnMapping.mode": "name"}
    place = Column("place", "struct<country: string, `post.code`: string, zone: struct<a: int>>")
    first = orders(
        Column("id", "int"), place, cluster_by=["place.country", "place.post.code"], properties=mapped
    )
    renamed = Column(
        "address",
        "struct<land: string, `post.code`: string>",
        renamed_from="place",
        renamed_fields={"land": "country"},
    )
    second = orders(
        Column("id", "int"), renamed, cluster_by=["address.land", "ADDRESS.post.code"], properties=mapped
    )
    third = orders(Column("id", "int"), renamed, cluster_by=["id", "address.land"], properties=mapped)
    for model in (first, second, third):
        apply_anyway(engine, model)
        assert not engine.plan_tables([model])


def test_the_feed_is_switched_on_when_its_names_are_free(backend: Backend) -> None:
    engine = engine_over(backend)
    engine.sync_tables([orders(Column("id", "int"), Column("_change_type", "string"))])
    model = orders(
        Column("id", "int"),
        Column("kind", "string", renamed_from="_change_type"),
        properties={"delta.enableChangeDataFeed": "true"},
    )
    engine.sync_tables([model])
    assert not engine.plan_tables([model])
