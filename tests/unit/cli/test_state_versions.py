"""`state versions` is a list of runs: when, who, from which commit, and what changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import CommandLine

ID = "{name: id, type: bigint, nullable: false}"
ORDERS = f"name: orders, columns: [{ID}]"
WIDER = f"name: orders, columns: [{ID}, {{name: note, type: string}}]"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> CatalogProject:
    """Return a project that was synced twice, each time by another principal, and then compared."""
    made = CatalogProject(tmp_path, monkeypatch, delta_engine)
    made.declare(ORDERS, *(f"name: t{number}, columns: [{ID}]" for number in range(4)))
    made.sync()
    made.declare(WIDER)
    made.catalog.user = "jo@example.com"
    made.sync()
    return made


def versions(project: CatalogProject) -> list[str]:
    done = project.run("state versions")
    assert done.code == 0, done.stderr
    return done.stdout.splitlines()


def test_each_line_is_a_run_with_its_principal_and_its_changes(project: CatalogProject) -> None:
    current, *earlier = versions(project)
    assert current.startswith("current ")
    assert "  jo@example.com  " in current
    assert current.endswith("  1 resource changed: dev.silver.orders")
    added = "6 resources added: dev.silver, dev.silver.orders, dev.silver.t0 and 3 more"
    assert any(line.endswith(added) for line in earlier)
    assert "  ann@example.com  " in "\n".join(earlier)


def test_a_document_that_no_run_saved_says_that_it_changed_records(project: CatalogProject) -> None:
    assert project.run("state rm dev.silver.t0 --yes").code == 0
    current, *_ = versions(project)
    assert "1 resource removed: dev.silver.t0" in current
    project.by_hand("ALTER TABLE dev.silver.orders ALTER COLUMN note COMMENT 'x'")
    assert project.run("state sync").code == 0
    current, *_ = versions(project)
    assert current.endswith("records: 1 resource added, 1 changed: dev.silver.orders, dev.silver.t0")


def test_machines_get_the_same(project: CatalogProject) -> None:
    listed = json.loads(project.run("state versions --json").stdout)
    assert listed["current"]["deployed_by"] == "jo@example.com"
    assert listed["current"]["changes"] == "1 resource changed: dev.silver.orders"
    assert listed["current"]["serial"] > listed["versions"][0]["serial"]
    assert {"version_id", "saved_at", "size", "lineage"} <= listed["versions"][0].keys()


def test_versions_are_listed_when_a_document_cannot_be_read(project: CatalogProject) -> None:
    (document,) = project.config.parent.parent.rglob("dev.state.json")
    document.write_text("{")
    copy, *_ = versions(project)  # the store keeps a copy of the document
    assert copy.endswith("1 resource changed: dev.silver.orders")
    kept = next(path for path in document.parent.rglob("*") if copy.split()[0] in path.name)
    kept.write_bytes(b"{")
    assert versions(project)[0].endswith(" bytes")


def test_a_diff_knows_renames_that_models_declare(project: CatalogProject) -> None:
    renamed = WIDER.replace("name: note,", "name: remark, renamed_from: note,")
    project.declare(renamed, *(f"name: t{number}, columns: [{ID}]" for number in range(4)))
    project.sync()
    shown = project.run("state diff").stdout
    assert "    ~ column remark: note → remark" in shown
    assert "+ column remark" not in shown
    assert "- column note" not in shown
    project.models.write_text("tables: [{}]")  # refused models leave the comparison as it is
    plain = project.run("state diff")
    assert (plain.code, "+ column remark: string" in plain.stdout) == (0, True)
