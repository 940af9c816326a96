"""The deployment state through whole runs on real Delta: recorded, planned against, synchronized."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.builders.models import address_of_orders
from tests.projects.commandline import CommandLine

KEY = "table.dev.silver.orders"


@pytest.fixture
def address(spark: SparkSession, project: Path) -> str:
    """Return the address of dev.silver.orders in the project's warehouse."""
    return address_of_orders(project)


def document(project: Path) -> Any:
    return json.loads((project / ".delta-engine" / "state" / "local.state.json").read_bytes())


def test_a_sync_records_what_it_applied(delta_engine: CommandLine, project: Path, address: str) -> None:
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    first = document(project)
    assert (first["serial"], first["lineage"], first["environment"]["name"]) == (2, "unknown", "local")
    assert first["platform_version"] == "spark 4.1.1"
    assert first["metadata"]["last_apply_actions"] == {"added": 2, "changed": 0, "destroyed": 0}
    assert first["metadata"]["checkpoints"] == [
        {"resource": "schema.dev.silver", "status": "healthy", "statements_done": 0},  # it is a folder
        {"resource": KEY, "status": "healthy", "statements_done": 1},
    ]
    assert list(first["resources"]) == ["schema.dev.silver", KEY]
    table = first["resources"][KEY]
    assert (table["status"], table["metadata"]["delta_version"]) == ("healthy", 0)
    assert table["dependencies"] == ["schema.dev.silver"]

    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    assert document(project) == first  # nothing to record, nothing saved
    assert not list((project / ".delta-engine" / "state" / "local.journal").iterdir())


def test_a_property_that_was_applied_and_is_no_longer_declared_is_removed(
    delta_engine: CommandLine, project: Path, address: str, spark: SparkSession
) -> None:
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    spark.sql(f"ALTER TABLE {address} SET TBLPROPERTIES ('theirs' = '1')")
    models = project / "conf" / "models" / "orders.yml"
    models.write_text(
        models.read_text().replace('    properties: {delta.autoOptimize.optimizeWrite: "true"}\n', "")
    )
    plan = delta_engine("-e", "local", "plan")
    assert "- property delta.autoOptimize.optimizeWrite: 'true'" in plan.stdout
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    found = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {address}").collect()}
    assert "delta.autoOptimize.optimizeWrite" not in found
    assert found["theirs"] == "1"
    recorded = document(project)["resources"][KEY]["metadata"]
    assert recorded["definition"]["properties"] == {}
    assert recorded["delta_version"] == 2
    assert delta_engine("-e", "local", "plan", "--detailed-exitcode").code == 0


def test_what_others_changed_is_recorded_on_demand(
    delta_engine: CommandLine, project: Path, address: str, spark: SparkSession
) -> None:
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    before = document(project)["resources"][KEY]["metadata"]["definition"]
    spark.sql(f"COMMENT ON TABLE {address} IS 'by hand'")
    spark.sql(f"CREATE TABLE {address.replace('orders', 'temp')} (id INT) USING delta")
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
    assert resources[KEY]["metadata"]["definition"] == before

    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    assert document(project)["resources"][KEY]["status"] == "healthy"
    shown = delta_engine("-e", "local", "state", "list", "--status", "unmanaged").stdout
    assert shown == "unmanaged  table.dev.silver.temp\n"


def test_tables_that_were_there_already_are_recorded_too(
    delta_engine: CommandLine, project: Path, address: str
) -> None:
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    for path in (project / ".delta-engine" / "state").glob("local.state.json"):
        path.unlink()
    result = delta_engine("-e", "local", "sync", "--yes")
    assert (result.code, result.stdout) == (0, "local: no changes (1 model)\n")
    assert document(project)["resources"][KEY]["status"] == "healthy"


def test_a_failed_table_is_recorded_with_its_statement(
    delta_engine: CommandLine, project: Path, address: str, spark: SparkSession
) -> None:
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    spark.sql(f"INSERT INTO {address} VALUES (1, NULL, NULL)")
    models = project / "conf" / "models" / "orders.yml"
    text = models.read_text().replace("Order total", "Sum")
    models.write_text(f"{text}    checks: {{positive: amount > 0}}\n")  # nobody counts the rows unasked
    assert delta_engine("-e", "local", "sync", "--yes").code == 1
    found = document(project)
    (checkpoint,) = found["metadata"]["checkpoints"]
    assert (checkpoint["status"], checkpoint["statements_done"]) == ("failed", 0)
    assert "CHECK (amount > 0)" in checkpoint["statement"]
    assert checkpoint["error"]
    table = found["resources"][KEY]
    assert table["status"] == "failed"
    assert table["metadata"]["sync_error"]
    assert "checks" not in table["metadata"]["definition"]


def test_nothing_is_applied_over_a_document_that_cannot_be_read(
    delta_engine: CommandLine, project: Path, address: str
) -> None:
    folder = project / ".delta-engine" / "state"
    folder.mkdir(parents=True)
    (folder / "local.state.json").write_text('{"version": 2}')
    for command in (["sync"], ["plan"]):
        refused = delta_engine("-e", "local", *command)
        assert refused.code == 3
        assert (
            "it is of format 2, and this engine knows formats up to 1. Upgrade delta-engine."
            in refused.stderr
        )
    assert (folder / "local.state.json").read_text() == '{"version": 2}'
    assert not (project / ".delta-engine" / "warehouse").exists()


def test_plan_and_dry_run_write_nothing(delta_engine: CommandLine, project: Path, address: str) -> None:
    assert delta_engine("-e", "local", "plan").code == 0
    assert delta_engine("-e", "local", "sync", "--dry-run").code == 0
    assert not (project / ".delta-engine" / "state").exists()
