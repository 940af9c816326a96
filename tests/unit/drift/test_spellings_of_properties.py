"""Properties that a model spells otherwise than Delta: they converge, and are no drift."""

from __future__ import annotations

import pytest

from tests.projects.catalog_project import CatalogProject

SPELLED = "name: orders, columns: [{name: id, type: bigint}], properties: {PROPERTIES}"
TWO = "delta.feature.TIMESTAMPNTZ: supported, delta.appendonly: 'false'"


def _declare(project: CatalogProject, properties: str) -> None:
    project.declare(SPELLED.replace("PROPERTIES", properties))


@pytest.mark.parametrize("is_new", [True, False])
def test_they_converge(project: CatalogProject, is_new: bool) -> None:
    if not is_new:
        project.by_hand("CREATE TABLE dev.silver.orders (`id` BIGINT) USING delta")
    _declare(project, TWO)
    project.sync()
    stored = project.catalog.stored("dev.silver.orders").state.table_properties
    assert stored["delta.feature.timestampNtz"] == "supported"
    assert stored["delta.appendOnly"] == "false"
    plan = project.run("plan").stdout
    assert "no changes" in plan
    assert "appendOnly" not in plan
    assert project.drift() == {}


def test_one_that_the_model_no_longer_declares_is_unset(project: CatalogProject) -> None:
    _declare(project, TWO)
    project.sync()
    _declare(project, "a: b")
    project.sync()
    assert "delta.appendOnly" not in project.catalog.stored("dev.silver.orders").state.table_properties


def test_another_spelling_in_the_model_is_no_change(project: CatalogProject) -> None:
    _declare(project, TWO)
    project.sync()
    _declare(project, "Delta.Feature.timestampNtz: supported, delta.appendOnly: 'false'")
    assert "no changes" in project.run("plan").stdout


def test_an_accepted_value_keeps_the_spelling_of_the_model(project: CatalogProject) -> None:
    _declare(project, TWO)
    project.sync()
    project.by_hand("ALTER TABLE dev.silver.orders SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    assert project.run("drift --accept --yes").code == 0
    accepted = project.models.read_text()
    assert "delta.appendonly: 'true'" in accepted
    assert "delta.appendOnly" not in accepted
    assert "no changes" in project.run("plan").stdout
