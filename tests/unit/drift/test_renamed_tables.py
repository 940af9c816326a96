"""Drift of a table that its model renames: it is found under the former name, and nothing protects less."""

from __future__ import annotations

import json

import pytest

from delta_engine.errors import StatementError
from tests.projects.catalog_project import CatalogProject

ORDERS = "`dev`.`silver`.`orders`"
COLUMNS = "columns: [{name: id, type: bigint}, {name: amount, type: int}]"
MAPPED = "properties: {delta.columnMapping.mode: name}"
BEFORE = f"name: orders, comment: ours, {COLUMNS}, {MAPPED}"
AFTER = f"name: sales, renamed_from: orders, comment: ours, {COLUMNS}, {MAPPED}"


@pytest.fixture
def project(project: CatalogProject) -> CatalogProject:
    """Return a project with one synced table."""
    project.declare(BEFORE)
    project.sync()
    return project


def test_a_plan_that_renames_a_table_marks_the_drift_that_it_undoes(project: CatalogProject) -> None:
    project.by_hand(f"COMMENT ON TABLE {ORDERS} IS 'theirs'")
    project.declare(AFTER)
    assert project.drift() == {"table.dev.silver.orders": [("table_comment", "table comment")]}
    assert "undoes drift (low), by jo" in project.run("plan").stdout
    project.configure("drift_from: low")
    refused = project.run("sync --yes")
    assert (refused.code, {*project.catalog.tables}) == (3, {"dev.silver.orders"})
    assert "it was changed outside the engine, by jo" in refused.stderr


def test_a_sync_that_renames_a_table_never_drops_a_column_that_was_renamed(project: CatalogProject) -> None:
    project.by_hand(f"ALTER TABLE {ORDERS} RENAME COLUMN amount TO total")
    project.declare(AFTER)
    refused = project.run("sync --yes --allow drop_column")
    assert refused.code == 3
    assert "renamed to 'total' outside the engine" in refused.stderr
    project.declare(AFTER.replace("name: amount", "name: total"))
    project.sync()
    assert [column.name for column in project.catalog.tables["dev.silver.sales"].state.columns] == [
        "id",
        "total",
    ]
    assert project.drift() == {}


def test_drift_of_a_table_to_be_renamed_can_be_reverted_under_its_former_name(
    project: CatalogProject,
) -> None:
    project.by_hand(f"COMMENT ON TABLE {ORDERS} IS 'theirs'")
    project.declare(AFTER)
    report = json.loads(project.run("drift --json").stdout)
    commands = [recommendation["command"] for recommendation in report["recommendations"]]
    assert commands == ["delta-engine -e dev drift --revert", "delta-engine -e dev drift --accept"]
    reverted = project.run("drift --revert --yes -t sales")
    assert reverted.code == 0, reverted.stderr
    assert project.catalog.tables["dev.silver.orders"].state.table_comment == "ours"
    assert project.drift() == {}
    project.sync()
    assert project.catalog.tables.keys() == {"dev.silver.sales"}


def test_drift_of_a_table_to_be_renamed_can_be_accepted(project: CatalogProject) -> None:
    project.by_hand(f"COMMENT ON TABLE {ORDERS} IS 'theirs'")
    project.declare(AFTER)
    accepted = project.run("drift --accept --yes")
    assert accepted.code == 0, accepted.stderr
    assert "comment: theirs" in project.models.read_text()
    project.sync()
    assert project.drift() == {}
    assert project.catalog.tables["dev.silver.sales"].state.table_comment == "theirs"


def test_a_table_to_be_renamed_that_is_gone_is_not_silently_made_anew(project: CatalogProject) -> None:
    project.by_hand(f"DROP TABLE {ORDERS}")
    project.declare(AFTER)
    assert project.drift() == {"table.dev.silver.orders": [("table_deleted", "table")]}
    refused = project.run("sync --yes")
    assert (refused.code, project.catalog.tables) == (3, {})


def test_a_table_that_was_renamed_by_hand_keeps_its_record(project: CatalogProject) -> None:
    project.by_hand(
        f"ALTER TABLE {ORDERS} RENAME TO `dev`.`silver`.`sales`",
        "COMMENT ON TABLE `dev`.`silver`.`sales` IS 'theirs'",
    )
    project.declare(AFTER)
    assert project.drift() == {"table.dev.silver.sales": [("table_comment", "table comment")]}


def test_the_rename_of_a_table_is_a_pending_change(project: CatalogProject) -> None:
    project.declare(AFTER)
    (pending,) = json.loads(project.run("drift --json").stdout)["pending"]
    change = {
        "field": "table name",
        "observed": "dev.silver.orders",
        "desired": "dev.silver.sales",
        "is_rename": True,
    }
    assert pending == {"resource": "table.dev.silver.sales", "changes": [change]}


def test_a_deleted_table_is_drift_though_another_has_its_former_name(project: CatalogProject) -> None:
    project.declare(AFTER)
    project.sync()
    project.by_hand("DROP TABLE `dev`.`silver`.`sales`", f"CREATE TABLE {ORDERS} (`id` BIGINT) USING DELTA")
    assert project.drift()["table.dev.silver.sales"] == [("table_deleted", "table")]
    assert project.run("sync --yes").code == 3
    assert {*project.catalog.tables} == {"dev.silver.orders"}


def test_the_record_of_an_earlier_table_gives_way_to_a_renamed_one(project: CatalogProject) -> None:
    project.declare(BEFORE, "name: sales, columns: [{name: id, type: bigint}]")
    project.sync()
    project.declare(BEFORE)
    project.sync()
    project.by_hand("DROP TABLE `dev`.`silver`.`sales`")
    project.declare(AFTER)
    assert project.drift() == {}
    project.sync()
    assert project.drift() == {}
    project.sync()


def test_the_drift_of_a_table_to_be_renamed_is_not_listed_as_kept_besides(project: CatalogProject) -> None:
    project.by_hand(f"ALTER TABLE {ORDERS} ADD CONSTRAINT `theirs` CHECK (`amount` > 0)")
    project.declare(AFTER)
    assert json.loads(project.run("drift --json").stdout)["left_alone"] == []


SALES = "`dev`.`silver`.`sales`"
LINES = (
    "name: lines, columns: [{name: id, type: bigint}, {name: order_id, type: bigint}], "
    "foreign_keys: [{columns: [order_id], references: orders}]"
)
KEYED = (
    "name: orders, columns: [{name: id, type: bigint, nullable: false}, {name: amount, type: int}], "
    f"primary_key: [id], {MAPPED}"
)


def accept(project: CatalogProject) -> str:
    done = project.run("drift --accept --yes")
    assert done.code == 0, done.stderr
    return " ".join(done.stderr.split())


def test_a_table_that_was_renamed_by_hand_is_renamed_in_every_environment(project: CatalogProject) -> None:
    project.by_hand(f"ALTER TABLE {ORDERS} RENAME TO {SALES}")
    assert "it was renamed to dev.silver.sales, which has its Delta id" in project.run("drift").stdout
    assert project.run("sync --yes").code == 3
    assert "it was renamed to dev.silver.sales" in accept(project)
    assert "name: sales, renamed_from: orders, comment: ours" in project.models.read_text()
    assert not project.plan()["has_changes"]
    project.sync()
    assert project.drift() == {}
    project.by_hand(f"ALTER TABLE {SALES} RENAME TO `dev`.`silver`.`deals`")
    accept(project)
    assert "name: deals, renamed_from: [sales, orders]" in project.models.read_text()
    project.sync()
    assert project.drift() == {}
    for name in ("orders", "sales"):
        (table,) = project.plan_elsewhere(
            f"CREATE TABLE `dev`.`silver`.`{name}` (`id` BIGINT, `amount` INT) USING DELTA"
        )["tables"]
        subjects = [change["subject"] for action in table["actions"] for change in action["changes"]]
        assert "table name" in subjects


def test_the_keys_that_reference_a_renamed_table_follow(project: CatalogProject) -> None:
    project.declare(KEYED, LINES)
    project.sync()
    project.by_hand(f"ALTER TABLE {ORDERS} RENAME TO {SALES}")
    accept(project)
    edited = project.models.read_text()
    assert ("name: sales" in edited, "references: sales" in edited) == (True, True)
    project.sync()
    assert project.drift() == {}


def test_another_table_of_the_schema_is_no_renamed_one(project: CatalogProject) -> None:
    project.by_hand(f"DROP TABLE {ORDERS}", f"CREATE TABLE {SALES} (`id` BIGINT, `amount` INT) USING DELTA")
    assert "renamed" not in project.run("drift").stdout
    accept(project)
    assert "sales" not in project.models.read_text()


def test_ids_that_cannot_be_read_rename_nothing(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.by_hand(f"ALTER TABLE {ORDERS} RENAME TO {SALES}")
    run = project.catalog.run

    def refused(sql: str) -> object:
        if sql.startswith("DESCRIBE DETAIL") and "sales" in sql:
            raise StatementError("no", sql=sql, error_class="INSUFFICIENT_PERMISSIONS")
        return run(sql)

    monkeypatch.setattr(project.catalog, "run", refused)
    assert project.drift()["table.dev.silver.orders"] == [("table_deleted", "table")]
    assert "it was renamed" not in project.run("drift").stdout


def test_a_name_with_a_variable_is_edited_by_hand(project: CatalogProject) -> None:
    project.declare(BEFORE.replace("name: orders", "name: '${catalog}_orders'"))
    project.sync()
    project.by_hand(f"ALTER TABLE `dev`.`silver`.`dev_orders` RENAME TO {SALES}")
    before = project.models.read_text()
    refused = project.run("drift --accept --yes")
    assert (refused.code, project.models.read_text()) == (3, before)
    assert "its name has a variable" in refused.stderr
    assert 'name "dev_orders" → "sales"' in refused.stderr


def test_a_key_that_does_not_follow_a_renamed_table_is_named(project: CatalogProject) -> None:
    project.declare(KEYED)
    project.sync()
    project.declare(KEYED, LINES)  # not synced yet
    project.by_hand(f"ALTER TABLE {ORDERS} RENAME TO {SALES}")
    refused = project.run("drift --accept --yes")
    assert refused.code == 3
    reason = "references dev.silver.orders, whose model it would rename to dev.silver.sales"
    assert reason in " ".join(refused.stderr.split())


def test_a_table_of_another_principal_that_has_the_new_name_is_not_the_recorded_one(
    project: CatalogProject,
) -> None:
    project.by_hand("CREATE TABLE `dev`.`silver`.`sales` (`other` INT) USING DELTA")
    project.declare(AFTER)
    assert project.drift() == {}
    refused = project.run("sync --yes")
    assert refused.code == 3
    assert "it is renamed from dev.silver.orders, and both tables exist" in refused.stderr
    project.by_hand("DROP TABLE `dev`.`silver`.`sales`")
    project.sync()
    assert project.catalog.statements[-1] == f"ALTER TABLE {ORDERS} RENAME TO `dev`.`silver`.`sales`"
    assert project.drift() == {}
