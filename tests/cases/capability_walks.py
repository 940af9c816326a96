"""A walk through every feature: models that declare it, change it and take it away, one sync after another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from delta_engine.actions.policy import Allowance, ColumnOrder, DestructiveKind, Policy, Removed
from delta_engine.aspects import TABLE_FACETS
from delta_engine.backends.capabilities import Feature
from delta_engine.deployment.deployment import Deployment
from delta_engine.models import (
    AUTO,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    QualifiedName,
    RowFilter,
    Table,
)
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.orchestrate.planning import plan_unlocked
from tests.builders import engines
from tests.builders.deployment import deployment_over
from tests.builders.engines import engine_on
from tests.fakes.unity_catalog import FakeUnityCatalog

POLICY = Policy(
    allow=tuple(map(Allowance, DestructiveKind)),
    create_schemas=True,
    column_order=ColumnOrder.ENFORCE,
    removed_tables=Removed.DROP,
)
"""Everything is allowed."""

ID = Column("id", "bigint", is_nullable=False)


@dataclass(frozen=True)
class Walk:
    """What is declared, step by step."""

    steps: tuple[Sequence[Table], ...]


def orders(*columns: Column, name: str = "orders", **declared: Any) -> Table:
    """Return a model of a table in dev.silver."""
    return Table("dev", "silver", name, columns or (ID,), **declared)


def of_orders(*models: Table) -> Walk:
    """Return a walk of one table."""
    return Walk(tuple([model] for model in models))


CUSTOMERS = orders(ID, name="customers", primary_key=["id"])
CUSTOMER = Column("customer", "bigint")

WALKS: Mapping[Feature, Walk] = {
    Feature.COLUMNS: of_orders(
        orders(ID, Column("a", "int")), orders(ID, Column("b", "string", comment="new"))
    ),
    Feature.TYPE_WIDENING: of_orders(orders(Column("n", "int")), orders(Column("n", "bigint"))),
    Feature.NESTED_FIELDS: of_orders(
        orders(ID, Column("address", "struct<zip: int, city: string NOT NULL, old: string>")),
        orders(
            ID,
            Column(
                "address",
                "struct<postcode: bigint COMMENT 'where', city: string, country: string>",
                renamed_fields={"postcode": "zip"},
            ),
        ),
    ),
    Feature.COLUMN_ORDER: of_orders(orders(ID, Column("a", "int")), orders(Column("a", "int"), ID)),
    Feature.COLUMN_RENAMES: of_orders(
        orders(ID, primary_key=["id"], cluster_by=["id"]),
        orders(
            Column("order_id", "bigint", is_nullable=False, renamed_from="id"),
            primary_key=["order_id"],
            cluster_by=["order_id"],
        ),
    ),
    Feature.TABLE_RENAMES: of_orders(orders(name="order"), orders(renamed_from="order")),
    Feature.PROPERTIES: of_orders(
        orders(table_properties={"a": "1"}), orders(table_properties={"b": "2", "delta.appendOnly": "true"})
    ),
    Feature.PRIMARY_KEYS: of_orders(
        orders(primary_key=["id"]), orders(primary_key=PrimaryKey(["id"], "named")), orders()
    ),
    Feature.FOREIGN_KEYS: Walk(
        (
            [CUSTOMERS, orders(ID, CUSTOMER)],
            [CUSTOMERS, orders(ID, CUSTOMER, foreign_keys=[ForeignKey(["customer"], "customers")])],
            [CUSTOMERS, orders(ID, CUSTOMER)],
        )
    ),
    Feature.CHECKS: of_orders(
        orders(checks=[CheckConstraint("positive", "id > 0")]),
        orders(checks=[CheckConstraint("positive", "id >= 1")]),
        orders(),
    ),
    Feature.NOT_NULL: of_orders(
        orders(ID, Column("a", "int")),
        orders(ID, Column("a", "int", is_nullable=False)),
        orders(ID, Column("a", "int")),
    ),
    Feature.DEFAULTS: of_orders(
        orders(ID, Column("a", "int", default="1")),
        orders(ID, Column("a", "int", default="2"), Column("b", "string", default="'x'")),
        orders(ID, Column("a", "int"), Column("b", "string")),
    ),
    Feature.GENERATED_COLUMNS: of_orders(orders(ID, Column("twice", "bigint", generated_as="id * 2"))),
    Feature.IDENTITY_COLUMNS: of_orders(
        orders(ID, Column("n", "bigint", identity=Identity(start=10, step=5)))
    ),
    Feature.CLUSTERING: of_orders(
        orders(cluster_by=["id"]),
        orders(ID, Column("a", "int"), cluster_by=["a", "id"]),
        orders(ID, Column("a", "int")),
    ),
    Feature.AUTOMATIC_CLUSTERING: of_orders(
        orders(cluster_by=AUTO), orders(cluster_by=["id"]), orders(cluster_by=AUTO), orders()
    ),
    Feature.PARTITIONING: of_orders(
        orders(ID, Column("day", "date"), partitioned_by=["day"]),
        orders(ID, Column("day", "date", comment="When"), partitioned_by=["day"]),
    ),
    Feature.REPARTITIONING: of_orders(
        orders(ID, Column("day", "date"), primary_key=["id"]),
        orders(ID, Column("day", "date"), primary_key=["id"], partitioned_by=["day"]),
        orders(ID, Column("day", "date"), primary_key=["id"], cluster_by=["id"]),
    ),
    Feature.TAGS: of_orders(
        orders(Column("id", "bigint", tags={"pii": "no"}), tags={"team": "sales"}),
        orders(Column("id", "bigint", tags={"pii": "yes"}), tags={"team": "hr", "tier": "1"}),
        orders(Column("id", "bigint")),
    ),
    Feature.ROW_FILTERS: of_orders(
        orders(row_filter=RowFilter("dev.silver.mine", ["id"])),
        orders(row_filter=RowFilter("dev.silver.ours", ["id"])),
        orders(),
    ),
    Feature.COLUMN_MASKS: of_orders(
        orders(ID, Column("name", "string", mask=ColumnMask("dev.silver.hide"))),
        orders(ID, Column("name", "string", mask=ColumnMask("dev.silver.hide", ["id"]))),
        orders(ID, Column("name", "string")),
    ),
    Feature.COMMENTS: of_orders(
        orders(Column("id", "bigint", comment="it's"), comment="Orders"), orders(Column("id", "bigint"))
    ),
    Feature.OWNERS: of_orders(orders(owner="sales"), orders(owner="it's `hr`")),
    Feature.GRANTS: of_orders(
        orders(grants={"readers": ["SELECT"]}),
        orders(grants={"readers": ["SELECT", "MODIFY"], "writers": ["MODIFY"]}),
        orders(grants={"writers": ["MODIFY"]}),
    ),
    Feature.EXTERNAL_TABLES: of_orders(
        orders(location="s3://bucket/orders"), orders(location="s3://bucket/orders/", comment="Orders")
    ),
    Feature.MANAGED_CONVERSION: of_orders(orders(location="s3://bucket/orders"), orders(comment="Orders")),
    Feature.TABLE_REMOVAL: Walk(([CUSTOMERS, orders()], [CUSTOMERS])),
    Feature.MANAGED_PARTS: of_orders(
        orders(ID, Column("a", "int")), orders(Column("a", "void", comment="theirs"), manages=["comments"])
    ),
    **{
        facet.feature: of_orders(*(orders(**{facet.attribute: choice}) for choice in facet.form.choices))
        for facet in TABLE_FACETS
        if facet.feature and facet.form.choices
    },
}
"""By feature; those that need more than models have tests of their own."""


def engine_over(backend: Backend, deployment: Deployment) -> Orchestrator:
    """Return an orchestrator that may do everything."""
    return replace(engines.engine_over(backend, deployment, POLICY), row_counter=backend.row_counter)


def walk(engine: Orchestrator, feature: Feature) -> None:
    """Sync step after step of a feature's walk."""
    walk_steps(engine, feature, WALKS[feature].steps)


def walk_steps(engine: Orchestrator, feature: Feature, steps: Sequence[Sequence[Table]]) -> None:
    """Sync step after step; each has something to do, and leaves nothing to do."""
    for step, models in enumerate(steps):
        assert engine.sync_tables(models), f"step {step} of {feature.value} did nothing"
        preview = plan_unlocked(engine, models)
        assert not preview.refusals
        assert not preview.plan, f"step {step} of {feature.value} leaves something to do"


class NoRows:
    """Counts the rows of empty tables."""

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        return {table.key: 0 for table in tables}


def walked_in_memory(feature: Feature, folder: Path) -> FakeUnityCatalog:
    """Return a Unity Catalog in memory after a feature's walk."""
    catalog = FakeUnityCatalog()
    engine = engine_on(catalog, catalog, deployment_over(folder), POLICY, parallelism=4, row_counter=NoRows())
    walk(engine, feature)
    return catalog
