"""`history` and `state versions` list runs, and `state show` tells what a killed run left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.deployment.document import (
    Checkpoint,
)
from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stores.local import LocalJournalStore, LocalStateStore
from delta_engine.ownership.recorded import Status
from tests.builders.deployment import FACTS
from tests.projects.catalog_project import CatalogProject

ID = "{name: id, type: bigint, nullable: false}"
ORDERS = f"name: orders, columns: [{ID}]"
WIDER = f"name: orders, columns: [{ID}, {{name: note, type: string}}]"
LINES = f"name: lines, columns: [{ID}]"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project that was synced twice, each time by another principal."""
    return synced_twice(catalog_project, (LINES,), (LINES,))


def synced_twice(made: CatalogProject, first: Sequence[str], second: Sequence[str]) -> CatalogProject:
    """Sync a project whose table orders gets a column, beside other tables, each time by another principal."""
    made.declare(ORDERS, *first)
    made.sync()
    made.declare(WIDER, *second)
    made.catalog.user = "jo@example.com"
    made.sync()
    return made


def history(project: CatalogProject, options: str = "") -> list[str]:
    done = project.run(f"history {options}")
    assert done.code == 0, done.stderr
    return done.stdout.splitlines()


def test_the_latest_run_comes_first_with_its_principal_its_id_and_its_changes(
    project: CatalogProject,
) -> None:
    latest, *earlier = history(project)
    assert latest.startswith("20")
    assert "  jo@example.com  " in latest
    assert latest.endswith("  1 resource changed: dev.silver.orders")
    assert any("  ann@example.com  " in line and " added: " in line for line in earlier)
    (only,) = history(project, "--limit 1")
    assert only.split() == latest.split()


def test_undo_takes_the_id_that_it_shows(project: CatalogProject) -> None:
    latest, *_ = history(project)
    run = json.loads(project.run("history --json").stdout)["runs"][0]["run"]
    assert f"  {run[:8]}  " in latest
    done = project.run(f"undo {run[:8]} --yes --allow drop_column")
    assert done.code == 0, done.stderr


def test_machines_get_a_versioned_document(project: CatalogProject) -> None:
    listed = json.loads(project.run("history --json --limit 1").stdout)
    assert (listed["format"], listed["version"]) == ("delta-engine/history", 1)
    (run,) = listed["runs"]
    assert run["deployed_by"] == run["saved_by"] == "jo@example.com"
    assert run["changes"] == "1 resource changed: dev.silver.orders"
    assert {"serial", "updated_at", "lineage"} <= run.keys()


def test_the_document_that_a_first_run_saves_before_it_applies_is_not_a_run(project: CatalogProject) -> None:
    assert len(history(project)) == 2
    assert len(json.loads(project.run("history --json").stdout)["runs"]) == 2


def test_history_and_versions_show_the_same_principals(project: CatalogProject) -> None:
    project.by_hand("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'x'")
    project.catalog.user = "kim@example.com"
    assert project.run("drift --accept --yes").code == 0
    of_runs = principals(history(project))
    assert of_runs == ["kim@example.com", "jo@example.com", "ann@example.com"]
    lines = project.run("state versions").stdout.splitlines()
    assert principals(lines) == [*of_runs, "ann@example.com"]
    assert lines[-1].endswith("  empty: saved before the first run applied its plan")
    listed = json.loads(project.run("state versions --json").stdout)
    assert listed["current"]["saved_by"] == "kim@example.com"


def principals(lines: list[str]) -> list[str]:
    return [word for line in lines for word in line.split() if "@" in word]


def test_a_killed_first_run_is_not_in_the_history_and_a_note_names_where_it_is(
    catalog_project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog_project.declare(ORDERS)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LocalJournalStore, "remove", killed)
        patch.setattr(RunRecorder, "save", killed)
        catalog_project.run("sync --yes")
    done = catalog_project.run("history")
    assert (done.code, done.stdout) == (0, "")
    note = " ".join(done.stderr.split())
    assert "no run has ended yet. `delta-engine -e dev state show` shows what a killed run left" in note


def test_before_the_first_run_there_is_no_history(catalog_project: CatalogProject) -> None:
    catalog_project.declare(ORDERS)
    done = catalog_project.run("history")
    assert done.code == 3
    assert "there is no deployment state yet" in " ".join(done.stderr.split())


def test_runs_are_listed_when_the_document_cannot_be_read(project: CatalogProject) -> None:
    state_file(project).write_text("{")
    copy, *_ = history(project)
    assert copy.endswith("1 resource changed: dev.silver.orders")


def state_file(project: CatalogProject) -> Path:
    (document,) = project.config.parent.parent.rglob("dev.state.json")
    return document


def killed_run(project: CatalogProject, done: tuple[str, ...] = ()) -> str:
    """Leave the journal of a run that was about to change two tables; return its id."""
    folder = state_file(project).parent
    store = LocalStateStore(folder, "dev")
    repository = StateRepository(store, "dev", errored_dir=folder)
    recorder = RunRecorder(
        repository, LocalJournalStore(folder, "dev"), replace(FACTS, who="ann@example.com"), fence=7
    )
    keys = ("table.dev.silver.lines", "table.dev.silver.orders")
    recorder.begin(keys, {}, {}, plan_file=None)
    for key in done:
        checkpoint = Checkpoint(resource=key, status=Status.HEALTHY, statements_done=1)
        recorder.record(recorder.resources[key], checkpoint)
    return recorder.run_id


def journal_lines(project: CatalogProject) -> list[str]:
    done = project.run("state show")
    assert done.code == 0, done.stderr
    lines = done.stdout.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("journal")), len(lines))
    return lines[start:]


def test_without_a_killed_run_nothing_is_said_of_journals(project: CatalogProject) -> None:
    assert journal_lines(project) == []


def test_a_killed_run_is_shown_with_its_tables_until_a_sync_continues_it(project: CatalogProject) -> None:
    run = killed_run(project, done=("table.dev.silver.lines",))
    line, step = journal_lines(project)
    assert line.startswith(f"journal      run {run[:8]} of ann@example.com, began 20")
    assert line.endswith(" and did not end: 1 of 2 resources done; in progress: dev.silver.orders")
    assert step.strip() == "The next `delta-engine -e dev sync` continues it."
    project.sync()
    assert journal_lines(project) == []


def test_a_journal_of_another_document_is_said_to_be_ignored(project: CatalogProject) -> None:
    killed_run(project)
    document = state_file(project)
    document.write_text(document.read_text().replace(state_id(project), "other"))
    assert journal_lines(project)[-1].endswith("It belongs to another document, so the next run ignores it.")


def state_id(project: CatalogProject) -> str:
    text: str = json.loads(state_file(project).read_text())["state_id"]
    return text


def test_a_damaged_journal_is_named(project: CatalogProject) -> None:
    run = killed_run(project, done=("table.dev.silver.lines",))
    (journal,) = (path for path in state_file(project).parent.rglob(f"*{run}*") if path.is_file())
    journal.write_text("{\n" + journal.read_text().partition("\n")[2])
    (line,) = journal_lines(project)
    assert line == f"journal      run {run[:8]} left a damaged journal, which the next run ignores"


def test_a_journal_that_cannot_be_read_is_unknown(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: LocalJournalStore) -> dict[str, list[bytes]]:
        raise StoreError("access denied")

    monkeypatch.setattr(LocalJournalStore, "read", refused)
    (line,) = journal_lines(project)
    assert line == "journal      unknown, because it cannot be read: access denied"


def test_a_journal_without_a_document_is_a_lost_document(project: CatalogProject) -> None:
    killed_run(project)
    document = state_file(project)
    for path in document.parent.rglob("*.json.gz"):
        path.unlink()
    document.unlink()
    done = project.run("state show")
    assert done.code == 3
    assert "left its journal" in " ".join(done.stderr.split())


TABLES = tuple(f"name: t{number}, columns: [{ID}]" for number in range(4))


@pytest.fixture
def compared(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project that was synced twice, by two principals; the second declares one of five tables."""
    return synced_twice(catalog_project, TABLES, ())


def versions(compared: CatalogProject) -> list[str]:
    done = compared.run("state versions")
    assert done.code == 0, done.stderr
    return done.stdout.splitlines()


def test_each_version_is_a_run_with_its_principal_and_its_changes(compared: CatalogProject) -> None:
    current, *earlier = versions(compared)
    assert current.startswith("current ")
    assert "  jo@example.com  " in current
    assert current.endswith("  1 resource changed: dev.silver.orders")
    added = "6 resources added: dev.silver, dev.silver.orders, dev.silver.t0 and 3 more"
    assert any(line.endswith(added) for line in earlier)
    assert "  ann@example.com  " in "\n".join(earlier)


def test_a_document_that_no_run_saved_says_that_it_changed_records(compared: CatalogProject) -> None:
    assert compared.run("state rm dev.silver.t0 --yes").code == 0
    current, *_ = versions(compared)
    assert "1 resource removed: dev.silver.t0" in current
    compared.by_hand("ALTER TABLE dev.silver.orders ALTER COLUMN note COMMENT 'x'")
    assert compared.run("state sync").code == 0
    current, *_ = versions(compared)
    assert current.endswith("records: 1 resource added, 1 changed: dev.silver.orders, dev.silver.t0")


def test_machines_get_the_same_versions(compared: CatalogProject) -> None:
    listed = json.loads(compared.run("state versions --json").stdout)
    assert listed["current"]["deployed_by"] == "jo@example.com"
    assert listed["current"]["changes"] == "1 resource changed: dev.silver.orders"
    assert listed["current"]["serial"] > listed["versions"][0]["serial"]
    assert {"version_id", "saved_at", "size", "lineage"} <= listed["versions"][0].keys()


def test_versions_are_listed_when_a_document_cannot_be_read(compared: CatalogProject) -> None:
    (document,) = compared.config.parent.parent.rglob("dev.state.json")
    document.write_text("{")
    copy, *_ = versions(compared)  # the store keeps a copy of the document
    assert copy.endswith("1 resource changed: dev.silver.orders")
    kept = next(path for path in document.parent.rglob("*") if copy.split()[0] in path.name)
    kept.write_bytes(b"{")
    assert versions(compared)[0].endswith(" bytes")


def test_a_diff_knows_renames_that_models_declare(compared: CatalogProject) -> None:
    renamed = WIDER.replace("name: note,", "name: remark, renamed_from: note,")
    compared.declare(renamed, *TABLES)
    compared.sync()
    shown = compared.run("state diff").stdout
    assert "    ~ column remark: note → remark" in shown
    assert "+ column remark" not in shown
    assert "- column note" not in shown
    compared.models.write_text("tables: [{}]")  # refused models leave the comparison as it is
    plain = compared.run("state diff")
    assert (plain.code, "+ column remark: string" in plain.stdout) == (0, True)
