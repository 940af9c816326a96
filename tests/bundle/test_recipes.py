"""The recipes for CI are what their systems take, and call the command line as it is."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from delta_engine import __version__
from delta_engine.cli.terminal import USAGE_ERROR
from delta_engine.config.conf_folder import environments
from tests.bundle.bundle_files import read, texts
from tests.projects.commandline import parsed

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "recipes"
RECIPES = sorted(FOLDER.glob("*.yml"))
COMMAND = re.compile(r"^\s*(delta-engine .*?)\s*(?:>.*)?$", re.MULTILINE)


def steps(recipe: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every step with its job's name, whichever system's they are."""
    for name, job in recipe.get("jobs", {}).items() if isinstance(recipe.get("jobs"), dict) else ():
        for step in job["steps"]:
            yield name, step
    for stage in recipe.get("stages", ()):
        for job in stage["jobs"]:
            listed = job.get("steps") or job["strategy"]["runOnce"]["deploy"]["steps"]
            for step in listed:
                yield stage["stage"], step


def commands(path: Path) -> list[tuple[str, str]]:
    return [
        (job, command)
        for job, step in steps(read(path))
        for command in COMMAND.findall(step.get("run", "") + step.get("script", ""))
    ]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: str(path.name))
def test_its_commands_exist_with_those_options(path: Path) -> None:
    parsed_commands = [
        (job, parsed(command.replace("$(Pipeline.Workspace)", "."))) for job, command in commands(path)
    ]
    assert parsed_commands == [
        ("plan", "validate"),
        ("plan", "lint"),
        ("plan", "plan"),
        ("apply", "apply"),
    ]


def test_a_command_with_an_option_that_is_not_there_is_found_out() -> None:
    with pytest.raises(USAGE_ERROR):
        parsed("delta-engine plan --outt x")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: str(path.name))
def test_what_the_plan_writes_is_what_is_applied(path: Path) -> None:
    command_of = {job: command for job, command in commands(path) if job == "apply" or " --out " in command}
    assert "--out plan.json" in command_of["plan"]
    assert "plan.json" in command_of["apply"]
    assert "--yes" in command_of["apply"]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: str(path.name))
def test_it_holds_no_secret_and_names_no_workspace(path: Path) -> None:
    text = path.read_text("utf-8")
    for word in ("secrets.", "DATABRICKS_TOKEN", "CLIENT_SECRET", "password", "https://", "dapi"):
        assert word not in text


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: str(path.name))
def test_it_installs_this_version_for_an_environment_that_is_there(path: Path) -> None:
    recipe = read(path)
    variables = {**recipe.get("env", {}), **recipe.get("variables", {})}
    assert variables["ENGINE"] == f"./dist/delta_engine_uc-{__version__}-py3-none-any.whl[databricks]"
    assert variables["DELTA_ENGINE_ENV"] in environments(ROOT / "conf")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: str(path.name))
def test_what_it_uses_is_pinned_to_a_major_version(path: Path) -> None:
    used = [step.get("uses") or step.get("task") for _, step in steps(read(path))]
    named = [name for name in used if name]
    assert named
    for action in named:
        assert re.fullmatch(r"((actions|github/codeql-action)/[\w-]+@v\d+|\w+@\d+)", action), action


def test_github_gives_each_job_the_least() -> None:
    recipe = read(FOLDER / "github-actions.yml")
    assert recipe["permissions"] == {"contents": "read"}
    assert recipe["jobs"]["apply"]["permissions"] == {"contents": "read", "id-token": "write"}
    assert set(recipe["on"]) == {
        "pull_request",
        "push",
    }  # pull_request_target would run strangers' code with rights
    assert recipe["on"]["push"]["branches"] == ["main"]
    assert "github.event_name == 'push'" in recipe["jobs"]["apply"]["if"]
    assert recipe["jobs"]["apply"]["environment"] == "prod"


@pytest.mark.parametrize(
    "path", [FOLDER / "github-actions.yml", FOLDER / "monorepo" / "workflows" / "plan.yml"]
)
def test_github_shows_refusals_and_comments_failed_runs_as_well(path: Path) -> None:
    by_name = {step.get("name"): step for _, step in steps(read(path))}
    assert by_name["Comment"]["if"].startswith("${{ !cancelled()")
    assert "plan.outcome" not in by_name["Comment"]["if"]
    assert "--sarif refusals.sarif" in by_name["Plan"]["run"]
    assert by_name["Refusals"]["with"]["sarif_file"] == "refusals.sarif"
    (job,) = [job for job in read(path)["jobs"].values() if "pull-requests" in job.get("permissions", {})]
    assert job["permissions"]["security-events"] == "write"


def test_azure_hands_its_token_to_those_steps_that_log_in() -> None:
    for _, step in steps(read(FOLDER / "azure-pipelines.yml")):
        logs_in = bool(re.search(r"delta-engine (plan|apply)|comment\.py", step.get("script", "")))
        assert ("SYSTEM_ACCESSTOKEN" in step.get("env", {})) is logs_in


def test_azure_applies_what_is_on_main_alone() -> None:
    _, apply = read(FOLDER / "azure-pipelines.yml")["stages"]
    assert "refs/heads/main" in apply["condition"]
    assert apply["jobs"][0]["environment"] == "prod"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: str(path.name))
def test_how_it_logs_in_is_one_of_the_sdks_ways(path: Path) -> None:
    from databricks.sdk import credentials_provider

    recipe = read(path)
    way = {**recipe.get("env", {}), **recipe.get("variables", {})}["DATABRICKS_AUTH_TYPE"]
    assert f'"{way}"' in Path(credentials_provider.__file__).read_text("utf-8")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: str(path.name))
def test_its_steps_outputs_are_set(path: Path) -> None:
    recipe_text = " ".join(text for _, text in texts(read(path)))
    assert "pending" in recipe_text
    assert re.search(r"(pending=\$code|variable=pending;isOutput=true\]\$code)", recipe_text)
