"""A Unity Catalog with `dev.silver.orders`, as recorded rows and documents, for the tests of its reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError
from delta_engine.state.states import TableState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders.models import ORDERS, orders
from tests.fakes.recorded_catalog import RECORDED, Answer, RecordedRunner, column_rows, schema_row, table_row

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

TABLE: Row = {"table_schema": "silver", "table_name": "orders"}
TAGGED: Row = {"schema_name": "silver", "table_name": "orders"}


def document(*columns: tuple[str, str], **changes: object) -> list[Row]:
    """Return what AS JSON says of a table of nullable columns without comments."""
    text = {
        "columns": [{"name": name, "type": {"name": kind}, "nullable": True} for name, kind in columns],
        "table_properties": {"a": "b"},
        **changes,
    }
    return [{"json_metadata": json.dumps(text)}]


PLAIN = (("Id", "bigint"), ("B", "date"))


def unity(views: dict[str, Answer] | None = None, texts: dict[str, Answer] | None = None) -> RecordedRunner:
    """Return a Unity Catalog with dev.silver.orders, but for the changes."""
    recorded: dict[str, Answer] = {
        "schemata": [schema_row()],
        "tables": [table_row()],
        "columns": column_rows(*PLAIN),
        **(views or {}),
    }
    return RecordedRunner(recorded, {"AS JSON": document(*PLAIN)} if texts is None else texts)


def of_two_tables(texts: dict[str, Answer]) -> RecordedRunner:
    """Return a Unity Catalog with dev.silver.a and b, which answers some statements otherwise."""
    names = ("a", "b")
    columns = [row for name in names for row in column_rows(*PLAIN, name=name)]
    views: dict[str, Answer] = {"tables": [*map(table_row, names)], "columns": columns}
    return unity(views, {**texts, "AS JSON": document(*PLAIN)})


def read(
    views: dict[str, Answer] | None = None, texts: dict[str, Answer] | None = None, *, directly: bool = False
) -> TableState:
    """Return the state of dev.silver.orders."""
    return state_in(unity(views, texts), directly=directly)


def state_in(runner: SqlRunner, *, directly: bool = False) -> TableState:
    """Return the state of dev.silver.orders in a catalog."""
    reader = UnityCatalogReader(runner)
    snapshot = reader.snapshot_directly([orders()]) if directly else reader.snapshot([orders()])
    return snapshot.table(ORDERS)


def refusal(views: dict[str, Answer] | None = None, texts: dict[str, Answer] | None = None) -> str:
    """Return why dev.silver.orders cannot be read."""
    with pytest.raises(CatalogReadError) as caught:
        read(views, texts)
    return str(caught.value)


class FakeListing:
    """Lists what it has, and counts how often it is asked."""

    def __init__(self, *tables: TableInfo | Exception) -> None:
        self._tables = tables
        self.asked: list[tuple[str, str]] = []

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterator[TableInfo]:
        self.asked.append((catalog_name, schema_name))
        for table in self._tables:
            if isinstance(table, Exception):
                raise table
            if include_browse or not table.browse_only:
                yield table


def listed(**changes: object) -> TableInfo:
    """Return dev.silver.orders as it was listed, but for the changes."""
    from databricks.sdk.service.catalog import TableInfo

    recorded = json.loads((RECORDED / "listed" / "orders.json").read_text("utf-8"))
    return TableInfo.from_dict({**recorded, **changes})


LISTED_ROWS: dict[str, Answer] = {
    "tables": [table_row(table_type="EXTERNAL", storage_path="s3://bucket/orders/")],
    "columns": [
        {**row, "is_nullable": nullable, "comment": comment}
        for row, nullable, comment in zip(
            column_rows(("Id", "bigint"), ("state", "varchar(2)"), ("placed_on", "date")),
            ("NO", "YES", "YES"),
            ("Order ID", None, None),
            strict=True,
        )
    ],
}


def reader_over(runner: RecordedRunner, listing: FakeListing) -> UnityCatalogReader:
    return UnityCatalogReader(runner, listing=listing)
