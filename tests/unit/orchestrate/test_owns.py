"""A project that owns some tables of a schema: it declares no other ones, and others' tables are not its business."""

from __future__ import annotations

import json

import pytest

from tests.projects.catalog_project import CONFIG, CatalogProject

OURS = "name: team_a_orders, columns: [{name: id, type: bigint}]"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    catalog_project.config.write_text(CONFIG + 'owns: ["silver.team_a_*"]\n')
    return catalog_project


def test_only_owned_tables_may_be_declared(project: CatalogProject) -> None:
    project.declare(OURS, "name: team_b_orders, columns: [{name: id, type: bigint}]")
    refused = project.run("validate")
    assert refused.code == 3
    assert refused.stderr == (
        "refused: conf/models/tables.yml:3: table dev.silver.team_b_orders: it belongs to another project: this "
        "project owns "
        "silver.team_a_*. Declare it in its own project, or add it to owns.\n"
        "more: delta-engine explain invalid-model\n"
    )


def test_only_owned_schemas_may_be_declared(project: CatalogProject) -> None:
    project.declare(OURS, schemas="schemas: [{catalog: dev, name: silver, comment: shared}]\n")
    refused = project.run("validate")
    assert refused.code == 3
    assert "schema dev.silver: it belongs to another project" in refused.stderr


def test_tables_of_others_are_not_unmanaged(project: CatalogProject) -> None:
    project.declare(OURS)
    project.sync()
    project.by_hand(
        "CREATE TABLE `dev`.`silver`.`team_a_left` (`id` BIGINT) USING DELTA",
        "CREATE TABLE `dev`.`silver`.`team_b_orders` (`id` BIGINT) USING DELTA",
    )
    report = json.loads(project.run("drift --json").stdout)
    assert [resource["resource"] for resource in report["unmanaged"]] == ["table.dev.silver.team_a_left"]
    project.sync()
    assert "team_b" not in project.run("state list").stdout


def test_a_table_that_was_given_away_is_not_dropped(project: CatalogProject) -> None:
    config = CONFIG.replace("create_schemas: true", "allow: [drop_table], removed_tables: drop")
    project.config.write_text(config + 'owns: ["silver.*"]\n')
    project.declare(OURS, "name: given, columns: [{name: id, type: bigint}]")
    project.sync()
    project.declare(OURS)
    assert "given" in project.run("plan").stdout
    project.config.write_text(config + 'owns: ["silver.team_a_*"]\n')
    assert project.run("plan").stdout == "dev: no changes (1 model)\n"
    project.sync()
    assert "dev.silver.given" in project.catalog.tables


def test_an_empty_owns_is_refused(project: CatalogProject) -> None:
    project.config.write_text(CONFIG + "owns: []\n")
    project.declare(OURS)
    refused = project.run("validate")
    assert refused.code == 3
    assert refused.stderr == (
        "refused: conf/dev.yml:7: owns: the value is out of range. Write a list of length >= 1.\n"
        "more: delta-engine explain invalid-configuration\n"
    )
