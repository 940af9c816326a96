"""The command line on real Delta, as a user of a laptop works with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.projects.commandline import CommandLine

KEY = "table.dev.silver.orders"


def document(project: Path) -> Any:
    return json.loads((project / ".delta-engine" / "state" / "local.state.json").read_bytes())


def test_a_day_on_a_laptop(
    spark: SparkSession, delta_engine: CommandLine, project: Path, changes: list[str], orders: str
) -> None:
    assert delta_engine("-e", "local", "plan").code == 0
    pending = delta_engine("-e", "local", "plan", "--detailed-exitcode", "--sql")
    assert pending.code == 2
    assert "CREATE TABLE delta.`" in pending.stdout
    assert changes == []
    assert not (project / ".delta-engine" / "warehouse").exists()

    first = delta_engine("-e", "local", "sync", "--yes")
    assert (first.code, first.stderr) == (0, "created dev.silver.orders (1 statement)\n")
    assert first.stdout.endswith(
        "local: 1 schema to create, 1 table to create (1 model)\n"
        "applied: 1 schema, 1 table, 1 statement; 1 verified\n"
    )
    recorded = document(project)
    facts = (recorded["serial"], recorded["lineage"], recorded["platform_version"])
    assert facts == (2, "unknown", "spark 4.1.1")
    assert recorded["environment"]["name"] == "local"
    assert recorded["metadata"]["last_apply_actions"] == {"added": 2, "changed": 0, "destroyed": 0}
    assert recorded["metadata"]["checkpoints"] == [
        {"resource": "schema.dev.silver", "status": "healthy", "statements_done": 0},  # it is a folder
        {"resource": KEY, "status": "healthy", "statements_done": 1},
    ]
    assert list(recorded["resources"]) == ["schema.dev.silver", KEY]
    table = recorded["resources"][KEY]
    assert (table["status"], table["metadata"]["delta_version"]) == ("healthy", 0)
    assert table["dependencies"] == ["schema.dev.silver"]

    second = delta_engine("-e", "local", "sync", "--yes")
    assert (second.code, second.stdout, second.stderr) == (0, "local: no changes (1 model)\n", "")
    assert len(changes) == 1
    assert document(project) == recorded  # nothing to record, nothing saved
    assert not list((project / ".delta-engine" / "state" / "local.journal").iterdir())
    spark.sql(f"COMMENT ON TABLE {orders} IS 'by hand'")
    drifted = delta_engine("-e", "local", "plan", "--detailed-exitcode")
    assert drifted.code == 2
    assert "~ table comment: 'by hand' → 'Orders table'" in drifted.stdout


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


VIEWS = """
views:
  - catalog: ${catalog}
    schema: with_views
    name: recent
    comment: Orders of today
    schema_mode: type evolution
    query: |
      SELECT id, amount
      FROM ${catalog}.with_views.orders
      WHERE amount > 10
  - {catalog: "${catalog}", schema: with_views, name: ids, query: "SELECT id FROM ${catalog}.with_views.recent"}
"""


def test_an_import_of_spark_s_catalog_has_its_views(
    spark: SparkSession, delta_engine: CommandLine, project: Path
) -> None:
    config = project / "conf" / "local.yml"
    text = config.read_text().replace("type: oss", "type: oss, names: catalog")
    config.write_text(text.replace("catalog: dev", "catalog: spark_catalog"))
    models = project / "conf" / "models" / "orders.yml"
    models.write_text(models.read_text().replace("schema: silver", "schema: with_views") + VIEWS)
    try:
        made = delta_engine("-e", "local", "sync", "--yes")
        assert made.code == 0, made.stderr
        spark.sql("CREATE OR REPLACE TEMPORARY VIEW passing AS SELECT 1 AS a")
        spark.sql("CREATE VIEW spark_catalog.with_views.short AS SELECT id FROM with_views.orders")
        shutil.rmtree(project / ".delta-engine" / "state")
        models.unlink()
        imported = delta_engine("-e", "local", "import", "spark_catalog.with_views", "--to", str(models))
        assert "view spark_catalog.with_views.short: " in imported.stderr
        assert "passing" not in imported.stdout + imported.stderr
        assert "schema_mode: type evolution" in models.read_text()
        files = sorted(path.name for path in (models.parent / "views").iterdir())
        assert files == ["with_views.ids.sql", "with_views.recent.sql"]
        planned = delta_engine("-e", "local", "plan", "--detailed-exitcode")
        assert planned.code == 0, planned.stdout + planned.stderr
    finally:
        spark.sql("DROP VIEW IF EXISTS passing")
        spark.sql("DROP SCHEMA IF EXISTS spark_catalog.with_views CASCADE")


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
    assert (
        "refused: table dev.silver.orders, column span: the engine does not manage its type 'interval day to second'"
        in result.stderr
    )


def test_what_others_changed_is_recorded_on_demand(
    spark: SparkSession, delta_engine: CommandLine, project: Path, orders: str
) -> None:
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    before = document(project)["resources"][KEY]["metadata"]["declared"]
    spark.sql(f"COMMENT ON TABLE {orders} IS 'by hand'")
    spark.sql(f"CREATE TABLE {orders.replace('orders', 'temp')} (id INT) USING delta")
    result = delta_engine("-e", "local", "state", "sync")
    assert result.code == 0
    assert [line.split() for line in result.stdout.splitlines()[:2]] == [
        ["drifted", KEY, *result.stdout.splitlines()[0].split()[2:]],
        ["unmanaged", "table.dev.silver.temp"],
    ]
    resources = document(project)["resources"]
    assert resources[KEY]["metadata"]["drift"] == [
        {"field": "table comment", "expected": "'Orders table'", "actual": "'by hand'"}
    ]
    assert resources[KEY]["metadata"]["declared"] == before

    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    assert document(project)["resources"][KEY]["status"] == "healthy"
    shown = delta_engine("-e", "local", "state", "list", "--status", "unmanaged").stdout
    assert shown == "unmanaged  table.dev.silver.temp\n"


def test_a_laptop_that_has_everything(spark: SparkSession, delta_engine: CommandLine, project: Path) -> None:
    result = delta_engine("-e", "local", "doctor", "--json")
    assert result.code == 0, result.stdout
    examination = json.loads(result.stdout)
    statuses = {check["topic"]: check["status"] for check in examination["checks"]}
    assert statuses == {
        "configuration": "ok",
        "packages": "ok",
        "git commit": "cannot tell",
        "login": "ok",
        "platform": "ok",
        "warehouse folder": "ok",
        "plan": "ok",
        "deployment state": "ok",
        "lock": "ok",
    }
    assert examination["platform_version"] == f"spark {spark.version}"
    assert [path.name for path in project.iterdir() if path.name != "conf"] in ([], [".delta-engine"])
    assert not (project / ".delta-engine" / "warehouse").exists()
    assert not (project / ".delta-engine" / "state").exists()
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    assert delta_engine("-e", "local", "doctor").code == 0
