"""How many round trips a thousand tables take, and how long that is when each takes its time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

import pytest

from delta_engine.addressing import CatalogAddressing
from delta_engine.models import Table
from delta_engine.sql_runner import Row
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog.described_details import DescribedDetailsReader
from delta_engine.state.unity_catalog.listed_details import (
    ListedDetailsReader,
    TableListing,
    open_table_listing,
)
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.integration.fake_tables_api import FakeTablesApi, serving
from tests.recorded_catalog import (
    RecordedRunner,
    column_rows,
    constraint_row,
    key_rows,
    schema_row,
    table_row,
)

pytestmark = pytest.mark.integration

SCHEMAS = [f"s{number}" for number in range(10)]
TABLES = [f"t{number}" for number in range(100)]
COLUMNS = [("id", "bigint"), *((f"c{number}", "string") for number in range(1, 20))]
MOST_ROUND_TRIPS = 60
ROUND_TRIP_SECONDS = 0.05


class SlowRunner(RecordedRunner):
    """Takes its time for every statement."""

    def run(self, sql: str) -> Sequence[Row]:
        time.sleep(ROUND_TRIP_SECONDS)
        return super().run(sql)


@pytest.fixture(scope="module")
def views() -> dict[str, list[Row]]:
    """Return the rows of ten schemas with a hundred tables each; every table has a key and tags."""
    places = [(schema, table) for schema in SCHEMAS for table in TABLES]
    return {
        "schemata": [schema_row(schema) for schema in SCHEMAS],
        "tables": [table_row(table, schema) for schema, table in places],
        "columns": [
            row for schema, table in places for row in column_rows(*COLUMNS, name=table, schema=schema)
        ],
        "table_constraints": [
            constraint_row(f"pk_{table}", table, "PRIMARY KEY", schema) for schema, table in places
        ],
        "key_column_usage": [
            row for schema, table in places for row in key_rows(f"pk_{table}", table, ["id"], schema=schema)
        ],
        "table_tags": [
            {"schema_name": schema, "table_name": table, "tag_name": "team", "tag_value": "retail"}
            for schema, table in places
        ],
    }


def listed(schema: str, table: str) -> dict[str, object]:
    """Return a table as the API lists it."""
    columns = [
        {
            "name": name,
            "position": position,
            "nullable": True,
            "type_text": kind,
            "type_json": json.dumps(
                {"name": name, "type": {"bigint": "long"}.get(kind, kind), "nullable": True, "metadata": {}}
            ),
        }
        for position, (name, kind) in enumerate(COLUMNS)
    ]
    place = {"catalog_name": "dev", "schema_name": schema, "name": table}
    return {**place, "table_type": "MANAGED", "columns": columns, "properties": {"team": "retail"}}


@pytest.fixture(scope="module")
def api() -> Iterator[FakeTablesApi]:
    """Serve the listing of all the tables."""
    tables = {schema: [listed(schema, table) for table in TABLES] for schema in SCHEMAS}
    with serving(FakeTablesApi(tables, delay=ROUND_TRIP_SECONDS)) as served:
        for schema in SCHEMAS:
            for token in ("", "0", "50"):
                served.page(schema, token)
        yield served


@pytest.fixture
def listing(api: FakeTablesApi, monkeypatch: pytest.MonkeyPatch) -> TableListing:
    """Return the SDK's own listing, over the loopback, as a project opens it."""
    monkeypatch.setenv("DATABRICKS_HOST", api.host)
    monkeypatch.setenv("DATABRICKS_TOKEN", "x")
    api.pages.clear()
    opened = open_table_listing()
    assert opened
    return opened


def snapshot(runner: RecordedRunner, listing: TableListing, parallelism: int) -> CatalogState:
    described = DescribedDetailsReader(runner, CatalogAddressing())
    reader = UnityCatalogReader(
        runner, parallelism=parallelism, details=ListedDetailsReader(listing, described)
    )
    return reader.snapshot([Table("dev", schema, table, ()) for schema in SCHEMAS for table in TABLES])


def test_a_thousand_tables_take_at_most_sixty_round_trips(
    views: dict[str, list[Row]], api: FakeTablesApi, listing: TableListing
) -> None:
    runner = SlowRunner(views)
    began = time.monotonic()
    state = snapshot(runner, listing, parallelism=8)
    seconds = time.monotonic() - began
    print(
        f"\n1,000 tables in 10 schemas: {len(runner.statements)} queries and {len(api.pages)} pages, "
        f"{seconds:.2f} s at {ROUND_TRIP_SECONDS * 1000:.0f} ms a round trip"
    )
    assert len(runner.statements) + len(api.pages) <= MOST_ROUND_TRIPS
    assert len(state.tables) == 1000
    assert all(table.exists and table.primary_key and table.tags for table in state.tables.values())
    assert all(len(table.columns) == len(COLUMNS) for table in state.tables.values())
