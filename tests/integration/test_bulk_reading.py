"""How many round trips a thousand tables take; `make bench` says how long that is."""

from __future__ import annotations

import pytest

from delta_engine.state.unity_catalog.listed_details import open_listings
from tests.fakes.dialects import Dialect
from tests.fakes.tables_api import serving
from tests.integration.thousand_tables import (
    COLUMNS,
    MOST_ROUND_TRIPS,
    SlowRunner,
    listing_api,
    snapshot,
    views,
)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_thousand_tables_take_at_most_sixty_round_trips(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = SlowRunner(views())
    with serving(listing_api(dialect)) as api:
        monkeypatch.setenv("DATABRICKS_HOST", api.host)
        monkeypatch.setenv("DATABRICKS_TOKEN", "x")
        listings = open_listings()
        assert listings
        state = snapshot(runner, listings.tables)
    assert len(runner.statements) + len(api.pages) <= MOST_ROUND_TRIPS
    assert not [sql for sql in runner.statements if "DESCRIBE" in sql]
    assert len(state.tables) == 1000
    assert all(table.exists and table.primary_key and table.tags for table in state.tables.values())
    assert all(len(table.columns) == len(COLUMNS) for table in state.tables.values())
