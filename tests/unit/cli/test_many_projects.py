"""Several projects in one repository: found, checked against each other, and run in one process."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from delta_engine.cli.terminal import Ended
from tests.projects.commandline import CommandLine
from tests.projects.repository import BASE, MODEL, Repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> Repository:
    folder = tmp_path / "mono repo"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Repository(folder, delta_engine)


def test_validate_runs_in_all_projects(repository: Repository) -> None:
    done = repository.run("-e local -p teams/* validate")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout == (
        "── teams/a\nlocal: configuration and 1 model are valid\n"
        "── teams/b\nlocal: configuration and 1 model are valid\n"
        "── teams/c\nlocal: configuration and 1 model are valid\n"
        "── 3 projects\nteams/a  1 model, valid\nteams/b  1 model, valid\nteams/c  1 model, valid\n"
    )


def test_a_refused_project_stops_no_other(repository: Repository) -> None:
    repository.write("teams/b/models/orders.yml", MODEL.replace("bigint", "number"))
    done = repository.run("-e local validate -p teams/a -p teams/b -p teams/c")
    assert done.code == 3
    assert done.stdout.endswith("teams/a  1 model, valid\nteams/b  refused\nteams/c  1 model, valid\n")
    assert done.stderr.startswith("note: in teams/b:\nrefused: models/orders.yml:")


def test_plans_are_one_document(repository: Repository) -> None:
    done = repository.run("-e local -p teams/* plan --json --detailed-exitcode")
    assert done.code == 2
    document = json.loads(done.stdout)
    assert [
        (planned["project"], planned["exit_code"], planned["summary"]) for planned in document["projects"]
    ] == [(f"teams/{team}", 2, "1 schema to create, 1 table to create") for team in "abc"]
    assert document["projects"][1]["document"]["environment"] == "local"


def test_plans_are_one_comment(repository: Repository) -> None:
    done = repository.run("-e local -p teams/* plan --markdown")
    assert done.stdout.startswith(
        "<!-- delta-engine plan --><!-- local -->\n### 3 projects\n\n"
        "- `teams/a`: 1 schema to create, 1 table to create\n"
    )
    assert done.stdout.count("<!-- delta-engine plan --><!-- local -->") == 1
    assert done.stdout.count("### Plan for `local`") == 3


def test_plan_files_have_the_name_of_their_project(repository: Repository) -> None:
    refused = repository.run("-e local -p teams/* plan --out plans/plan.json")
    assert refused.code == 3
    assert "project into the name: --out plans/{project}.json." in refused.stderr
    assert repository.run("-e local -p teams/* plan --out plans/{project}.json").code == 0
    assert sorted(path.name for path in Path("plans/teams").iterdir()) == ["a.json", "b.json", "c.json"]


def test_other_commands_take_one_project(repository: Repository) -> None:
    refused = repository.run("-e local -p teams/* sync --yes")
    assert refused.code == 3
    assert "this command needs exactly one project, but 3 match: teams/a, teams/b, teams/c." in refused.stderr
    assert repository.run("-e local -p teams/b sync --dry-run").code == 0


def test_a_suggested_command_names_the_project(repository: Repository) -> None:
    done = repository.run("-e local -p teams/a plan --out plans/{project}.json")
    assert "`delta-engine -e local -p teams/a apply plans/teams/a.json`" in done.stderr


def test_projects_without_the_environment_are_left_out(repository: Repository) -> None:
    Path("teams/c/conf/local.yml").rename("teams/c/conf/prod.yml")
    assert repository.run("-e local -p teams/* validate").stdout.endswith(
        "── 2 projects\nteams/a  1 model, valid\nteams/b  1 model, valid\n"
    )
    refused = repository.run("-e local -p teams/c validate")
    assert (refused.code, "no project matches 'teams/c'" in refused.stderr) == (3, True)


@pytest.fixture
def with_python_models(repository: Repository) -> Repository:
    """Return the repository with a Python module of the same name in each of two projects."""
    for team in ("a", "b"):
        text = (
            "from delta_engine import Column, Table\n"
            "print('{not JSON')\n"
            f'tables = [Table("dev", "silver", "team_{team}_py", [Column("id", "bigint")])]\n'
        )
        repository.write(f"teams/{team}/models/more.py", text)
        repository.write(
            f"teams/{team}/conf/local.yml",
            "extends: ../../../base/local.yml\nmodels: {python: ['models.more:tables']}\n"
            f'owns: ["silver.team_{team}_*"]\n',
        )
    return repository


def test_python_models_of_one_name_are_each_projects_own(with_python_models: Repository) -> None:
    done = with_python_models.run("-e local -p teams/* plan --json")
    plans = [planned["document"] for planned in json.loads(done.stdout)["projects"]]
    assert ["team_a_py" in json.dumps(plan) for plan in plans] == [True, False, False]
    assert ["team_b_py" in json.dumps(plan) for plan in plans] == [False, True, False]


def test_the_check_reads_the_python_models_of_each_project(with_python_models: Repository) -> None:
    done = with_python_models.run("projects check")
    assert (done.code, done.stdout) == (0, "3 projects, local: no conflicts\n"), done.stderr


def test_the_check_of_an_environment_that_no_project_has(repository: Repository) -> None:
    refused = repository.run("-e lokal projects check")
    assert (refused.code, "no project matches '**'" in refused.stderr) == (3, True)
    assert repository.run("-e local projects check").code == 0


def test_the_check_of_projects_without_conflicts(repository: Repository) -> None:
    done = repository.run("projects check")
    assert (done.code, done.stdout) == (0, "3 projects, local: no conflicts\n"), done.stderr


def test_the_check_refuses_what_two_projects_have(repository: Repository) -> None:
    repository.write(
        "teams/b/conf/local.yml",
        "extends: ../../../base/local.yml\nstate_backend: {type: local, local: {path: ../../state}}\n",
    )
    repository.write(
        "teams/c/conf/local.yml",
        "extends: ../../../base/local.yml\nstate_backend: {type: local, local: {path: ../../state}}\n"
        'owns: ["silver.team_c_*", "team_a_orders"]\n',
    )
    repository.write("teams/b/models/orders.yml", MODEL.replace("TEAM", "team_a"))
    refused = repository.run("-e local projects check")
    assert refused.code == 3
    assert refused.stderr == (
        "note: in teams/a and teams/b:\n"
        "refused: teams/a/conf/local.yml:2: local: both own tables that match 'silver.team_a_*' and '*'. Change owns "
        "in one of the two, so that each table is one project's.\n"
        "note: in teams/a and teams/b:\n"
        "refused: models/orders.yml:2: local: both declare dev.silver.team_a_orders, the second at "
        "models/orders.yml:2. Remove one of them.\n"
        "note: in teams/a and teams/c:\n"
        "refused: teams/a/conf/local.yml:2: local: both own tables that match 'silver.team_a_*' and 'team_a_orders'. "
        "Change owns in one of the two, so that each table is one project's.\n"
        "note: in teams/b and teams/c:\n"
        "refused: teams/b/conf/local.yml:2: local: they have the same deployment state, so each takes the other's "
        "tables for removed ones. Give each project a separate state_backend.\n"
        "note: in teams/b and teams/c:\n"
        "refused: teams/b/conf/local.yml:1: local: both own tables that match '*' and 'silver.team_c_*'. Change owns "
        "in one of the two, so that each table is one project's.\n"
    )


def test_projects_that_changed(repository: Repository) -> None:
    repository.commit()
    listed = "-e local projects list --changed-since main --json"
    assert json.loads(repository.run(listed).stdout) == []
    none = repository.run("-e local -p teams/* plan --changed-since main")
    assert (none.code, none.stdout) == (0, "── 0 projects\n")
    repository.write("teams/b/models/more.yml", MODEL.replace("TEAM", "team_b_more"))
    assert json.loads(repository.run(listed).stdout) == ["teams/b"]
    repository.git("checkout", "-qb", "branch")
    repository.write("teams/a/models/orders.yml", MODEL.replace("TEAM", "team_a_other"))
    repository.git("add", "teams/a")
    repository.git("commit", "-qm", "two")
    assert json.loads(repository.run(listed).stdout) == ["teams/a", "teams/b"]
    done = repository.run("-e local plan -p teams/* --changed-since main")
    assert done.stdout.endswith(
        "── 2 projects\nteams/a  1 schema to create, 1 table to create\n"
        "teams/b  1 schema to create, 2 tables to create\n"
    )
    repository.write("base/local.yml", BASE + "apply: {parallelism: 2}\n")
    assert len(json.loads(repository.run(listed).stdout)) == 3


def test_what_git_does_not_know(repository: Repository) -> None:
    refused = repository.run("-e local -p teams/* plan --changed-since main")
    assert refused.code == 3
    assert "git cannot tell which files have changed: not a git repository" in refused.stderr
    repository.git("init", "-q", "-b", "main")
    refused = repository.run("-e local -p teams/* plan --changed-since --upload-pack=x")
    assert (refused.code, "git knows no commit '--upload-pack=x'" in refused.stderr) == (3, True)


def test_a_comment_says_which_plans_it_has_no_room_for(repository: Repository) -> None:
    columns = ", ".join(f"{{name: c{number}, type: bigint, comment: {'x' * 80}}}" for number in range(180))
    for team in "abc":
        model = MODEL.replace("TEAM", f"team_{team}").replace("{name: id, type: bigint}", columns)
        repository.write(f"teams/{team}/models/orders.yml", model)
    done = repository.run("-e local -p teams/* plan --markdown")
    assert done.stdout.endswith("\nThis comment is too long for the plans of `teams/b`, `teams/c`.\n")
    assert done.stdout.count("### Plan for `local`") == 1


def test_pages_of_several_projects_are_files(repository: Repository) -> None:
    refused = repository.run("-e local -p teams/* drift --format html")
    assert refused.code == 3
    assert "Add --out 'drift/{project}.html'" in " ".join(refused.stderr.replace("│", "").split())


def test_a_closed_pipe_ends_the_run(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def print_nothing(*_: object) -> Ended:
        raise BrokenPipeError

    monkeypatch.setattr("delta_engine.cli.validate_command.validate_models", print_nothing)
    ended = repository.run("-e local -p teams/* validate")
    assert (ended.code, ended.stdout, ended.stderr) == (1, "── teams/a\n", "")


def test_names_with_control_characters_are_spelled_out(repository: Repository) -> None:
    Path("teams/a").rename("teams/a\x1b[31m")
    assert repository.run("-e local projects list").stdout == "teams/a\\u001b[31m\nteams/b\nteams/c\n"


def test_a_suggested_command_quotes_the_folder(repository: Repository) -> None:
    Path("teams/a").rename("teams/it's {project}")
    done = repository.command("-e", "local", "-p", "teams/it's*", "plan", "--out", "plans/{project}.json")
    _, suggested, _ = done.stderr.split("`")
    assert shlex.split(suggested) == [
        *("delta-engine", "-e", "local", "-p", "teams/it's {project}"),
        *("apply", "plans/teams/it's {project}.json"),
    ]
    assert Path("plans/teams/it's {project}.json").is_file()
