"""One Spark session for the whole run, with local Delta."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from delta_engine.backends.spark_sessions import open_local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark once."""
    session = open_local_session(
        {"spark.driver.memory": "2g"}, scratch=tmp_path_factory.mktemp("it's a spark")
    )
    yield session
    session.stop()
