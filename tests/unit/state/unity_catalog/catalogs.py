"""A Unity Catalog with `dev.silver.orders`, as recorded rows and documents, for the tests of its reader."""

from __future__ import annotations

import json

import pytest

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError
from delta_engine.state.states import TableState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders.models import ORDERS, orders
from tests.fakes.recorded_catalog import Answer, RecordedRunner, column_rows, schema_row, table_row

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
