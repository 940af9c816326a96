"""The schemas for editors: they take every file of the repository, and see what a schema can see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from delta_engine.config.editor_schemas import EDITOR_SCHEMAS, editor_schema
from delta_engine.config.lint import HOUSE_RULES
from tests.cases.documented_models import example
from tests.cases.golden_texts import assert_golden
from tests.unit.config.projects import CONFIG, MODELS, refused
from tests.unit.config.test_broken_configuration import BROKEN, FILES, refusals

ROOT = Path(__file__).parents[3]
PUBLISHED = {
    "model": "model-file-v1",
    "config": "configuration-v1",
    "policy": "drift-policy-v1",
    "consents": "consents-v1",
    "lint": "house-rules-v1",
}
NAMES = {
    "dev.yml": "config",
    "models/m.yml": "model",
    "drift-policy.yml": "policy",
    "consents.yml": "consents",
}


@cache
def validator(name: str) -> Draft7Validator:
    return Draft7Validator(json.loads(editor_schema(name)))


def parsed(text: str) -> Any:
    """Return a YAML text as an editor sees it: a date is a text."""
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text), default=str))


def complaints(name: str, text: str) -> list[str]:
    return [error.message for error in validator(name).iter_errors(parsed(text))]


def files() -> Iterator[tuple[str, Path]]:
    """Yield the name of the schema and the path of each model file and configuration of the repository."""
    for conf in (ROOT / "conf", ROOT / "src/delta_engine/skeleton/conf"):
        yield from (("model", path) for path in (conf / "models").rglob("*.yml"))
        yield from (("config", path) for path in conf.glob("*.yml"))
    for path in (ROOT / "tests/golden").glob("*/*.yml"):
        yield "model", path
    yield "model", ROOT / "tests/golden_transcripts/project/silver.yml"
    yield "config", ROOT / "tests/golden_transcripts/project/dev.yml"


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_schema_is_the_generated_one(name: str, request: pytest.FixtureRequest) -> None:
    path = ROOT / "docs" / "schemas" / f"{PUBLISHED[name]}.json"
    assert_golden(editor_schema(name) + "\n", path, request)
    Draft7Validator.check_schema(json.loads(editor_schema(name)))
    assert PUBLISHED.keys() == EDITOR_SCHEMAS.keys()


def test_every_file_of_the_repository_fits() -> None:
    complaints_by_file = {str(path): complaints(name, path.read_text("utf-8")) for name, path in files()}
    assert len(complaints_by_file) > 100
    assert {path: messages for path, messages in complaints_by_file.items() if messages} == {}


def test_the_example_names_its_schemas() -> None:
    for name, path in files():
        if path.is_relative_to(ROOT / "conf"):
            first = path.read_text("utf-8").splitlines()[0]
            schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
            assert schema.resolve() == ROOT / "docs" / "schemas" / f"{PUBLISHED[name]}.json"


def test_the_documented_model_fits() -> None:
    assert complaints("model", example("yaml")) == []


COMPLETE = "environment: dev\nbackend: {type: oss}\nmodels: {}\n"


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        (COMPLETE, True),
        (f"{COMPLETE}extends: ../base.yml\n", True),
        ("extends: ../base.yml\n", True),
        (
            "extends: a.yml\nbackend: {warehouse_id: a}\nstate_backend: {s3: {prefix: a}, lock: {table: b}}\n",
            True,
        ),
        ("extends: a.yml\nstate_backend: {remote: {region: a}}\n", True),
        ("environment: dev\n", False),
        ("environment: dev\nbackend: {names: path}\nmodels: {}\n", False),
        ("extends: [a.yml]\n", False),
        ("extends: ''\n", False),
        ("extends: ${a}.yml\n", False),
        ("extends: a.yml\nmodles: {}\n", False),
        ("extends: a.yml\nbackend: {type: os}\n", False),
        ("extends: a.yml\napply: {parallelism: many}\n", False),
        ("extends: a.yml\npolicy: {drift_severities: [{fields: [a]}]}\n", False),
    ],
)
def test_only_a_configuration_that_extends_another_may_lack_keys(text: str, is_taken: bool) -> None:
    assert (complaints("config", text) == []) == is_taken


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("preset: recommended\nfail_on: note\n", True),
        ("rules: {Owners: true, MoneyTypes: off, PrimaryKeys: {severity: error}}\n", True),
        ("own_rules: ['conf.rules:Mine']\nrules: {Mine: {severity: error, word: x}}\n", True),
        ("own_rules: ['conf.rules:Mine']\nrules: {Owners: fatal}\n", False),
        ("rules: {MonyTypes: off}\n", False),
        ("suppressions: [{rules: [Owner], on: ['*'], reason: old, expires: 2999-01-01}]\n", False),
        ("suppressions: [{rules: [Owners], on: ['*'], reason: old, expires: 2999-01-01}]\n", True),
        ("preset: strict\n", False),
        ("rules: {Owners: fatal}\n", False),
        ("suppressions: [{rules: [Owners], on: ['*'], reason: old}]\n", False),
        ("suppressions: [{rules: [Owners], on: ['*'], reason: ' ', expires: 2999-01-01}]\n", False),
        ("rule: {}\n", False),
    ],
)
def test_house_rules(text: str, is_taken: bool) -> None:
    assert (complaints("lint", text) == []) == is_taken


def test_editors_complete_the_names_of_house_rules() -> None:
    rules = validator("lint").schema["$defs"]["LintDocument"]["properties"]["rules"]
    assert tuple(rules["properties"]) == HOUSE_RULES
    assert {"$ref": "#/$defs/Rule"} in rules["properties"].values()


def test_every_key_and_definition_is_described() -> None:
    for name in EDITOR_SCHEMAS:
        schema = EDITOR_SCHEMAS[name]()
        for definition, schema_part in schema["$defs"].items():
            assert schema_part["description"], definition
            if schema_part.get("type") == "object":
                others = {
                    "type",
                    "function",
                    "severity",
                    "columns",
                    "local",
                    "s3",
                    "databricks",
                    "lock",
                    "remote",
                    "cache",
                }
                bare = {
                    key for key, value in schema_part["properties"].items() if not value.get("description")
                }
                assert bare <= others, definition


UNSEEN = {
    "a column twice": "nullable: false}\n      - {name: ID, type: int}",
    "a nullable key column": "nullable: true}\n    primary_key: [id]",
    "a table's name": "name: or ders",
    "a date, which is a text in JSON": "comment: 2024-01-01",
    "another environment": "environment: prod",
    "no state backend": "type: databricks-warehouse, warehouse_id: a1",
    "a variable that a model uses": "variables: {catlog: dev}",
    "a variable that is not there": "${x}/*.yml",
    "a pattern without files": "conf/nope/*.yml",
    "no models": "yaml: []",
    "no tables": "tables: []",
    "half of a character": 'n: "\\ud83d \\ude80"',
    "half of a character in a key": '"\\ud83d": 7',
    "a schema's name": "{type: databricks, databricks: {schema: dev}}",
    "a lock without a table": "{type: s3, s3: {bucket: b}, lock: {type: dynamodb}}",
    "a table without its lock": "{type: s3, s3: {bucket: b}, lock: {table: x}}",
    "a lock in another place": "{type: local, lock: {type: dynamodb, table: x}}",
    "an unknown variable": "{type: s3, s3: {bucket: '${buket}'}}",
}
"""What is refused, and no schema sees: it depends on other values, on variables, or on other files."""


def refused_texts() -> Iterator[tuple[str, str, str]]:
    """Yield the schema, the changed part and the text of each refused file that is YAML."""
    cases = [("model", by, MODELS.replace(before, by)) for before, by, _ in refused("models")]
    cases += [("config", by, CONFIG.replace(before, by)) for before, by, _ in refused("configuration")]
    cases += [("config", text, f"{CONFIG}state_backend: {text}\n") for text, _ in refused("state backends")]
    cases += [("model", key, f"{MODELS}    {key}\n") for key, _ in refused("keys of tables")]
    cases += [("model", key, MODELS.replace("nullable: false", key)) for key, _ in refused("keys of columns")]
    for name, part, text in cases:
        try:
            parsed(text)
        except YAMLError:
            continue
        yield name, part, text


def test_every_refusal_that_a_schema_can_see_is_seen() -> None:
    unseen = {part for name, part, text in refused_texts() if not complaints(name, text)}
    assert unseen == set(UNSEEN.values())


NO_TYPE = "type is ''"
"""The reader takes an empty type for none, and a plan refuses the column; a schema refuses it at once."""


@given(st.sampled_from([case for case in BROKEN if not case[1].endswith(NO_TYPE)]))
def test_what_the_schema_refuses_is_refused_by_the_engine(case: tuple[str, str, Any]) -> None:
    name, what, broken = case
    if list(validator(NAMES[name]).iter_errors(broken)):
        texts = {file: json.dumps(document) for file, document in (FILES | {name: broken}).items()}
        assert refusals(texts), what
