"""One Spark session for the whole run, with local Delta."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.spark_sessions import open_local_session
from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import Row
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.backend import Backend, embedded_backend
from delta_engine.state.delta_log_reader import DeltaLogHistoryReader
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.table_descriptions import TableDescription
from delta_engine.state.table_queries import Commit
from tests.builders.models import address_of_orders

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Settings that spare Spark to compile and to re-plan queries, which takes longer than to run them over a few rows."""

LONG_LIVED_JAVA = "-XX:+UseSerialGC"
"""Java with both of its compilers: the second one pays in a session of thousands of statements (a third less time)."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark once, with a jar of the user."""
    jar = tmp_path_factory.mktemp("jars") / "of-the-user.jar"
    with ZipFile(jar, "w") as file:
        file.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
    scratch = tmp_path_factory.mktemp("it's a spark")
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f'{LONG_LIVED_JAVA} -Dderby.system.home="{scratch}"',
        "spark.jars": str(jar),
        **INTERPRETED,
    }
    session = open_local_session(settings, scratch=scratch)
    yield session
    session.stop()


@pytest.fixture
def backend(spark: SparkSession, tmp_path: Path) -> Backend:
    """Return an embedded warehouse with the schema dev.silver."""
    (tmp_path / "dev" / "silver").mkdir(parents=True)
    return embedded_backend(spark, tmp_path)


@pytest.fixture(autouse=True)
def readers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold what is read from logs against what Spark reads, for every table of every test."""
    describe, read_commits = SparkDeltaReader.describe, DeltaLogHistoryReader.read_commits

    def described(self: SparkDeltaReader, table: QualifiedName) -> TableDescription | None:
        description = describe(self, table)
        if description is not None:
            assert description == self.describe_through_spark(table)
        return description

    def commits(
        self: DeltaLogHistoryReader, tables: Sequence[QualifiedName]
    ) -> Mapping[str, tuple[Commit, ...]]:
        commits_by_table = read_commits(self, tables)
        assert commits_by_table == self.otherwise.read_commits(tables)
        return commits_by_table

    monkeypatch.setattr(SparkDeltaReader, "describe", described)
    monkeypatch.setattr(DeltaLogHistoryReader, "read_commits", commits)


@pytest.fixture
def orders(spark: SparkSession, project: Path) -> str:
    """Return the address of dev.silver.orders in the project's warehouse."""
    return address_of_orders(project)


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets every statement that changes something."""
    seen: list[str] = []
    run = SparkSqlRunner.run

    def recording(self: SparkSqlRunner, sql: str) -> Sequence[Row]:
        if not sql.startswith(("SHOW ", "SELECT ", "DESCRIBE ")):
            seen.append(sql)
        return run(self, sql)

    monkeypatch.setattr(SparkSqlRunner, "run", recording)
    return seen
