"""Commands that run no statement start no Java process, over tables that Spark made."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.projects.commandline import CommandLine, Result
from tests.projects.processes import finished

MODELS = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    comment: Orders table
    columns:
      - {name: id, type: bigint, nullable: false, comment: Order ID}
      - {name: day, type: date, default: current_date()}
    primary_key: [id]
    partitioned_by: [day]
  - catalog: ${catalog}
    schema: silver
    name: lines
    columns: [{name: id, type: bigint}, {name: at, type: "struct<city: varchar(20), zip: char(5)>"}]
    properties: {delta.columnMapping.mode: name}
    cluster_by: [id]
    checks: {positive: id > 0}
"""


class Java:
    """A `java` that only notes that it was started."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self._note = folder / "started"
        program = folder / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\ntouch "{self._note}"\nexit 1\n')
        program.chmod(0o755)

    @property
    def was_started(self) -> bool:
        return self._note.exists()

    def run(self, *arguments: str) -> Result:
        """Run a command of the engine in a process that finds this Java."""
        return finished(*arguments, JAVA_HOME=str(self.home))


@pytest.fixture
def java(tmp_path: Path) -> Java:
    return Java(tmp_path / "jdk")


def test_commands_without_statements_start_no_java(
    spark: SparkSession, delta_engine: CommandLine, project: Path, orders: str, java: Java
) -> None:
    models = project / "conf" / "models" / "orders.yml"
    models.write_text(MODELS)
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    for arguments, text in (
        (["plan", "--detailed-exitcode"], "local: no changes (2 models)"),
        (["drift", "--fail-on", "low"], "local: no drift in 2 tables"),
        (["sync", "--yes"], "local: no changes (2 models)"),
        (["import", "dev.silver"], "cluster_by: [id]"),
        (["state", "sync"], "3 healthy"),
    ):
        done = java.run(*arguments)
        assert (done.code, done.stderr) == (0, "")
        assert text in done.stdout

    spark.sql(f"COMMENT ON TABLE {orders} IS 'by hand'")
    drifted = java.run("drift", "--fail-on", "low")
    assert (drifted.code, drifted.stderr) == (2, "")
    assert "SET TBLPROPERTIES" in drifted.stdout or "by hand" in drifted.stdout
    assert not java.was_started

    models.write_text(MODELS.replace("Orders table", "All orders"))
    refused = java.run("sync", "--yes")
    assert refused.code == 1
    assert "Spark could not be started" in refused.stderr
    assert java.was_started
