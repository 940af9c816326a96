"""`delta-engine drift` and `import` on real Delta: reports, reverts, edits of models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
from delta.tables import DeltaTable, IdentityGenerator
from pyspark.sql import SparkSession

from delta_engine.config.settings import load_settings
from delta_engine.models import QualifiedName
from tests.builders.models import address_of, address_of_orders
from tests.projects.commandline import CommandLine
from tests.projects.models import load_models

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "docs" / "schemas" / "drift-report-v1.json"

COMMENTED = """\
# The orders of the shop.
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders   # one row per order
    comment: Orders table
    columns:
      # the key
      - {name: id, type: bigint, nullable: false, comment: Order ID}
      - {name: created_ts, type: timestamp, comment: Creation time}
      - {name: amount, type: "decimal(18,2)", comment: 'Order total'}  # in euros
    properties: {delta.autoOptimize.optimizeWrite: "true"}
    primary_key: [id]
"""


@pytest.fixture
def orders(spark: SparkSession, project: Path, delta_engine: CommandLine) -> str:
    """Sync dev.silver.orders, and return its address."""
    (project / "conf" / "models" / "orders.yml").write_text(COMMENTED)
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    return address_of_orders(project)


def test_a_report_in_three_renderings(
    orders: str, project: Path, spark: SparkSession, delta_engine: CommandLine
) -> None:
    spark.sql(f"ALTER TABLE {orders} ALTER COLUMN amount COMMENT '<script>alert(1)</script>'")
    spark.sql(f"ALTER TABLE {orders} ADD COLUMNS (extra INT)")
    spark.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ('theirs' = '1')")
    spark.sql(
        f"CREATE TABLE {address_of(project, QualifiedName('dev', 'silver', 'stranger'))} (a INT) USING delta"
    )

    text = delta_engine("-e", "local", "drift", "--fail-on", "high")
    assert text.code == 0
    assert (
        "  ~ table.dev.silver.orders\n      column extra: ADDED int\n      severity: medium\n" in text.stdout
    )
    assert "column amount comment: 'Order total' → '<script>alert(1)</script>'" in text.stdout
    assert "last_modified: 20" in text.stdout
    assert "(CHANGE COLUMN, version 1)" in text.stdout
    assert "  ? table.dev.silver.stranger\n      created: 20" in text.stdout
    assert "  · table.dev.silver.orders: theirs = '1'" in text.stdout
    assert (
        "delta-engine -e local import dev.silver.stranger --to conf/models/silver.stranger.yml" in text.stdout
    )
    assert text.stdout.endswith("local: 3 findings (0 high, 1 medium, 2 low) in 1 table\n")

    document = delta_engine("-e", "local", "drift", "--json", "--fail-on", "medium")
    assert document.code == 2
    report = json.loads(document.stdout)
    jsonschema.validate(report, json.loads(SCHEMA.read_text("utf-8")))
    assert (report["format"], report["version"]) == ("delta-engine/drift-report", 1)
    assert [finding["field"] for finding in report["drifted"][0]["findings"]] == [
        "column extra",
        "column amount comment",
    ]

    page = project / "reports" / "drift.html"
    done = delta_engine("-e", "local", "drift", "--format", "html", "--out", str(page))
    assert (done.code, done.stdout) == (0, "")
    assert "3 findings" in done.stderr
    html = page.read_text("utf-8")
    assert "&lt;script&gt;" in html
    assert "<script>alert" not in html


def test_accepted_drift_goes_into_the_yaml_and_leaves_its_layout_alone(
    orders: str, project: Path, spark: SparkSession, delta_engine: CommandLine
) -> None:
    spark.sql(f"ALTER TABLE {orders} ALTER COLUMN amount COMMENT 'it''s ${{x}}'")
    spark.sql(f"ALTER TABLE {orders} ADD COLUMNS (extra INT COMMENT 'hotfix')")
    spark.sql(f"ALTER TABLE {orders} ALTER COLUMN id DROP NOT NULL")
    spark.sql(
        f"ALTER TABLE {orders} UNSET TBLPROPERTIES ('delta_engine.constraint.pk_dev_silver_orders__id')"
    )
    done = delta_engine("-e", "local", "drift", "--accept", "--yes")
    assert done.code == 0, done.stderr
    assert "column extra: absent → int 'hotfix'" in done.stdout
    text = (project / "conf" / "models" / "orders.yml").read_text("utf-8")
    assert "# The orders of the shop.\n" in text
    assert "    name: orders   # one row per order\n" in text
    assert "      # the key\n" in text
    assert "# in euros\n" in text
    assert "      - {name: created_ts, type: timestamp, comment: Creation time}\n" in text
    assert "primary_key" not in text
    assert delta_engine("-e", "local", "plan", "--detailed-exitcode").code == 0
    assert delta_engine("-e", "local", "sync", "--yes").stdout.endswith("no changes (1 model)\n")
    assert delta_engine("-e", "local", "drift", "--fail-on", "low").code == 0


def test_a_reverted_rename_keeps_the_data(
    orders: str, spark: SparkSession, delta_engine: CommandLine
) -> None:
    spark.sql(f"INSERT INTO {orders} VALUES (1, timestamp '2026-01-02 03:04:05', 7.5)")
    spark.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {orders} RENAME COLUMN amount TO total")
    assert delta_engine("-e", "local", "drift", "--revert", "--yes").code == 0
    assert float(spark.table(orders).collect()[0]["amount"]) == 7.5
    assert delta_engine("-e", "local", "sync", "--yes").stdout.endswith("no changes (1 model)\n")
    assert delta_engine("-e", "local", "drift", "--fail-on", "low").code == 0


@pytest.mark.long
def test_a_renamed_field_is_renamed_back_with_its_data(
    spark: SparkSession, project: Path, delta_engine: CommandLine
) -> None:
    (project / "conf" / "models" / "orders.yml").write_text(
        "tables:\n  - catalog: ${catalog}\n    schema: silver\n    name: orders\n"
        "    columns: [{name: st, type: 'struct<x: int, z: string>'}]\n"
        "    properties: {delta.columnMapping.mode: name}\n"
    )
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    address = address_of_orders(project)
    spark.sql(f"INSERT INTO {address} VALUES (named_struct('x', 7, 'z', 'a'))")
    spark.sql(f"ALTER TABLE {address} RENAME COLUMN st.x TO y")
    refused = delta_engine("-e", "local", "sync", "--yes", "--allow", "drop_column")
    assert "it was renamed to 'st.y'" in refused.stderr
    assert delta_engine("-e", "local", "drift", "--revert", "--yes").code == 0
    assert spark.table(address).select("st.x").collect()[0]["x"] == 7
    assert delta_engine("-e", "local", "drift", "--fail-on", "low").code == 0


def test_a_revert_restores_the_table(orders: str, spark: SparkSession, delta_engine: CommandLine) -> None:
    spark.sql(f"ALTER TABLE {orders} ALTER COLUMN amount COMMENT 'x'")
    spark.sql(f"ALTER TABLE {orders} ADD COLUMNS (extra INT)")
    refused = delta_engine("-e", "local", "drift", "--revert", "--yes")
    assert refused.code == 3
    assert "drop_column" in refused.stderr
    done = delta_engine("-e", "local", "drift", "--revert", "--yes", "--allow", "drop_column")
    assert done.code == 0
    assert "reverted: 1 table, " in done.stdout.splitlines()[-1]
    assert delta_engine("-e", "local", "drift", "--fail-on", "low").code == 0


EVERY_TYPE = """\
CREATE TABLE {t} (
  a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(38,10), i STRING,
  j BINARY, k DATE, l TIMESTAMP, m TIMESTAMP_NTZ, n VARCHAR(10) COMMENT 'it\\'s', o CHAR(3),
  p ARRAY<INT>, q MAP<STRING, DECIMAL(3,1)>,
  r STRUCT<x: INT NOT NULL COMMENT 'deep', `y z`: ARRAY<STRUCT<w: DATE COMMENT 'it'>>>,
  `odd name.x` INT NOT NULL COMMENT 'a\\n"b" ${{x}} # : - {{'
) USING delta CLUSTER BY (d, k) COMMENT '- a: "b" # ${{x}}'
TBLPROPERTIES ('theirs' = '1.10', 'x${{y}}' = 'yes', 'delta.columnMapping.mode' = 'name', 'api.token' = 'hush')
"""


@pytest.mark.parametrize("name", ["imported.yml", pytest.param("imported.py", marks=pytest.mark.long)])
def test_what_was_imported_needs_nothing(
    name: str, project: Path, spark: SparkSession, delta_engine: CommandLine
) -> None:
    (project / ".delta-engine" / "warehouse" / "dev" / "silver").mkdir(parents=True)
    every = address_of(project, QualifiedName("dev", "silver", "every_type"))
    spark.sql(EVERY_TYPE.format(t=every))
    spark.sql(
        f"CREATE TABLE {address_of(project, QualifiedName('dev', 'silver', 'plain'))} (a INT) USING delta"
    )
    (project / "conf" / "models" / "orders.yml").unlink()
    done = delta_engine("-e", "local", "import", "dev.silver", "--to", name)
    assert done.code == 0, done.stderr
    text = (project / name).read_text("utf-8")
    assert "hush" not in text
    conf = project / "conf" / "local.yml"
    models = '{yaml: ["imported.yml"]}' if name.endswith("yml") else '{python: ["imported:tables"]}'
    conf.write_text(conf.read_text().replace('{yaml: ["conf/models/*.yml"]}', models))
    plan = delta_engine("-e", "local", "plan", "--detailed-exitcode")
    assert plan.code == 0, plan.stdout
    left_alone = "unmanaged: 1 part of 1 table, kept as before: --full lists them\n"
    adopted = "adopts: 2 tables as found; an undo of this run cannot restore their earlier state: "
    names = "dev.silver.every_type, dev.silver.plain\n"
    assert plan.stdout == f"{left_alone}{adopted}{names}local: no changes (2 models)\n", done.stderr
    refused = delta_engine("-e", "local", "import", "dev.silver.plain", "--to", name)
    assert refused.code == 3
    assert "importing never overwrites models" in refused.stderr


def test_columns_with_values_of_the_platform_are_imported_and_never_left_out(
    project: Path, tmp_path: Path, spark: SparkSession, delta_engine: CommandLine
) -> None:
    models = project / "conf" / "models" / "orders.yml"
    models.unlink()
    made = tmp_path / "made"  # Delta's builder takes no backtick in a location
    folder = project / ".delta-engine" / "warehouse" / "dev" / "silver" / "events"
    (
        DeltaTable.create(spark)
        .location(str(made))
        .addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator(start=10, step=2))
        .addColumn("at", "timestamp")
        .addColumn("day", "date", generatedAlwaysAs="CAST(at AS DATE)")
        .execute()
    )
    folder.parent.mkdir(parents=True)
    made.rename(folder)
    assert delta_engine("-e", "local", "import", "dev.silver", "--to", str(models)).code == 0
    text = models.read_text("utf-8")
    assert "identity: {start: 10, step: 2}" in text
    assert "generated_as: CAST(at AS DATE)" in text
    synced = delta_engine("-e", "local", "sync", "--yes")
    assert (synced.code, "local: no changes (1 model)\n" in synced.stdout) == (0, True), synced.stderr
    shutil.rmtree(folder)
    refused = delta_engine("-e", "local", "drift", "--revert", "--yes")
    assert refused.code == 3, refused.stdout
    assert "column day: it would be created with generated columns, which the backend oss cannot do" in (
        refused.stderr
    )
    assert "column id: it would be created with identity columns" in refused.stderr
    assert not folder.exists()


def test_what_was_imported_of_the_example_needs_nothing_and_is_what_was_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, delta_engine: CommandLine
) -> None:
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    monkeypatch.chdir(tmp_path)
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    declared = load_models(load_settings(tmp_path / "conf", "local"))
    conf = tmp_path / "conf" / "local.yml"
    text = conf.read_text("utf-8").replace('["conf/models/**/*.yml"]', '["imported.yml"]')
    conf.write_text(text.replace('python: ["conf.models.guide:tables"]', "python: []"), encoding="utf-8")
    done = delta_engine("-e", "local", "import", "dev.silver", "--to", "imported.yml")
    assert done.code == 0, done.stderr
    assert "catalog: ${catalog}\n" in (tmp_path / "imported.yml").read_text("utf-8")
    plan = delta_engine("-e", "local", "plan", "--detailed-exitcode")
    assert plan.code == 0, plan.stdout
    imported = {
        model.qualified_name: model for model in load_models(load_settings(tmp_path / "conf", "local"))
    }
    assert imported == {model.qualified_name: model for model in declared if model.schema_name == "silver"}


def test_a_table_that_became_something_else_does_not_hide_the_drift_of_others(
    orders: str, project: Path, spark: SparkSession, delta_engine: CommandLine
) -> None:
    models = project / "conf" / "models" / "orders.yml"
    models.write_text(
        COMMENTED + COMMENTED.partition("tables:\n")[2].replace("name: orders ", "name: others ")
    )
    assert delta_engine("-e", "local", "sync", "--yes").code == 0
    spark.sql(f"COMMENT ON TABLE {orders} IS 'theirs'")
    others = project / ".delta-engine" / "warehouse" / "dev" / "silver" / "others"
    shutil.rmtree(others / "_delta_log")
    (others / "data.csv").write_text("a,b\n")
    shown = delta_engine("-e", "local", "drift", "--fail-on", "high")
    assert shown.code == 2
    assert (
        "  ~ table.dev.silver.others\n      table: a Delta table that can be managed → it exists"
        in shown.stdout
    )
    assert "      table comment: 'Orders table' → 'theirs'" in shown.stdout
    assert "local: 2 findings (1 high, 0 medium, 1 low) in 1 table" in shown.stdout
