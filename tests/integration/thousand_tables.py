"""A thousand tables in ten schemas as Unity Catalog shows them, where every round trip takes its time."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from delta_engine.backends.sql_runner import Row
from delta_engine.models import Table
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog.listed_details import TableListing
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.fakes.dialects import Dialect
from tests.fakes.recorded_catalog import (
    RecordedRunner,
    column_rows,
    constraint_row,
    key_rows,
    schema_row,
    table_row,
)
from tests.fakes.tables_api import FakeTablesApi

SCHEMAS = [f"s{number}" for number in range(10)]
TABLES = [f"t{number}" for number in range(100)]
COLUMNS = [("id", "bigint"), *((f"c{number}", "string") for number in range(1, 20))]
MOST_ROUND_TRIPS = 60
ROUND_TRIP_SECONDS = 0.05
PARALLELISM = 8


class SlowRunner(RecordedRunner):
    def run(self, sql: str) -> Sequence[Row]:
        time.sleep(ROUND_TRIP_SECONDS)
        return super().run(sql)


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


def listing_api(dialect: Dialect = Dialect.DATABRICKS) -> FakeTablesApi:
    """Return the API that lists all the tables, its pages made already."""
    tables = {schema: [_listed(schema, table) for table in TABLES] for schema in SCHEMAS}
    api = FakeTablesApi(tables, dialect=dialect, delay=ROUND_TRIP_SECONDS)
    api.make_pages()
    return api


def snapshot(runner: RecordedRunner, listing: TableListing) -> CatalogState:
    reader = UnityCatalogReader(runner, parallelism=PARALLELISM, listing=listing)
    return reader.snapshot([Table("dev", schema, table, ()) for schema in SCHEMAS for table in TABLES])


def _listed(schema: str, table: str) -> Mapping[str, object]:
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
