"""What a killed run created or dropped, and no model declares any more.

What it created is the engine's as long as it is as attempted.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.builders.governed_project import FUNCTIONS as TWO_FUNCTIONS
from tests.builders.governed_project import POLICIES, write_governed_models
from tests.projects.catalog_project import CatalogProject

MASK = "dev.governance.mask_email"
CONSENTS = "--allow drop_function --allow drop_policy --allow drop_table"
DROPS = "removed_functions: drop, removed_policies: drop, removed_tables: drop"
TABLE = """\
  - catalog: ${catalog}
    schema: silver
    name: customers
    tags: {sensitive: "yes"}
    grants: {analysts: [SELECT]}
    columns: [{name: mail, type: string}]
"""
FUNCTIONS = TWO_FUNCTIONS[: TWO_FUNCTIONS.index("  - {")]
OTHERS = """\
schemas: [{catalog: dev, name: silver}]
tables:
  - {catalog: dev, schema: others, name: t, columns: [{name: id, type: bigint}]}
"""


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    catalog_project.catalog.schemas["dev.governance"] = catalog_project.catalog.schemas["dev.others"]
    write_governed_models(catalog_project.models.parent, "", "", OTHERS)
    catalog_project.sync()
    return catalog_project


def declare(project: CatalogProject, functions: str, policies: str, table: str = OTHERS) -> None:
    write_governed_models(project.models.parent, functions, policies, table)


def unmanaged(project: CatalogProject) -> list[object]:
    listed: list[object] = json.loads(project.run("drift --json").stdout)["unmanaged"]
    return listed


def quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def created_function(project: CatalogProject) -> None:
    declare(project, FUNCTIONS, "")
    project.kill("sync --yes", f"CREATE FUNCTION {quoted(MASK)}", is_done=True)
    assert MASK in project.catalog.functions


def created_policy(project: CatalogProject) -> None:
    declare(project, FUNCTIONS, "")
    project.sync()
    declare(project, FUNCTIONS, POLICIES)
    project.kill("sync --yes", "CREATE POLICY", is_done=True)
    assert project.catalog.policies


def created_table(project: CatalogProject) -> None:
    declare(project, "", "", OTHERS + TABLE)
    project.kill("sync --yes", "CREATE TABLE", is_done=True)
    assert "dev.silver.customers" in project.catalog.tables


OTHER_THINGS = {
    "DROP FUNCTION": (
        f"DROP FUNCTION {quoted(MASK)}",
        f"CREATE FUNCTION {quoted(MASK)}(`email` string) RETURNS string RETURN 'x'",
    ),
    "DROP POLICY": (
        "DROP POLICY `mask_pii` ON SCHEMA `dev`.`silver`",
        f"CREATE POLICY `mask_pii` ON SCHEMA `dev`.`silver` COLUMN MASK {quoted(MASK)} TO `account users` "
        "FOR TABLES MATCH COLUMNS has_tag('pii') AS `mail` ON COLUMN `mail`",
    ),
    "DROP TABLE": (
        "DROP TABLE `dev`.`silver`.`customers`",
        "CREATE TABLE `dev`.`silver`.`customers` (`id` bigint) USING DELTA",
    ),
}
"""By the statement that drops each: what another principal runs after the kill."""

CREATIONS = [
    pytest.param(created_function, f"function {MASK}", "DROP FUNCTION", id="function"),
    pytest.param(created_policy, "policy mask_pii", "DROP POLICY", id="policy"),
    pytest.param(created_table, "dev.silver.customers", "DROP TABLE", id="table"),
]


@pytest.mark.parametrize(("create", "name", "drop"), CREATIONS)
def test_it_is_kept_and_said(
    project: CatalogProject, create: Callable[[CatalogProject], None], name: str, drop: str
) -> None:
    create(project)
    declare(project, "", "")
    assert f"kept: {name}" in project.run("plan").stdout
    assert unmanaged(project) == []
    project.sync()
    assert f"kept: {name}" in project.run("plan").stdout
    assert project.drift() == {}
    assert not [sql for sql in project.catalog.statements if sql.startswith(drop)]


@pytest.mark.parametrize(("create", "name", "drop"), CREATIONS)
def test_it_is_dropped_with_consent(
    project: CatalogProject, create: Callable[[CatalogProject], None], name: str, drop: str
) -> None:
    create(project)
    declare(project, "", "")
    project.configure(DROPS)
    refused = project.run("sync --yes")
    assert refused.code == 3, refused.stdout
    project.sync(CONSENTS)
    assert project.catalog.functions == {}
    assert project.catalog.policies == []
    assert [*project.catalog.tables] == ["dev.others.t"]
    assert project.run("plan --detailed-exitcode").code == 0
    assert project.drift() == {}


@pytest.mark.parametrize(("create", "name", "drop"), CREATIONS)
def test_another_principal_s_thing_of_the_same_name_is_unmanaged(
    project: CatalogProject, create: Callable[[CatalogProject], None], name: str, drop: str
) -> None:
    create(project)
    project.by_hand(*OTHER_THINGS[drop])
    functions = FUNCTIONS if drop == "DROP POLICY" else FUNCTIONS.replace("mask_email", "other")
    declare(project, functions, POLICIES.replace("mask_pii", "other") if drop == "DROP POLICY" else "")
    project.configure(DROPS)
    assert name.split()[-1] in str(unmanaged(project))
    project.sync(CONSENTS)
    project.sync(CONSENTS)  # it is the same once the record is gone
    assert [sql for sql in project.catalog.statements if sql.startswith(drop)] == [OTHER_THINGS[drop][0]]
    assert name not in project.run("plan").stdout
    assert name.split()[-1] in str(unmanaged(project))


@pytest.fixture
def project_with_late_tags(project: CatalogProject, monkeypatch: pytest.MonkeyPatch) -> CatalogProject:
    """Return a project with a table whose tags the view did not show when it was created."""
    run = project.catalog.run
    with monkeypatch.context() as patched:
        patched.setattr(
            project.catalog, "run", lambda sql: [] if "information_schema.table_tags" in sql else run(sql)
        )
        declare(project, "", "", OTHERS + TABLE)
        project.sync()
    recorded = json.loads(project.run("state show table.dev.silver.customers").stdout)
    assert recorded["metadata"]["lag"]
    project.configure(DROPS)
    return project


@pytest.mark.parametrize("command", ["sync --yes --allow drop_table", "undo --yes --allow drop_table"])
def test_a_dropped_table_whose_tags_were_shown_late_is_not_reported_as_deleted(
    project_with_late_tags: CatalogProject, command: str
) -> None:
    project = project_with_late_tags
    if command.startswith("sync"):
        declare(project, "", "")
    project.kill(command, "DROP TABLE", is_done=True)
    declare(project, "", "", OTHERS + TABLE)
    assert project.drift() == {}
    project.sync()


def test_a_deletion_is_reported_after_a_run_saw_that_a_drop_was_not_done(
    project_with_late_tags: CatalogProject,
) -> None:
    project = project_with_late_tags
    declare(project, "", "")
    project.kill("sync --yes --allow drop_table", "DROP TABLE")
    project.configure("removed_tables: keep")
    project.sync()
    project.by_hand(OTHER_THINGS["DROP TABLE"][0])
    declare(project, "", "", OTHERS + TABLE)
    assert project.drift() == {"table.dev.silver.customers": [("table_deleted", "table")]}


def test_another_principal_s_table_of_the_same_name_is_recorded_as_unmanaged(project: CatalogProject) -> None:
    created_table(project)
    project.by_hand(*OTHER_THINGS["DROP TABLE"])
    declare(project, "", "")
    project.sync()
    recorded = json.loads(project.run("state show table.dev.silver.customers").stdout)
    assert recorded["status"] == "unmanaged"


@pytest.mark.parametrize(("create", "name", "drop"), CREATIONS)
def test_what_a_killed_run_dropped_is_forgotten(
    project: CatalogProject, create: Callable[[CatalogProject], None], name: str, drop: str
) -> None:
    create(project)
    project.sync()
    declare(project, "", "")
    project.configure(DROPS)
    project.kill(f"sync --yes {CONSENTS}", drop, is_done=True)
    project.sync(CONSENTS)
    assert project.drift() == {}
    assert name.split()[-1] not in project.run("state list").stdout


RENAME = "ALTER TABLE `dev`.`silver`.`customers` RENAME"


@pytest.mark.parametrize("statement", [RENAME, "DESCRIBE HISTORY `dev`.`silver`.`clients`"])
def test_models_of_before_are_told_the_name_that_a_killed_run_gave_to_a_table(
    project: CatalogProject, statement: str
) -> None:
    """Whether or not the run recorded that it had renamed the table."""
    declare(project, "", "", OTHERS + TABLE)
    project.sync()
    renamed = TABLE.replace("name: customers", "name: clients\n    renamed_from: customers")
    declare(project, "", "", OTHERS + renamed)
    project.kill("sync --yes", statement, is_done=True)
    assert "dev.silver.clients" in project.catalog.tables
    declare(project, "", "", OTHERS + TABLE)
    report = json.loads(project.run("drift --json").stdout)
    assert [resource["resource"] for resource in report["deleted"]] == ["table.dev.silver.customers"]
    assert "dev.silver.customers: it was renamed to dev.silver.clients" in " ".join(report["notes"])
    assert project.run("sync --yes").code == 3  # it would create an empty table beside the renamed one
    project.run("drift --accept --yes")
    assert project.drift() == {}
    assert project.run("plan").stdout.count("customers") == 0
