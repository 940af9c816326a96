"""`--sarif`: refusals at the lines of the models, as code hosts read them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from delta_engine.cli.troubleshooting import sections
from delta_engine.errors import SourceLocation
from delta_engine.tools.pull_requests.sarif import Result, sarif
from tests.projects.commandline import CommandLine

CONFIG = (
    "environment: dev\nbackend: {type: oss}\nmodels: {yaml: [models.yml]}\nstate_backend: {type: local}\n"
)
CONF_FILE = Path("conf/dev.yml")
GOOD = """\
tables:
  - {catalog: dev, schema: silver, name: orders, columns: [{name: id, type: bigint}]}
"""
BAD = """\
tables:
  - catalog: dev
    schema: silver
    name: orders
    columns:
      - {name: id, type: bigint}
      - {name: id, type: int}
  - catalog: dev
    schema: silver
    name: customers
    columns: [{name: id, type: int}, {name: id, type: int}]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `my data` in a git repository, with a configuration."""
    folder = tmp_path / "my data"
    (folder / "conf").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (folder / "conf" / "dev.yml").write_text(CONFIG)
    monkeypatch.chdir(folder)
    return folder


def results_in(file: Path) -> list[dict[str, Any]]:
    log = json.loads(file.read_text())
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    driver = log["runs"][0]["tool"]["driver"]
    for rule in driver["rules"]:
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
    for result in log["runs"][0]["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    results: list[dict[str, Any]] = log["runs"][0]["results"]
    return results


def place(result: dict[str, Any]) -> tuple[str, int]:
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_refusals_of_models_have_their_lines(project: Path, delta_engine: CommandLine) -> None:
    (project / "models.yml").write_text(BAD)
    result = delta_engine("-e", "dev", "validate", "--sarif", "refusals.sarif")
    assert result.code == 3
    results = results_in(project / "refusals.sarif")
    assert [place(each) for each in results] == [("my%20data/models.yml", 7), ("my%20data/models.yml", 11)]
    assert all(each["level"] == "error" for each in results)
    assert len({each["partialFingerprints"]["primaryLocationLineHash"] for each in results}) == len(results)


def test_files_are_those_of_the_repository_from_any_folder(
    project: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "models.yml").write_text(BAD)
    (project / "notes").mkdir()
    monkeypatch.chdir(project / "notes")
    assert delta_engine("-e", "dev", "validate", "--sarif", "refusals.sarif").code == 3
    assert place(results_in(project / "notes" / "refusals.sarif")[0]) == ("my%20data/models.yml", 7)


@pytest.mark.parametrize("options", [(), ("-e", "unknown")])
def test_a_command_without_its_environment_is_shown_at_another_one(
    project: Path, delta_engine: CommandLine, options: tuple[str, ...]
) -> None:
    (project / "models.yml").write_text(GOOD)
    assert delta_engine(*options, "validate", "--sarif", "refusals.sarif").code == 3
    (result,) = results_in(project / "refusals.sarif")
    assert place(result) == ("my%20data/conf/dev.yml", 1)


def test_a_place_that_is_no_file_of_the_repository_is_part_of_the_message(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "models.py"
    elsewhere.write_text("")
    for file in ("the catalog", str(elsewhere)):
        result = Result(
            "drift", "error", "it differs", "dev.silver.orders", CONF_FILE, SourceLocation(file, 7)
        )
        log = json.loads(sarif([result], {}))
        (shown,) = log["runs"][0]["results"]
        assert place(shown) == ("my%20data/conf/dev.yml", 1)
        assert shown["message"]["text"] == f"{file}:7: dev.silver.orders: it differs"


def test_descriptions_are_no_longer_than_github_takes(project: Path) -> None:
    topics = sections()
    results = [Result(topic, "error", "it is wrong", "", CONF_FILE) for topic in topics]
    log = json.loads(sarif(results, topics))
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert max(len(rule["fullDescription"]["text"]) for rule in rules) <= 1_024
    assert {rule["id"]: rule["help"]["text"] for rule in rules} == topics


def test_a_refused_configuration_is_shown_at_its_file(project: Path, delta_engine: CommandLine) -> None:
    (project / "models.yml").write_text(GOOD)
    (project / "conf" / "dev.yml").write_text(CONFIG + "nonsense: 1\n")
    assert delta_engine("-e", "dev", "plan", "--sarif", "refusals.sarif").code == 3
    (result,) = results_in(project / "refusals.sarif")
    assert place(result) == ("my%20data/conf/dev.yml", 5)


def test_a_valid_project_has_no_results(project: Path, delta_engine: CommandLine) -> None:
    for models, code in ((BAD, 3), (GOOD, 0)):
        (project / "models.yml").write_text(models)
        assert delta_engine("-e", "dev", "validate", "--sarif", "new/refusals.sarif").code == code
        assert bool(results_in(project / "new" / "refusals.sarif")) is (code == 3)


def test_another_file_is_not_overwritten(project: Path, delta_engine: CommandLine) -> None:
    (project / "models.yml").write_text(GOOD)
    refused = delta_engine("-e", "dev", "validate", "--sarif", "models.yml")
    assert (refused.code, (project / "models.yml").read_text()) == (3, GOOD)
    assert "models.yml exists and is not a SARIF file. Name another file" in refused.stderr


def test_devices_and_links_stay_what_they_are(project: Path, delta_engine: CommandLine) -> None:
    (project / "models.yml").write_text(GOOD)
    os.mkfifo("pipe")
    for path in ("pipe", "conf"):
        assert delta_engine("-e", "dev", "validate", "--sarif", path).code == 3
    Path("link.sarif").symlink_to("real.sarif")
    for _ in range(2):
        assert delta_engine("-e", "dev", "validate", "--sarif", "link.sarif").code == 0
        assert Path("link.sarif").is_symlink()
    assert results_in(project / "real.sarif") == []


def test_several_projects_write_one_file_or_each_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name / "conf").mkdir(parents=True)
        (tmp_path / name / "conf" / "dev.yml").write_text(CONFIG)
        (tmp_path / name / "models.yml").write_text(GOOD if name == "b" else BAD)
    monkeypatch.chdir(tmp_path)
    assert delta_engine("-e", "dev", "-p", "*", "validate", "--sarif", "all.sarif").code == 3
    shared = results_in(tmp_path / "all.sarif")
    assert [place(result)[0] for result in shared] == ["a/models.yml"] * 2 + ["c/models.yml"] * 2
    assert delta_engine("-e", "dev", "-p", "*", "validate", "--sarif", "{project}.sarif").code == 3
    assert results_in(tmp_path / "b.sarif") == []
    assert [*results_in(tmp_path / "a.sarif"), *results_in(tmp_path / "c.sarif")] == shared
    assert delta_engine("-e", "dev", "-p", "b", "validate", "--sarif", "all.sarif").code == 0
    assert results_in(tmp_path / "all.sarif") == []
