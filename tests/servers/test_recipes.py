"""The recipes' own shell, step by step, against a workspace: what a pull request and a merge do."""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from delta_engine.tools.pull_requests.markdown import marker
from tests.bundle.bundle_files import read
from tests.bundle.test_recipes import COMMAND, RECIPES, steps
from tests.conftest import ORDERS
from tests.fakes.loopback import served
from tests.fakes.warehouse_sql import WarehouseSql
from tests.fakes.workspace import FakeWorkspace
from tests.servers.warehouse_project import make_project


class Runner:
    """Runs the steps of a recipe's job as its system's shell does."""

    def __init__(self, recipe: Path, folder: Path) -> None:
        self._recipe = recipe
        self.output = folder / "output"
        self._variables = os.environ | {
            "PATH": f"{_command_line(folder)}{os.pathsep}{os.environ['PATH']}",
            "DELTA_ENGINE_ENV": "prod",
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "GITHUB_OUTPUT": str(self.output),
        }

    def __call__(self, job: str) -> list[int]:
        """Run what calls the command line in a job; return how each step ended, up to the first that failed."""
        codes: list[int] = []
        for name, step in steps(read(self._recipe)):
            script = step.get("run") or step.get("script") or ""
            if name == job and COMMAND.search(script) and not any(codes):
                codes.append(self._run(script.replace("$(Pipeline.Workspace)/plan/", "")))
        return codes

    def _run(self, script: str) -> int:
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
        done = subprocess.run(command, env=self._variables, capture_output=True, text=True, check=False)
        with self.output.open("a") as file:
            file.write(done.stdout)
        return done.returncode

    def pending(self) -> str:
        """Return what the plan's step handed on last."""
        return self.output.read_text().split("pending")[-1].strip().rsplit("=")[-1].rsplit("]")[-1]


class Threads(BaseHTTPRequestHandler):
    """The comments of a pull request in Azure Repos."""

    comments: list[str]

    def do_GET(self) -> None:
        threads = [{"id": 1, "comments": [{"id": 5, "content": None}]}, {"id": 3, "comments": []}]
        threads += [
            {
                "id": 4,
                "comments": [{"id": 6, "content": f"{marker('test')}\nthe plan of another environment"}],
            }
        ]
        threads += [{"id": 7, "comments": [{"id": 9, "content": text}]} for text in self.comments]
        self._answer({"value": threads})

    def do_POST(self) -> None:
        assert (
            self.path
            == "/collection/project/_apis/git/repositories/repo/pullRequests/12/threads?api-version=7.1"
        )
        self.comments.append(self._body()["comments"][0]["content"])
        self._answer({})

    def do_PATCH(self) -> None:
        assert self.path.endswith("/pullRequests/12/threads/7/comments/9?api-version=7.1")
        self.comments[:] = [self._body()["content"]]
        self._answer({})

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""

    def _body(self) -> Any:
        assert self.headers["Authorization"] == "Bearer token"
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, document: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())


def test_azure_has_one_comment_that_each_plan_replaces(tmp_path: Path) -> None:
    recipe = read(next(path for path in RECIPES if path.name.startswith("azure")))
    (script,) = [step["script"] for _, step in steps(recipe) if "comment.py" in step.get("script", "")]
    comments: list[str] = []
    with served(Threads, comments=comments) as port:
        variables = {
            "SYSTEM_COLLECTIONURI": f"http://127.0.0.1:{port}/collection/",
            "SYSTEM_TEAMPROJECTID": "project",
            "BUILD_REPOSITORY_ID": "repo",
            "SYSTEM_PULLREQUEST_PULLREQUESTID": "12",
            "SYSTEM_ACCESSTOKEN": "token",
            "DELTA_ENGINE_ENV": "prod",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        for text in (f"{MARKER}\nfirst", f"{MARKER}\nzweite Fassung: ä"):
            (tmp_path / "plan.md").write_text(text, "utf-8")
            subprocess.run(["bash", "-e", "-c", script], env=os.environ | variables, cwd=tmp_path, check=True)
            assert comments == [text]
        (tmp_path / "plan.md").unlink()  # the checks before the plan failed
        subprocess.run(["bash", "-e", "-c", script], env=os.environ | variables, cwd=tmp_path, check=True)
        assert comments == [NO_PLAN]


MARKER = marker("prod")
NO_PLAN = f"{MARKER}\n### No plan\n\nThis run failed before it could plan. Its log says why.\n"
GH = """\
#!{python}
import json, sys
from pathlib import Path

api, *arguments = sys.argv[1:]
assert api == "api", api
file = Path("comments.json")
comments = json.loads(file.read_text())
if "--jq" in arguments:
    assert arguments[0] == "repos/o/r/issues/12/comments" and "--paginate" in arguments
    assert arguments[arguments.index("--jq") + 1] == {chooses!r}
    ours = [number for number, (login, body) in enumerate(comments)
            if login == "github-actions[bot]" and body.startswith({marker!r})]
    for number in ours:
        print(f"https://api.github.com/repos/o/r/issues/comments/{{number}}")
else:
    silent, method, verb, target, field, body = arguments
    assert (silent, method, field) == ("--silent", "--method", "-F"), arguments
    text = Path(body.removeprefix("body=@")).read_text("utf-8")
    if verb == "POST":
        assert target == "repos/o/r/issues/12/comments"
        comments.append(["github-actions[bot]", text])
    else:
        comments[int(target.rpartition("/")[2])][1] = text
    file.write_text(json.dumps(comments))
"""
CHOOSES = f'.[] | select(.user.login == "github-actions[bot]" and (.body | startswith("{MARKER}"))) | .url'


@pytest.mark.parametrize("workflow", ["github-actions.yml", "monorepo/workflows/plan.yml"])
def test_github_replaces_the_comment_with_the_marker_and_no_other(workflow: str, tmp_path: Path) -> None:
    recipe = read(RECIPES[0].parent / workflow)
    (step,) = [step for _, step in steps(recipe) if step.get("name") == "Comment"]
    gh = tmp_path / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text(GH.format(python=sys.executable, chooses=CHOOSES, marker=MARKER))
    gh.chmod(0o755)
    own = {name: text for name, text in step["env"].items() if name != "GH_TOKEN"}
    variables = {
        **own,
        "MARKER": own["MARKER"].replace(
            "${{ env.DELTA_ENGINE_ENV }}", recipe["env"].get("DELTA_ENGINE_ENV", "")
        ),
        "COMMENTS": own["COMMENTS"]
        .replace("${{ github.repository }}", "o/r")
        .replace("${{ github.event.pull_request.number }}", "12"),
        "PATH": f"{gh.parent}{os.pathsep}{os.environ['PATH']}",
    }
    others = [
        ["jo", f"{MARKER}\nquoted"],
        ["github-actions[bot]", "coverage: 90 %"],
        ["github-actions[bot]", f"{marker('test')}\nthe plan of another environment"],
    ]
    (tmp_path / "comments.json").write_text(json.dumps(others))

    def comments_after(text: str) -> list[list[str]]:
        if text:
            (tmp_path / "plan.md").write_text(text, "utf-8")
        subprocess.run(
            ["bash", "-e", "-c", step["run"]], env=os.environ | variables, cwd=tmp_path, check=True
        )
        (tmp_path / "plan.md").unlink()
        posted: list[list[str]] = json.loads((tmp_path / "comments.json").read_text())
        return posted

    for text in (f"{MARKER}\nfirst", f"{MARKER}\nzweite Fassung: ä"):
        assert comments_after(text) == [*others, ["github-actions[bot]", text]]
    late = ["github-actions[bot]", "a later comment of another workflow"]
    (tmp_path / "comments.json").write_text(json.dumps([*others, ["github-actions[bot]", text], late]))
    assert comments_after("") == [*others, ["github-actions[bot]", NO_PLAN], late]


def _command_line(folder: Path) -> Path:
    command = folder / "bin" / "delta-engine"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m delta_engine "$@"\n')
    command.chmod(0o755)
    return command.parent


@pytest.mark.parametrize(
    "recipe",
    [RECIPES[0], *(pytest.param(recipe, marks=pytest.mark.long) for recipe in RECIPES[1:])],
    ids=lambda path: str(path.name),
)
def test_a_merge_applies_what_was_planned(
    recipe: Path, workspace: FakeWorkspace, sql: WarehouseSql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(workspace, tmp_path, monkeypatch, environment="prod")
    run = Runner(recipe, tmp_path)
    assert run("plan") == [0, 0, 0]
    assert run.pending() == "2"
    assert "dev.silver.orders" in (project / "plan.md").read_text()
    assert sql.catalog.tables == {}
    assert run("apply") == [0]
    assert list(sql.catalog.tables) == ["dev.silver.orders"]

    models = project / "conf" / "models" / "orders.yml"
    models.write_text(ORDERS.replace("Order total", "Total"))
    assert run("plan") == [0, 0, 0]
    sql.catalog.run("COMMENT ON TABLE `dev`.`silver`.`orders` IS 'somebody was here'")
    assert run("apply") == [3]  # the plan is stale


def test_a_pull_request_that_drops_a_column_is_green_when_its_consent_is_in_it(
    workspace: FakeWorkspace, sql: WarehouseSql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(workspace, tmp_path, monkeypatch, environment="prod")
    run = Runner(RECIPES[0], tmp_path)
    assert (run("plan"), run("apply")) == ([0, 0, 0], [0])
    models = project / "conf" / "models" / "orders.yml"
    models.write_text(
        ORDERS.replace('      - {name: amount, type: "decimal(18,2)", comment: Order total}\n', "")
    )
    assert run("plan") == [0, 0, 1]
    comment = (project / "plan.md").read_text()
    entries = comment.partition("```yaml\n")[2].partition("```")[0]
    (project / "conf" / "consents.yml").write_text(entries.replace("(write why)", "moved to pricing"))
    assert run("plan") == [0, 0, 0]
    assert "moved to pricing (conf/consents.yml:2, until " in (project / "plan.md").read_text()
    assert run("apply") == [0]
    assert "amount" not in str(sql.catalog.tables["dev.silver.orders"])
