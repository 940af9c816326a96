"""Every block of code in the documentation is run or checked, or the reason why not is in this module."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
import sqlglot
import yaml
from databricks.sdk.service.compute import Environment
from jsonschema import Draft7Validator

from delta_engine.cli.terminal import USAGE_ERROR
from delta_engine.config.model_text import LISTS
from delta_engine.config.yaml_documents import parse_document
from delta_engine.tools.importers.catalog import Catalog, Wanted
from delta_engine.tools.importers.odcs import read_contract
from delta_engine.tools.lint.house_rules import house_rules_of
from tests.cases.documentation import DOCS, PAGES, Block, blocks, console_steps, simple_commands
from tests.projects.commandline import parsed

BLOCKS = [block for page in PAGES for block in blocks(page)]

SEEN_ELSEWHERE: Final = {
    "mermaid": "tests/browser/test_site.py draws each diagram in a browser",
    "text": "output and usage, for readers; `make pages` writes most of it",
    "": "output and folders, for readers",
}
"""Languages whose blocks are not checked here, with the reason."""

RUN_ELSEWHERE: Final = ("docs/tutorial.md", "docs/python.md", "docs/pipeline.md", "README.md")
"""Pages whose Python runs on real Delta, in tests/integration: `test_tutorial.py` and `test_python_page.py`."""

OTHER_PROGRAMS: Final = {
    "cd": "enters a folder",
    "dbt": "is another package; tests/unit/tools/importers/test_dbt.py has its manifests",
    "databricks": "needs a workspace; tests/bundle checks the bundle that it deploys",
    "make": "a target of the Makefile; the demo and the tests themselves run it",
    "opentelemetry-instrument": "is a package of OpenTelemetry",
    "pip": "installs from a package index",
    "python": "installs from a package index",
    "python3": "makes a virtual environment",
    ".": "enters a virtual environment",
    "export": "sets a variable",
    "rm": "removes the copy that sed made",
}
"""Programs besides `delta-engine` in blocks of commands, with the reason why they are not run."""


def schema(name: str) -> Draft7Validator:
    return Draft7Validator(json.loads((DOCS / "schemas" / f"{name}.json").read_text("utf-8")))


MODEL_FILE, CONFIGURATION, DRIFT_POLICY, CONSENTS, HOUSE_RULES = map(
    schema, ("model-file-v1", "configuration-v1", "drift-policy-v1", "consents-v1", "house-rules-v1")
)
TABLE = {
    "catalog": "dev",
    "schema": "silver",
    "name": "orders",
    "columns": [{"name": "id", "type": "bigint"}],
}
ENVIRONMENT = {"environment": "dev", "backend": {"type": "oss"}, "models": {"yaml": ["conf/models/*.yml"]}}
CONFIGURATION_KEYS = {*CONFIGURATION.schema["$defs"]["Configuration"]["properties"]}


def check_yaml(block: Block) -> None:
    """Hold a block against the schema of the file that it is a part of, with what that file needs besides."""
    content: Any = parse_document(block.text, block.place).value
    if "expires:" in block.text:
        content = yaml.load(block.text, Loader=yaml.BaseLoader)
    if content is None:
        assert block.text.startswith("# yaml-language-server: ")
        return
    keys = set(content)
    if keys & LISTS.keys():
        MODEL_FILE.validate(content)
    elif "ignore_drift" in keys:
        DRIFT_POLICY.validate(content)
    elif "consents" in keys:
        CONSENTS.validate(content)
    elif "preset" in keys:
        document = parse_document(block.text, block.place)
        assert house_rules_of(document, DOCS).rules
        HOUSE_RULES.validate(json.loads(json.dumps(document.value, default=str)))
    elif keys == {"own_rules"}:
        assert ":" in content["own_rules"][0]  # tests/unit/cli/test_lint.py loads some
    elif keys <= CONFIGURATION_KEYS:
        CONFIGURATION.validate({**ENVIRONMENT, **content})
    elif "apiVersion" in keys:
        catalog = Catalog()
        read_contract(block.text, block.place, Wanted(environment="dev"), catalog)
        assert catalog.models
    elif keys == {"repos"}:
        assert "delta-engine-validate" in block.text  # tests/bundle/test_hooks.py runs the hooks
    elif keys == {"targets"}:
        assert "databricks.yml" in block.text  # of the bundle, whose files tests/bundle checks
    elif keys == {"dependencies"}:
        assert Environment.from_dict(content).as_dict() == content  # of a job's environment
    else:
        MODEL_FILE.validate({"tables": [{**TABLE, **content}]})


def check_python(block: Block) -> None:
    code = compile(block.text, block.place, "exec")
    if block.place.split(":")[0] not in RUN_ELSEWHERE:
        exec(code, {"__name__": "documented"})


def check_json(block: Block) -> None:
    assert json.loads(block.text)


def check_sql(block: Block) -> None:
    assert all(sqlglot.parse(block.text, dialect="databricks"))


def check_commands(block: Block) -> None:
    for command in simple_commands(block):
        program = command[0]
        if program == "delta-engine":
            try:
                parsed(shlex.join(command))
            except USAGE_ERROR as error:
                pytest.fail(f"{block.place}: {command}: {error}")
        else:
            assert program in OTHER_PROGRAMS, f"{block.place}: nothing says why {program} is not run"


def check_console(block: Block) -> None:
    """Check the commands of a terminal; the tutorial's are run by a test of their own."""
    steps = list(console_steps(block))
    assert steps
    for command, _ in steps:
        program, *_ = words = shlex.split(command)
        is_run = block.page.name == "tutorial.md"
        assert is_run or (program == "delta-engine" and parsed(shlex.join(words))), (
            f"{block.place}: {program}"
        )


CHECKS: Final[Mapping[str, Callable[[Block], None]]] = {
    "yaml": check_yaml,
    "python": check_python,
    "py": check_python,
    "json": check_json,
    "sql": check_sql,
    "sh": check_commands,
    "console": check_console,
}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_every_block_is_checked(block: Block) -> None:
    if block.language in SEEN_ELSEWHERE:
        return
    assert block.language in CHECKS, f"{block.place}: nothing checks blocks of {block.language}"
    CHECKS[block.language](block)


def test_reasons_are_needed() -> None:
    languages = {block.language for block in BLOCKS}
    assert set(SEEN_ELSEWHERE) | set(CHECKS) == languages
    used: set[Any] = {
        command[0] for block in BLOCKS if block.language == "sh" for command in simple_commands(block)
    }
    assert {*OTHER_PROGRAMS, "delta-engine"} == used


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("yaml", "tables: [{catalog: dev, schema: a, nme: b, columns: []}]"),
        ("yaml", "policy: {alow: []}"),
        ("yaml", "primary_key: {column: [a]}"),
        ("python", "from delta_engine import Tabel"),
        ("json", "{'a': 1}"),
        ("sql", "SELECT FROM WHERE ,"),
        ("sh", "delta-engine -e dev plann"),
        ("sh", "delta-engine -e dev plan > a && terraform apply"),
        ("console", "$ delta-engine -e dev sync --yess\n"),
    ],
)
def test_a_wrong_block_is_found(language: str, text: str) -> None:
    block = Block(page=DOCS / "page.md", line=1, language=language, title="", text=text)
    with pytest.raises(BaseException):  # noqa: B017, PT011
        CHECKS[language](block)
