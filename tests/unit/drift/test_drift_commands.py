"""Drift of tables by the commands, over Unity Catalog in memory: refused, repaired, reverted, accepted, ignored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.catalog_project import CONFIG, CatalogProject
from tests.projects.commandline import CommandLine, Result

ORDERS = """\
# The orders of the shop.
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders   # one row per order
    comment: Orders table
    columns:
      - {name: id, type: bigint, nullable: false, comment: Order ID}
      - {name: amount, type: "decimal(18,2)", comment: 'Order total'}  # in euros
    properties: {delta.columnMapping.mode: name}
    primary_key: [id]
"""
OTHERS = ORDERS.partition("tables:\n")[2].replace("name: orders ", "name: others ")

TABLE = "`dev`.`silver`.`orders`"
COMMENTED = f"COMMENT ON TABLE {TABLE} IS 'theirs'"
RENAMED = f"ALTER TABLE {TABLE} RENAME COLUMN amount TO total"

Run = Callable[[str], Result]


@pytest.fixture
def catalog(catalog_project: CatalogProject) -> FakeUnityCatalog:
    """Return a catalog, and work in a project that is not synced yet."""
    catalog_project.models.write_text(ORDERS + OTHERS)
    return catalog_project.catalog


@pytest.fixture
def run(catalog: FakeUnityCatalog, catalog_project: CatalogProject) -> Run:
    """Return what runs a command in a project whose tables, orders and others, are synced."""
    catalog_project.sync()
    return catalog_project.run


def configure(policy: str) -> None:
    Path("conf/dev.yml").write_text(CONFIG.replace("create_schemas: true", f"create_schemas: true, {policy}"))


def test_without_drift_nothing_is_done_and_no_history_is_read(catalog: FakeUnityCatalog, run: Run) -> None:
    catalog.questions.clear()
    assert run("drift --fail-on low").stdout.endswith("dev: no drift in 2 tables\n")
    assert run("drift --revert --yes").stdout == "dev: no changes to revert\n"
    assert run("drift --accept --yes").stdout == "dev: 0 tables to accept\n"
    assert not any(sql.startswith("DESCRIBE HISTORY") for sql in catalog.questions)
    catalog.run(COMMENTED)
    assert run("drift --fail-on low").code == 2
    assert {sql.split()[2] for sql in catalog.questions if sql.startswith("DESCRIBE HISTORY")} == {TABLE}


@pytest.mark.parametrize(
    "options",
    [
        "--revert --accept",
        "--revert --format json",
        "--accept --allow drop_column",
        "--format pdf",
        "--fail-on severe",
    ],
)
def test_options_that_contradict_each_other_are_refused(run: Run, options: str) -> None:
    assert run(f"drift {options}").code == 3


def test_a_sync_repairs_light_drift_and_refuses_to_revert_severe_drift(
    catalog: FakeUnityCatalog, run: Run
) -> None:
    catalog.run(COMMENTED)
    assert run("sync --yes").code == 0
    assert run("drift --fail-on low").code == 0
    catalog.run(f"ALTER TABLE {TABLE} DROP COLUMN amount")
    refused = run("sync --yes")
    assert refused.code == 3
    assert "table dev.silver.orders" in refused.stderr
    assert "column amount was decimal(18,2) 'Order total' and is gone" in refused.stderr
    assert "policy.drift: revert" in refused.stderr
    configure("drift: revert")
    assert run("sync --yes").code == 0
    assert run("drift --fail-on low").code == 0


def test_drift_that_the_model_includes_blocks_nothing(catalog: FakeUnityCatalog, run: Run) -> None:
    catalog.run(f"ALTER TABLE {TABLE} DROP COLUMN amount")
    models = Path("conf/models/tables.yml")
    models.write_text(
        ORDERS.partition("      - {name: amount")[0] + ORDERS.partition("# in euros\n")[2] + OTHERS
    )
    assert run("sync --yes").stdout.endswith("dev: no changes (2 models)\n")
    assert run("drift --fail-on low").code == 0


def test_a_revert_restores_what_was_applied_and_not_what_the_models_declare_now(
    catalog: FakeUnityCatalog, run: Run
) -> None:
    catalog.run(COMMENTED)
    catalog.run("DROP TABLE `dev`.`silver`.`others`")
    models = Path("conf/models/tables.yml")
    models.write_text(models.read_text().replace("comment: Orders table", "comment: moved on"))
    assert run("drift --revert --yes").code == 0
    report = json.loads(run("drift --json --fail-on low").stdout)
    assert (report["drifted"], report["deleted"]) == ([], [])
    assert [resource["resource"] for resource in report["pending"]] == [
        f"table.dev.silver.{x}" for x in ("orders", "others")
    ]


def test_severities_are_set_per_field_and_table(catalog: FakeUnityCatalog, run: Run) -> None:
    for table in ("orders", "others"):
        catalog.run(f"COMMENT ON TABLE `dev`.`silver`.`{table}` IS 'x'")
    configure("drift_severities: [{severity: high, fields: [table_comment], tables: [silver.others]}]")
    report = json.loads(run("drift --json").stdout)
    severities = {resource["resource"]: resource["findings"][0]["severity"] for resource in report["drifted"]}
    assert severities == {"table.dev.silver.orders": "low", "table.dev.silver.others": "high"}
    assert "table comment was 'Orders table' and is 'x'" in run("sync --yes").stderr


def test_an_accepted_rename_renames_in_the_model(catalog: FakeUnityCatalog, run: Run) -> None:
    catalog.run(RENAMED)
    shown = run("drift")
    assert "column amount: RENAMED amount → total" in shown.stdout
    assert "delta-engine -e dev drift --revert -t dev.silver.orders\n" in shown.stdout
    assert run("sync --yes").code == 3
    assert run("drift --accept --yes").code == 0
    text = Path("conf/models/tables.yml").read_text()
    renamed = "comment: 'Order total', renamed_from: amount}  # in euros"
    assert f'- {{name: total, type: "decimal(18,2)", {renamed}' in text
    assert run("sync --yes").code == 0
    assert run("drift --fail-on low").code == 0


def test_a_refusal_about_a_recorded_table_names_the_record(catalog: FakeUnityCatalog, run: Run) -> None:
    catalog.run(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    catalog.run(f"ALTER TABLE {TABLE} ALTER COLUMN amount TYPE decimal(20,2)")
    refused = run("drift --revert --yes")
    assert refused.code == 3
    assert "refused: the deployment state: table dev.silver.orders, column amount: " in refused.stderr
    assert ".py" not in refused.stderr


def test_drift_of_a_table_with_foreign_keys_is_accepted(
    catalog: FakeUnityCatalog, delta_engine: CommandLine
) -> None:
    keys = (
        "    foreign_keys:\n"
        "      - {columns: [id], references: others}   # shortest\n"
        "      - {columns: [id], references: dev.silver.others, name: whole}\n"
    )
    models = Path("conf/models/tables.yml")
    models.write_text(ORDERS + keys + OTHERS)
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    catalog.run(COMMENTED)
    catalog.run(f"ALTER TABLE {TABLE} DROP CONSTRAINT whole")
    accepted = delta_engine("-e", "dev", "drift", "--accept", "--yes")
    assert accepted.code == 0, accepted.stderr
    wanted = ORDERS.replace("Orders table", "theirs") + "".join(keys.splitlines(keepends=True)[:2]) + OTHERS
    assert models.read_text() == wanted
    assert delta_engine("-e", "dev", "plan", "--detailed-exitcode").code == 0


WITHOUT_FILES = (
    "table dev.silver.orders: it cannot be read: dev.silver.orders is not a Delta table. Its files "
)


def test_a_table_without_files_is_refused_and_reported_by_its_name(
    catalog: FakeUnityCatalog, run: Run
) -> None:
    catalog.without_files.add("dev.silver.orders")
    catalog.run(COMMENTED.replace("orders", "others"))
    for command in ("plan", "sync --yes"):
        refused = run(command)
        assert refused.code == 3
        assert WITHOUT_FILES in refused.stderr
        assert "others" not in refused.stderr
    report = json.loads(run("drift --json").stdout)
    kinds = {
        resource["resource"]: [finding["kind"] for finding in resource["findings"]]
        for resource in report["drifted"]
    }
    assert kinds == {
        "table.dev.silver.orders": ["table_unreadable"],
        "table.dev.silver.others": ["table_comment"],
    }
    assert report["deleted"] == []
    assert run("sync --yes -t silver.others").code == 0


def test_an_undeclared_table_without_files_is_kept_with_a_warning(
    catalog: FakeUnityCatalog, run: Run
) -> None:
    """Nothing is dropped whose rows cannot be counted; other undeclared tables are."""
    configure("removed_tables: drop, allow: [drop_table]")
    Path("conf/models/tables.yml").write_text(ORDERS.replace("name: orders ", "name: third "))
    catalog.without_files.add("dev.silver.orders")
    done = run("sync --yes")
    assert (done.code, sorted(catalog.tables)) == (0, ["dev.silver.orders", "dev.silver.third"])
    assert done.stderr.count(WITHOUT_FILES) == 1


@pytest.mark.parametrize("records_times", [True, False])
def test_a_replaced_table_is_seen_by_a_sync_and_settles_once_it_is_accepted(
    catalog: FakeUnityCatalog, delta_engine: CommandLine, *, records_times: bool
) -> None:
    """Without creation times, as in Spark's catalogs, Delta's ids tell."""
    catalog.records_times = records_times

    def run(command: str) -> Result:
        return delta_engine("-e", "dev", *command.split())

    assert run("sync --yes").code == 0
    catalog.questions.clear()
    assert run("plan --detailed-exitcode").code == 0
    assert len([sql for sql in catalog.questions if sql.startswith("DESCRIBE DETAIL")]) == (
        0 if records_times else 2
    )
    (create,) = [sql for sql in catalog.statements if sql.startswith(f"CREATE TABLE {TABLE}")]
    for sql in (f"DROP TABLE {TABLE}", create):  # by nothing but its id another table
        catalog.run(sql)
    refused = run("sync --yes")
    assert refused.code == 3
    assert "it was replaced with another table outside the engine" in refused.stderr
    assert run("drift --accept --yes").code == 0
    done = run("sync --yes")
    assert done.code == 0, done.stderr
    assert "was replaced outside the engine: from now on, the new table is the recorded one" in done.stderr
    for _ in range(2):
        assert json.loads(run("drift --json").stdout)["drifted"] == []
        assert "replaced" not in run("sync --yes").stderr


def test_an_accepted_deletion_takes_the_model_away(catalog: FakeUnityCatalog, run: Run) -> None:
    catalog.run(f"DROP TABLE {TABLE}")
    refused = run("sync --yes")
    assert refused.code == 3
    assert "table dev.silver.orders: it was changed outside the engine" in refused.stderr
    path = Path("conf/models/tables.yml")
    path.write_text(re.sub(" +# (one row|in euros).*", "", path.read_text(), count=2))
    assert run("drift --accept --yes").code == 0
    text = path.read_text()
    assert ("name: others" in text, "name: orders" in text) == (True, False)
    assert run("plan --detailed-exitcode").code == 0
    assert run("sync --yes").code == 0
    assert "table.dev.silver.orders" not in json.loads(run("state show --json").stdout)["resources"]


def test_a_deletion_leaves_a_model_with_comments_to_its_author(catalog: FakeUnityCatalog, run: Run) -> None:
    catalog.run(f"DROP TABLE {TABLE}")
    refused = run("drift --accept --yes")
    assert refused.code == 3
    assert "the file cannot be edited safely: a comment would be lost. Change it by hand:" in refused.stderr
    assert "conf/models/tables.yml:3 dev.silver.orders:\n  remove the table" in refused.stderr
    path = Path("conf/models/tables.yml")
    assert path.read_text() == ORDERS + OTHERS
    path.write_text("tables:\n" + OTHERS)
    assert run("sync --yes").code == 0
    assert run("drift --fail-on low").code == run("plan --detailed-exitcode").code == 0


def test_for_python_models_the_edit_is_printed(catalog: FakeUnityCatalog, delta_engine: CommandLine) -> None:
    Path("shop.py").write_text(
        "from delta_engine import Column, Table\n"
        'tables = [Table("dev", "silver", "orders", [Column("id", "bigint")])]\n'
    )
    Path("conf/dev.yml").write_text(
        CONFIG.replace('{yaml: ["conf/models/*.yml"]}', '{python: ["shop:tables"]}')
    )
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    catalog.run(f"ALTER TABLE {TABLE} ADD COLUMNS (extra INT COMMENT 'hotfix')")
    done = delta_engine("-e", "dev", "drift", "--accept", "--yes")
    assert done.code == 0
    assert "shop.py:2" in done.stdout
    assert "Column('extra', 'int'" in done.stdout.replace('"', "'")
    assert "edit these Python models by hand, because the engine does not edit Python:\n" in done.stdout
    assert delta_engine("-e", "dev", "drift", "--fail-on", "low").code == 2
    assert delta_engine("-e", "dev", "plan").code == 3  # until the edit is made


def test_ignored_drift_is_reported_apart_and_kept_by_sync_and_revert(
    catalog: FakeUnityCatalog, run: Run
) -> None:
    policy = Path("conf/drift-policy.yml")
    policy.write_text(
        "ignore_drift:\n"
        "  - {resource: 'table.${catalog}.silver.orders', fields: [column amount comment], reason: known}\n"
        "  - {resource: '*', fields: ['*'], reason: long ago, expires: 2020-01-01}\n"
        "  - {resource: '*', fields: [clustering], reason: unused}\n"
    )
    catalog.run(f"ALTER TABLE {TABLE} ALTER COLUMN amount COMMENT 'theirs'")
    catalog.run(COMMENTED)
    shown = run("drift").stdout
    assert "dev: 1 finding (0 high, 0 medium, 1 low)" in shown
    assert "Ignored by the drift policy: 1\n  = table.dev.silver.orders: column amount comment" in shown
    assert "! * [*]: expired on 2020-01-01" in shown
    assert "! * [clustering]: matches nothing" in shown
    plan = run("plan").stdout
    assert ("table comment" in plan, "column amount" in plan) == (True, False)
    for repair in ("sync --yes", "drift --revert --yes"):
        assert run(repair).code == 0
        assert catalog.tables["dev.silver.orders"].column("amount").comment == "theirs"
    states = json.loads(run("state show --json").stdout)["resources"]
    recorded = states["table.dev.silver.orders"]["metadata"]["declared"]
    assert recorded["columns"][1]["comment"] == "Order total"
    assert run("drift --fail-on low").code == 0
    policy.unlink()
    assert run("drift --fail-on low").code == 2


def test_what_no_edit_can_accept_is_said(catalog: FakeUnityCatalog, run: Run) -> None:
    Path("conf/dev.yml").write_text(CONFIG + "defaults: {table_properties: {team: sales}}\n")
    assert run("sync --yes").code == 0
    catalog.run(f"ALTER TABLE {TABLE} UNSET TBLPROPERTIES ('team')")
    done = run("drift --accept --yes")
    assert done.code == 0
    assert "dev.silver.orders: property team stays declared" in done.stderr
    assert "+ property team" in run("plan").stdout


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("dev.bronze", "has no Delta tables"),
        ("dev.nope", "has no Delta tables"),
        ("dev.silver.nope", "does not exist"),
    ],
)
def test_importing_what_is_not_there_is_refused(
    catalog: FakeUnityCatalog, run: Run, target: str, message: str
) -> None:
    catalog.run("CREATE SCHEMA dev.bronze")
    refused = run(f"import {target}")
    assert refused.code == 3
    assert message in refused.stderr
