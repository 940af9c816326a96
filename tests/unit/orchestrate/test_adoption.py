"""A first sync says which tables it adopts, and that no undo of it brings back what they were."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.catalog_project import CatalogProject

ORDERS = "name: orders, columns: [{name: id, type: bigint}, {name: note, type: string}]"
OTHERS = "name: others, columns: [{name: id, type: bigint}]"
LINE = "adopts: 1 table as found; an undo of this run cannot restore their earlier state: dev.silver.orders\n"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project of two tables, of which one exists."""
    catalog_project.by_hand("CREATE TABLE `dev`.`silver`.`orders` (`id` BIGINT, `note` STRING) USING DELTA")
    catalog_project.declare(ORDERS, OTHERS)
    return catalog_project


def test_plan_and_sync_say_which_tables_they_adopt(project: CatalogProject) -> None:
    assert LINE in project.run("plan").stdout
    assert project.plan()["adopted"] == ["dev.silver.orders"]
    comment = project.run("plan --markdown").stdout
    assert (
        "**Adopts as found; an undo of this run cannot restore their earlier state**\n\n"
        "```text\ndev.silver.orders\n```" in comment
    )
    done = project.run("sync --yes")
    assert LINE in done.stdout
    assert done.stdout.endswith("applied: 1 table, 1 statement; 1 verified; 1 table adopted\n")
    for command in ("plan", "sync --yes", "plan --markdown"):
        assert "dopt" not in project.run(command).stdout, command


def test_a_sync_without_a_change_adopts_too_and_its_report_says_so(project: CatalogProject) -> None:
    project.declare(ORDERS)
    report = json.loads(project.run("sync --yes --json").stdout)
    assert (report["status"], report["adopted"]) == ("unchanged", ["dev.silver.orders"])


def test_the_terminal_ends_with_what_was_adopted(project: CatalogProject) -> None:
    project.declare(ORDERS)
    assert project.run("sync --yes").stdout.endswith("applied: no changes; 1 table adopted\n")


def test_an_adopted_table_that_changes_is_said_as_well_and_its_undo_is_refused(
    project: CatalogProject,
) -> None:
    project.declare(ORDERS.replace("note, type: string", "note, type: string, comment: new"))
    assert LINE in project.run("sync --yes").stdout
    refused = project.run("undo --yes")
    assert (refused.code, "no run had recorded it before" in refused.stderr) == (3, True)


def test_the_deployment_state_lists_adopted_tables(project: CatalogProject) -> None:
    project.sync()
    adopted = {
        line.split()[1]: "  adopted 2" in line for line in project.run("state list").stdout.splitlines()
    }
    assert adopted == {
        "schema.dev.silver": False,
        "table.dev.silver.orders": True,
        "table.dev.silver.others": False,
    }
    listed = json.loads(project.run("state list --json").stdout)["resources"]
    assert ["adopted_at" in listed[f"table.dev.silver.{name}"] for name in ("orders", "others")] == [
        True,
        False,
    ]
    project.declare(ORDERS.replace("note, type: string", "note, type: string, comment: new"), OTHERS)
    project.sync()
    assert "  adopted 2" in project.run("state list -t orders").stdout


def test_a_table_that_failed_is_not_adopted_and_is_said_again(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FakeUnityCatalog.run

    def refusing(catalog: FakeUnityCatalog, sql: str) -> Sequence[Row]:
        if sql.startswith("ALTER TABLE"):
            raise StatementError("no", sql=sql, error_class="PERMISSION_DENIED")
        return run(catalog, sql)

    project.declare(ORDERS.replace("note, type: string", "note, type: string, comment: new"))
    with monkeypatch.context() as patch:
        patch.setattr(FakeUnityCatalog, "run", refusing)
        report = json.loads(project.run("sync --yes --json").stdout)
    assert (report["status"], report["adopted"]) == ("failed", [])
    assert LINE in project.run("plan").stdout


def test_a_table_is_adopted_although_a_function_of_its_name_failed(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = project.catalog.run

    def refusing(sql: str) -> Sequence[Row]:
        if sql.startswith("CREATE FUNCTION"):
            raise StatementError("no", sql=sql, error_class="PERMISSION_DENIED")
        return run(sql)

    function = "{catalog: dev, schema: silver, name: orders, returns: string, body: \"'x'\"}"
    project.declare(ORDERS, schemas=f"functions:\n  - {function}\n")
    monkeypatch.setattr(project.catalog, "run", refusing)
    report = json.loads(project.run("sync --yes --json").stdout)
    assert (report["status"], report["adopted"]) == ("failed", ["dev.silver.orders"])


def test_many_adopted_tables_are_counted_and_full_lists_them(project: CatalogProject) -> None:
    names = [f"t{number:02}" for number in range(12)]
    project.by_hand(*(f"CREATE TABLE `dev`.`silver`.`{name}` (`id` BIGINT) USING DELTA" for name in names))
    project.declare(*(OTHERS.replace("others", name) for name in names))
    assert "dev.silver.t09, 2 more, which --full lists\n" in project.run("plan").stdout
    assert "dev.silver.t10, dev.silver.t11\n" in project.run("plan --full").stdout


def test_a_table_that_others_gave_the_declared_order_is_healthy_after_the_sync(
    project: CatalogProject,
) -> None:
    project.declare("name: orders, columns: [{name: note, type: string}, {name: id, type: bigint}]")
    project.sync()
    project.by_hand("ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `note` FIRST")
    project.sync()
    listed = json.loads(project.run("state list --json").stdout)["resources"]
    assert listed["table.dev.silver.orders"]["status"] == "healthy"
