"""An external table becomes a managed one: with consent, through a kill, by undo and back."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from delta_engine.models import Table
from delta_engine.orchestrate import former_tables
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.telemetry.context import utc_now
from tests.builders.deployment import deployment_over
from tests.builders.histories import Sync
from tests.builders.models import orders
from tests.builders.worlds import Kill, World
from tests.projects.catalog_project import CatalogProject

KEY = "dev.silver.orders"
PLACE = "s3://bucket/orders"
MODEL = "name: orders, columns: [{name: id, type: int}]"
ADDRESS = "`dev`.`silver`.`orders`"
SET, UNSET = f"ALTER TABLE {ADDRESS} SET MANAGED", f"ALTER TABLE {ADDRESS} UNSET MANAGED"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project whose table is external, and that declares it as managed."""
    catalog_project.declare(f"{MODEL}, location: '{PLACE}'")
    catalog_project.sync()
    catalog_project.declare(MODEL)
    return catalog_project


def location(project: CatalogProject) -> str | None:
    return project.catalog.tables[KEY].state.location


def test_it_takes_consent_and_can_be_undone(project: CatalogProject) -> None:
    refused = project.run("sync --yes")
    assert refused.code == 3
    assert "it would become a managed table" in refused.stderr
    assert location(project) == PLACE
    document = json.loads(project.run("plan --json --allow rewrite_table").stdout)
    (action,) = document["tables"][0]["actions"]
    assert action["undo"] == "reversible by UNSET MANAGED"
    assert document["tables"][0]["statements"] == [SET]
    project.sync("--allow rewrite_table")
    assert location(project) is None
    assert project.drift() == {}
    assert project.plan()["tables"] == []
    done = project.run("undo --yes")
    assert done.code == 0, done.stderr
    assert project.catalog.statements[-1] == UNSET
    assert location(project) == PLACE
    assert project.drift() == {}
    # The undo of the undo is the conversion again, and takes the same consent.
    assert project.run("undo --yes").code == 3
    assert project.run("undo --yes --allow rewrite_table").code == 0
    assert location(project) is None


def test_an_undo_comes_too_late_after_two_weeks(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.sync("--allow rewrite_table")
    monkeypatch.setattr(former_tables, "utc_now", lambda: utc_now() + timedelta(days=15))
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "UNSET MANAGED takes that back only within 14 days" in " ".join(refused.stderr.split())
    assert location(project) is None


def test_values_that_only_restore_brings_back_are_refused_with_it(project: CatalogProject) -> None:
    project.declare(f"{MODEL[:-1]}, {{name: note, type: string}}], location: '{PLACE}'")
    project.sync()
    project.declare(MODEL)
    project.sync("--allow rewrite_table --allow drop_column")
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "which is not safe across that" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (MODEL.replace("int}", "string, mask: {function: dev.f.hide}}"), "a row filter or a mask"),
        (
            MODEL.replace("int}", "string, using: 'cast(id AS string)'}"),
            "while the same plan writes its rows",
        ),
    ],
)
def test_what_stands_in_the_way(project: CatalogProject, model: str, reason: str) -> None:
    project.declare(model)
    refused = project.run("sync --yes --allow rewrite_table --allow backfill_column")
    assert refused.code == 3
    assert reason in " ".join(refused.stderr.split())
    assert location(project) == PLACE


def test_a_managed_table_does_not_become_external(project: CatalogProject) -> None:
    project.sync("--allow rewrite_table")
    project.declare(f"{MODEL}, location: 's3://bucket/other'")
    refused = project.run("sync --yes --allow rewrite_table")
    assert refused.code == 3
    text = " ".join(refused.stderr.split())
    assert "CREATE TABLE `dev`.`silver`.`orders_copied` DEEP CLONE `dev`.`silver`.`orders` LOCATION" in text


def test_a_killed_run_is_no_drift_and_is_continued(tmp_path: Path) -> None:
    world = World(deployment=deployment_over(tmp_path))
    external, managed = orders(location=PLACE), orders(comment="Orders")

    def sync(model: Table, fault: Sync = Sync()) -> None:  # noqa: B008 - a tuple
        world.engine(fault).sync_tables([model])

    sync(external)
    with pytest.raises(Kill):
        sync(managed, Sync(1, is_killed=True))
    stored = world.catalog.tables[KEY]
    assert (stored.state.location, stored.state.table_comment) == (None, "")
    assert not report_drift(world.engine(), [managed]).drifted
    sync(managed)
    assert world.catalog.tables[KEY].state.table_comment == "Orders"
    report = report_drift(world.engine(), [managed])
    assert not report.drifted
    assert not report.pending


def test_a_killed_undo_is_continued(project: CatalogProject) -> None:
    project.declare(f"{MODEL}, comment: Orders")
    project.sync("--allow rewrite_table")
    project.kill("undo --yes", "COMMENT")
    assert location(project) == PLACE
    assert project.catalog.tables[KEY].state.table_comment == "Orders"
    done = project.run("undo --yes")
    assert done.code == 0, done.stderr
    assert (location(project), project.catalog.tables[KEY].state.table_comment) == (PLACE, "")
    assert project.drift() == {}
