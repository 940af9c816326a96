"""`plan` and `sync` over a platform in memory: locks, records, failures, and what is only looked at."""

import json

import pytest

from delta_engine.deployment.locks.file import FileLock
from tests.builders.deployment import HOLDER
from tests.projects.plan_files import PlanProject


@pytest.fixture
def project(plan_project: PlanProject) -> PlanProject:
    plan_project.declare(a="first", b="first")
    return plan_project


def test_a_dry_run_shows_the_plan_and_writes_nothing(project: PlanProject) -> None:
    plan = json.loads(project.run("plan", "--json").stdout)
    assert (plan["format"], plan["version"], plan["has_changes"]) == ("delta-engine/plan", 1, True)
    assert json.loads(project.run("sync", "--dry-run", "--json").stdout) == plan
    assert not (project.folder / "state").exists()
    summary = json.loads(project.run("sync", "--yes", "--json").stdout)
    counts = {what: count for what, count in summary["counts"].items() if count}
    assert counts == {"created": 2, "statements": 2, "verified": 2}
    assert json.loads(project.run("plan", "--json").stdout)["tables"] == []


def test_a_locked_environment_is_refused_after_a_while_and_can_be_planned(project: PlanProject) -> None:
    config = project.folder / "conf" / "local.yml"
    local = "{type: local, local: {path: state}"
    config.write_text(config.read_text().replace(local, f"{local}, lock: {{timeout_seconds: 0}}"))
    lease = FileLock(project.folder / "state", "local").acquire(HOLDER, timeout_seconds=0)
    refused = project.run("sync", "--yes")
    assert refused.code == 4
    assert "note: waiting for the lock: held by ana@example.com on build-7" in refused.stderr
    assert "locked: " in refused.stderr
    assert project.platform.statements == []
    assert project.run("plan").code == 0
    lease.release()
    assert project.run("sync", "--yes").code == 0


@pytest.mark.parametrize("command", ["plan", "sync"])
def test_nothing_is_applied_over_a_document_of_a_newer_format(project: PlanProject, command: str) -> None:
    document = project.folder / "state" / "local.state.json"
    document.parent.mkdir()
    document.write_text('{"version": 3}')
    refused = project.run(command)
    assert refused.code == 3
    reason = "it is of format 3, and this engine knows formats up to 2. Upgrade delta-engine."
    assert reason in refused.stderr
    assert (document.read_text(), project.platform.statements) == ('{"version": 3}', [])


def test_a_failed_table_is_recorded_with_its_statement_and_stops_no_other(project: PlanProject) -> None:
    project.sync()
    project.declare(a="second", b="second")
    project.platform.failing = "b"
    assert project.run("sync", "--yes").code == 5
    document = json.loads((project.folder / "state" / "local.state.json").read_bytes())
    checkpoints = {checkpoint["resource"]: checkpoint for checkpoint in document["metadata"]["checkpoints"]}
    failed = checkpoints["table.dev.silver.b"]
    assert (failed["status"], failed["statements_done"], failed["error"]) == ("failed", 0, "no")
    assert failed["statement"] == "COMMENT ON TABLE `dev`.`silver`.`b` IS 'second'"
    table = document["resources"]["table.dev.silver.b"]
    assert (table["status"], table["metadata"]["declared"]["comment"]) == ("failed", "first")
    assert table["metadata"]["sync_error"]
    assert document["resources"]["table.dev.silver.a"]["status"] == "healthy"


@pytest.mark.parametrize("command", ["plan", "sync"])
def test_rows_that_break_a_check_are_counted(project: PlanProject, command: str) -> None:
    project.sync()
    project.declare(a="first", b="first", further=", checks: {positive: id > 0}")
    project.platform.violations = 2
    assert project.run("plan", "--no-preflight").code == 0
    for options in ((), ("--preflight",)):
        refused = project.run(command, *options)
        assert refused.code == 3
        assert "check positive would not hold for 2 rows: id > 0." in refused.stderr
        assert "counting rows of 2 tables …" in refused.stderr
    project.declare(a="first", b="first", is_nullable=False)
    refused = project.run(command)
    assert refused.code == 3
    assert "column id: it would become NOT NULL, but is NULL in 2 rows." in refused.stderr
