"""Tables that another principal replaces, where the platform keeps their ids: catalog-managed ones."""

from __future__ import annotations

import pytest

from tests.projects.catalog_project import CatalogProject

TABLE = "`dev`.`silver`.`orders`"
KEY = "table.dev.silver.orders"
MANAGED = "properties: {delta.feature.catalogManaged: supported}"
COLUMNS = "columns: [{name: id, type: bigint}, {name: day, type: date}]"
REPLACE = f"CREATE OR REPLACE TABLE {TABLE} USING delta AS SELECT * FROM {TABLE}"


@pytest.fixture
def managed(project: CatalogProject) -> CatalogProject:
    project.declare(f"name: orders, {COLUMNS}, {MANAGED}")
    project.sync()
    return project


def test_a_replacement_is_drift_until_a_sync_takes_it(managed: CatalogProject) -> None:
    assert managed.drift() == {}
    managed.by_hand(REPLACE)
    assert managed.drift() == {KEY: [("table_replaced", "table")]}
    refused = managed.run("sync --yes")
    assert (refused.code, "replaced by version 1" in refused.stderr) == (3, True)
    assert managed.run("drift --accept --yes").code == 0
    managed.sync()
    assert managed.drift() == {}


def test_the_engines_own_replacement_is_no_drift_and_costs_no_later_statement(
    managed: CatalogProject,
) -> None:
    managed.configure("allow: [rewrite_table]")
    managed.declare(f"name: orders, {COLUMNS}, {MANAGED}, partitioned_by: [day]")
    managed.sync()
    assert managed.drift() == {}
    managed.catalog.questions.clear()
    managed.plan()
    assert not [sql for sql in managed.catalog.questions if "HISTORY" in sql or "DESCRIBE DETAIL" in sql]


def test_a_reviewed_plan_is_stale_after_a_replacement(managed: CatalogProject) -> None:
    managed.declare(f"name: orders, comment: Orders, {COLUMNS}, {MANAGED}")
    assert managed.run("plan --out plan.json").code == 0
    managed.by_hand(REPLACE)
    refused = managed.run("apply plan.json --yes")
    assert refused.code == 3
    assert "dev.silver.orders" in refused.stderr
    assert "created 2026-01-01" in refused.stderr


def test_a_replaced_table_with_a_mask_is_found_by_its_creation_time(project: CatalogProject) -> None:
    column = "{name: id, type: bigint, mask: dev.gov.hide}"
    project.declare(f"name: orders, columns: [{column}]")
    project.sync()
    assert project.drift() == {}
    project.by_hand(
        f"DROP TABLE {TABLE}",
        f"CREATE TABLE {TABLE} (`id` bigint MASK `dev`.`gov`.`hide`) USING delta",
    )
    assert project.drift() == {KEY: [("table_replaced", "table")]}
    assert project.run("drift --accept --yes").code == 0
    project.sync()
    assert project.drift() == {}
