"""A whole catalog of local Delta tables becomes models that need no changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.projects.commandline import CommandLine

MODELS = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: customers
    comment: Every customer
    columns: [{name: id, type: bigint, nullable: false}]
    primary_key: [id]
  - catalog: ${catalog}
    schema: gold
    name: orders
    columns: [{name: id, type: bigint, nullable: false}, {name: customer, type: bigint}, {name: day, type: date}]
    primary_key: [id]
    foreign_keys: [{columns: [customer], references: silver.customers}]
    partitioned_by: [day]
"""


@pytest.mark.parametrize("per", ["table", "schema"])
def test_an_imported_catalog_needs_no_changes(
    per: str, project: Path, spark: SparkSession, delta_engine: CommandLine
) -> None:
    models = project / "conf" / "models" / "orders.yml"
    models.write_text(MODELS)
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    models.unlink()
    warehouse = project / ".delta-engine" / "warehouse" / "dev"
    (warehouse / "silver" / "files").mkdir()
    (warehouse / "silver" / "files" / "data.csv").write_text("a\n")
    (warehouse / "broken" / "table" / "_delta_log").mkdir(parents=True)
    (warehouse / "broken" / "table" / "_delta_log" / "00000000000000000000.json").write_text("{")
    imported = delta_engine("-e", "local", "import", "dev", "--to", "conf/models", "--per", per)
    assert imported.code == 5, imported.stderr
    assert "note: left out: table dev.broken.table: " in imported.stderr
    written = "".join(
        path.read_text("utf-8") for path in sorted((project / "conf" / "models").rglob("*.yml"))
    )
    assert "{columns: [customer], references: silver.customers}" in written
    conf = project / "conf" / "local.yml"
    conf.write_text(conf.read_text().replace("conf/models/*.yml", "conf/models/**/*.yml"))
    planned = delta_engine("-e", "local", "plan", "--detailed-exitcode")
    assert (planned.code, planned.stdout) == (0, "local: no changes (2 models)\n"), planned.stderr
