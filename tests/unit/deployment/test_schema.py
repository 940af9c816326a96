"""The published JSON schema is the one that the classes generate, and judges real documents."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from delta_engine.deployment.codec import encode_state, published_schema
from tests.builders import WORKED_MODEL
from tests.commandline import CommandLine
from tests.deployment_builders import deployment_state

PUBLISHED = Path(__file__).parents[3] / "docs" / "schemas" / "deployment-state-v1.json"

KEY = "table.dev.silver.orders"


@pytest.fixture
def validator() -> Draft202012Validator:
    schema = json.loads(PUBLISHED.read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture
def document() -> Any:
    return json.loads(encode_state(deployment_state(WORKED_MODEL)))


def test_the_published_schema_is_the_generated_one(delta_engine: CommandLine) -> None:
    assert PUBLISHED.read_text("utf-8") == published_schema() + "\n"
    assert delta_engine("state", "schema").stdout == published_schema() + "\n"


def test_real_documents_are_valid(validator: Draft202012Validator, document: Any) -> None:
    validator.validate(document)
    document["of a newer minor"] = 1
    document["resources"][KEY]["metadata"]["of a newer minor"] = {"a": []}
    validator.validate(document)


@pytest.mark.parametrize(
    "damage",
    [
        lambda document: document.pop("state_id"),
        lambda document: document.update(version=2),
        lambda document: document.update(serial=-1),
        lambda document: document.update(serial="7"),
        lambda document: document["resources"][KEY].update(status="fine"),
        lambda document: document["resources"][KEY].update(config_checksum="md5:abc"),
        lambda document: document["resources"][KEY]["metadata"]["definition"].pop("columns"),
        lambda document: document["metadata"]["last_apply_actions"].update(added=None),
    ],
)
def test_broken_documents_are_not(
    validator: Draft202012Validator, document: Any, damage: Callable[[Any], object]
) -> None:
    broken = copy.deepcopy(document)
    damage(broken)
    assert not validator.is_valid(broken)
