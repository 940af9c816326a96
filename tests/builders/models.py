"""Short ways to say models and states in tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.capabilities import DATABRICKS, OPEN_SOURCE, Capabilities
from delta_engine.models import Column, PrimaryKey, QualifiedName, Table
from delta_engine.state.states import CatalogState, TableState

ORDERS = QualifiedName("dev", "silver", "orders")

BACKENDS: Mapping[str, Capabilities] = {"databricks": DATABRICKS, "oss": OPEN_SOURCE}

OLDER_RUNTIME = "databricks-16.2"
"""The newest runtime that takes one column per ALTER COLUMN; golden cases have a script of its own where that shows."""


def orders(
    *columns: Column,
    comment: str = "",
    properties: Mapping[str, str] | None = None,
    primary_key: PrimaryKey | Sequence[str] | None = None,
    name: str = "orders",
    **declared: Any,
) -> Table:
    """Return a model of dev.silver.orders, with one column `id bigint` unless columns are given."""
    declared_columns = columns or (Column("id", "bigint"),)
    return Table("dev", "silver", name, declared_columns, comment, properties, primary_key, **declared)


def observed(
    *columns: Column,
    comment: str = "",
    properties: Mapping[str, str] | None = None,
    primary_key: PrimaryKey | None = None,
    cluster_by: tuple[str, ...] = (),
) -> TableState:
    """Return an existing table's state, with one column `id bigint` unless columns are given."""
    return TableState(
        columns=columns or (Column("id", "bigint"),),
        table_comment=comment,
        table_properties=properties or {},
        primary_key=primary_key,
        cluster_by=cluster_by,
    )


def catalog_of(models: Sequence[Table], *states: TableState) -> CatalogState:
    return CatalogState(
        tables={model.qualified_name.key: state for model, state in zip(models, states, strict=True)}
    )


def address_of(project: Path, table: QualifiedName) -> str:
    """Return the SQL that addresses a table in a project's embedded warehouse."""
    return PathAddressing(project / ".delta-engine" / "warehouse").table(table)


def address_of_orders(project: Path) -> str:
    """Return the SQL that addresses dev.silver.orders in a project's embedded warehouse."""
    return address_of(project, ORDERS)


WORKED_MODEL = Table(
    catalog_name="dev",
    schema_name="silver",
    table_name="orders",
    columns=[
        Column("id", "bigint", is_nullable=False, comment="Order ID"),
        Column("created_ts", "timestamp", comment="Creation time"),
        Column("amount", "decimal(18,2)", comment="Order total"),
    ],
    comment="Orders table",
    table_properties={"delta.autoOptimize.optimizeWrite": "true"},
    primary_key=("id",),
)
"""The design guide's worked example (§12)."""
