"""`undo`, `drift` and the next run after one that ended in the middle of a conversion."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.cli.terminal import ExitCode
from delta_engine.errors import StatementError
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.catalog_project import CatalogProject

KEY = "dev.silver.orders"
ID = "{name: id, type: int, nullable: false}"
MAPPED = "properties: {delta.columnMapping.mode: name}"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    return catalog_project


@pytest.mark.parametrize("beginning", ["RENAME COLUMN `delta_engine_new_note`", "DROP COLUMNS"])
def test_a_conversion_that_ended_in_the_middle_is_taken_back(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch, beginning: str
) -> None:
    before = fail_to_convert(project, monkeypatch, beginning)
    assert any(
        column.name.startswith("delta_engine_old") for column in project.catalog.tables[KEY].state.columns
    )
    done = project.run("undo --yes")
    assert done.code == 0, done.stderr
    assert project.catalog.statements[-1:] == ["RESTORE TABLE `dev`.`silver`.`orders` TO VERSION AS OF 0"]
    assert project.catalog.tables[KEY].state.columns == before.columns


@pytest.mark.parametrize("beginning", ["RENAME COLUMN `delta_engine_new_note`", "DROP COLUMNS"])
def test_what_others_change_beside_an_unfinished_conversion_is_the_only_drift(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch, beginning: str
) -> None:
    """The history shows that the engine renamed the former column, which is not drift."""
    fail_to_convert(project, monkeypatch, beginning)
    project.catalog.by_hand("ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `id` COMMENT 'theirs'")
    report = json.loads(project.run("drift --json").stdout)
    assert [finding["field"] for finding in report["drifted"][0]["findings"]] == ["column id comment"]
    done = project.run("sync --yes --allow backfill_column")
    assert done.code == 0, done.stderr
    columns = project.catalog.tables[KEY].state.columns
    assert [(column.name, column.comment) for column in columns] == [("id", ""), ("note", "")]


def fail_to_convert(project: CatalogProject, monkeypatch: pytest.MonkeyPatch, beginning: str) -> TableState:
    """Let a run fail that converts a column, at a statement; return the table before it."""
    project.declare(f"name: orders, columns: [{ID}, {{name: note, type: string}}], {MAPPED}")
    project.sync()
    before = project.catalog.tables[KEY].state
    project.declare(f"name: orders, columns: [{ID}, {{name: note, type: int, using: cast(note AS int)}}]")
    with monkeypatch.context() as patched:
        patched.setattr(FakeUnityCatalog, "run", failing_at(beginning, FakeUnityCatalog.run))
        assert project.run("sync --yes --allow backfill_column").code == ExitCode.PARTIAL
    return before


def failing_at(beginning: str, run: Callable[[FakeUnityCatalog, str], Sequence[Row]]) -> Any:
    """Return a way to run statements that fails for those with a beginning of a change."""

    def running(catalog: FakeUnityCatalog, sql: str) -> Sequence[Row]:
        if f" {beginning}" in sql:
            raise StatementError("the platform is gone", sql=sql, error_class="GONE")
        return run(catalog, sql)

    return running


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_fill_that_failed_is_repeated(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch, is_recorded: bool
) -> None:
    """The column itself does not show it, and before the first sync of a table nothing was recorded."""
    note = "{name: note, type: string, using: \"'none'\"}"
    project.declare(f"name: orders, columns: [{ID}, {note}]")
    if is_recorded:
        project.sync()
    else:
        project.by_hand("CREATE TABLE `dev`.`silver`.`orders` (`id` int NOT NULL, `note` string) USING delta")
    project.declare(f"name: orders, columns: [{ID}, {note}, {{name: day, type: int, using: id + 1}}]")
    run = FakeUnityCatalog.run

    def failing(catalog: FakeUnityCatalog, sql: str) -> Sequence[Row]:
        if sql.startswith("UPDATE"):
            raise StatementError("the platform is gone", sql=sql, error_class="GONE")
        return run(catalog, sql)

    with monkeypatch.context() as patched:
        patched.setattr(FakeUnityCatalog, "run", failing)
        assert project.run("sync --yes --allow backfill_column").code == ExitCode.PARTIAL
    project.sync("--allow backfill_column")
    (filled,) = (sql for sql in project.catalog.statements if sql.startswith("UPDATE"))
    assert filled.startswith("UPDATE `dev`.`silver`.`orders` SET `day` = ")  # and not note, which was there
    assert not project.plan()["tables"]
