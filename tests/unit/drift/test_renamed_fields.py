"""Fields inside columns that were renamed by hand: told as renames, refused, accepted, reverted, ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.projects.catalog_project import CatalogProject

TABLE = "`dev`.`silver`.`orders`"
MAPPED = "{delta.columnMapping.mode: name}"
ORDERS = (
    "name: orders, columns: [{name: id, type: bigint}, {name: s, type: 'struct<old: int, k: int>'}, "
    "{name: items, type: 'array<struct<old: int, k: map<string, struct<old: int>>>>'}], "
    f"properties: {MAPPED}"
)
BY_HAND = ("s.old", "items.element.k.value.old")
RENAMES = {"s.old": "s.new", "items.element.k.value.old": "items.element.k.value.new"}


@pytest.fixture
def project(project: CatalogProject) -> CatalogProject:
    """Return a project whose fields were renamed."""
    project.declare(ORDERS)
    project.sync()
    project.by_hand(*(f"ALTER TABLE {TABLE} RENAME COLUMN {path} TO new" for path in BY_HAND))
    return project


def findings(project: CatalogProject) -> list[dict[str, Any]]:
    report = json.loads(project.run("drift --json").stdout)
    assert report["pending"] == []
    return [finding for resource in report["drifted"] for finding in resource["findings"]]


def types(project: CatalogProject) -> str:
    return " ".join(
        str(column.data_type) for column in project.catalog.tables["dev.silver.orders"].state.columns
    )


def test_a_renamed_field_is_one_finding_with_its_author(project: CatalogProject) -> None:
    renames = findings(project)
    assert {finding["expected"]: finding["actual"] for finding in renames} == RENAMES
    assert {finding["kind"] for finding in renames} == {"column_renamed"}
    assert {finding["changed"]["operation"] for finding in renames} == {"RENAME COLUMN"}
    assert "column s.old: RENAMED s.old → s.new\n" in project.run("drift").stdout


def test_a_sync_refuses_and_names_the_rename(project: CatalogProject) -> None:
    refused = project.run("sync --yes --allow drop_column")
    assert refused.code == 3
    assert "column s.old: it was renamed to 's.new' outside the engine" in refused.stderr
    assert "s.old was s.old and is s.new" in refused.stderr


def test_a_revert_renames_back(project: CatalogProject) -> None:
    before = len(project.catalog.statements)
    done = project.run("drift --revert --yes")
    assert done.code == 0, done.stderr
    assert len(project.catalog.statements) == before + 2
    assert "new" not in types(project)
    assert findings(project) == []


def test_an_acceptance_edits_the_types_in_the_models(project: CatalogProject) -> None:
    done = project.run("drift --accept --yes")
    assert done.code == 0, done.stderr
    edited = project.models.read_text()
    assert "struct<new: int, k: int>" in edited
    assert ("renamed_fields: {new: old}" in edited, "{element.k.value.new: old}" in edited) == (True, True)
    assert not project.plan()["has_changes"]
    project.sync()
    assert findings(project) == []


def test_a_model_that_has_the_new_name_takes_the_rename(project: CatalogProject) -> None:
    project.declare(
        ORDERS.replace("<old: int, k: int", "<new: int, k: int").replace(
            "string, struct<old", "string, struct<new"
        )
    )
    project.sync()
    assert findings(project) == []


def test_an_ignored_rename_of_a_field_stays(project: CatalogProject) -> None:
    Path("conf/drift-policy.yml").write_text(
        "ignore_drift:\n  - {resource: orders, fields: [column s.old], reason: Known}\n"
    )
    assert [finding["expected"] for finding in findings(project)] == ["items.element.k.value.old"]
    declared = ORDERS.replace("string, struct<old", "string, struct<new")
    project.declare(declared)
    assert not project.plan()["has_changes"]
    project.declare(ORDERS)
    done = project.run("drift --revert --yes")
    assert done.code == 0, done.stderr
    assert types(project).count("new") == 1


def test_a_field_renamed_in_the_model_before_keeps_its_former_names(project: CatalogProject) -> None:
    project.run("drift --revert --yes")
    declared = ORDERS.replace(
        "struct<old: int, k: int>'", "struct<b: int, k: int>', renamed_fields: {b: old}"
    )
    project.declare(declared)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN s.b TO c")
    assert [(finding["kind"], finding["expected"], finding["actual"]) for finding in findings(project)] == [
        ("column_renamed", "s.b", "s.c")
    ]
    done = project.run("drift --accept --yes")
    assert done.code == 0, done.stderr
    assert "renamed_fields: {c: [b, old]}" in project.models.read_text()
    project.sync()
    assert findings(project) == []


def test_a_field_renamed_back_by_hand_has_the_name_in_between_as_former_name(project: CatalogProject) -> None:
    project.run("drift --revert --yes")
    declared = ORDERS.replace(
        "struct<old: int, k: int>'", "struct<b: int, k: int>', renamed_fields: {b: old}"
    )
    project.declare(declared)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN s.b TO old")
    done = project.run("drift --accept --yes")
    assert done.code == 0, done.stderr
    assert "renamed_fields: {old: b}" in project.models.read_text()  # other environments may have b
    project.sync()
    assert findings(project) == []


def test_unmanaged_parts_of_a_renamed_field_stay_unmanaged(project: CatalogProject) -> None:
    things = "`dev`.`silver`.`things`"
    project.by_hand(
        f"CREATE TABLE {things} (`id` BIGINT, `s` STRUCT<a: INT COMMENT 'theirs', b: INT>) USING DELTA "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    declared = "name: things, columns: [{name: id, type: bigint}, {name: s, type: 'struct<a: int, b: int>'}]"
    project.declare(declared)
    project.sync("-t things")
    project.by_hand(f"ALTER TABLE {things} RENAME COLUMN s.a TO z")
    assert project.drift()["table.dev.silver.things"] == [("column_renamed", "column s.a")]
    done = project.run("drift --accept --yes")
    assert done.code == 0, done.stderr
    project.sync()
    assert "table.dev.silver.things" not in project.drift()
    assert [part["key"] for part in project.plan()["left_alone"] if "comment" in part["key"]] == [
        "column s.z comment"
    ]


def test_a_run_of_other_models_that_was_killed_does_not_explain_a_rename(project: CatalogProject) -> None:
    before = project.models.read_text()
    project.declare(ORDERS.replace("old", "new") + ", comment: x")
    project.kill("sync --yes --allow drop_column", "COMMENT ON TABLE")
    project.models.write_text(before)
    refused = project.run("sync --yes --allow drop_column")
    assert refused.code == 3
    assert "column s.old: it was renamed to 's.new' outside the engine" in refused.stderr


@pytest.mark.parametrize("field", ["column s.old", "column id"])
def test_an_ignored_rename_stays_one_after_a_later_apply(project: CatalogProject, field: str) -> None:
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN id TO key")
    policy = "ignore_drift:\n  - {resource: orders, fields: ['*'], reason: Known}\n"
    (project.config.parent / "drift-policy.yml").write_text(policy)
    project.declare(ORDERS + ", comment: new")
    project.sync()
    (project.config.parent / "drift-policy.yml").unlink()
    renamed = {finding["field"] for finding in findings(project) if finding["kind"] == "column_renamed"}
    assert field in renamed
    assert project.run("sync --yes --allow drop_column").code == 3
