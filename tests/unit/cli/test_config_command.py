"""`delta-engine config show`: the merged configuration as YAML and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.projects.commandline import CommandLine

BASE = """\
backend: {type: oss}
models: {yaml: ["conf/models/*.yml"]}
apply: {parallelism: 8}
"""

NEAR = """\
extends: ../base/prod.yml
environment: prod
variables: {catalog: prod, password: hunter2}
defaults:
  table_properties: {team: "${catalog}"}
"""


@pytest.fixture(autouse=True)
def _project(here: Path) -> None:
    for name, text in (("base/prod.yml", BASE), ("conf/prod.yml", NEAR)):
        (here / name).parent.mkdir()
        (here / name).write_text(text)


def test_the_configuration_is_shown_as_yaml(delta_engine: CommandLine) -> None:
    result = delta_engine("-e", "prod", "config", "show")
    assert (result.code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:3] == ["environment: prod  # conf/prod.yml:2", "backend:", "  type: oss  # base/prod.yml:1"]
    assert "  parallelism: 8  # base/prod.yml:3" in lines
    assert '  password: "***"  # conf/prod.yml:3' in lines
    assert "    team: prod  # conf/prod.yml:5" in lines
    assert "  create_schemas: false  # default" in lines


def test_the_configuration_is_shown_as_json(delta_engine: CommandLine) -> None:
    document = json.loads(delta_engine("config", "show", "-e", "prod", "--json").stdout)
    assert document["values"][0] == {
        "path": ["environment"],
        "value": "prod",
        "origin": {"file": "conf/prod.yml", "line": 2},
    }
    assert "hunter2" not in str(document)


def test_a_broken_base_is_refused(delta_engine: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "base" / "prod.yml").write_text(BASE + "polcy: {}\n")
    result = delta_engine("-e", "prod", "config", "show")
    assert (result.code, result.stdout) == (3, "")
    assert result.stderr == (
        "refused: base/prod.yml:4 (extended by conf/prod.yml:1): unknown key 'polcy'. Did you mean 'policy'?\n"
        "more: delta-engine explain invalid-configuration\n"
    )


def test_help_teaches(delta_engine: CommandLine) -> None:
    assert "Example: " in delta_engine("config", "show", "--help").stdout
