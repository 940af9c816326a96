"""The hooks for pre-commit: each entry runs as pre-commit runs it, on the files that it chooses."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.projects.commandline import CommandLine, Result, parsed

ROOT = Path(__file__).parents[2]
HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
}
KEYS = {
    "id",
    "name",
    "description",
    "entry",
    "language",
    "types",
    "files",
    "pass_filenames",
    "require_serial",
}


def run(delta_engine: CommandLine, name: str, files: Sequence[str], *args: str) -> Result:
    """Run a hook as pre-commit does: the entry, the arguments of the configuration, then the files it chooses."""
    hook = HOOKS[name]
    chosen = [file for file in files if re.search(hook["files"], file)]
    _, *entry = shlex.split(hook["entry"])
    return delta_engine(*entry, *args, *(chosen if hook.get("pass_filenames", True) else ()))


def test_there_are_three() -> None:
    assert [*HOOKS] == ["delta-engine-validate", "delta-engine-lint", "delta-engine-fmt"]


@pytest.mark.parametrize("hook", HOOKS.values(), ids=lambda hook: hook["id"])
def test_a_hook_is_what_pre_commit_takes(hook: dict[str, Any]) -> None:
    assert hook.keys() <= KEYS
    assert hook["language"] == "python"
    assert re.compile(hook["files"])
    assert parsed(hook["entry"]) in ("validate", "lint", "fmt")


@pytest.mark.parametrize(
    ("name", "file", "is_chosen"),
    [
        ("delta-engine-validate", "conf/dev.yml", True),
        ("delta-engine-validate", "teams/sales/conf/models/orders.yml", True),
        ("delta-engine-validate", "conf/models/guide.py", True),
        ("delta-engine-validate", "src/conf.py", False),
        ("delta-engine-fmt", "conf/models/silver/orders.yaml", True),
        ("delta-engine-fmt", "teams/sales/models/orders.yml", True),
        ("delta-engine-fmt", "conf/dev.yml", False),
        ("delta-engine-fmt", "conf/schemas/model.json", False),
        ("delta-engine-fmt", "dbt/submodels/orders.yml", False),
    ],
)
def test_a_hook_runs_for_these_files(name: str, file: str, is_chosen: bool) -> None:
    assert bool(re.search(HOOKS[name]["files"], file)) is is_chosen


def test_validate_runs_in_a_project(delta_engine: CommandLine, project: Path) -> None:
    files = ["conf/local.yml", "conf/models/orders.yml"]
    assert run(delta_engine, "delta-engine-validate", files, "-e", "local").code == 0
    path = project / "conf" / "models" / "orders.yml"
    path.write_text(path.read_text().replace("bigint", "bigit"))
    assert run(delta_engine, "delta-engine-validate", files, "-e", "local").code == 3


def test_fmt_formats_the_files_that_it_is_given(delta_engine: CommandLine, project: Path) -> None:
    files = ["conf/local.yml", "conf/models/orders.yml"]
    path = project / "conf" / "models" / "orders.yml"
    formatted = path.read_text()
    assert run(delta_engine, "delta-engine-fmt", files).code == 0
    assert path.read_text() == formatted
    path.write_text(formatted.replace("name: id, type: bigint", "type: bigint, name: id"))
    assert run(delta_engine, "delta-engine-fmt", files, "--check").code == 2
    assert run(delta_engine, "delta-engine-fmt", files).code == 0
    assert path.read_text() == formatted
