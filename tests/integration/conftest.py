"""One Spark session for the whole run, with local Delta."""

from __future__ import annotations

from collections.abc import Iterator
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.spark_sessions import open_local_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark once, with a jar of the user."""
    jar = tmp_path_factory.mktemp("jars") / "of-the-user.jar"
    with ZipFile(jar, "w") as file:
        file.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    session = open_local_session(
        {"spark.driver.memory": "2g", "spark.jars": str(jar)},
        scratch=tmp_path_factory.mktemp("it's a spark"),
    )
    yield session
    session.stop()
