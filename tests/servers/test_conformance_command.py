"""`delta-engine doctor --conformance` through a SQL warehouse over HTTP: from the login to the two reports."""

import json
import os
import re
import signal
from pathlib import Path

import jsonschema
import pytest

from delta_engine.errors import StatementError
from tests.fakes.conformance_platform import TARGET, USER, ConformancePlatform
from tests.fakes.workspace import TOKEN, Answer, FakeWorkspace, answer_of
from tests.projects.commandline import CommandLine
from tests.servers.warehouse_project import LOCAL_STATE, make_project

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "conformance-report-v1.json"
COMMAND = ("-e", "dev", "doctor", "--conformance", TARGET, "--yes", "--out", "reports")


@pytest.fixture
def platform(workspace: FakeWorkspace) -> ConformancePlatform:
    platform = ConformancePlatform()
    workspace.run = lambda sql: answer_of(platform.run(sql))
    return platform


@pytest.fixture
def project(workspace: FakeWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make_project(workspace, tmp_path, monkeypatch, state=LOCAL_STATE)


def reports(project: Path) -> tuple[str, str]:
    (html,) = (project / "reports").glob("delta-engine-conformance-*.html")
    return html.read_text("utf-8"), html.with_suffix(".json").read_text("utf-8")


def test_an_interrupted_run_drops_everything_and_reports_in_the_words_of_the_platform(
    project: Path, platform: ConformancePlatform, workspace: FakeWorkspace, delta_engine: CommandLine
) -> None:
    def run(sql: str) -> Answer:
        if "_column_order`" in sql and sql.startswith("CREATE TABLE"):
            raise StatementError("User lacks <b>", sql=sql, error_class="INSUFFICIENT_PERMISSIONS")
        if len(platform.statements) == 40:
            os.kill(os.getpid(), signal.SIGINT)
        return answer_of(platform.run(sql))

    workspace.run = run
    done = delta_engine(*COMMAND)
    assert done.code == 130
    assert "refused: column order, step 1: " in done.stdout
    assert "[0/" in done.stderr
    assert platform.leftovers() == []
    html, text = reports(project)
    document = json.loads(text)
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    assert document["outcome"] == "stopped"
    assert document["platform_version"] == "databricks sql 2026.40"
    (refused,) = [
        statement
        for statement in document["statements"]
        if statement["place"] == "column order, step 1" and statement["error"]
    ]
    assert refused["error"]["condition"] == "INSUFFICIENT_PERMISSIONS"
    assert refused["error"]["sql_state"] == "42000"
    assert "User lacks &lt;b&gt;" in html


@pytest.mark.long
def test_a_run_agrees_and_leaves_two_reports(
    project: Path, platform: ConformancePlatform, workspace: FakeWorkspace, delta_engine: CommandLine
) -> None:
    earlier = f"{TARGET}.delta_engine_conformance_deadbeef_tags"
    platform.run(f"CREATE TABLE {earlier} (id bigint) USING delta")
    done = delta_engine(*COMMAND, "--external-location", "s3://bucket/scratch", "--json")
    assert done.code == 0, done.stdout + done.stderr
    summary = r"^dev\.scratch: agreed \(\d+ agreed; \d+ statements in \d+ s\)$"
    assert re.search(summary, done.stderr, re.MULTILINE)
    earlier_run = (
        "these objects belong to another run (deadbeef). If it has ended, drop them with: DROP TABLE "
    )
    assert f"{earlier_run}`dev`.`scratch`.`delta_engine_conformance_deadbeef_tags`" in done.stderr
    assert "remove these files by hand, because DROP TABLE leaves them: <external location>/" in done.stderr
    assert platform.leftovers() == [earlier]
    html, text = reports(project)
    document = json.loads(text)
    assert json.loads(done.stdout) == document
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    assert document["platform_version"] == "databricks sql 2026.40"
    assert {group["status"] for group in document["groups"]} == {"agreed"}
    assert len(document["statements"]) < 550  # as docs/conformance.md says
    host = workspace.host.partition("//")[2]
    for secret in (TOKEN, USER, host, "s3://bucket"):
        assert secret not in html + text
    assert "Everything agreed" in html


def test_nothing_is_made_when_the_reports_cannot_be_written(
    project: Path, platform: ConformancePlatform, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "touch", refuse)
    done = delta_engine(*COMMAND)
    assert done.code == 1
    assert "Permission denied" in done.stderr
    assert not [sql for sql in platform.statements if sql.startswith("CREATE")]


def test_a_schema_that_is_not_there_is_refused(
    project: Path, platform: ConformancePlatform, delta_engine: CommandLine
) -> None:
    done = delta_engine("-e", "dev", "doctor", "--conformance", "dev.gone", "--yes", "--out", "reports")
    assert done.code == 3
    assert "schema dev.gone does not exist" in done.stderr
    assert not (project / "reports").exists()
    assert platform.leftovers() == []


def test_its_options_go_with_a_schema(project: Path, delta_engine: CommandLine) -> None:
    done = delta_engine("-e", "dev", "doctor", "--out", "reports")
    assert done.code == 3
    assert "need --conformance" in done.stderr
