"""What editors need to check YAML: the schemas, the line that names them, and the settings of VS Code."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from delta_engine.cli.terminal import ExitCode
from delta_engine.config.editor_schemas import editor_schema
from tests.fakes.conformance_platform import ConformancePlatform
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.catalog_project import CONFIG
from tests.projects.commandline import CommandLine


def test_editors_check_the_files_of_a_new_project(delta_engine: CommandLine, here: Path) -> None:
    assert delta_engine("init", "retail").code == 0
    assert editor_problems(here / "retail") == []
    model = here / "retail" / "conf" / "models" / "orders.yml"
    model.write_text(model.read_text("utf-8").replace("type: bigint", "type: number"), "utf-8")
    assert len(editor_problems(here / "retail")) == 1


def test_editors_check_imported_models(delta_engine: CommandLine, here: Path) -> None:
    platform = ConformancePlatform(FakeUnityCatalog(["dev.silver"]))
    platform.run("CREATE TABLE `dev`.`silver`.`stranger` (`a` INT) USING delta")
    delta_engine.reach(lambda: platform)
    (here / "conf").mkdir()
    config = here / "conf" / "dev.yml"
    config.write_text(f"# yaml-language-server: $schema=schemas/config.json\n{CONFIG}", "utf-8")
    done = delta_engine("-e", "dev", "import", "dev.silver", "--to", "conf/models/silver/imported.yml")
    assert done.code == 0
    assert ".vscode/settings.json written: editors check YAML with it" in done.stderr
    text = (here / "conf/models/silver/imported.yml").read_text("utf-8")
    assert text.startswith("# yaml-language-server: $schema=../../schemas/model.json\ntables:\n")
    assert editor_problems(here) == []
    settings = here / ".vscode" / "settings.json"
    settings.write_text("{}", "utf-8")
    assert delta_engine("-e", "dev", "import", "dev.silver", "--to", "conf/models/again.yml").code == 0
    assert settings.read_text("utf-8") == "{}"
    assert not delta_engine("-e", "dev", "import", "dev.silver").stdout.startswith("#")


def editor_problems(project: Path) -> list[str]:
    """Return what an editor reports about the YAML files of a project's configuration."""
    problems = []
    globs = json.loads((project / ".vscode" / "settings.json").read_text("utf-8"))["yaml.schemas"]
    for path in (project / "conf").rglob("*.yml"):
        first, _, text = path.read_text("utf-8").partition("\n")
        schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
        named = [name for name, files in globs.items() if any(path in project.glob(glob) for glob in files)]
        if [project / name for name in named] != [schema.resolve()]:
            problems.append(f"{path}: {first}, {named}")
        document = YAML(typ="safe", pure=True).load(text)
        errors = Draft7Validator(json.loads(schema.read_text("utf-8"))).iter_errors(document)
        problems += [f"{path}: {error.message}" for error in errors]
    return problems


@pytest.mark.parametrize("name", ["model", "config", "policy"])
def test_schemas_are_printed(delta_engine: CommandLine, name: str) -> None:
    assert delta_engine("schema", name).stdout == editor_schema(name) + "\n"


def test_an_unknown_schema_is_refused(delta_engine: CommandLine) -> None:
    refused = delta_engine("schema", "modle")
    assert refused.code == ExitCode.REFUSED
    assert refused.stderr == (
        "refused: unknown schema 'modle'. Did you mean 'model'?\nmore: delta-engine explain invalid-command\n"
    )
