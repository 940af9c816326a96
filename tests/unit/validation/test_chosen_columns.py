"""Columns by which automatic clustering has chosen to cluster a table: Delta refuses to drop them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.aspects.backfill_actions import BlockedFill
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.errors import InvalidModelError, StatementError
from delta_engine.models import AUTO, Column, Part, Table, Using
from delta_engine.models.types import AtomicType
from delta_engine.state.states import TableState
from tests.builders.models import catalog_of
from tests.fakes.planning import planned, statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog

ID, DAY, PLACE = Column("id", "bigint"), Column("day", "date"), Column("s", "struct<a: int, b: int>")
MODEL = Table("dev", "silver", "orders", [ID, PLACE], cluster_by=AUTO)
MAPPED = {"delta.columnMapping.mode": "name"}
OBSERVED = TableState(
    columns=(ID, DAY, PLACE), cluster_by=("Day", "s.a"), clusters_automatically=True, table_properties=MAPPED
)


def refusals(model: Table, observed: TableState = OBSERVED) -> list[str]:
    try:
        planned([model], catalog_of([model], observed))
    except InvalidModelError as refused:
        return [line.partition(".py:")[2].partition(": ")[2] for line in str(refused).splitlines()]
    return []


@pytest.mark.parametrize(
    "model",
    [MODEL, replace(MODEL, clusters_automatically=False), replace(MODEL, manages=frozenset({Part.COLUMNS}))],
    ids=["declared", "not declared", "not managed"],
)
def test_the_drop_of_a_chosen_column_is_refused(model: Table) -> None:
    assert refusals(model) == [
        "table dev.silver.orders, column day: it would be dropped, which the platform refuses: automatic clustering "
        "has chosen it. Keep it, or switch automatic clustering off first: ALTER TABLE `dev`.`silver`.`orders` "
        "CLUSTER BY NONE. Switch it on again after the sync: ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY AUTO."
    ]


@pytest.mark.parametrize("columns", [(ID, DAY), (ID, DAY, Column("s", "struct<b: int>"))])
def test_the_drop_of_a_chosen_field_is_refused_and_that_of_its_column(columns: tuple[Column, ...]) -> None:
    (refusal,) = refusals(Table("dev", "silver", "orders", columns, cluster_by=AUTO))
    assert refusal.startswith("table dev.silver.orders, column s")


def test_other_columns_are_dropped() -> None:
    model = Table("dev", "silver", "orders", [ID, DAY, Column("s", "struct<a: int>")])
    assert not refusals(model)


def test_a_plan_that_switches_to_other_columns_drops_the_chosen_ones_afterwards() -> None:
    model = replace(MODEL, clusters_automatically=False, cluster_by=("id",))
    (align,) = planned([model], catalog_of([model], OBSERVED)).align_tables
    assert align.of_type(ChangeClustering)


def test_a_chosen_column_is_not_converted() -> None:
    converted = replace(DAY, data_type=AtomicType("string"), using=Using("CAST(day AS string)"))
    model = replace(MODEL, columns=(ID, converted, PLACE))
    (align,) = planned([model], catalog_of([model], OBSERVED)).align_tables
    (blocked,) = align.of_type(BlockedFill)
    assert blocked.reason == "the clustering depends on it"


def test_a_former_column_that_was_chosen_meanwhile_is_not_dropped() -> None:
    """The columns that were chosen follow a rename."""
    converted = replace(ID, data_type=AtomicType("string"), using=Using("CAST(id AS string)"))
    former = replace(ID, name="delta_engine_old_id")
    model = replace(MODEL, columns=(converted,))
    observed = replace(
        OBSERVED, columns=(replace(converted, using=None), former), cluster_by=("delta_engine_old_id",)
    )
    (refusal,) = refusals(model, observed)
    assert "column delta_engine_old_id: it would be dropped" in refusal


def test_a_dropped_field_leaves_the_clustering_of_others_first() -> None:
    model = Table("dev", "silver", "orders", [ID, Column("s", "struct<b: int>")])
    observed = TableState(columns=(ID, PLACE), cluster_by=("s.a", "id"), table_properties=MAPPED)
    statements = statements_of(planned([model], catalog_of([model], observed)))
    assert [statement.split("`orders` ")[1] for statement in statements] == [
        "CLUSTER BY (`id`)",
        "DROP COLUMNS (`s`.`a`)",
    ]


def test_the_platform_refuses_it() -> None:
    catalog = FakeUnityCatalog()
    catalog.run(
        "CREATE TABLE dev.silver.orders (`id` BIGINT, `day` DATE) USING delta CLUSTER BY AUTO "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    key = MODEL.qualified_name.key
    catalog.tables[key] = catalog.tables[key].with_state(cluster_by=("day",))
    assert catalog.snapshot([MODEL]).table(MODEL.qualified_name).cluster_by == ("day",)
    with pytest.raises(StatementError) as refusal:
        catalog.run("ALTER TABLE dev.silver.orders DROP COLUMNS (`day`)")
    assert refusal.value.error_class == "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
