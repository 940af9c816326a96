"""Tables clustered by a field inside a struct: declared, imported, renamed, dropped and reverted."""

from __future__ import annotations

import pytest

from tests.projects.catalog_project import CatalogProject

ORDERS = "name: orders, columns: [{name: id, type: bigint}, {name: PLACE}]"
PLACE = "place, type: 'struct<country: string, zone: string>'"
MAPPED = "properties: {delta.columnMapping.mode: name}"
CLUSTERED = (
    "CREATE TABLE dev.silver.orders (`id` BIGINT, `place` STRUCT<country: STRING, zone: STRING>) USING delta "
    "CLUSTER BY (place.country) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
)


def _declare(
    project: CatalogProject, place: str = PLACE, clustering: str = "cluster_by: [place.country]"
) -> None:
    project.declare(f"{ORDERS.replace('PLACE', place)}, {clustering}, {MAPPED}")


def _clustering(project: CatalogProject) -> tuple[str, ...]:
    return project.catalog.stored("dev.silver.orders").state.cluster_by


def test_a_declared_field_clusters_a_new_table(project: CatalogProject) -> None:
    _declare(project)
    project.sync()
    assert _clustering(project) == ("place.country",)
    assert project.drift() == {}
    assert project.run("plan").stdout.startswith("dev: no changes")


def test_a_table_clustered_by_a_field_is_imported(project: CatalogProject) -> None:
    project.declare()
    project.by_hand(CLUSTERED)
    imported = project.run("import dev.silver")
    assert imported.code == 0, imported.stderr
    assert "cluster_by: [place.country]" in imported.stdout


@pytest.mark.parametrize(
    ("statement", "clustering"),
    [
        ("RENAME COLUMN place.country TO land", "cluster_by: [place.land]"),
        ("RENAME COLUMN place TO address", "cluster_by: [address.country]"),
    ],
)
def test_an_accepted_rename_renames_the_field_in_the_model(
    project: CatalogProject, statement: str, clustering: str
) -> None:
    _declare(project)
    project.sync()
    project.by_hand(f"ALTER TABLE dev.silver.orders {statement}")
    accepted = project.run("drift --accept --yes")
    assert accepted.code == 0, accepted.stderr
    assert clustering in project.models.read_text()
    assert project.run("plan").stdout.startswith("dev: no changes")


@pytest.mark.parametrize(
    ("place", "clustering", "expected"),
    [
        (
            "place, type: 'struct<land: string, zone: string>', renamed_fields: {land: country}",
            "land",
            "place.land",
        ),
        (PLACE.replace("place", "address", 1) + ", renamed_from: place", "country", "address.country"),
    ],
)
def test_a_declared_rename_keeps_the_clustering(
    project: CatalogProject, place: str, clustering: str, expected: str
) -> None:
    _declare(project)
    project.sync()
    _declare(project, place, f"cluster_by: [{expected.partition('.')[0]}.{clustering}]")
    assert "clustering" not in project.run("plan").stdout
    project.sync()
    assert _clustering(project) == (expected,)
    assert project.drift() == {}


def test_a_dropped_field_leaves_the_clustering_first(project: CatalogProject) -> None:
    _declare(project)
    project.sync()
    _declare(project, "place, type: 'struct<zone: string>'", "comment: Orders")
    project.sync("--allow drop_column")
    assert _clustering(project) == ()


def test_dropped_clustering_by_a_field_is_drift_that_a_revert_undoes(project: CatalogProject) -> None:
    _declare(project)
    project.sync()
    project.by_hand("ALTER TABLE dev.silver.orders CLUSTER BY NONE")
    assert project.drift() == {"table.dev.silver.orders": [("clustering", "clustering")]}
    assert project.run("drift --revert --yes").code == 0
    assert _clustering(project) == ("place.country",)
