"""The command line on real Delta, as a user of a laptop works with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import Row
from delta_engine.deployment.locks.file import FileLock
from tests.builders.deployment import HOLDER
from tests.builders.models import address_of_orders
from tests.integration.counting import READS
from tests.projects.commandline import CommandLine


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets every statement that changes something."""
    seen: list[str] = []
    run = SparkSqlRunner.run

    def recording(self: SparkSqlRunner, sql: str) -> Sequence[Row]:
        if not sql.startswith(READS):
            seen.append(sql)
        return run(self, sql)

    monkeypatch.setattr(SparkSqlRunner, "run", recording)
    return seen


@pytest.fixture
def orders(spark: SparkSession, project: Path) -> str:
    """Return the address of dev.silver.orders in the project's warehouse."""
    return address_of_orders(project)


def test_sync_twice(
    spark: SparkSession, delta_engine: CommandLine, project: Path, changes: list[str]
) -> None:
    first = delta_engine("-e", "local", "sync", "--yes")
    assert first.code == 0
    assert first.stderr == "created dev.silver.orders (1 statement)\n"
    assert first.stdout.endswith(
        "local: 1 schema to create, 1 table to create (1 model)\n"
        "applied: 1 schema, 1 table, 1 statement; 1 verified\n"
    )
    assert len(changes) == 1

    second = delta_engine("-e", "local", "sync", "--yes")
    assert (second.code, second.stdout, second.stderr) == (0, "local: no changes (1 model)\n", "")
    assert len(changes) == 1


def test_names_as_spark_resolves_them(spark: SparkSession, delta_engine: CommandLine, project: Path) -> None:
    config = project / "conf" / "local.yml"
    text = config.read_text().replace("type: oss", "type: oss, names: catalog")
    config.write_text(text.replace("catalog: dev", "catalog: spark_catalog"))
    models = project / "conf" / "models" / "orders.yml"
    models.write_text(models.read_text().replace("schema: silver", "schema: by_name"))
    try:
        assert delta_engine("-e", "local", "sync", "--yes").code == 0
        assert spark.catalog.tableExists("spark_catalog.by_name.orders")
        assert delta_engine("-e", "local", "plan", "--detailed-exitcode").code == 0
    finally:
        spark.sql("DROP SCHEMA IF EXISTS spark_catalog.by_name CASCADE")


def test_a_plan_changes_nothing_and_says_so_by_its_exit_code(
    spark: SparkSession, delta_engine: CommandLine, project: Path, changes: list[str], orders: str
) -> None:
    assert delta_engine("-e", "local", "plan").code == 0
    pending = delta_engine("-e", "local", "plan", "--detailed-exitcode", "--sql")
    assert pending.code == 2
    assert "CREATE TABLE delta.`" in pending.stdout
    assert changes == []
    assert not (project / ".delta-engine" / "warehouse").exists()

    delta_engine("-e", "local", "sync", "--yes")
    assert delta_engine("-e", "local", "plan", "--detailed-exitcode").code == 0
    spark.sql(f"COMMENT ON TABLE {orders} IS 'by hand'")
    drifted = delta_engine("-e", "local", "plan", "--detailed-exitcode")
    assert drifted.code == 2
    assert "~ table comment: 'by hand' → 'Orders table'" in drifted.stdout


def test_json_documents(spark: SparkSession, delta_engine: CommandLine, project: Path) -> None:
    plan = json.loads(delta_engine("-e", "local", "plan", "--json").stdout)
    assert (plan["format"], plan["version"], plan["has_changes"]) == ("delta-engine/plan", 1, True)
    assert plan["tables"][0]["statements"][0].startswith("CREATE TABLE")
    dry = json.loads(delta_engine("-e", "local", "sync", "--dry-run", "--json").stdout)
    assert dry == plan
    summary = json.loads(delta_engine("-e", "local", "sync", "--yes", "--json").stdout)
    counts = {what: count for what, count in summary["counts"].items() if count}
    assert counts == {"created": 1, "schemas": 1, "statements": 1, "verified": 1}
    assert json.loads(delta_engine("-e", "local", "plan", "--json").stdout)["tables"] == []


def test_a_dropped_column_needs_consent(
    spark: SparkSession, delta_engine: CommandLine, project: Path, changes: list[str], orders: str
) -> None:
    delta_engine("-e", "local", "sync", "--yes")
    spark.sql(f"ALTER TABLE {orders} ADD COLUMNS (extra INT)")
    changes.clear()

    refused = delta_engine("-e", "local", "sync", "--yes")
    assert refused.code == 3
    assert "- column extra: int  [loses data]" in refused.stdout
    assert refused.stderr.startswith(
        "refused: conf/models/orders.yml:2: table dev.silver.orders, column extra: columns (extra) exist"
    )
    assert changes == []

    allowed = delta_engine("-e", "local", "sync", "--yes", "--allow", "drop_column:silver.orders")
    assert allowed.code == 0
    assert delta_engine("-e", "local", "plan", "--detailed-exitcode").code == 0


def test_a_missing_schema_needs_consent(
    spark: SparkSession, delta_engine: CommandLine, project: Path
) -> None:
    config = project / "conf" / "local.yml"
    config.write_text(config.read_text().replace("create_schemas: true", "create_schemas: false"))
    result = delta_engine("-e", "local", "sync", "--yes")
    assert result.code == 3
    assert "schema dev.silver does not exist" in result.stderr
    assert not (project / ".delta-engine" / "warehouse").exists()


def test_something_else_in_the_tables_place(
    spark: SparkSession, delta_engine: CommandLine, project: Path
) -> None:
    folder = project / ".delta-engine" / "warehouse" / "dev" / "silver" / "orders"
    spark.range(3).write.parquet(str(folder))
    result = delta_engine("-e", "local", "sync", "--yes")
    assert result.code == 3
    assert "table dev.silver.orders: it exists, but it is a folder of other files" in result.stderr


def test_an_unreadable_type_names_table_and_column(
    spark: SparkSession, delta_engine: CommandLine, project: Path, orders: str
) -> None:
    spark.conf.set("spark.databricks.delta.schema.typeCheck.enabled", "false")
    try:
        spark.sql(f"CREATE TABLE {orders} (span INTERVAL DAY TO SECOND) USING delta")
    finally:
        spark.conf.unset("spark.databricks.delta.schema.typeCheck.enabled")
    result = delta_engine("-e", "local", "plan")
    assert result.code == 3
    assert "refused: table dev.silver.orders, column span: type 'interval day to second'" in result.stderr


@pytest.mark.long
def test_one_failed_table_leaves_the_others_applied(
    spark: SparkSession, delta_engine: CommandLine, project: Path, orders: str
) -> None:
    delta_engine("-e", "local", "sync", "--yes")
    spark.sql(f"INSERT INTO {orders} VALUES (1, NULL, -1)")
    text = (project / "conf" / "models" / "orders.yml").read_text()
    (project / "conf" / "models" / "orders.yml").write_text(text + "    checks: {positive: amount > 0}\n")
    (project / "conf" / "models" / "lines.yml").write_text(text.replace("name: orders", "name: lines"))

    result = delta_engine("-e", "local", "sync", "--yes", "--json")
    assert result.code == 5
    summary = json.loads(result.stdout)
    lines, failed = summary["tables"]
    assert (lines["table"], lines["status"]) == ("dev.silver.lines", "created")
    assert (failed["table"], failed["status"]) == ("dev.silver.orders", "failed")
    assert failed["error"]["error_class"] == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    assert "failed: 1 of 2 tables failed:" in result.stderr

    spark.sql(f"DELETE FROM {orders} WHERE amount < 0")
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    assert delta_engine("-e", "local", "plan", "--detailed-exitcode").code == 0


def test_on_a_terminal_sync_asks(
    spark: SparkSession, delta_engine: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", _refuse)
    result = delta_engine("-e", "local", "sync")
    assert result.code == 130
    assert not (project / ".delta-engine" / "warehouse").exists()


def _refuse(_question: str, **_options: object) -> bool:
    return False


def test_a_locked_environment_is_left_alone_after_a_while(
    spark: SparkSession, delta_engine: CommandLine, project: Path
) -> None:
    config = project / "conf" / "local.yml"
    config.write_text(config.read_text() + "state_backend: {type: local, lock: {timeout_seconds: 0}}\n")
    lease = FileLock(project / ".delta-engine" / "state", "local").acquire(HOLDER, timeout_seconds=0)
    refused = delta_engine("-e", "local", "sync", "--yes")
    assert refused.code == 4
    assert "note: waiting for the lock: held by ana@example.com on build-7" in refused.stderr
    assert "locked: " in refused.stderr
    assert not (project / ".delta-engine" / "warehouse").exists()
    assert delta_engine("-e", "local", "plan").code == 0  # looking takes no lock
    lease.release()
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
