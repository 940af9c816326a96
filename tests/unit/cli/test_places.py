"""Which environment and which project a command is about: options before and after it, and the folder it is run in."""

from pathlib import Path
from typing import Any

import pytest
import typer

from delta_engine.cli.app import app
from delta_engine.config.conf_folder import find_conf_dir
from tests.conftest import CONFIG
from tests.projects.commandline import CommandLine
from tests.projects.plan_files import PlanProject


def every_command() -> list[tuple[str, ...]]:
    """Return the names of all commands, those of `state` included."""
    root: Any = typer.main.get_command(app)
    names: list[tuple[str, ...]] = [(name,) for name in root.commands]
    return [*names, *(("state", name) for name in root.commands["state"].commands)]


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_every_command_takes_the_options_of_all(delta_engine: CommandLine, command: tuple[str, ...]) -> None:
    shown = delta_engine(*command, "--help").stdout
    assert shown.count("--env ") == shown.count("--conf-dir ") == 1
    assert shown.count(" -e") >= 1
    assert "completion" not in shown


OPTIONS = [
    (("-e", "local"), ()),
    ((), ("-e", "local")),
    ((), ("--env=local",)),
    (("-e", "local"), ("--env", "local")),
    (("--conf-dir", "conf"), ("-e", "local", "--conf-dir", "conf")),
]


@pytest.mark.parametrize(("before", "after"), OPTIONS)
@pytest.mark.parametrize("command", [("validate",), ("state", "versions")])
def test_the_environment_stands_before_or_after(
    delta_engine: CommandLine,
    project: Path,
    command: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
) -> None:
    assert delta_engine(*before, *command, *after).code == 0


def test_the_environment_may_stand_within_state(delta_engine: CommandLine, project: Path) -> None:
    assert delta_engine("state", "-e", "local", "versions").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--conf-dir", "local", "-e", "local", "validate", "--conf-dir", "dev"),
        ("-e", "local", "validate", "-e", "dev"),
        ("-e", "local", "-e", "dev", "validate"),
        ("validate", "-e", "local", "--env", "dev"),
        ("-e", "local", "state", "versions", "-e", "dev"),
        ("state", "-e", "local", "versions", "-e", "dev"),
    ],
)
def test_two_environments_or_configuration_folders(
    delta_engine: CommandLine, project: Path, arguments: tuple[str, ...]
) -> None:
    refused = delta_engine(*arguments)
    assert refused.code == 3
    assert "'local' and 'dev' contradict each other" in refused.stderr


def test_an_option_wins(delta_engine: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTA_ENGINE_ENV", "nope")
    assert delta_engine("validate").code == 3
    assert delta_engine("validate", "-e", "local").code == 0
    assert delta_engine("-e", "local", "validate").code == 0


def test_project_from_inside(
    delta_engine: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for inside in ("conf", "conf/models", "notebooks/deep/down"):
        (project / inside).mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(project / inside)
        result = delta_engine("validate", "-e", "local")
        assert result.stdout == "local: configuration and 1 model are valid\n"
        assert result.stderr == f"note: the project is {project}\n"
        assert "Name an environment with -e (local)" in delta_engine("validate").stderr
        assert str(project / "conf") in delta_engine("validate", "-e", "locla").stderr
        explicit = delta_engine("validate", "-e", "local", "--conf-dir", "conf")
        assert (explicit.code, "conf contains no configuration" in explicit.stderr) == (3, True)


def test_paths_of_the_user_stay_relative_to_where_the_user_stands(
    plan_project: PlanProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_project.declare(a="first")
    inside = plan_project.folder / "plans"
    inside.mkdir()
    monkeypatch.chdir(inside)
    plan_project.plan()
    assert [path.name for path in inside.iterdir()] == ["plan.json"]
    assert plan_project.apply().code == 0
    assert (
        plan_project.folder / "state" / "local.state.json"
    ).is_file()  # what the configuration names is in the project
    assert [path.name for path in inside.iterdir()] == ["plan.json"]


def make_project(folder: Path) -> Path:
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "local.yml").write_text(CONFIG)
    return folder / "conf"


def test_the_nearest_project_counts(tmp_path: Path) -> None:
    outer, inner = make_project(tmp_path), make_project(tmp_path / "a" / "inner")
    (inner / "models").mkdir()
    assert find_conf_dir(inner / "models") == inner
    assert find_conf_dir(inner.parent) == Path("conf")
    assert find_conf_dir(tmp_path / "a") == outer


@pytest.mark.parametrize("text", ["environment: dev\n", "logging: debug\n", "x:\n  environment: local\n", ""])
def test_a_folder_of_that_name_for_other_purposes_is_passed_over(tmp_path: Path, text: str) -> None:
    outer, stranger = make_project(tmp_path), tmp_path / "a" / "conf"
    (stranger / "deep").mkdir(parents=True)
    (stranger / "local.yml").write_text(text)
    assert find_conf_dir(stranger / "deep") == outer
    assert find_conf_dir(stranger.parent) == Path("conf")  # as it is: it may be a project with a mistake


def test_the_search_ends_with_a_git_repository(tmp_path: Path) -> None:
    make_project(tmp_path)
    repository = tmp_path / "a" / "repository"
    (repository / "docs").mkdir(parents=True)
    (repository / ".git").touch()  # a worktree's is a file
    assert find_conf_dir(repository / "docs") == Path("conf")
    conf_dir = make_project(repository)
    assert find_conf_dir(repository / "docs") == conf_dir


def test_the_search_ends_before_a_folder_in_which_everybody_may_write(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    make_project(shared)
    (shared / "mine").mkdir()
    shared.chmod(0o1777)
    assert find_conf_dir(shared / "mine") == Path("conf")
    shared.chmod(0o755)
    assert find_conf_dir(shared / "mine") == shared / "conf"


def test_the_search_ends_before_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for folder in (tmp_path, home):
        make_project(folder)
    (home / "work").mkdir()
    assert find_conf_dir(home / "work") == Path("conf")
    (home / "conf").rename(home / "other")
    assert find_conf_dir(home) == Path("conf")
