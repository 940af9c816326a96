"""Whole commands through a SQL warehouse: `plan`, `sync`, `drift`, `import` and `state`, without Spark."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from delta_engine.errors import StatementError
from tests.builders.error_forms import FORMS
from tests.conftest import ORDERS
from tests.fakes.dialects import Dialect
from tests.fakes.unity_catalog.policies import Policy
from tests.fakes.warehouse_sql import USER, WarehouseSql, refusing
from tests.fakes.workspace import WAREHOUSE, FakeWorkspace
from tests.projects.commandline import CommandLine
from tests.servers.warehouse_project import DATABRICKS_STATE, LOCAL_STATE, make_project

WITHOUT_SPARK = """\
import sys

class NoSpark:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "delta", "py4j"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, NoSpark())
from delta_engine.cli.app import main

for command in ("plan", "sync --yes", "drift", "import dev.silver", "state show"):
    sys.argv = ["delta-engine", "-e", "dev", *command.split()]
    try:
        main()
    except SystemExit as stopped:
        assert not stopped.code, command
"""


@pytest.fixture(params=[LOCAL_STATE, DATABRICKS_STATE], ids=["local", "databricks"])
def project(
    request: pytest.FixtureRequest, workspace: FakeWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    return make_project(workspace, tmp_path, monkeypatch, state=request.param)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_table_is_planned_made_changed_and_watched(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    planned = delta_engine("-e", "dev", "plan", "--detailed-exitcode")
    assert (planned.code, planned.stderr) == (2, "")
    assert "dev.silver.orders" in planned.stdout
    made = delta_engine("-e", "dev", "sync", "--yes")
    assert made.code == 0, made.stderr
    assert "1 verified" in made.stdout
    assert delta_engine("-e", "dev", "plan", "--detailed-exitcode").code == 0

    models = project / "conf" / "models" / "orders.yml"
    models.write_text(ORDERS.replace("Order total", "Total of it's lines"))
    changed = delta_engine("-e", "dev", "sync", "--yes", "--json")
    assert changed.code == 0, changed.stderr
    assert json.loads(changed.stdout)
    stored = sql.catalog.tables["dev.silver.orders"].state
    assert [column.comment for column in stored.columns][-1] == "Total of it's lines"

    assert delta_engine("-e", "dev", "drift", "--fail-on", "low").code == 0
    sql.catalog.user = "eve@example.com"
    sql.catalog.run("ALTER TABLE `dev`.`silver`.`orders` ADD COLUMNS (`sneaked` STRING)")
    drifted = delta_engine("-e", "dev", "drift", "--fail-on", "low")
    assert drifted.code == 2
    assert "sneaked" in drifted.stdout
    assert "eve@example.com" in drifted.stdout


def test_a_plan_warns_of_the_rights_that_it_needs(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    models = project / "conf" / "models" / "orders.yml"
    models.write_text(f"{ORDERS}    cluster_by: [id]\n")
    assert delta_engine("-e", "dev", "plan").stderr == ""
    stored = sql.catalog.tables["dev.silver.orders"]
    sql.catalog.tables["dev.silver.orders"] = stored.with_state(owner="ann@example.com")
    warning = (
        "note: table dev.silver.orders: CLUSTER BY needs ownership or MANAGE, which ci@example.com may lack "
        "(the owner is ann@example.com). If so: GRANT MANAGE ON TABLE `dev`.`silver`.`orders` TO `ci@example.com`\n"
    )
    for command in ("plan", "sync --dry-run"):
        shown = delta_engine("-e", "dev", *command.split())
        assert (shown.code, shown.stderr) == (0, warning)
    synced = delta_engine("-e", "dev", "sync", "--yes", "--json")
    assert warning in synced.stderr
    assert json.loads(synced.stdout)["warnings"] == [warning.removeprefix("note: ").strip()]


def test_the_state_knows_who_and_where(
    project: Path, workspace: FakeWorkspace, delta_engine: CommandLine
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    shown = delta_engine("-e", "dev", "state", "show", "--json")
    assert shown.code == 0, shown.stderr
    for fact in (USER, workspace.host, "databricks sql 2026.40"):
        assert fact in shown.stdout
    assert delta_engine("-e", "dev", "state", "unlock", "--yes").stdout == "no run holds the lock\n"


def test_what_is_there_is_imported(project: Path, sql: WarehouseSql, delta_engine: CommandLine) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    imported = delta_engine("-e", "dev", "import", "dev.silver")
    assert imported.code == 0, imported.stderr
    assert "name: orders" in imported.stdout


def test_a_warehouse_that_starts_is_waited_for_aloud(
    project: Path, workspace: FakeWorkspace, delta_engine: CommandLine
) -> None:
    workspace.states = [["PENDING", "PENDING"]]
    planned = delta_engine("-e", "dev", "plan")
    assert planned.code == 0
    assert f"waiting for SQL warehouse {WAREHOUSE}" in planned.stderr


def test_an_interrupt_while_the_warehouse_starts_cancels_the_statement(
    project: Path, workspace: FakeWorkspace, delta_engine: CommandLine
) -> None:
    workspace.states = [["PENDING", "forever"]]
    interrupts = iter([signal.SIGINT])

    def interrupt() -> None:
        for number in interrupts:
            os.kill(os.getpid(), number)

    workspace.on_ask = interrupt
    assert delta_engine("-e", "dev", "plan").code == 130
    assert workspace.cancelled == ["statement-1"]


def test_a_statement_that_is_refused_fails_its_table(
    project: Path, workspace: FakeWorkspace, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    models = project / "conf" / "models" / "orders.yml"
    models.write_text(ORDERS.replace("Order total", "Total"))
    sql.faults.append(refusing("ALTER TABLE"))
    failed = delta_engine("-e", "dev", "sync", "--yes")
    assert failed.code == 1
    assert "ask ann" in failed.stderr
    sql.faults.clear()
    again = delta_engine("-e", "dev", "sync", "--yes")
    assert again.code == 0, again.stderr
    assert delta_engine("-e", "dev", "plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("project", [DATABRICKS_STATE], indirect=True)
@pytest.mark.parametrize("form", FORMS)
def test_a_first_sync_without_create_table_is_told_the_grants_at_once(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine, form: str
) -> None:
    words = "User does not have CREATE TABLE on Schema 'dev.delta_engine'."
    sql.faults.append(refusing("CREATE TABLE", FORMS[form]("PERMISSION_DENIED", words), None))
    refused = delta_engine("-e", "dev", "sync", "--yes")
    assert refused.code not in (0, 2)
    assert "User does not have CREATE TABLE on Schema 'dev.delta_engine'" in refused.stderr
    assert (
        f"GRANT USE SCHEMA, CREATE TABLE, SELECT, MODIFY ON SCHEMA `dev`.`delta_engine` TO `{USER}`;"
        in refused.stderr
    )
    assert "Traceback" not in refused.stderr
    assert len([statement for statement in sql.statements if statement.startswith("CREATE TABLE")]) == 1
    assert len(sql.statements) <= 10


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (WAREHOUSE, "wrong", "SQL warehouse 'wrong' cannot be used"),
        ("profile: ci", "profile: nobody", "no workspace to send SQL to"),
    ],
)
def test_a_wrong_address_is_refused(
    project: Path, delta_engine: CommandLine, old: str, new: str, message: str
) -> None:
    conf = project / "conf" / "dev.yml"
    conf.write_text(conf.read_text().replace(old, new))
    refused = delta_engine("-e", "dev", "plan")
    assert refused.code == 3
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    "project", [pytest.param(LOCAL_STATE, marks=pytest.mark.long), DATABRICKS_STATE], indirect=True
)
def test_no_spark_is_imported_on_the_way(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK], capture_output=True, text=True, check=False, cwd=project
    )
    assert done.returncode == 0, done.stderr
    assert "1 verified" in done.stdout


def _many_tables(sql: WarehouseSql) -> None:
    """Make tables that reference each other in three schemas, with awkward texts."""
    sql.catalog.run("CREATE SCHEMA `dev`.`shop` COMMENT 'It is ${the} shop'")
    sql.catalog.run("CREATE SCHEMA `dev`.`web`")
    for number in range(40):
        schema = ("shop", "web", "bronze")[number % 3]
        sql.catalog.run(
            f"CREATE TABLE `dev`.`{schema}`.`t{number}` (`id` BIGINT NOT NULL COMMENT 'a: \"b\" # ${{x}}', `day` DATE, "
            f"CONSTRAINT `pk_{number}` PRIMARY KEY (`id`)) USING delta COMMENT '- no. {number}'"
        )
    for number in range(1, 40):
        child, parent = (
            ("shop", "web", "bronze")[place % 3] + f"`.`t{place}" for place in (number, number - 1)
        )
        sql.catalog.run(
            f"ALTER TABLE `dev`.`{child}` ADD CONSTRAINT `fk_{number}` FOREIGN KEY (`id`) REFERENCES "
            f"`dev`.`{parent}` (`id`)"
        )


@pytest.mark.parametrize("project", [DATABRICKS_STATE], indirect=True)
def test_a_killed_import_of_a_catalog_continues_and_needs_no_changes(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    _many_tables(sql)
    (project / "conf" / "models" / "orders.yml").unlink()
    conf = project / "conf" / "dev.yml"
    conf.write_text(conf.read_text().replace("conf/models/*.yml", "conf/models/**/*.yml"))
    options = ["-e", "dev", "import", "dev", "--to", "conf/models", "--per", "table"]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_IMPORT, *options], cwd=project, stderr=subprocess.PIPE, text=True
    )
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors
    written = {path: path.read_bytes() for path in (project / "conf" / "models").rglob("*.yml")}
    assert len(written) == 17
    done = delta_engine(*options)
    assert done.code == 0, done.stderr
    assert "note: 16 resources declared already, and not imported again\n" in done.stderr
    assert all(path.read_bytes() == content for path, content in written.items())
    assert not [*(project / "conf").rglob("*.tmp")]
    assert delta_engine("-e", "dev", "validate").stdout == "dev: configuration and 40 models are valid\n"
    planned = delta_engine("-e", "dev", "plan", "--detailed-exitcode")
    assert (planned.code, planned.stdout.splitlines()[1:]) == (0, ["dev: no changes (40 models)"]), (
        planned.stderr
    )
    assert planned.stdout.startswith("adopts: 40 tables as found; ")


KILLED_IMPORT = """\
import os, signal, sys
from delta_engine.config import whole_files

move, moved = whole_files.move_without_replacing, []

def move_or_die(temporary, path):
    if len(moved) == 17:
        os.kill(os.getpid(), signal.SIGKILL)
    moved.append(path)
    move(temporary, path)

whole_files.move_without_replacing = move_or_die
from delta_engine.cli.app import main

main()
"""


FILLED = ORDERS.replace(
    "type: timestamp,", "type: timestamp, nullable: false, using: \"timestamp'2026-01-01'\","
)


@pytest.mark.parametrize("project", [LOCAL_STATE], indirect=True)
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            refusing("SHOW EFFECTIVE POLICIES"),
            "the policies (ABAC) that may hide some of them from the engine cannot",
        ),
        (
            refusing("SHOW EFFECTIVE POLICIES", "no viable alternative", "PARSE_SYNTAX_ERROR"),
            "Databricks Runtime 16.4 or later",
        ),
        (
            refusing("DESCRIBE HISTORY"),
            "verifies them by the table's versions, which cannot be read:",
        ),
        (refusing("VERSION AS OF"), "verifies them by the table's versions, which cannot be read:"),
        (None, "mine of schema dev.silver (ROW_FILTER)"),
    ],
)
def test_values_are_not_computed_where_something_may_hide_them(
    project: Path,
    sql: WarehouseSql,
    delta_engine: CommandLine,
    fault: Callable[[str], None] | None,
    message: str,
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    (project / "conf" / "models" / "orders.yml").write_text(FILLED)
    ran = len(sql.catalog.statements)
    if fault is None:
        sql.catalog.policies = [Policy(name="mine", securable="dev.silver")]
    else:
        sql.faults.append(fault)
    refused = delta_engine("-e", "dev", "sync", "--yes", "--allow", "backfill_column")
    assert refused.code == 3
    assert message in " ".join(refused.stderr.split())
    assert len(sql.catalog.statements) == ran
    sql.faults.clear()
    sql.catalog.policies = []
    done = delta_engine("-e", "dev", "sync", "--yes", "--allow", "backfill_column")
    assert done.code == 0, done.stderr


@pytest.mark.parametrize("project", [LOCAL_STATE], indirect=True)
def test_throttled_questions_about_policies_are_repeated(
    project: Path, workspace: FakeWorkspace, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    (project / "conf" / "models" / "orders.yml").write_text(FILLED)
    throttled: list[str] = []

    def throttle_once(statement: str) -> None:
        if statement.startswith("SHOW EFFECTIVE POLICIES") and not throttled:
            throttled.append(statement)
            raise StatementError("slow down", sql=statement, error_class="REQUEST_LIMIT_EXCEEDED")

    sql.faults.append(throttle_once)
    done = delta_engine("-e", "dev", "sync", "--yes", "--allow", "backfill_column")
    assert done.code == 0, done.stderr
    assert throttled
