"""`undo` over a Unity Catalog in memory: what it brings back, how, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from delta_engine.actions.policy import Allowance, DestructiveKind, Policy
from delta_engine.backends.capabilities import OPEN_SOURCE
from delta_engine.backends.sql_runner import Row
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import StatementError
from delta_engine.models import QualifiedName
from delta_engine.orchestrate import former_tables
from delta_engine.orchestrate.applying import apply_planned
from delta_engine.orchestrate.runs import open_run
from delta_engine.orchestrate.undoing import plan_undo
from delta_engine.plan_files.document import Options
from delta_engine.state.table_queries import TableQueries
from tests.builders.deployment import deployment_over
from tests.builders.models import orders
from tests.fakes.platform import FakePlatform, engine_over, statuses, sync
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.catalog_project import CatalogProject, require_nothing_to_do

ORDERS = QualifiedName("dev", "silver", "orders")
KEY = ORDERS.key
ID = "{name: id, type: int, nullable: false}"
SMALL = f"name: orders, columns: [{ID}, {{name: note, type: string}}]"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    return catalog_project


def ran(project: CatalogProject, command: str) -> list[str]:
    """Run a command, which has to succeed, and return the statements that it ran."""
    before = len(project.catalog.statements)
    done = project.run(command)
    assert done.code == 0, done.stderr
    return project.catalog.statements[before:]


def record(project: CatalogProject, key: str = f"table.{KEY}") -> Any:
    return json.loads(project.run(f"state show {key}").stdout)


def dropped_column(project: CatalogProject) -> None:
    """Sync a table, and then without one of its columns, which only RESTORE brings back."""
    project.declare(SMALL)
    project.sync()
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync("--allow drop_column")


RICH = (
    f"name: orders, comment: Orders, columns: [{ID}, "
    "{name: note, type: string, comment: Words, tags: {pii: low}}, {name: day, type: date}], "
    "tags: {team: sales}, owner: ann@example.com, grants: {readers: [SELECT]}, primary_key: [id], "
    "checks: {positive: id > 0}, cluster_by: [day], properties: {kept: 'for a year'}"
)


def test_statements_bring_back_what_they_can_and_an_undo_is_undone(project: CatalogProject) -> None:
    project.declare(SMALL)
    project.sync()
    before = project.catalog.snapshot([])
    small = project.catalog.tables[KEY].state
    project.declare(RICH)
    project.sync()
    rich = project.catalog.tables[KEY].state
    statements = ran(project, "undo --yes --allow drop_column")
    assert not [sql for sql in statements if sql.startswith("RESTORE")]
    state = project.catalog.tables[KEY].state
    assert state.columns == small.columns
    assert (state.table_comment, state.tags, state.checks) == ("", {}, ())
    assert (state.primary_key, state.grants, state.cluster_by) == (None, {}, ())
    assert project.catalog.snapshot([]) == before
    assert project.drift() == {}
    # Columns that the undo dropped come back by RESTORE, and what the catalog alone has by statements.
    statements = ran(project, "undo --yes")
    assert len([sql for sql in statements if sql.startswith("RESTORE")]) == 1
    state = project.catalog.tables[KEY].state
    assert (state.columns, state.primary_key) == (rich.columns, rich.primary_key)
    assert (state.tags, state.grants, state.checks) == (rich.tags, rich.grants, rich.checks)
    assert project.plan()["tables"] == []


def test_what_the_models_declare_is_applied_by_the_next_sync(project: CatalogProject) -> None:
    project.declare(SMALL)
    project.sync()
    project.declare(f"{SMALL}, comment: Orders")
    project.sync()
    done = project.run("undo --yes")
    assert "The models stay as they are, and the next sync applies them" in done.stderr
    assert project.catalog.tables[KEY].state.table_comment == ""
    assert [table["table"] for table in project.plan()["tables"]] == ["dev.silver.orders"]
    project.sync()
    assert project.catalog.tables[KEY].state.table_comment == "Orders"


def test_an_unmanaged_part_that_the_run_took_over_is_as_it_was(project: CatalogProject) -> None:
    project.declare(SMALL)
    project.sync()
    project.by_hand("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'theirs'")
    project.run("drift --accept --yes")
    project.declare(f"{SMALL}, comment: theirs")
    project.sync()
    project.declare(f"{SMALL}, comment: ours")
    project.sync()
    ran(project, "undo --yes")
    assert project.catalog.tables[KEY].state.table_comment == "theirs"


def test_renamed_columns_and_fields_get_their_names_back(project: CatalogProject) -> None:
    place = "{{name: {0}, type: 'struct<{1}: int>'{2}}}"
    project.declare(
        f"name: orders, columns: [{ID}, {{name: note, type: string, tags: {{pii: low}}}}, "
        f"{place.format('place', 'zip', '')}]"
    )
    project.sync()
    before = project.catalog.tables[KEY].state
    place = place.format("place", "code", ", renamed_fields: {code: zip}")
    project.declare(
        f"name: orders, columns: [{ID}, {{name: words, type: string, renamed_from: note, "
        f"tags: {{pii: low}}}}, {place}]"
    )
    project.sync()
    statements = ran(project, "undo --yes")
    assert [sql for sql in statements if "RENAME COLUMN" in sql] == statements
    assert project.catalog.tables[KEY].state.columns == before.columns
    ran(project, "undo --yes")
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id", "words", "place"]


def test_a_renamed_field_gets_its_name_back_where_no_column_was_renamed(project: CatalogProject) -> None:
    table = f"name: orders, columns: [{ID}, {{name: place, type: 'struct<zip: int>'}}]"
    project.declare(table)
    project.sync()
    project.declare(table.replace("zip: int>'", "code: int>', renamed_fields: {code: zip}"))
    project.sync()
    assert ran(project, "undo --yes") == [
        "ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `place`.`code` TO `zip`"
    ]


def test_a_column_gets_back_the_name_that_an_earlier_run_gave_it(project: CatalogProject) -> None:
    for name, former in (
        ("note", ""),
        ("remark", ", renamed_from: note"),
        ("text", ", renamed_from: remark"),
    ):
        project.declare(f"name: orders, columns: [{ID}, {{name: {name}, type: string{former}}}]")
        project.sync()
    statements = ran(project, "undo --yes")
    assert statements == ["ALTER TABLE `dev`.`silver`.`orders` RENAME COLUMN `text` TO `remark`"]


def test_a_renamed_table_gets_its_name_back(project: CatalogProject) -> None:
    project.declare(SMALL)
    project.sync()
    project.declare(SMALL.replace("name: orders", "name: sales, renamed_from: orders"))
    project.sync()
    assert [*project.catalog.tables] == ["dev.silver.sales"]
    assert len(ran(project, "undo --yes")) == 1
    assert [*project.catalog.tables] == [KEY]
    assert record(project)["status"] == "healthy"


SALES = "dev.silver.sales"
RENAMED = SMALL.replace("name: orders", "name: sales, renamed_from: orders")
RICH_RENAMED = (
    RICH.replace("name: orders", "name: sales, renamed_from: orders")
    .replace("name: note,", "name: words, renamed_from: note,")
    .replace("{team: sales}", "{team: sales, level: gold}")
    .replace("[SELECT]}", "[SELECT], writers: [MODIFY]}")
)
GIVES_BACK = "ALTER TABLE `dev`.`silver`.`sales` RENAME TO"
RENAMES = "ALTER TABLE `dev`.`silver`.`orders` RENAME TO `dev`.`silver`.`sales`"


def renamed_and_killed(
    project: CatalogProject,
    models: tuple[str, str] = (SMALL, RENAMED),
    statement: str = GIVES_BACK,
) -> None:
    """Sync a table, rename it in a second run, and kill the undo of that run behind a statement."""
    for model in models:
        project.declare(model)
        project.sync()
    project.kill("undo --yes", statement, is_done=True)
    assert [*project.catalog.tables] == [KEY]


@pytest.mark.parametrize("policy", ["drift: refuse", "drift: revert"])
def test_a_table_that_a_killed_undo_renamed_is_renamed_again(project: CatalogProject, policy: str) -> None:
    project.configure(policy)
    project.by_hand(
        "CREATE TABLE `dev`.`silver`.`orders` (\n  `id` int NOT NULL,\n  `note` string\n)\nUSING delta"
    )
    project.declare(SMALL)
    project.sync()
    project.declare(RENAMED)
    project.sync()
    recorded, state = record(project, f"table.{SALES}"), project.catalog.tables[SALES].state
    project.kill("undo --yes", GIVES_BACK, is_done=True)
    assert project.drift() == {}
    assert ran(project, "sync --yes") == [RENAMES]
    assert project.catalog.tables[SALES].state == state
    left = record(project, f"table.{SALES}")
    for fact in ("declared", "adopted_at", "created_at", "delta_table_id"):
        assert left["metadata"][fact] == recorded["metadata"][fact]
    assert f"table.{KEY}" not in project.run("state list").stdout
    require_nothing_to_do(project)


@pytest.mark.parametrize("statement", [GIVES_BACK, "ALTER TABLE `dev`.`silver`.`orders` UNSET TAGS"])
@pytest.mark.parametrize("commands", [["sync"], ["undo"], ["state sync", "sync"], ["state sync", "undo"]])
def test_what_a_killed_undo_of_a_rename_left_is_no_drift_and_is_continued(
    project: CatalogProject, commands: Sequence[str], statement: str
) -> None:
    renamed_and_killed(project, (RICH, RICH_RENAMED), statement)
    for command in commands:
        assert project.drift() == {}
        done = project.run(command if command == "state sync" else f"{command} --yes")
        assert done.code == 0, done.stderr
    is_undone = commands[-1] == "undo"
    assert [*project.catalog.tables] == [KEY if is_undone else SALES]
    project.declare(RICH if is_undone else RICH_RENAMED)
    require_nothing_to_do(project)
    tables = [line for line in project.run("state list").stdout.splitlines() if "table.dev" in line]
    assert len(tables) == 1


def test_a_sync_that_is_killed_behind_a_killed_undo_is_no_drift(project: CatalogProject) -> None:
    unsets = "ALTER TABLE `dev`.`silver`.`orders` UNSET TAGS"
    renamed_and_killed(project, (RICH, RICH_RENAMED), unsets)
    project.kill("sync --yes", RENAMES, is_done=True)
    assert project.drift() == {}
    project.sync()
    require_nothing_to_do(project)


@pytest.mark.parametrize("keys", [(f"table.{KEY}", f"table.{SALES}"), (f"table.{SALES}", f"table.{KEY}")])
@pytest.mark.parametrize("is_done", [True, False])
def test_both_records_of_what_a_killed_undo_was_renaming_are_forgotten(
    project: CatalogProject, keys: tuple[str, str], is_done: bool
) -> None:
    parts = f"name: parts, columns: [{ID}]"
    project.declare(SMALL, parts)
    project.sync()
    project.declare(RENAMED, parts.replace("parts,", "sold_parts, renamed_from: parts,"))
    project.sync()
    project.kill("undo --yes", GIVES_BACK, is_done=is_done)
    removed = project.run(f"state rm {keys[0]} --yes")
    assert removed.stdout == f"- {keys[0]}\n- {keys[1]}\nforgot 2 resources\n"
    assert (RENAMES in ran(project, "sync --yes")) == is_done
    assert sorted(project.catalog.tables) == [SALES, "dev.silver.sold_parts"]
    assert record(project, f"table.{SALES}")["status"] == "healthy"
    require_nothing_to_do(project)


def test_both_records_are_forgotten_behind_a_sync_that_is_killed_behind_a_killed_undo(
    project: CatalogProject,
) -> None:
    renamed_and_killed(project, (RICH, RICH_RENAMED))
    project.kill("sync --yes", RENAMES)
    assert project.run(f"state rm table.{KEY} --yes").stdout.endswith("forgot 2 resources\n")
    project.sync()
    assert [*project.catalog.tables] == [SALES]
    require_nothing_to_do(project)


def test_what_others_change_behind_a_killed_undo_of_a_rename_is_drift(project: CatalogProject) -> None:
    renamed_and_killed(project, (RICH, RICH_RENAMED))
    project.by_hand(
        "COMMENT ON TABLE `dev`.`silver`.`orders` IS 'theirs'",
        "ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`theirs` string)",
        "GRANT MODIFY ON TABLE `dev`.`silver`.`orders` TO `jo`",
    )
    assert project.drift() == {
        f"table.{KEY}": [("column_added", "column theirs"), ("table_comment", "table comment")]
    }
    refused = project.run("sync --yes")
    assert (refused.code, "columns (theirs) are not in the model" in refused.stderr) == (3, True)
    project.sync("--allow drop_column")
    assert project.catalog.tables[SALES].state.grants["jo"] == ("MODIFY",)
    require_nothing_to_do(project)


def test_another_table_is_not_taken_for_one_that_a_killed_undo_did_not_rename(
    project: CatalogProject,
) -> None:
    renamed_and_killed(project)
    project.by_hand(RENAMES, "CREATE TABLE `dev`.`silver`.`orders` (\n  `other` int NOT NULL\n)\nUSING delta")
    assert project.drift() == {}
    assert ran(project, "sync --yes") == []
    assert record(project, f"table.{SALES}")["status"] == "healthy"
    assert record(project)["status"] == "unmanaged"


def test_another_table_in_place_of_one_that_a_killed_undo_renamed_is_drift(project: CatalogProject) -> None:
    renamed_and_killed(project)
    project.by_hand(
        "DROP TABLE `dev`.`silver`.`orders`",
        "CREATE TABLE `dev`.`silver`.`orders` (\n  `id` int NOT NULL,\n  `note` string\n)\nUSING delta",
    )
    assert project.drift() == {f"table.{KEY}": [("table_replaced", "table")]}
    refused = project.run("sync --yes")
    assert (refused.code, "was replaced with another table" in refused.stderr) == (3, True)
    assert [*project.catalog.tables] == [KEY]


def test_an_undo_that_failed_behind_a_rename_is_continued(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.declare(RICH)
    project.sync()
    project.declare(RICH_RENAMED)
    project.sync()
    run = project.catalog.run

    def failing(sql: str) -> Sequence[Row]:
        if sql.startswith("REVOKE"):
            raise StatementError("no", sql=sql, error_class=None)
        return run(sql)

    with monkeypatch.context() as patched:
        patched.setattr(project.catalog, "run", failing)
        assert project.run("undo --yes").code == 5
    assert ran(project, "undo --yes") == ["REVOKE MODIFY ON TABLE `dev`.`silver`.`orders` FROM `writers`"]
    project.declare(RICH)
    require_nothing_to_do(project)


def test_a_created_table_is_dropped_with_consent(project: CatalogProject) -> None:
    project.declare(SMALL)
    project.sync()
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert (
        "refused: table dev.silver.orders: the undone run created it, and would be dropped with its 0 rows. Undo only "
        "other tables (-t), or allow it: --allow drop_table:dev.silver.orders for one run" in refused.stderr
    )
    assert ran(project, "undo --yes --allow drop_table") == ["DROP TABLE `dev`.`silver`.`orders`"]
    assert not project.catalog.tables
    gone = project.run("undo --yes")
    assert gone.code == 3
    assert "UNDROP TABLE" in gone.stderr


@pytest.mark.parametrize("skips_refused", [False, True])
def test_a_created_folder_is_not_dropped(tmp_path: Path, *, skips_refused: bool) -> None:
    platform, deployment = FakePlatform(), deployment_over(tmp_path)
    policy = Policy(allow=(Allowance(DestructiveKind.DROP_TABLE),))
    engine = replace(
        engine_over(platform, deployment, policy), planner=TablePlanner(policy, capabilities=OPEN_SOURCE)
    )
    sync(platform, deployment, orders(name="old"))
    sync(platform, deployment, orders(name="old", comment="new"), orders())
    with open_run(engine, "undo") as run:
        planned = plan_undo(engine, run.loaded, Options(skips_refused=skips_refused))
        assert planned.plan.drop_tables == ()
        refusal = (
            "table dev.silver.orders: the run created it, and the backend oss drops no tables: its tables are folders: "
            "remove the folder by hand. `delta-engine -e test undo --skip-refused` undoes the others."
        )
        if not skips_refused:
            assert [str(refused) for refused in planned.refusals] == [refusal]
            return
        assert planned.refusals == ()
        assert f"left out: {refusal}" in planned.warnings
        apply_planned(run, planned).result()
    assert set(platform.states) == {"dev.silver.old", "dev.silver.orders"}
    assert statuses(deployment) == {"old": "healthy", "orders": "healthy"}


def test_an_adopted_table_is_not_taken_for_a_created_one(project: CatalogProject) -> None:
    project.by_hand(
        "CREATE TABLE `dev`.`silver`.`orders` (\n  `id` int NOT NULL,\n  `note` string\n)\nUSING delta"
    )
    project.declare(f"{SMALL}, comment: Orders")
    project.sync()
    refused = project.run("undo --yes --allow drop_table")
    assert refused.code == 3
    assert "no run had recorded it before, and what it was is not known" in refused.stderr
    assert KEY in project.catalog.tables


def test_a_dropped_column_comes_back_by_restore(project: CatalogProject) -> None:
    dropped_column(project)
    assert record(project)["metadata"]["change"]["version"] == 0
    statements = ran(project, "undo --yes")
    assert statements == ["RESTORE TABLE `dev`.`silver`.`orders` TO VERSION AS OF 0"]
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id", "note"]
    assert record(project)["metadata"]["change"]["undoes"]
    ran(project, "undo --yes")
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id"]


def test_a_version_that_could_not_be_read_is_not_taken_for_none(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.declare(SMALL)
    project.sync()
    project.declare(f"name: orders, columns: [{ID}]")
    with monkeypatch.context() as patched:
        patched.setattr(TableQueries, "read_versions", lambda *_args, **_options: {})
        project.sync("--allow drop_column")
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "its version from before the run is not known" in refused.stderr


def test_the_version_from_before_a_run_is_not_taken_for_the_one_that_it_left(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed run records no version: the former one is no longer that of the table."""
    project.declare(SMALL)
    project.sync()
    project.declare(f"name: orders, columns: [{ID}]")
    read, calls = TableQueries.read_versions, count()
    with monkeypatch.context() as patched:
        patched.setattr(
            TableQueries,
            "read_versions",
            lambda *args, **options: {} if next(calls) else read(*args, **options),
        )
        project.sync("--allow drop_column")
    assert next(calls) > 1
    metadata = record(project)["metadata"]
    assert "delta_version" not in metadata
    assert metadata["change"]["version"] == 0
    ran(project, "undo --yes")
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id", "note"]


def test_an_older_engine_recorded_the_version_from_before_a_killed_run_as_the_one_that_it_left(
    project: CatalogProject,
) -> None:
    dropped_column(project)
    document = next((project.config.parent.parent / ".delta-engine" / "state").glob("*.state.json"))
    text = document.read_text()
    left = record(project)["metadata"]
    assert (left["change"]["version"], text.count(f'"delta_version": {left["delta_version"]}')) == (0, 1)
    document.write_text(text.replace(f'"delta_version": {left["delta_version"]}', '"delta_version": 0'))
    ran(project, "undo --yes")
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id", "note"]


@pytest.mark.parametrize("operation", ["WRITE", "MERGE", "DELETE", "UPDATE", "STREAMING UPDATE", "a new one"])
def test_rows_of_others_are_never_taken_back(project: CatalogProject, operation: str) -> None:
    dropped_column(project)
    project.catalog.write_rows(ORDERS, operation)
    refused = project.run("undo --yes")
    assert refused.code == 3
    reason = "only RESTORE brings its values back, which would take back later changes by others"
    assert f"{reason}, from version 3 on: {operation} by jo" in refused.stderr
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id"]


@pytest.mark.parametrize("operation", ["OPTIMIZE", "VACUUM START", "VACUUM END"])
def test_upkeep_is_no_obstacle(project: CatalogProject, operation: str) -> None:
    dropped_column(project)
    project.catalog.write_rows(ORDERS, operation)
    assert len(ran(project, "undo --yes")) == 1


def test_a_definition_that_others_changed_is_not_taken_back(project: CatalogProject) -> None:
    dropped_column(project)
    project.by_hand("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'theirs'")
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "SET TBLPROPERTIES by jo" in refused.stderr


def test_a_masked_value_is_never_visible(project: CatalogProject) -> None:
    mask = ", mask: {function: dev.silver.hide}"
    project.declare(f"name: orders, columns: [{ID}, {{name: note, type: string{mask}}}]")
    project.sync()
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync("--allow drop_column --allow drop_column_mask")
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "would show what a row filter or a mask hides" in refused.stderr


def test_what_is_kept_no_longer_is_not_restored(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped_column(project)
    monkeypatch.setattr(former_tables, "KEPT_BY_DEFAULT", "interval 0 days")
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "the files of that time are no longer kept (delta.deletedFileRetentionDuration)" in refused.stderr


@pytest.mark.parametrize(
    ("text", "days"),
    [("interval 1 week", 7), ("interval 30 days", 30), ("36 hours", 1.5), ("interval 2 fortnights", None)],
)
def test_the_time_that_files_are_kept(text: str, days: float | None) -> None:
    kept = former_tables.kept_for(text)
    assert (kept and kept.total_seconds() / 86400) == days


def test_others_are_undone_without_the_refused_ones(project: CatalogProject) -> None:
    other = f"name: others, columns: [{ID}]"
    project.declare(SMALL, other)
    project.sync()
    project.declare(f"name: orders, columns: [{ID}]", f"{other}, comment: new")
    project.sync("--allow drop_column")
    project.catalog.write_rows(ORDERS)
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "undo --skip-refused" in refused.stderr
    assert project.catalog.tables["dev.silver.others"].state.table_comment == "new"
    done = project.run("undo --yes --skip-refused")
    assert done.code == 0
    assert "left out: table dev.silver.orders" in done.stderr
    assert project.catalog.tables["dev.silver.others"].state.table_comment == ""
    assert record(project)["status"] == "healthy"


def test_the_drift_that_it_saw_of_a_table_that_it_leaves_out_is_recorded(project: CatalogProject) -> None:
    other = f"name: others, columns: [{ID}]"
    project.declare(SMALL, other)
    project.sync()
    project.declare(f"name: orders, columns: [{ID}]", f"{other}, comment: new")
    project.sync("--allow drop_column")
    project.by_hand("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'theirs'")
    ran(project, "undo --yes --skip-refused")
    statuses = {key: record(project, f"table.dev.silver.{key}")["status"] for key in ("orders", "others")}
    assert statuses == {"orders": "drifted", "others": "healthy"}


def test_only_the_tables_that_are_asked_for(project: CatalogProject) -> None:
    other = f"name: others, columns: [{ID}]"
    project.declare(SMALL, other)
    project.sync()
    project.declare(f"{SMALL}, comment: new", f"{other}, comment: new")
    project.sync()
    ran(project, "undo --yes -t silver.others")
    tables = project.catalog.tables.values()
    assert {table.name.table: table.state.table_comment for table in tables} == {
        "orders": "new",
        "others": "",
    }
    nothing = project.run("undo --yes -t nothing")
    assert nothing.code == 3
    assert "has nothing left to undo that matches nothing" in nothing.stderr


def test_a_table_that_a_later_run_changed_waits_for_its_undo(project: CatalogProject) -> None:
    project.declare(SMALL)
    project.sync()
    runs = []
    for comment in ("first", "second"):
        project.declare(f"{SMALL}, comment: {comment}")
        project.sync()
        runs.append(record(project)["metadata"]["change"]["run"])
    refused = project.run(f"undo --yes {runs[0]}")
    assert refused.code == 3
    assert (
        f"run {runs[1]} has changed it since. Undo that run first: `delta-engine -e dev undo {runs[1]}`."
        in refused.stderr
    )
    shown = project.run(f"undo --dry-run {runs[0]}")
    assert (shown.code, shown.stdout) == (3, "dev: nothing planned (1 model)\n")
    ran(project, f"undo --yes {runs[1][:12]}")
    assert project.catalog.tables[KEY].state.table_comment == "first"
    again = project.run(f"undo --yes {runs[1]}")
    assert again.code == 3
    assert "has nothing left to undo" in again.stderr


def test_drift_that_it_undoes_is_handled_as_in_a_sync(project: CatalogProject) -> None:
    project.declare(SMALL)
    project.sync()
    project.declare(f"{SMALL}, comment: Orders")
    project.sync()
    project.by_hand("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'theirs'")
    assert "undoes drift (low), by jo" in project.run("undo --dry-run").stdout
    project.sync()
    granted = f"{SMALL}, grants: {{readers: [SELECT]}}"
    for comment in ("first", "second"):
        project.declare(f"{granted}, comment: {comment}")
        project.sync()
    project.by_hand("REVOKE SELECT ON TABLE `dev`.`silver`.`orders` FROM `readers`")
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "it was changed outside the engine" in refused.stderr
    assert project.catalog.tables[KEY].state.table_comment == "second"


def test_schemas_are_as_they_were_declared(project: CatalogProject) -> None:
    schemas = "schemas:\n  - {{catalog: dev, name: silver, comment: {0}, tags: {{{1}}}}}\n"
    project.declare(SMALL, schemas=schemas.format("first", ""))
    project.sync()
    project.declare(SMALL, schemas=schemas.format("second", "team: sales"))
    project.sync()
    ran(project, "undo --yes")
    schema = project.catalog.schemas["dev.silver"]
    assert (schema.comment, schema.tags) == ("first", {})


def test_a_dry_run_and_a_plan_file_apply_nothing(project: CatalogProject, tmp_path: Path) -> None:
    dropped_column(project)
    assert ran(project, "undo --dry-run") == []
    shown = project.run("undo --dry-run").stdout
    assert "RESTORE TABLE `dev`.`silver`.`orders` TO VERSION AS OF 0;" in shown
    plan = json.loads(project.run("undo --dry-run --json").stdout)
    assert [action["action"] for action in plan["tables"][0]["actions"]] == ["RestoreTable"]
    assert ran(project, "undo --out undo.json") == []
    assert len(ran(project, "apply undo.json --yes")) == 1
    applied = project.run("apply undo.json --yes")
    assert (applied.code, "this plan was already applied" in applied.stdout) == (0, True)


def test_a_plan_file_is_stale_when_rows_were_written(project: CatalogProject) -> None:
    dropped_column(project)
    ran(project, "undo --out undo.json")
    project.catalog.write_rows(ORDERS)
    refused = project.run("apply undo.json --yes")
    assert refused.code == 3
    assert project.catalog.statements[-1].startswith("ALTER TABLE")


def test_a_plan_file_restores_once_even_if_its_apply_was_killed(project: CatalogProject) -> None:
    """A second RESTORE would take back the rows that were written after the first one."""
    dropped_column(project)
    ran(project, "undo --out undo.json")
    project.kill("apply undo.json --yes", "RESTORE", is_done=True)
    project.catalog.write_rows(ORDERS)
    before = len(project.catalog.statements)
    refused = project.run("apply undo.json --yes")
    assert (refused.code, "the plan is stale: an apply of it by " in refused.stderr) == (3, True)
    assert project.catalog.statements[before:] == []


def test_what_a_killed_undo_restored_of_an_unfinished_run_is_no_drift(project: CatalogProject) -> None:
    """The undone run had dropped a column that a killed run had added."""
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync()
    project.declare(SMALL)
    project.kill("sync --yes", "ALTER TABLE `dev`.`silver`.`orders` ADD", is_done=True)
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync("--allow drop_column")
    project.kill("undo --yes", "RESTORE", is_done=True)
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id", "note"]
    assert project.drift() == {}
    ran(project, "undo --yes")
    assert project.drift() == {}


def test_a_column_that_a_killed_undo_gave_back_to_others_is_no_drift(project: CatalogProject) -> None:
    """The undone run had taken it over and changed its fields."""
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync()
    project.catalog.by_hand(
        "ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`s` STRUCT<`a`: INT, `n`: INT>)"
    )
    project.declare(f"name: orders, columns: [{ID}, {{name: s, type: 'struct<a: bigint>'}}]")
    project.sync("--allow drop_column")
    project.kill("undo --yes", "RESTORE", is_done=True)
    assert project.drift() == {}


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_tag_on_a_column_that_an_unfinished_undo_gives_back_is_drift(
    project: CatalogProject, is_restored: bool
) -> None:
    """RESTORE brings back no tags and masks."""
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync()
    project.catalog.by_hand(
        "ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`s` STRUCT<`a`: INT, `n`: INT>)"
    )
    project.declare(
        f"name: orders, columns: [{ID}, {{name: s, type: 'struct<a: bigint>', tags: {{pii: low}}}}]"
    )
    project.sync("--allow drop_column")
    project.kill("undo --yes", "RESTORE", is_done=is_restored)
    project.catalog.by_hand("ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN `s` SET TAGS ('pii' = 'high')")
    assert project.drift() == {"table.dev.silver.orders": [("column_tag", "column s tag pii")]}


def test_a_column_that_others_add_behind_an_undo_that_was_killed_before_its_restore_is_drift(
    project: CatalogProject,
) -> None:
    project.declare(SMALL)
    project.sync()
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync("--allow drop_column")
    project.kill("undo --yes", "RESTORE")
    project.catalog.by_hand("ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`theirs` string)")
    assert project.drift() == {"table.dev.silver.orders": [("column_added", "column theirs")]}


def test_an_undo_of_a_table_that_a_run_created_again_is_undone(project: CatalogProject) -> None:
    project.configure("drift: revert")
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync()
    project.catalog.by_hand("DROP TABLE `dev`.`silver`.`orders`")
    project.declare(SMALL)
    project.sync()
    ran(project, "undo --yes --allow drop_column")
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id"]
    ran(project, "undo --yes")
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id", "note"]


def test_what_cannot_be_found_is_named(project: CatalogProject) -> None:
    project.declare(SMALL)
    nothing = project.run("undo")
    assert (nothing.code, "no run is kept" in nothing.stderr) == (3, True)
    dry = project.run("undo --dry-run")
    assert (dry.code, "no run is kept" in dry.stderr) == (3, True)
    project.sync()
    unknown = project.run("undo 00c0ffee")
    assert (unknown.code, "no run '00c0ffee' is kept" in unknown.stderr) == (3, True)
    mixed = project.run("undo --out undo.json --yes")
    assert (mixed.code, "--out applies nothing" in mixed.stderr) == (3, True)


def test_restore_takes_a_tagged_column_with_its_tags(project: CatalogProject) -> None:
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync()
    note = "{name: note, type: string, using: \"'x'\", tags: {pii: low}}"
    project.declare(f"name: orders, columns: [{ID}, {note}]")
    project.sync("--allow backfill_column")
    statements = ran(project, "undo --yes --allow drop_column")
    assert statements == ["RESTORE TABLE `dev`.`silver`.`orders` TO VERSION AS OF 0"]


def fail_undo(
    project: CatalogProject,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    before: Callable[[], None] = lambda: None,
) -> int:
    """Undo, and let the statements with a text fail after something else has happened; return the exit code."""
    run = FakeUnityCatalog.run

    def failing(catalog: FakeUnityCatalog, sql: str) -> Sequence[Row]:
        if at in sql:
            before()
            raise StatementError("the platform is gone", sql=sql, error_class="GONE")
        return run(catalog, sql)

    with monkeypatch.context() as patched:
        patched.setattr(FakeUnityCatalog, "run", failing)
        return project.run("undo --yes").code


def test_rows_that_are_written_after_a_killed_undo_stay(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RESTORE is done then, and would take them back."""
    project.declare(f"{SMALL}, tags: {{team: sales}}")
    project.sync()
    project.declare(f"name: orders, columns: [{ID}], tags: {{team: others}}")
    project.sync("--allow drop_column")
    assert fail_undo(project, monkeypatch, "SET TAGS") == 5
    project.catalog.write_rows(ORDERS)
    statements = ran(project, "undo --yes")
    assert statements == ["ALTER TABLE `dev`.`silver`.`orders` SET TAGS ('team' = 'sales')"]
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id", "note"]
    project.declare(f"{SMALL}, tags: {{team: sales}}")
    assert project.plan()["tables"] == []


def test_what_a_killed_undo_changed_before_its_restore_is_its_own(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where keys are properties, their drops are commits."""
    dropped_column(project)
    drop_key = partial(project.catalog.write_rows, ORDERS, "UNSET TBLPROPERTIES")
    assert fail_undo(project, monkeypatch, "RESTORE TABLE", drop_key) == 1
    assert ran(project, "undo --yes") == ["RESTORE TABLE `dev`.`silver`.`orders` TO VERSION AS OF 0"]


def test_rows_that_were_written_beside_a_killed_undo_stop_it(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped_column(project)
    write = partial(project.catalog.write_rows, ORDERS)
    assert fail_undo(project, monkeypatch, "RESTORE TABLE", write) == 1
    refused = project.run("undo --yes")
    assert (refused.code, "WRITE by jo" in refused.stderr) == (3, True)


def test_a_column_that_others_add_behind_a_killed_undo_stops_it(project: CatalogProject) -> None:
    """RESTORE would take it back with its values."""
    dropped_column(project)
    project.kill("undo --yes", "RESTORE")
    project.by_hand("ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`theirs` string)")
    refused = project.run("undo --yes")
    assert (refused.code, "ADD COLUMNS by jo" in refused.stderr) == (3, True)
    assert [column.name for column in project.catalog.tables[KEY].state.columns] == ["id", "theirs"]


A, B, C, D = (f"{{name: {name}, type: int}}" for name in "abcd")


@pytest.mark.parametrize(
    ("policies", "models"),
    [
        (("", "", ""), ([A, C], [A, B, C], [A, B])),
        (("", "", "column_order: enforce"), ([A, C], [A, B, C, D], [A, B, C])),
    ],
    ids=["a dropped column that the table has elsewhere", "columns that the run moved"],
)
def test_the_order_of_columns_is_no_drift_after_an_undo(
    project: CatalogProject, policies: Sequence[str], models: Sequence[Sequence[str]]
) -> None:
    for policy, columns in zip(policies, models, strict=True):
        project.configure(policy)
        project.declare(f"name: orders, columns: [{ID}, {', '.join(columns)}]")
        project.sync("--allow drop_column")
        assert project.drift() == {}
    project.configure("")
    ran(project, "undo --yes")
    assert project.drift() == {}
    ran(project, "undo --yes --allow drop_column")
    assert project.drift() == {}


def test_a_part_from_before_the_engine_is_no_drift_after_the_undo_of_its_change(
    project: CatalogProject,
) -> None:
    project.by_hand("CREATE TABLE `dev`.`silver`.`orders` (`id` INT NOT NULL) USING DELTA COMMENT 'theirs'")
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync()
    project.declare(f"name: orders, comment: ours, columns: [{ID}]")
    project.sync()
    ran(project, "undo --yes")
    assert project.catalog.tables[KEY].state.table_comment == "theirs"
    assert project.drift() == {}


MADE_BY_OTHERS = (
    "CREATE TABLE `dev`.`silver`.`orders` (`id` INT NOT NULL, `day` DATE COMMENT 'theirs') USING DELTA "
    "COMMENT 'theirs' CLUSTER BY (`day`)"
)


@pytest.mark.parametrize("dropped", ["", ", {name: note, type: string}"], ids=["statements", "RESTORE"])
@pytest.mark.parametrize(
    ("ours", "statement", "kind"),
    [
        ("comment: ours", "COMMENT ON TABLE {t} IS 'mine'", "table_comment"),
        ("cluster_by: [id]", "ALTER TABLE {t} CLUSTER BY (`day`, `id`)", "clustering"),
        (
            "{name: day, type: date, comment: ours}",
            "ALTER TABLE {t} ALTER COLUMN `day` COMMENT 'mine'",
            "column_comment",
        ),
    ],
)
def test_a_part_from_before_the_engine_that_a_killed_undo_gave_back_is_no_drift(
    project: CatalogProject, ours: str, statement: str, kind: str, dropped: str
) -> None:
    project.by_hand(MADE_BY_OTHERS)
    day = "{name: day, type: date}"
    project.declare(f"name: orders, columns: [{ID}, {day}{dropped}]")
    project.sync()
    column, part = (ours, "") if kind == "column_comment" else (day, f", {ours}")
    project.declare(f"name: orders, columns: [{ID}, {column}]{part}")
    project.sync("--allow drop_column")
    gives_back = {
        "table_comment": "COMMENT ON TABLE",
        "clustering": "ALTER TABLE `dev`.`silver`.`orders` CLUSTER BY",
        "column_comment": "ALTER TABLE `dev`.`silver`.`orders` ALTER COLUMN",
    }[kind]
    project.kill("undo --yes", "RESTORE" if dropped else gives_back, is_done=True)
    assert project.drift() == {}
    project.by_hand(statement.format(t="`dev`.`silver`.`orders`"))
    assert [found for found, _ in project.drift()[f"table.{KEY}"]] == [kind]


@pytest.mark.parametrize("is_done", [False, True])
def test_a_killed_undo_makes_no_other_part_from_before_the_engine_its_own(
    project: CatalogProject, *, is_done: bool
) -> None:
    """The next sync keeps what the undone run had not declared."""
    project.by_hand(MADE_BY_OTHERS)
    columns = f"columns: [{ID}, {{name: day, type: date}}]"
    for model in (columns, f"comment: ours, {columns}"):
        project.declare(f"name: orders, {model}")
        project.sync()
    project.kill("undo --yes", "COMMENT ON TABLE", is_done=is_done)
    ran(project, "sync --yes")
    table = project.catalog.tables[KEY].state
    assert (table.table_comment, table.cluster_by) == ("ours", ("day",))
    assert [column.comment for column in table.columns] == ["", "theirs"]
    require_nothing_to_do(project)


def test_a_comment_from_before_the_engine_that_a_killed_undo_gave_back_under_former_names_is_no_drift(
    project: CatalogProject,
) -> None:
    project.by_hand(f"{MADE_BY_OTHERS} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    mapped = "properties: {delta.columnMapping.mode: name}"
    project.declare(f"name: orders, columns: [{ID}, {{name: day, type: date}}], {mapped}")
    project.sync()
    date = "{name: date, type: date, comment: ours, renamed_from: day}"
    project.declare(f"name: sales, renamed_from: orders, comment: ours, columns: [{ID}, {date}], {mapped}")
    project.sync()
    project.kill("undo --yes", "COMMENT ON TABLE `dev`.`silver`.`orders`", is_done=True)
    table = project.catalog.tables[KEY].state
    assert (table.table_comment, [column.comment for column in table.columns]) == ("theirs", ["", "theirs"])
    assert project.drift() == {}


def test_an_unmanaged_part_that_others_removed_does_not_come_back(project: CatalogProject) -> None:
    project.by_hand("CREATE TABLE `dev`.`silver`.`orders` (`id` INT NOT NULL) USING DELTA COMMENT 'theirs'")
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync()
    project.by_hand("COMMENT ON TABLE `dev`.`silver`.`orders` IS ''")
    project.declare(SMALL)
    project.sync()
    ran(project, "undo --yes --allow drop_column")
    state = project.catalog.tables[KEY].state
    assert (state.table_comment, [column.name for column in state.columns]) == ("", ["id"])
    assert project.drift() == {}


def test_a_run_that_changed_no_declaration_leaves_nothing_to_undo(project: CatalogProject) -> None:
    project.declare(SMALL)
    project.sync()
    project.by_hand("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'theirs'")
    assert project.run("drift --revert --yes").code == 0
    note = ": the tables have what was declared before it. `delta-engine -e dev history` lists earlier runs, and "
    for command in ("undo --yes", "undo --dry-run"):
        done = project.run(command)
        assert done.code == 0
        assert "note: nothing to undo of run " in done.stderr
        assert note in done.stderr


def test_a_run_that_changed_no_table_is_told_from_an_unknown_one(project: CatalogProject) -> None:
    project.by_hand("CREATE TABLE `dev`.`silver`.`orders` (`id` INT NOT NULL) USING DELTA COMMENT 'theirs'")
    project.declare(f"name: orders, columns: [{ID}]")
    project.sync()
    (adoption, *_) = json.loads(project.run("history --json").stdout)["runs"]
    refused = project.run(f"undo {adoption['run']} --dry-run")
    assert refused.code == 3
    assert f"run {adoption['run']!r} changed nothing, or the record" in refused.stderr
    refused = project.run("undo ffffffff --dry-run")
    assert refused.code == 3
    assert "no run 'ffffffff' is kept. `delta-engine -e dev history` lists" in refused.stderr


def test_the_undo_of_a_killed_creation_is_recorded(project: CatalogProject) -> None:
    """Before the undo and after it, the document has no table: it has to be saved all the same."""
    project.declare(SMALL)
    project.kill("sync --yes", "DESCRIBE HISTORY")  # of the second read: the table is made and journaled
    serial = json.loads(project.run("state show --json").stdout)["serial"]
    assert ran(project, "undo --yes --allow drop_table") == ["DROP TABLE `dev`.`silver`.`orders`"]
    state = json.loads(project.run("state show --json").stdout)
    assert (state["serial"], state["metadata"]["last_apply_actions"]["destroyed"]) == (serial + 1, 1)
