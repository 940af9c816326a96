"""The design guide's worked example as a Python model.

YAML and Python give the same `Table`. Python is for models that need a loop or a shared column. The
table lives in the schema `sales`, because `silver` has the orders of TPC-H.
"""

from __future__ import annotations

from collections.abc import Mapping

from delta_engine import Column, Table


def tables(variables: Mapping[str, str]) -> tuple[Table, ...]:
    """Return the models of this file.

    Args:
        variables: the environment's variables, as `conf/<environment>.yml` has them.
    """
    orders = Table(
        catalog_name=variables["catalog"],
        schema_name="sales",
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
    return (orders,)
