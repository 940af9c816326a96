"""A snapshot of 1,000 tables of 20 columns in 10 schemas, through queries and databricks-sdk, 50 ms a round trip.

What answers the SDK is a process of its own, as a workspace is; what it answers is parsed for real. Bare is what the
round trips take that have to follow one another: schemas and tables first, then the rest by so many at a time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection

from benchmarks.measurement import Measurement, best_seconds
from delta_engine.state.unity_catalog.listed_details import open_listings
from tests.fakes.tables_api import serving
from tests.integration.thousand_tables import (
    PARALLELISM,
    ROUND_TRIP_SECONDS,
    SCHEMAS,
    SlowRunner,
    listing_api,
    snapshot,
    views,
)

PAGES = 3 * len(SCHEMAS)  # the first of a schema is empty, as the documentation allows


def measure() -> Iterator[Measurement]:
    """Yield the round trips and the time that they take together."""
    runner = SlowRunner(views())
    with _workspace() as host:
        os.environ |= {"DATABRICKS_HOST": host, "DATABRICKS_TOKEN": "x"}
        listings = open_listings()
        assert listings
        snapshot(runner, listings.tables)
        round_trips = len(runner.statements) + PAGES
        yield Measurement(work="snapshot of 1,000 tables: round trips", value=round_trips, unit="")
        yield Measurement(
            work="snapshot of 1,000 tables at 50 ms a round trip",
            value=best_seconds(lambda: snapshot(runner, listings.tables)),
            bare=(2 + math.ceil((round_trips - 2) / PARALLELISM)) * ROUND_TRIP_SECONDS,
        )


@contextmanager
def _workspace() -> Iterator[str]:
    """Serve the listing in another process; give its address."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("enough")
        process.join()


def _serve(client: Connection) -> None:
    with serving(listing_api()) as api:
        client.send(api.host)
        client.recv()
