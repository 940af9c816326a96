"""Tables that another principal replaces: what plans and refusals say of them, also where the platform keeps ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from delta_engine.models import Column
from delta_engine.orchestrate.drift_reports import report_drift
from tests.builders.deployment import deployment_over
from tests.builders.histories import Sync
from tests.builders.models import orders
from tests.builders.worlds import Kill, World
from tests.projects.catalog_project import CatalogProject

TABLE = "`dev`.`silver`.`orders`"
KEY = "table.dev.silver.orders"
MANAGED = "properties: {delta.feature.catalogManaged: supported}"
COLUMNS = "columns: [{name: id, type: bigint}, {name: day, type: date}]"
MASK_DRIFT = ("column_mask", "column id mask")
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


@pytest.mark.parametrize(("mask", "lost"), [("MASK `dev`.`gov`.`hide`", []), ("", [MASK_DRIFT])])
def test_a_replaced_table_with_a_mask_is_found_by_its_creation_time(
    project: CatalogProject, mask: str, lost: list[tuple[str, str]]
) -> None:
    column = "{name: id, type: bigint, mask: dev.gov.hide}"
    project.declare(f"name: orders, columns: [{column}]")
    project.sync()
    assert project.drift() == {}
    project.by_hand(f"DROP TABLE {TABLE}", f"CREATE TABLE {TABLE} (`id` bigint {mask}) USING delta")
    assert project.drift() == {KEY: [("table_replaced", "table"), *lost]}
    assert project.run("drift --accept --yes").code == 0
    project.sync()
    assert project.drift() == {}


DECLARED: Final = "name: orders, comment: Orders, columns: [{name: id, type: bigint}, {name: a, type: int}]"
ANOTHER_TABLE: Final = (
    f"DROP TABLE {TABLE}",
    f"CREATE TABLE {TABLE} (`id` BIGINT, `b` INT) USING DELTA COMMENT 'x'",
)


@pytest.fixture
def replaced(project: CatalogProject) -> CatalogProject:
    """Return a project whose table was dropped, and created with another column and comment."""
    project.declare(DECLARED)
    project.sync()
    project.by_hand(*ANOTHER_TABLE)
    return project


@pytest.mark.parametrize("policy", ["drift: refuse", "drift: revert"])
def test_no_plan_of_a_replaced_table_says_that_it_undoes_drift(replaced: CatalogProject, policy: str) -> None:
    replaced.configure(f"{policy}, allow: [drop_column]")
    for command in ("plan", "plan --full", "plan --markdown", "plan --json"):
        planned = replaced.run(command)
        text = planned.stdout + planned.stderr
        assert "column a" in text
        assert not [word for word in ("undoes", "revert that", "reverts it") if word in text], command


def test_a_sync_names_the_new_table_that_it_would_record_and_change(replaced: CatalogProject) -> None:
    replaced.configure("drift_from: low, allow: [drop_column]")
    reasons = [refusal["reason"] for refusal in json.loads(replaced.run("plan --json").stdout)["refusals"]]
    cause = "it was replaced with another table outside the engine, by jo at 2026-01-01 00:02:00 UTC, and a sync would"
    assert reasons == [
        f"{cause} record the new one in its place: table was id id of dev.silver.orders and is id id 2 of "
        "dev.silver.orders",
        f"{cause} change the new one: column a was int and is gone",
        f"{cause} change the new one: column b was absent and is int",
        f"{cause} change the new one: table comment was 'Orders' and is 'x'",
    ]


def test_a_plan_that_takes_a_replaced_table_warns_of_it(replaced: CatalogProject) -> None:
    replaced.configure("drift: revert, allow: [drop_column]")
    warning = "dev.silver.orders was replaced outside the engine: a sync records the new table in its place"
    assert warning in replaced.run("plan").stderr
    assert warning in json.loads(replaced.run("plan --json").stdout)["warnings"]
    replaced.sync()
    assert replaced.drift() == {}


def test_drift_of_other_tables_is_undone_as_before(replaced: CatalogProject) -> None:
    replaced.declare(DECLARED, DECLARED.replace("orders", "stock"))
    replaced.configure("drift: revert, allow: [drop_column]")
    replaced.sync()
    replaced.by_hand(*ANOTHER_TABLE, "COMMENT ON TABLE `dev`.`silver`.`stock` IS 'x'")
    planned = replaced.run("plan").stdout
    assert planned.count("undoes drift") == 1
    assert "table comment: 'x' → 'Orders'  [safe]  undoes drift (low)" in planned


@pytest.mark.parametrize("statements", [1, 2, 3])
def test_a_rewrite_that_a_killed_run_began_is_no_replacement(tmp_path: Path, statements: int) -> None:
    world = World(deployment=deployment_over(tmp_path))
    columns = (Column("id", "int"), Column("day", "date"))
    declared, other = orders(*columns), orders(*columns, comment="Orders", partitioned_by=["day"])
    world.engine(Sync()).sync_tables([declared])
    with pytest.raises(Kill):
        world.engine(Sync(statements, is_killed=True)).sync_tables([other])
    assert not report_drift(world.engine(), [other]).drifted
    world.engine(Sync()).sync_tables([other])
    report = report_drift(world.engine(), [other])
    assert not report.drifted
    assert not report.pending
    assert world.catalog.tables["dev.silver.orders"].state.partitioned_by == ("day",)
