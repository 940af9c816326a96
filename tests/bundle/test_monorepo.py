"""The recipe for many projects: its projects fit together, and its workflows and jobs call the engine as it is."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from delta_engine import __version__
from delta_engine.config.project_folders import find_projects
from delta_engine.config.settings import load_settings
from delta_engine.config.state_backend import DatabricksState
from tests.bundle.bundle_files import deployed, load, read, texts
from tests.bundle.jobs_api import field_problems
from tests.bundle.schedules import schedule_problems
from tests.projects.commandline import CommandLine, parsed

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "docs" / "recipes" / "monorepo"
WORKFLOWS = sorted((RECIPE / "workflows").glob("*.yml"))
COMMAND = re.compile(r"^\s*(delta-engine .*?)\s*(?:>.*)?$", re.MULTILINE)
PROJECTS = ["teams/sales", "teams/stock"]


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a copy of the recipe."""
    folder = tmp_path / "repository"
    shutil.copytree(RECIPE, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def jobs(repository: Path) -> Mapping[str, Any]:
    """Return the recipe's jobs, as the bundle of this project deploys them to prod."""
    for part in ("databricks.yml", "bundle", "notebooks"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, part, dirs_exist_ok=True)
        else:
            shutil.copy2(source, part)
    jobs_by_name: Mapping[str, Any] = deployed(load(repository), "prod")["resources"]["jobs"]
    return jobs_by_name


def nested(job: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for task in job["tasks"]:
        yield task["for_each_task"]["task"]


def steps(workflow: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, job in workflow["jobs"].items():
        for step in job["steps"]:
            yield name, step


def test_its_projects_fit_together(delta_engine: CommandLine) -> None:
    checked = delta_engine("projects", "check")
    assert (checked.code, checked.stdout) == (0, "2 projects, prod: no conflicts\n"), checked.stderr


def test_each_project_has_a_schema_for_its_deployment_state() -> None:
    places = [load_settings(folder.conf_dir, "prod").state_backend.place for folder in find_projects(["**"])]
    assert [place.schema for place in places if isinstance(place, DatabricksState)] == [
        "delta_engine_sales",
        "delta_engine_stock",
    ]


def test_code_owners_name_each_project() -> None:
    lines = [line.split() for line in Path("CODEOWNERS").read_text().splitlines()]
    owned = [line[0] for line in lines if line and not line[0].startswith("#")]
    assert owned == ["*", *(f"/{project}/" for project in PROJECTS), "/teams/*/conf/"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plan.yml", [("plan", "projects check"), ("plan", "lint"), ("plan", "plan")]),
        (
            "apply.yml",
            [("plan", "projects check"), ("plan", "projects list"), ("plan", "plan"), ("apply", "apply")],
        ),
    ],
)
def test_the_commands_exist_with_those_options(name: str, expected: list[tuple[str, str]]) -> None:
    commands_used = [
        (job, parsed(re.sub(r" \|\| .*", "", command)))
        for job, step in steps(read(Path("workflows", name)))
        for command in COMMAND.findall(step.get("run", ""))
    ]
    assert commands_used == expected


def test_what_is_planned_is_what_is_applied() -> None:
    text = Path("workflows/apply.yml").read_text()
    assert "--out 'plans/{project}.json'" in text
    assert '-p "$PROJECT" apply "plans/$PROJECT.json" --yes' in text


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: str(path.name))
def test_a_workflow_holds_no_secret_and_has_the_least_rights(path: Path) -> None:
    text, workflow = path.read_text("utf-8"), read(path)
    for word in ("secrets.", "DATABRICKS_TOKEN", "CLIENT_SECRET", "https://", "pull_request_target"):
        assert word not in text
    assert workflow["env"]["ENGINE"] == f"./dist/delta_engine_uc-{__version__}-py3-none-any.whl[databricks]"
    assert workflow["permissions"] == {"contents": "read"}
    for step in (step for _, step in steps(workflow)):
        assert re.fullmatch(
            r"(actions|github/codeql-action)/[\w-]+@v\d+", step.get("uses", "actions/none@v1")
        )
        expressions = re.findall(r"\$\{\{ *(.*?) *\}\}", step.get("run", ""))
        allowed = {"github.event.pull_request.number", "github.repository"}
        assert set(expressions) <= allowed, "names that users choose reach the shell as variables"


def test_only_main_is_applied() -> None:
    workflow = read(Path("workflows/apply.yml"))
    assert workflow["on"] == {"push": {"branches": ["main"], "paths": ["base/**", "teams/**"]}}
    assert workflow["jobs"]["apply"]["environment"] == "prod"
    assert workflow["jobs"]["apply"]["permissions"] == {"contents": "read", "id-token": "write"}
    assert set(read(Path("workflows/plan.yml"))["on"]) == {"pull_request"}


def test_the_jobs_api_understands_the_jobs(jobs: Mapping[str, Any]) -> None:
    ours = {name: jobs[name] for name in ("sync_projects", "report_drift")}
    for job in ours.values():
        settings = {key: value for key, value in job.items() if key != "permissions"}
        assert [*field_problems(settings), *schedule_problems(job)] == []
    left = [text for _, text in texts(ours) if "${" in text]
    assert left == []


def test_the_jobs_run_each_project(jobs: Mapping[str, Any], delta_engine: CommandLine) -> None:
    listed = delta_engine("-e", "prod", "-p", "teams/*", "projects", "list", "--json")
    assert json.loads(listed.stdout) == PROJECTS
    for name in ("sync_projects", "report_drift"):
        (task,) = jobs[name]["tasks"]
        assert json.loads(task["for_each_task"]["inputs"]) == PROJECTS
        conf_dir = task["for_each_task"]["task"]["notebook_task"]["base_parameters"]["conf_dir"]
        assert re.fullmatch(r"/Workspace/.*/files/\{\{input\}\}/conf", conf_dir)


def test_a_notebook_gets_each_parameter_once(jobs: Mapping[str, Any]) -> None:
    for name in ("sync_projects", "report_drift"):
        of_job = {parameter["name"] for parameter in jobs[name]["parameters"]}
        for task in nested(jobs[name]):
            source = Path("resources", task["notebook_task"]["notebook_path"]).read_text()
            widgets = set(re.findall(r'widgets\.(?:text|dropdown)\("(\w+)"', source))
            of_task = set(task["notebook_task"]["base_parameters"])
            assert of_job | of_task == widgets
            assert not of_job & of_task, "a parameter of the job would replace the task's"


def test_serverless_retries_no_refusal(jobs: Mapping[str, Any]) -> None:
    for name in ("sync_projects", "report_drift"):
        declared = {entry["environment_key"] for entry in jobs[name]["environments"]}
        for task in nested(jobs[name]):
            assert task["environment_key"] in declared
            assert task["disable_auto_optimization"]
            assert task["max_retries"] == 0
