"""Drift of fields follows the rules of columns, also beside renames by models and by others."""

from __future__ import annotations

import json

import pytest

from delta_engine.errors import StatementError
from tests.projects.catalog_project import CatalogProject

TABLE = "`dev`.`silver`.`orders`"
KEY = "table.dev.silver.orders"


def declare(project: CatalogProject, data_type: str, rest: str = "") -> None:
    project.declare(
        f'name: orders, columns: [{{name: id, type: bigint}}, {{name: s, type: "struct<{data_type}>"{rest}}}], '
        "properties: {delta.columnMapping.mode: name, delta.enableTypeWidening: 'true'}"
    )


def alter(project: CatalogProject, *changes: str) -> None:
    project.by_hand(*(f"ALTER TABLE {TABLE} {change}" for change in changes))


def pending(project: CatalogProject) -> list[str]:
    report = json.loads(project.run("drift --json").stdout)
    return [change["field"] for resource in report["pending"] for change in resource["changes"]]


def marked(project: CatalogProject) -> list[str]:
    return [
        change["subject"]
        for action in project.plan()["tables"][0]["actions"]
        for change in action["changes"]
        if "undoes_drift" in change
    ]


def test_a_model_that_renames_a_field_may_clear_its_comment(project: CatalogProject) -> None:
    declare(project, "a: int, o: int comment 'one'")
    project.sync()
    declare(project, "a: int, p: int", ", renamed_fields: {p: o}")
    assert pending(project) == ["column s.p", "column s.p comment"]
    project.sync()
    assert not project.plan()["has_changes"]
    assert "'one'" not in str(project.catalog.tables["dev.silver.orders"].state.columns)


def test_a_dropped_field_is_no_pending_change_when_the_model_has_another_type(
    project: CatalogProject,
) -> None:
    declare(project, "a: int, n: int")
    project.sync()
    declare(project, "a: bigint, n: int")
    alter(project, "DROP COLUMN s.a")
    assert project.drift()[KEY] == [("column_dropped", "column s.a")]
    assert pending(project) == []


def test_other_parts_of_a_renamed_field_are_compared_under_the_new_name(project: CatalogProject) -> None:
    declare(project, "a: int, k: int")
    project.sync()
    alter(project, "RENAME COLUMN s.a TO n", "ALTER COLUMN s.n COMMENT 'theirs'")
    assert project.drift()[KEY] == [
        ("column_renamed", "column s.a"),
        ("column_comment", "column s.n comment"),
    ]
    project.run("drift --revert --yes")
    assert project.drift() == {}


def test_drift_of_a_field_whose_rename_the_model_takes_is_undone_drift(project: CatalogProject) -> None:
    declare(project, "a: int")
    project.sync()
    alter(project, "RENAME COLUMN s.a TO n", "ALTER COLUMN s.n COMMENT 'theirs'")
    declare(project, "n: int")
    project.configure("drift_from: low")
    assert project.run("sync --yes").code == 3
    assert marked(project) == ["column s.n comment"]


def test_a_model_with_both_names_of_a_renamed_field_adds_an_empty_one(project: CatalogProject) -> None:
    declare(project, "a: int comment 'one'")
    project.sync()
    alter(project, "RENAME COLUMN s.a TO n")
    declare(project, "a: int comment 'one', n: int")
    project.configure("drift: revert")
    project.sync()
    assert [part["key"] for part in project.plan()["left_alone"]] == ["column s.n comment"]


def test_drift_of_a_field_that_the_model_renames_is_undone_drift(project: CatalogProject) -> None:
    declare(project, "a: int, o: int")
    project.sync()
    alter(project, "ALTER COLUMN s.o COMMENT 'theirs'")
    declare(project, "a: int, p: int", ", renamed_fields: {p: o}")
    project.configure("drift_from: low")
    assert project.run("sync --yes").code == 3
    assert marked(project) == ["column s.p comment"]


def test_a_dropped_field_that_the_model_renames_is_undone_drift(project: CatalogProject) -> None:
    declare(project, "a: int, o: int")
    project.sync()
    alter(project, "DROP COLUMN s.o")
    declare(project, "a: int, p: int", ", renamed_fields: {p: o}")
    assert project.run("sync --yes").code == 3
    assert marked(project) == ["column s.p"]


def test_a_field_that_others_added_keeps_its_comment_when_the_model_declares_it(
    project: CatalogProject,
) -> None:
    declare(project, "a: int")
    project.sync()
    alter(project, "ADD COLUMNS (s.n INT COMMENT 'theirs')")
    declare(project, "a: int, n: int")
    project.sync()
    assert project.drift() == {}
    assert not project.plan()["has_changes"]
    assert [part["key"] for part in project.plan()["left_alone"]] == ["column s.n comment"]


def test_a_failed_run_that_drops_a_column_explains_no_change_inside_it(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = "columns: [{name: id, type: bigint}, {name: s, type: 'struct<a: int>'}]"
    mapped = "properties: {delta.columnMapping.mode: name}"
    project.declare(f"name: orders, {columns}, {mapped}")
    project.sync()
    alter(project, "ADD COLUMNS (s.n INT)", "ALTER COLUMN s COMMENT 'theirs'")
    project.declare(f"name: orders, columns: [{{name: id, type: bigint}}], {mapped}")
    run = project.catalog.run

    def failing(sql: str) -> object:
        if "DROP COLUMN" in sql:
            raise StatementError("no", sql=sql, error_class=None)
        return run(sql)

    with monkeypatch.context() as patch:
        patch.setattr(project.catalog, "run", failing)
        assert project.run("sync --yes --allow drop_column").code == 1
    assert {*project.drift()[KEY]} == {("column_added", "column s.n"), ("column_comment", "column s comment")}


def test_a_renamed_field_whose_former_name_exists_again_keeps_its_data(project: CatalogProject) -> None:
    declare(project, "a: int, k: int")
    project.sync()
    alter(project, "RENAME COLUMN s.a TO n", "ADD COLUMNS (s.a INT)")
    assert ("column_renamed", "column s.a") in project.drift()[KEY]
    assert project.run("sync --yes --allow drop_column").code == 3


def test_a_field_renamed_in_a_column_whose_new_name_the_model_takes_keeps_its_data(
    project: CatalogProject,
) -> None:
    mapped = "properties: {delta.columnMapping.mode: name}"
    columns = "columns: [{name: id, type: bigint}, {name: %s, type: 'struct<a: int, k: int>'}]"
    project.declare(f"name: orders, {columns % 's'}, {mapped}")
    project.sync()
    alter(project, "RENAME COLUMN s TO t", "RENAME COLUMN t.a TO n")
    project.declare(f"name: orders, {columns % 't'}, {mapped}")
    refused = project.run("sync --yes --allow drop_column")
    assert (refused.code, "column s.a: it was renamed to 't.n'" in refused.stderr) == (3, True)


def test_an_acceptance_takes_a_renamed_field_with_its_other_changes(project: CatalogProject) -> None:
    declare(project, "a: int, k: int")
    project.sync()
    alter(project, "RENAME COLUMN s.a TO n", "ALTER COLUMN s.n TYPE BIGINT", "ADD COLUMNS (s.m INT)")
    done = project.run("drift --accept --yes")
    assert done.code == 0, done.stderr
    project.sync()
    assert (project.drift(), project.plan()["has_changes"]) == ({}, False)
