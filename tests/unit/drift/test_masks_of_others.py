"""Masks, row filters and constraints that others set: drift or unmanaged, and never removed unseen."""

from __future__ import annotations

import pytest

from tests.projects.catalog_project import CatalogProject

TABLE = "`dev`.`silver`.`orders`"
PLAIN = "name: orders, columns: [{name: id, type: bigint}]"
ORDERS = "table.dev.silver.orders"


def test_a_mask_or_filter_of_others_is_drift_and_only_a_revert_removes_it(project: CatalogProject) -> None:
    project.declare(PLAIN)
    project.sync()
    masked = f"ALTER TABLE {TABLE} ALTER COLUMN `id` SET MASK `dev`.`silver`.`f`"
    project.by_hand(masked, f"ALTER TABLE {TABLE} SET ROW FILTER `dev`.`silver`.`g` ON (`id`)")
    assert {*project.drift()[ORDERS]} == {("column_mask", "column id mask"), ("row_filter", "row filter")}
    parts = {part["key"] for part in project.plan()["left_alone"]}
    assert {"column id mask", "row filter"} <= parts
    project.sync()
    assert project.plan()["left_alone"]
    assert "its row filter would be dropped" in project.run("drift --revert --yes").stderr
    done = project.run("drift --revert --yes --allow drop_column_mask --allow drop_row_filter")
    assert done.code == 0, done.stderr
    assert project.catalog.tables["dev.silver.orders"].state.row_filter is None
    assert project.drift() == {}


def test_a_mask_that_was_there_before_is_no_drift(project: CatalogProject) -> None:
    project.by_hand(
        f"CREATE TABLE {TABLE} (`id` BIGINT, `x` INT) USING DELTA",
        f"ALTER TABLE {TABLE} ALTER COLUMN `id` SET MASK `dev`.`silver`.`f`",
    )
    project.declare("name: orders, columns: [{name: id, type: bigint}, {name: x, type: int}]")
    project.sync()
    assert project.drift() == {}
    project.by_hand(f"ALTER TABLE {TABLE} ALTER COLUMN `id` DROP MASK")  # others may remove what they made
    assert project.drift() == {}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER COLUMN `x` SET MASK `dev`.`silver`.`f` USING COLUMNS (`n`)",
        "SET ROW FILTER `dev`.`silver`.`f` ON (`n`)",
    ],
)
def test_a_mask_or_filter_that_goes_with_a_column_of_others_is_undone_drift(
    project: CatalogProject, statement: str
) -> None:
    project.configure("allow: [drop_column, drop_column_mask, drop_row_filter]")
    columns = "columns: [{name: x, type: int}], properties: {delta.columnMapping.mode: name}"
    project.declare(f"name: orders, {columns}")
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} ADD COLUMNS (`n` INT)", f"ALTER TABLE {TABLE} {statement}")
    refused = project.run("sync --yes")
    assert (refused.code, "a sync would revert that" in refused.stderr) == (3, True)


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("ALTER COLUMN `x` SET MASK `dev`.`silver`.`f` USING COLUMNS (`n`)", "column x mask"),
        ("SET ROW FILTER `dev`.`silver`.`f` ON (`n`)", "row filter"),
        ("ADD CONSTRAINT `k` FOREIGN KEY (`n`) REFERENCES `dev`.`silver`.`parents` (`id`)", "foreign key k"),
        ("ADD CONSTRAINT `c` CHECK (`n` > 0)", "check c"),
    ],
)
def test_a_part_that_goes_with_a_dropped_column_is_not_listed_as_kept(
    project: CatalogProject, statement: str, part: str
) -> None:
    parents = "name: parents, columns: [{name: id, type: int, nullable: false}], primary_key: [id]"
    orders = "name: orders, columns: [{name: x, type: int}], properties: {delta.columnMapping.mode: name}"
    project.declare(orders.replace("int}]", "int}, {name: n, type: int}]"), parents)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} {statement}")
    assert part in {part["key"] for part in project.plan()["left_alone"]}
    project.declare(orders, parents)
    project.configure("allow: [drop_column, drop_constraint, drop_column_mask, drop_row_filter]")
    assert "left_alone" not in project.plan()
