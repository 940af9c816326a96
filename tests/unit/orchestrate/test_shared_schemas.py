"""Three projects whose tables share schemas: each has its own state, and none disturbs another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from delta_engine.job import run_drift_report, run_sync
from tests.projects.commandline import CommandLine
from tests.projects.shared_catalog import (
    CUSTOMERS,
    KEYED_CUSTOMERS,
    OWNS,
    WEB_ORDERS,
    SharedCatalog,
    table,
)

SPARK: Any = object()


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> SharedCatalog:
    monkeypatch.chdir(tmp_path)
    return SharedCatalog(monkeypatch, delta_engine)


def test_two_projects_apply_at_the_same_time(shared: SharedCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    both, run = Barrier(2), shared.catalog.run

    def run_with_the_other(sql: str) -> Any:
        if sql.startswith("CREATE TABLE") and "_orders" in sql:
            both.wait(timeout=60)  # each holds its lock here
        return run(sql)

    monkeypatch.setattr(shared.catalog, "run", run_with_the_other)
    conf_dirs = [str(Path("teams", team, "conf").absolute()) for team in ("sales", "stock")]
    with ThreadPoolExecutor(2) as threads:
        runs = [
            threads.submit(run_sync, environment="dev", conf_dir=conf_dir, spark=SPARK)
            for conf_dir in conf_dirs
        ]
        assert [run.result().values["created"] for run in runs] == [2, 2]


def test_serials_are_independent(shared: SharedCatalog) -> None:
    shared.sync("sales")
    shared.sync("stock")
    first = shared.serial("sales"), shared.serial("stock")
    shared.declare("sales", table("sales_orders"), table("sales_totals", "gold"), table("sales_more"))
    shared.sync("sales")
    assert shared.serial("sales") > first[0]
    assert shared.serial("stock") == first[1]


@pytest.fixture
def reviewed(shared: SharedCatalog) -> SharedCatalog:
    """Return the repository with a plan file of sales that adds a column to one of its tables."""
    for team in OWNS:
        shared.sync(team)
    wider = table("sales_orders").replace("}]", "}, {name: note, type: string}]")
    shared.declare("sales", wider, table("sales_totals", "gold"))
    planned = shared.run("sales", "plan --out plans/{project}.json")
    assert planned.code == 0, planned.stderr
    return shared


def test_a_plan_file_outlives_the_apply_of_another_project(reviewed: SharedCatalog) -> None:
    reviewed.declare("stock", table("stock_orders"), table("stock_more"))
    reviewed.sync("stock")
    applied = reviewed.run("sales", "apply plans/teams/sales.json --yes")
    assert applied.code == 0
    assert "note" in str(reviewed.catalog.tables["dev.silver.sales_orders"].state)


def test_a_plan_file_outlives_a_sync_of_another_table(reviewed: SharedCatalog) -> None:
    comment(reviewed, "sales_totals")
    applied = reviewed.run("sales", "apply plans/teams/sales.json --yes")
    assert applied.code == 0, applied.stderr


def test_a_plan_file_is_stale_after_a_sync_of_its_table(reviewed: SharedCatalog) -> None:
    comment(reviewed, "sales_orders")
    refused = reviewed.run("sales", "apply plans/teams/sales.json --yes")
    assert refused.code == 3
    assert "the plan is stale" in refused.stderr
    assert "table dev.silver.sales_orders was changed" in refused.stderr
    again = "`delta-engine -e dev -p teams/sales plan --out plans/teams/sales.json`"
    assert again in refused.stderr
    planned = reviewed.run("sales", "plan --out plans/teams/sales.json")
    assert planned.code == 0, planned.stderr


def comment(shared: SharedCatalog, name: str) -> None:
    """Declare a comment of a table of sales, and sync that table."""
    models = Path("teams/sales/models/tables.yml")
    models.write_text(models.read_text().replace(f"name: {name},", f"name: {name}, comment: new,"))
    shared.sync("sales", f"-t {name}")


@pytest.fixture
def referenced(shared: SharedCatalog) -> SharedCatalog:
    """Return the repository with a foreign key of web to a table of sales."""
    shared.declare("sales", KEYED_CUSTOMERS)
    shared.sync("sales")
    shared.declare("web", WEB_ORDERS)
    shared.sync("web")
    return shared


def test_a_foreign_key_references_another_projects_table(referenced: SharedCatalog) -> None:
    (key,) = referenced.catalog.tables["dev.silver.web_orders"].state.foreign_keys
    assert (key.references, key.referenced_columns) == ("dev.silver.customers", ("id",))


def test_the_columns_there_are_read_from_the_catalog(referenced: SharedCatalog) -> None:
    open_key = WEB_ORDERS.replace(", referenced_columns: [id]", "")
    another = open_key.replace("web_orders", "web_more").replace("of_customer", "of_more")
    for name, declared in (("web_orders", [open_key]), ("web_more", [open_key, another])):
        referenced.declare("web", *declared)
        referenced.sync("web")
        (key,) = referenced.catalog.tables[f"dev.silver.{name}"].state.foreign_keys
        assert (key.references, key.referenced_columns) == ("dev.silver.customers", ("id",))
        for command in ("plan", "drift", "drift -t web_*"):
            assert referenced.run("web", command).code == 0


def test_a_key_without_columns_goes_through_plan_files_and_drift(referenced: SharedCatalog) -> None:
    open_key = WEB_ORDERS.replace(", referenced_columns: [id]", "")
    referenced.declare("web", open_key.replace("of_customer", "of_one"))
    for command in ("plan --out plans/{project}.json", "apply plans/teams/web.json --yes"):
        ended = referenced.run("web", command)
        assert ended.code == 0, ended.stderr
    (key,) = referenced.catalog.tables["dev.silver.web_orders"].state.foreign_keys
    assert (key.name, key.referenced_columns) == ("of_one", ("id",))
    referenced.catalog.by_hand("COMMENT ON TABLE dev.silver.web_orders IS 'theirs'")
    assert referenced.run("web", "drift --accept --yes").code == 0
    assert "comment: theirs" in Path("teams/web/models/tables.yml").read_text()
    referenced.catalog.by_hand("ALTER TABLE dev.silver.web_orders DROP CONSTRAINT of_one")
    assert referenced.run("web", "drift --revert --yes").code == 0
    (key,) = referenced.catalog.tables["dev.silver.web_orders"].state.foreign_keys
    assert (key.name, key.referenced_columns) == ("of_one", ("id",))


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        ("columns: [id], references: nowhere", "does not exist"),
        ("columns: [id], references: no_catalog.silver.t", "catalog 'no_catalog' does not exist"),
        ("columns: [id], references: stock_orders", "not in this run and has no primary key"),
        (
            "columns: [id, note], references: customers",
            "has 2 columns and references 1 of dev.silver.customers",
        ),
    ],
)
def test_there_is_a_key_to_read(referenced: SharedCatalog, key: str, refused: str) -> None:
    referenced.sync("stock")
    columns = "columns: [{name: id, type: int}, {name: note, type: string}]"
    referenced.declare("web", f"schema: silver, name: web_more, {columns}, foreign_keys: [{{{key}}}]")
    planned = referenced.run("web", "plan")
    assert (planned.code, refused in planned.stderr) == (3, True), planned.stderr


def test_columns_of_the_projects_own_tables_are_not_read_from_the_catalog(referenced: SharedCatalog) -> None:
    own = WEB_ORDERS.replace(", referenced_columns: [id]", "").replace("customers", "web_customers")
    referenced.declare("web", own)
    refused = referenced.run("web", "validate")
    assert refused.code == 3
    assert "references dev.silver.web_customers, which is not declared." in refused.stderr
    assert "name referenced_columns" in refused.stderr


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        ("referenced_columns: [name]", "references (name) of dev.silver.customers, which is not in this run"),
        (
            "referenced_columns: [id]}, {columns: [id], references: nowhere, referenced_columns: [id]",
            "does not exist",
        ),
    ],
    ids=["other columns", "no table"],
)
def test_a_key_is_checked_against_another_projects_table(
    referenced: SharedCatalog, key: str, refused: str
) -> None:
    referenced.declare("web", WEB_ORDERS.replace("referenced_columns: [id]", key))
    planned = referenced.run("web", "plan")
    assert (planned.code, refused in planned.stderr) == (3, True), planned.stderr


@pytest.mark.parametrize(
    ("declared", "refused"),
    [
        ([CUSTOMERS], "primary key pk_dev_silver_customers__id would be dropped"),
        ([KEYED_CUSTOMERS.replace("type: int", "type: bigint")], "its type would change"),
        ([], "it is no longer declared and would be dropped"),
    ],
    ids=["primary key", "type", "table"],
)
@pytest.mark.parametrize("command", ["plan", "sync --yes"])
def test_what_another_project_references_stays(
    referenced: SharedCatalog, declared: list[str], refused: str, command: str
) -> None:
    policy = "policy: {removed_tables: drop, allow: [drop_table, drop_column, drop_constraint]}\n"
    referenced.configure("sales", policy)
    referenced.declare("sales", table("sales_orders"), *declared)
    ended = referenced.run("sales", command)
    assert ended.code == 3
    assert refused in ended.stderr
    assert "foreign key of_customer of table dev.silver.web_orders" in ended.stderr
    stored = referenced.catalog.tables
    assert stored["dev.silver.customers"].state.primary_key is not None
    assert len(stored["dev.silver.web_orders"].state.foreign_keys) == 1


def test_tables_of_others_are_no_drift(shared: SharedCatalog) -> None:
    for team in OWNS:
        shared.sync(team)
    shared.catalog.by_hand(
        "ALTER TABLE `dev`.`silver`.`web_orders` ADD COLUMNS (`note` STRING)",
        "DROP TABLE `dev`.`gold`.`web_totals`",
    )
    parts = ("drifted", "deleted", "unmanaged")
    resources_by_project = {
        document["project"]: [
            resource["resource"] for part in parts for resource in document["document"][part]
        ]
        for document in shared.documents("drift")
    }
    assert resources_by_project == {
        "teams/sales": [],
        "teams/stock": [],
        "teams/web": ["table.dev.silver.web_orders", "table.dev.gold.web_totals"],
    }


def test_a_table_in_a_projects_globs_is_unmanaged_for_that_project(shared: SharedCatalog) -> None:
    for team in OWNS:
        shared.sync(team)
    shared.catalog.by_hand("CREATE TABLE `dev`.`silver`.`sales_by_web` (`id` INT) USING DELTA")
    unmanaged = {
        document["project"]: [resource["resource"] for resource in document["document"]["unmanaged"]]
        for document in shared.documents("drift")
    }
    assert unmanaged == {
        "teams/sales": ["table.dev.silver.sales_by_web"],
        "teams/stock": [],
        "teams/web": [],
    }


def test_the_drift_task_of_a_project_reports_that_project(shared: SharedCatalog) -> None:
    for team in OWNS:
        shared.sync(team)
    shared.catalog.by_hand("DROP TABLE `dev`.`gold`.`web_totals`")
    values_by_team = {
        team: run_drift_report(environment="dev", conf_dir=f"teams/{team}/conf", spark=SPARK).values
        for team in OWNS
    }
    assert [values_by_team[team]["deleted"] for team in OWNS] == [0, 0, 1]


def test_the_import_of_a_schema_takes_the_projects_tables(shared: SharedCatalog) -> None:
    shared.sync("web")
    shared.catalog.by_hand(
        "CREATE TABLE `dev`.`silver`.`sales_old` (`id` INT) USING DELTA",
        "COMMENT ON SCHEMA `dev`.`silver` IS 'shared'",
    )
    imported = shared.run("sales", "import dev.silver --to teams/sales/models/imported.yml")
    assert imported.code == 0, imported.stderr
    validated = shared.run("sales", "validate")
    assert (validated.code, "3 models" in validated.stdout) == (0, True), validated.stderr


def test_an_import_without_a_table_of_the_project_is_refused(shared: SharedCatalog) -> None:
    shared.sync("web")
    refused = shared.run("sales", "import dev.silver")
    assert refused.code == 3
    assert "left out, another project's (owns): dev.silver.web_orders" in refused.stderr
    refused = shared.run("sales", "import dev.silver.web_orders")
    assert refused.code == 3
    assert "table dev.silver.web_orders: it belongs to another project" in refused.stderr


def test_the_projects_fit_together(shared: SharedCatalog) -> None:
    checked = shared.check()
    assert (checked.code, checked.stdout) == (0, "3 projects, dev: no conflicts\n"), checked.stderr


def test_globs_that_overlap_are_refused(shared: SharedCatalog) -> None:
    shared.configure("web", owns=[*OWNS["web"], "gold.*_totals"])
    refused = shared.check()
    assert refused.code == 3
    assert "note: in teams/sales and teams/web:" in refused.stderr
    assert "both own tables that match 'gold.sales_*' and 'gold.*_totals'" in refused.stderr
    assert "note: in teams/stock and teams/web:" in refused.stderr


@pytest.mark.parametrize(
    ("backend", "first", "other"),
    [
        ("databricks", "{schema: dev.Engine, volume: one}", "{schema: Dev.engine, volume: other}"),
        ("s3", "{bucket: states, region: eu-central-1}", "{bucket: states, prefix: /}"),
    ],
)
def test_one_place_of_two_deployment_states_is_refused(
    shared: SharedCatalog, backend: str, first: str, other: str
) -> None:
    for team, place in (("sales", first), ("web", other)):
        shared.configure(team, f"state_backend: {{type: {backend}, {backend}: {place}}}\n")
    refused = shared.check()
    assert refused.code == 3
    assert refused.stderr.count("refused: ") == 1
    assert "teams/sales/conf/dev.yml:3: dev: they have the same deployment state" in refused.stderr


def test_commands_run_in_all_projects(shared: SharedCatalog) -> None:
    shared.declare("stock", table("web_stolen"))
    validated = shared.run("*", "validate")
    assert validated.code == 3
    assert validated.stdout.endswith(
        "── 3 projects\nteams/sales  2 models, valid\nteams/stock  refused\nteams/web    2 models, valid\n"
    )
    planned = shared.run("*", "plan --detailed-exitcode")
    assert planned.code == 3
    assert planned.stdout.endswith(
        "teams/sales  2 tables to create\nteams/stock  refused\nteams/web    2 tables to create\n"
    )
    documents = shared.documents("plan")
    assert [document["document"] is None for document in documents] == [False, True, False]


def test_the_most_severe_code_is_that_of_all(shared: SharedCatalog) -> None:
    for team in OWNS:
        shared.sync(team)
    shared.catalog.by_hand("DROP TABLE `dev`.`gold`.`web_totals`")
    drifted = shared.run("*", "drift --fail-on high")
    assert drifted.code == 2
    assert drifted.stdout.endswith(
        "teams/sales  dev: no drift in 2 tables\nteams/stock  dev: no drift in 2 tables\n"
        "teams/web    dev: 1 finding (1 high, 0 medium, 0 low) in 2 tables\n"
    )
    assert [document["exit_code"] for document in shared.documents("drift --fail-on high")] == [0, 0, 2]


def test_ctrl_c_stops_all_projects(shared: SharedCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_sql: str) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(shared.catalog, "run", interrupt)
    stopped = shared.run("*", "plan")
    assert stopped.code == 130
    assert "teams/sales" in stopped.stdout
    assert "teams/stock" not in stopped.stdout
