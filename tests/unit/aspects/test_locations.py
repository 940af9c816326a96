"""Locations of external tables, however they are spelled."""

from dataclasses import replace

import pytest

from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.storage import LOCATION, SetManaged, is_same_location
from delta_engine.models import Column, RowFilter, Table
from delta_engine.state.states import state_of


@pytest.mark.parametrize(
    ("location", "other", "is_same"),
    [
        (None, None, True),
        (None, "s3://b/x", False),
        ("s3://b/x", "S3A://b/x//", True),
        ("s3://b/x", "s3://b/X", False),
        ("dbfs:/mnt/x", "/mnt/x/", True),
        ("file:///tmp/x", "file:/tmp/x", True),
        ("/tmp/x", "file:/tmp/x", True),
        ("/tmp/x", "/tmp/y", False),
        ("/tmp/x", "s3://tmp/x", False),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x/", True),
    ],
)
def test_a_location_is_the_same_in_any_spelling(
    location: str | None, other: str | None, is_same: bool
) -> None:
    assert is_same_location(location, other) is is_same


def test_the_way_out_names_a_table_with_braces() -> None:
    table = Table("dev", "silver", "a{b}", [Column("id", "int")], location="s3://b/x")
    filtered = replace(table, row_filter=RowFilter("dev.silver.f", ["id"]))
    (move,) = LOCATION.diff(Comparison.of(replace(table, location=None), state_of(filtered)))
    assert isinstance(move, SetManaged)
    assert "Run ALTER TABLE dev.silver.a{b} SET MANAGED by hand" in move.way_out
