"""`lint`: house rules from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from delta_engine.config.settings import read_configuration
from delta_engine.config.yaml_documents import Document
from delta_engine.tools.lint.report import LintReport
from tests.builders.published_schemas import report_schema
from tests.projects.commandline import CommandLine, Result

CONFIG = (
    "environment: dev\nbackend: {type: oss}\nmodels: {yaml: [models.yml]}\nstate_backend: {type: local}\n"
)
MODELS = """\
tables:
  - catalog: dev
    schema: silver
    name: orders
    comment: All orders
    columns:
      - {name: id, type: bigint, nullable: false}
      - {name: total, type: double, comment: With taxes}
    primary_key: [id]
"""


class Project:
    """A project with models and house rules."""

    def __init__(self, folder: Path, delta_engine: CommandLine) -> None:
        self.folder = folder
        self._delta_engine = delta_engine
        (folder / "conf").mkdir()
        (folder / "conf" / "dev.yml").write_text(CONFIG)
        (folder / "models.yml").write_text(MODELS)

    def lints(self, rules: str | None, *arguments: str) -> Result:
        if rules is not None:
            (self.folder / "conf" / "lint.yml").write_text(rules)
        return self._delta_engine("-e", "dev", "lint", *arguments)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, delta_engine)


def test_findings_have_file_and_line_and_the_way_out(project: Project) -> None:
    result = project.lints("preset: recommended\n")
    assert result.code == 2
    assert result.stdout == (
        "models.yml:8: warning: table dev.silver.orders, column total: it holds money as double, which rounds. "
        "Declare `decimal(18, 2)` or another decimal. (MoneyTypes)\n"
        "1 warning\n"
    )


def test_a_project_without_a_file_sees_what_the_recommended_rules_find(project: Project) -> None:
    result = project.lints(None)
    assert (result.code, "MoneyTypes" in result.stdout) == (0, True)
    assert "note: conf/lint.yml does not exist: this is what the recommended rules find" in result.stderr
    assert project.lints(None, "--recommended").code == 2


def test_a_named_severity_fails_without_a_file(project: Project) -> None:
    result = project.lints(None, "--fail-on", "warning")
    assert (result.code, "nothing fails" in result.stderr) == (2, False)


def test_a_selection_does_not_judge_suppressions_of_other_tables(project: Project) -> None:
    suppression = "{rules: [Owners], on: [gold.sales], reason: old, expires: 2999-01-01}"
    rules = f"preset: recommended\nsuppressions: [{suppression}]\n"
    idle = "conf/lint.yml:2: the suppression finds nothing to accept"
    assert idle in project.lints(rules).stderr
    assert idle not in project.lints(rules, "-t", "silver.orders").stderr


def test_no_rule_is_on_by_default(project: Project) -> None:
    assert project.lints("rules: {}\n").stdout == "no findings\n"


@pytest.mark.parametrize("entry", ["false", "off", "{severity: note}", "note"])
def test_a_rule_is_switched_off_or_made_milder(project: Project, entry: str) -> None:
    assert project.lints(f"preset: recommended\nrules: {{MoneyTypes: {entry}}}\n").code == 0


def test_the_least_severity_that_fails_is_chosen(project: Project) -> None:
    rules = "preset: recommended\nfail_on: error\n"
    assert project.lints(rules).code == 0
    assert project.lints(rules, "--fail-on", "warning").code == 2


def test_findings_as_json_and_sarif(project: Project) -> None:
    document = json.loads(project.lints("preset: recommended\n", "--json").stdout)
    Draft202012Validator(json.loads(report_schema(LintReport))).validate(document)
    (finding,) = document["findings"]
    assert finding == {
        "rule": "MoneyTypes",
        "severity": "warning",
        "kind": "table",
        "name": "dev.silver.orders",
        "column": "total",
        "message": "it holds money as double, which rounds",
        "fix": "Declare `decimal(18, 2)` or another decimal.",
        "location": "models.yml:8",
    }
    (run,) = json.loads(project.lints(None, "--format", "sarif").stdout)["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("MoneyTypes", "warning")
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 8}
    assert run["tool"]["driver"]["rules"][0]["help"]["text"].startswith("Columns with names of money")


def test_an_unchanged_project_is_not_judged_again(project: Project) -> None:
    """The remembered findings are forged: a run that shows them did not parse."""
    rules = (
        "preset: recommended\n"
        "suppressions: [{rules: [MoneyTypes], on: [gold.x], reason: old, expires: 2999-01-01}]\n"
    )
    first = project.lints(rules)
    file = project.folder / ".delta-engine" / "cache" / "dev.lint.json"
    assert (first.code, project.lints(rules)) == (2, first)
    file.write_text(file.read_text().replace("which rounds", "as remembered"))
    assert "as remembered" in project.lints(rules).stdout
    assert "as remembered" in project.lints(None, "--format", "sarif").stdout
    assert "as remembered" not in project.lints(None, "-t", "silver.orders").stdout
    for change in (
        rules.replace("recommended", "recommended\nrules: {PrimaryKeys: error}"),
        rules.replace("2999", "2998"),
    ):
        file.write_text(file.read_text().replace("which rounds", "as remembered"))
        assert "as remembered" not in project.lints(change).stdout
    file.write_text(file.read_text().replace("which rounds", "as remembered"))
    (project.folder / "models.yml").write_text(MODELS.replace("With taxes", "No taxes"))
    assert "as remembered" not in project.lints(None).stdout


@pytest.mark.parametrize("arguments", [(), ("-t", "silver.orders")])
def test_the_settings_are_read_once(
    arguments: tuple[str, ...], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []

    def read(conf_dir: Path, environment: str) -> Document:
        reads.append(environment)
        return read_configuration(conf_dir, environment)

    monkeypatch.setattr("delta_engine.config.settings.read_configuration", read)
    assert project.lints("preset: recommended\n", *arguments).code == 2
    assert reads == ["dev"]


def test_a_file_whose_name_is_no_text_is_linted(project: Project) -> None:
    Path("models.yml").rename(os.fsdecode(b"models\xff.yml"))
    (project.folder / "conf" / "dev.yml").write_text(CONFIG.replace("models.yml", "models*.yml"))
    result = project.lints("preset: recommended\n")
    assert (result.code, "MoneyTypes" in result.stdout) == (2, True)


def test_findings_of_own_rules_are_not_remembered(project: Project) -> None:
    (project.folder / "house.py").write_text(OWN)
    assert project.lints("own_rules: ['house:NoOrders']\n").code == 2
    assert not (project.folder / ".delta-engine" / "cache" / "dev.lint.json").exists()


def test_suppressed_findings_are_counted(project: Project) -> None:
    suppression = (
        "suppressions: [{rules: [MoneyTypes], on: [silver.orders], reason: old, expires: 2999-01-01}]\n"
    )
    result = project.lints(f"preset: recommended\n{suppression}")
    assert (result.code, result.stdout) == (0, "no findings (1 suppressed)\n")


OWN = """\
from delta_engine.tools.lint.rule import HouseRule, finding

class NoOrders(HouseRule):
    \"\"\"No table is called like this.\"\"\"
    word: str = "orders"

    def check(self, models):
        for model in models:
            if self.word in str(model.qualified_name):
                yield finding(model, f"{self.word} again", "Call it otherwise.")
"""


def test_a_project_adds_its_own_rules(project: Project) -> None:
    (project.folder / "house.py").write_text(OWN)
    rules = "own_rules: ['house:NoOrders']\n"
    assert "orders again. Call it otherwise. (NoOrders)" in project.lints(rules).stdout
    (run,) = json.loads(project.lints(rules, "--format", "sarif").stdout)["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == "No orders"
    assert rule["help"] == rule["fullDescription"] == {"text": "No table is called like this."}
    assert project.lints(f"{rules}rules: {{NoOrders: {{word: customers}}}}\n").stdout == "no findings\n"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            "rules: {MoneyType: true}\n",
            "conf/lint.yml:1: unknown rule 'MoneyType'. Did you mean 'MoneyTypes'?",
        ),
        ("rules: {MoneyTypes: {name: x}}\n", "conf/lint.yml:1: rule MoneyTypes: unknown key 'name'"),
        ("rules: {MoneyTypes: fatal}\n", "'fatal' is not one of: on, off, error, warning, note"),
        ("rules: {TableNames: {pattern: '('}}\n", "rule TableNames: '(' is not a regular expression"),
        ("[1]\n", "house rules are a mapping"),
        ("suppressions: [{rules: [X], on: ['*'], reason: r, expires: 2999-01-01}]\n", "unknown rule 'X'"),
        ("suppressions: [{rules: [Owners], on: ['*'], reason: ' ', expires: 2999-01-01}]\n", "reason"),
        (
            "suppressions: [{rules: [Owners], on: ['*'], reason: r}]\n",
            "suppressions[0]: the key 'expires' is missing. Add the key.",
        ),
        (
            "suppressions: [{rule: [Owners], on: '*', reason: r, expires: 2999-01-01}]\n",
            "unknown key 'rule'. Did you mean 'rules'?",
        ),
        ("own_rules: 5\n", "own_rules: expected a list, got an integer"),
        (
            "rules: {TableNames: {in_schemas: {silver: 5}}}\n",
            "rule TableNames: in_schemas.silver: expected a string, got an integer",
        ),
        ("own_rules: ['models.yml:X']\n", "models.yml"),
        ("own_rules: ['pathlib:Path']\n", "is not a house rule"),
    ],
)
def test_wrong_house_rules_are_refused_with_their_line(project: Project, rules: str, message: str) -> None:
    result = project.lints(rules)
    assert (result.code, result.stdout) == (3, "")
    assert message in result.stderr
    assert "conf/lint.yml:1" in result.stderr


def test_a_rule_that_fails_is_named(project: Project) -> None:
    (project.folder / "failing.py").write_text(OWN.replace("self.word in str", "1 / 0 in str"))
    result = project.lints("own_rules: ['failing:NoOrders']\n")
    assert (result.code, result.stdout) == (3, "")
    assert "the house rule NoOrders failed: ZeroDivisionError: division by zero." in result.stderr


def test_a_rule_that_yields_something_else_is_named(project: Project) -> None:
    (project.folder / "other_yields.py").write_text(OWN.replace("yield finding(", "yield print("))
    result = project.lints("own_rules: ['other_yields:NoOrders']\n")
    assert result.code == 3
    assert (
        "the house rule NoOrders failed: TypeError: it yields None, which is not a finding." in result.stderr
    )


def test_an_invalid_model_is_refused_as_validate_does(project: Project) -> None:
    (project.folder / "models.yml").write_text(MODELS.replace("bigint", "bigintt"))
    assert project.lints("preset: recommended\n").code == 3


def test_the_rules_are_listed(project: Project) -> None:
    listed = project.lints(None, "--rules").stdout
    assert "MoneyTypes (recommended): Columns with names of money" in listed
    assert "    options: names" in listed


def test_the_file_is_no_environment(project: Project, delta_engine: CommandLine) -> None:
    project.lints("preset: recommended\n")
    assert "Name an environment with -e" in delta_engine("validate").stderr
