"""What read lately what a plan drops or renames, as lineage tells."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest

from tests.fakes.unity_catalog.lineage import LineageEvent
from tests.projects.catalog_project import CatalogProject

NOW = datetime.now(timezone.utc)
COLUMNS = "columns: [{name: id, type: int}, {name: Note, type: string}]"
EVIDENCE = "is evidence, not proof: it records only some reads"


def read(days: int, column: str = "Note", **others: str) -> LineageEvent:
    return LineageEvent(at=NOW - timedelta(days=days), table="dev.silver.orders", column=column, **others)


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    catalog_project.declare(f"name: orders, {COLUMNS}")
    catalog_project.sync()
    catalog_project.declare("name: orders, columns: [{name: id, type: int}]")
    return catalog_project


def questions(project: CatalogProject) -> list[str]:
    return [sql for sql in project.catalog.questions if "system.access" in sql]


def test_the_plan_names_what_read_a_column_that_it_drops(project: CatalogProject) -> None:
    project.catalog.lineage = [
        read(3, entity_type="JOB", entity_id="417", target="dev.gold.sums"),
        read(9, entity_type="JOB", entity_id="417", target="dev.gold.sums"),
        read(1),
        read(1, "id"),
        read(40, entity_type="NOTEBOOK", entity_id="5"),
    ]
    shown = project.run("plan --allow drop_column").stderr
    first, second = NOW - timedelta(days=1), NOW - timedelta(days=3)
    part = "read dev.silver.orders.note"
    lines = [
        f"a query of jo {part}, last on {first:%Y-%m-%d %H:%M} UTC (lineage); the plan drops it",
        f"JOB 417 of jo {part} into dev.gold.sums, last on {second:%Y-%m-%d %H:%M} UTC (lineage); the plan drops it",
        EVIDENCE,
    ]
    assert [shown.index(line) for line in lines] == sorted(map(shown.index, lines))
    assert "orders.id" not in shown
    assert "NOTEBOOK" not in shown
    assert len(questions(project)) == 1


def test_json_and_markdown_have_the_warnings(project: CatalogProject) -> None:
    project.catalog.lineage = [read(1)]
    project.catalog.queries = {("silver", "notes"): "SELECT note FROM orders"}
    document = json.loads(project.run("plan --json --allow drop_column").stdout)
    view, lineage, evidence = document["warnings"]
    assert view.startswith("view dev.silver.notes breaks")
    assert lineage.startswith("a query of jo read dev.silver.orders.note")
    assert evidence.endswith(EVIDENCE)
    markdown = project.run("plan --markdown --allow drop_column").stdout
    assert f"**Notes**\n\n```text\n{view}\n{lineage}\n{evidence}\n```" in markdown


def test_at_most_twenty_readers_are_listed(project: CatalogProject) -> None:
    project.catalog.lineage = [read(1, entity_type="JOB", entity_id=str(number)) for number in range(25)]
    shown = project.run("plan --allow drop_column").stderr
    assert shown.count("read dev.silver.orders.note") == 20
    assert "5 more readers in system.access since" in shown


def test_a_renamed_table_and_its_renamed_column_are_one_query(project: CatalogProject) -> None:
    project.catalog.lineage = [read(1, "id"), read(1)]
    renamed = COLUMNS.replace("Note,", "words, renamed_from: Note,")
    project.declare(f"name: sales, renamed_from: orders, {renamed}")
    shown = project.run("plan").stderr
    assert "read dev.silver.orders, last on" in shown
    assert "the plan renames to sales it" not in shown
    assert "the plan renames it to sales" in shown
    assert "the plan renames it to words" in shown
    assert len(questions(project)) == 1


def test_lineage_that_may_not_be_read_is_one_note(project: CatalogProject) -> None:
    project.catalog.lineage = None
    done = project.run("plan --allow drop_column")
    assert done.code == 0
    assert done.stderr.count("recent readers are unknown, because lineage cannot be read: ") == 1


def test_a_plan_that_drops_nothing_asks_nothing(project: CatalogProject) -> None:
    project.declare(f"name: orders, comment: Orders, {COLUMNS}")
    assert project.run("plan").code == 0
    assert not questions(project)
