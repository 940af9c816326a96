"""Many tables, declared and observed: made apart from each other, as configuration and catalog make them."""

from __future__ import annotations

from dataclasses import replace

from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.models.constraints import build_primary_key_name
from delta_engine.state.states import CatalogState, TableState

TYPES = ("bigint", "string", "decimal(18,2)", "timestamp")
OF_THE_PLATFORM = {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}


def declared(number: int, columns: int = 50, wording: str = "number") -> Table:
    """Return a model with a key, comments and properties."""
    return Table(
        "dev",
        f"schema_{number % 10}",
        f"table_{number}",
        [
            Column(
                f"column_{place}",
                TYPES[place % len(TYPES)],
                is_nullable=place > 0,
                comment=f"{wording} {place} of {number}",
            )
            for place in range(columns)
        ],
        comment=f"table {number}",
        table_properties={"team": "retail", "delta.appendOnly": "false"},
        primary_key=["column_0"],
    )


def with_another_comment(table: Table) -> Table:
    """Return a model that wants another comment for one of its columns."""
    *others, last = table.columns
    return replace(table, columns=(*others, replace(last, comment="another one")))


def observed(table: Table) -> TableState:
    """Return a table as the catalog has it, with what the platform adds."""
    name = build_primary_key_name(table.qualified_name, ["column_0"])
    return TableState(
        columns=table.columns,
        table_comment=table.comment,
        table_properties={**table.table_properties, **OF_THE_PLATFORM},
        primary_key=PrimaryKey(["column_0"], name=name),
    )


def catalog(tables: int, columns: int = 50) -> CatalogState:
    """Return a catalog of many tables."""
    models = (declared(number, columns) for number in range(tables))
    return CatalogState(tables={model.qualified_name.key: observed(model) for model in models})
