"""Tables with columns of types that the engine does not manage: opaque where a model leaves the columns to others."""

from __future__ import annotations

import json

import pytest

from tests.projects.catalog_project import CatalogProject

TYPES = ["GEOMETRY(4326)", "GEOGRAPHY(4326)", "TIME(6)", "STRING COLLATE UNICODE_CI", "STRUCT<a: TIME>"]
TABLE = "`dev`.`silver`.`places`"
KEY = "table.dev.silver.places"
PARTIAL = (
    "name: places, manages: [comments, tags], comment: Places, tags: {team: maps}, "
    "columns: [{name: shape, comment: Where it is, tags: {pii: no}}]"
)
WHOLE = "name: places, columns: [{name: id, type: bigint}]"
ORDERS = "name: orders, columns: [{name: id, type: bigint}]"


def made(project: CatalogProject, data_type: str = TYPES[0]) -> None:
    project.by_hand(f"CREATE TABLE {TABLE} (`id` bigint, `shape` {data_type}) USING delta")


@pytest.mark.parametrize("knows_json", [True, False])
@pytest.mark.parametrize("data_type", TYPES)
def test_a_model_of_other_parts_manages_a_table_with_any_type(
    project: CatalogProject, data_type: str, knows_json: bool
) -> None:
    project.catalog.knows_json = knows_json
    made(project, data_type)
    project.declare(PARTIAL, ORDERS)
    project.sync()
    shape = project.catalog.tables["dev.silver.places"].state.columns[1]
    assert (shape.comment, shape.tags) == ("Where it is", {"pii": "no"})
    assert project.plan()["has_changes"] is False
    assert project.drift() == {}
    project.by_hand(f"ALTER TABLE {TABLE} ALTER COLUMN `shape` COMMENT 'theirs'")
    assert project.drift() == {KEY: [("column_comment", "column shape comment")]}
    assert project.run("drift --revert --yes").code == 0
    assert project.drift() == {}


@pytest.mark.parametrize("data_type", TYPES)
def test_a_model_of_its_columns_is_refused_by_name(project: CatalogProject, data_type: str) -> None:
    made(project, data_type)
    project.declare(WHOLE, ORDERS)
    refused = project.run("plan")
    assert refused.code == 3
    assert "table dev.silver.places, column shape: the engine does not manage its type" in refused.stderr
    assert "manages: [comments, tags]" in refused.stderr
    assert "dev.silver.orders" not in refused.stderr


def test_a_column_that_another_principal_adds_is_drift_that_no_accept_takes(project: CatalogProject) -> None:
    project.declare(WHOLE)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} ADD COLUMNS (`shape` GEOMETRY(4326))")
    report = json.loads(project.run("drift --json").stdout)
    (drifted,) = report["drifted"]
    (finding,) = drifted["findings"]
    assert report["notes"][-1] == (
        "dev.silver.places cannot be reverted or accepted. Remove the model of this table. Or declare the parts that "
        "the engine manages, without its columns, such as manages: [comments, tags]"
    )
    assert finding["kind"] == "table_unreadable"
    assert finding["actual"] == "column shape: the engine does not manage its type 'geometry'"
    before = project.models.read_text()
    project.run("drift --accept --yes")
    assert project.models.read_text() == before


def test_an_import_leaves_the_table_out_by_name(project: CatalogProject) -> None:
    made(project)
    project.by_hand("CREATE TABLE `dev`.`silver`.`orders` (`id` bigint) USING delta")
    imported = project.run("import dev.silver")
    assert "name: orders" in imported.stdout
    assert "places" not in imported.stdout
    assert "dev.silver.places, column shape: the engine does not manage its type" in imported.stderr


def test_a_model_file_names_any_type_where_it_leaves_the_columns_to_others(project: CatalogProject) -> None:
    project.declare(PARTIAL.replace("name: shape,", "name: shape, type: geometry(4326),"))
    assert project.run("validate").code == 0
    project.declare("name: places, columns: [{name: shape, type: geometry(4326)}]")
    refused = project.run("validate")
    assert (
        "column shape: type 'geometry(4326)' cannot be used: the engine does not manage it" in refused.stderr
    )


@pytest.mark.parametrize("data_type", ["bignit", "array<strnig>", "'struct<a: int'"])
def test_a_word_that_is_no_type_is_refused_also_where_the_model_leaves_the_columns_to_others(
    project: CatalogProject, data_type: str
) -> None:
    project.declare(PARTIAL.replace("name: shape,", f"name: shape, type: {data_type},"))
    refused = project.run("validate")
    assert refused.code == 3
    assert f"column shape: type '{data_type.strip(chr(39))}' cannot be used: " in refused.stderr


def test_a_long_unmanaged_type_is_recorded_whole(project: CatalogProject) -> None:
    data_type = f"struct<{', '.join(f'field_{number}: geometry' for number in range(100))}>"
    project.declare(PARTIAL.replace("name: shape,", f"name: shape, type: '{data_type}',"))
    made(project, data_type)
    project.sync()
    assert project.plan()["has_changes"] is False


def test_a_renamed_table_is_read_as_its_model_manages_it(project: CatalogProject) -> None:
    made(project)
    project.declare("name: areas, renamed_from: places, columns: [{name: id, type: bigint}]")
    refused = project.run("plan")
    assert refused.code == 3
    assert "column shape: the engine does not manage its type 'geometry'" in refused.stderr


def test_keys_and_clustering_are_judged_beside_such_a_column(project: CatalogProject) -> None:
    made(project)
    project.declare("name: places, manages: [constraints, clustering], columns: [], cluster_by: [id]")
    project.sync()
    assert project.catalog.tables["dev.silver.places"].state.cluster_by == ("id",)


def test_a_void_column_gets_any_type_without_a_table_feature(project: CatalogProject) -> None:
    project.by_hand(f"CREATE TABLE {TABLE} (`id` bigint, `v` VOID) USING delta")
    project.declare("name: places, columns: [{name: id, type: bigint}, {name: v, type: 'decimal(18,2)'}]")
    project.sync()
    assert project.catalog.statements[-1].endswith("ALTER COLUMN `v` TYPE decimal(18,2)")
    assert project.plan()["has_changes"] is False
