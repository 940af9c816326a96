"""Locations of external tables, however they are spelled."""

import pytest

from delta_engine.aspects.storage import is_same_location


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (None, None, True),
        (None, "s3://b/x", False),
        ("s3://b/x", "S3A://b/x//", True),
        ("s3://b/x", "s3://b/X", False),
        ("dbfs:/mnt/x", "/mnt/x/", True),
        ("file:///tmp/x", "file:/tmp/x", True),
        ("/tmp/x", "file:/tmp/x", True),
        ("/tmp/x", "s3://tmp/x", False),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x/", True),
    ],
)
def test_a_location_is_the_same_in_any_spelling(one: str | None, other: str | None, is_same: bool) -> None:
    assert is_same_location(one, other) is is_same
