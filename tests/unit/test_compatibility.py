"""The promise of docs/compatibility.md against the code, and the one version of this release everywhere."""

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import delta_engine
from delta_engine.aspects.conversions import NEW_PREFIX, OLD_PREFIX
from delta_engine.backends.stored_keys import PROPERTY_PREFIX
from delta_engine.cli.terminal import ExitCode
from delta_engine.deployment.document import (
    VERSION as STATE_VERSION,
)
from delta_engine.errors import DISTRIBUTION
from delta_engine.models.constraints import RESERVED_CHECK_PREFIX
from delta_engine.plan_files.document import VERSION as PLAN_VERSION

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "compatibility.md").read_text("utf-8")
SCHEMAS = sorted((DOCS / "schemas").glob("*.json"))

WHEEL = re.compile(r"delta_engine_uc-(\d+\.\d+\.\d+)-py3-none-any\.whl")
HOOKS = re.compile(r"rev: v(\d+\.\d+\.\d+)")


def section(heading: str) -> str:
    match = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    listed = re.findall(r"^\| (\d+) \| (\w+) \|$", section("Exit codes"), re.MULTILINE)
    assert listed == [(str(int(code)), code.name.lower()) for code in ExitCode]


def test_the_schemas_are_the_published_ones() -> None:
    listed = re.findall(r"\(schemas/([\w-]+\.json)\)", section("JSON documents"))
    assert sorted(listed) == [path.name for path in SCHEMAS]


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: str(path.name))
def test_a_schema_has_the_version_of_its_name(path: Path) -> None:
    name, number = path.stem.rsplit("-v", 1)
    schema = json.loads(path.read_text("utf-8"))
    assert schema["$id"].endswith(f"{name}:v{number}")


def test_the_current_formats_are_listed() -> None:
    assert f"deployment-state-v{STATE_VERSION}.json" in PAGE
    assert f"plan-file-v{PLAN_VERSION}.json" in PAGE


def test_the_reserved_names_are_those_of_the_code() -> None:
    names = section("Reserved names")
    for name in (PROPERTY_PREFIX, NEW_PREFIX, OLD_PREFIX, RESERVED_CHECK_PREFIX.rstrip("_")):
        assert f"`{name}" in names


def test_public_names_exist() -> None:
    assert "`delta_engine.__all__`" in PAGE
    for name in delta_engine.__all__:
        assert getattr(delta_engine, name) is not None


def test_one_version_everywhere() -> None:
    current = delta_engine.__version__
    assert version(DISTRIBUTION) == current
    assert f'\nversion = "{current}"\n' in (ROOT / "pyproject.toml").read_text("utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^## (\S+)", changelog, re.MULTILINE)[0] == current
    pages = [*DOCS.rglob("*.md"), *(DOCS / "recipes").rglob("*.yml")]
    text = "\n".join(path.read_text("utf-8") for path in pages)
    for pattern in (WHEEL, HOOKS):
        assert {*pattern.findall(text)} == {current}
