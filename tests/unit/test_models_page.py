"""The examples of the page about models: valid, as the engine writes them, and with every key that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from delta_engine.actions.policy import Policy
from delta_engine.config.model_text import COLUMN_FIELDS, FIELDS
from delta_engine.config.model_writer import python_models, yaml_models
from delta_engine.validation.validator import PlanValidator
from tests.cases.documented_models import FILES, MODELS, TABLES, VARIABLES, example, write_bodies
from tests.cases.golden_texts import assert_golden
from tests.projects.models import all_declared_in_python, settings_of


def test_the_example_is_as_the_engine_writes_it(request: pytest.FixtureRequest) -> None:
    assert_golden(yaml_models(MODELS, VARIABLES), FILES["yaml"], request)
    assert_golden(python_models(MODELS, VARIABLES), FILES["python"], request)


def test_the_example_is_valid_and_the_same_in_both_languages(tmp_path: Path) -> None:
    settings = settings_of(write_bodies(tmp_path), VARIABLES)
    assert all_declared_in_python(example("python"), settings) == MODELS
    assert not list(PlanValidator(Policy()).model_violations(TABLES))


@pytest.mark.parametrize(
    "field",
    [*COLUMN_FIELDS, *(field for fields in FIELDS.values() for field in fields)],
    ids=lambda field: field.key,
)
def test_every_key_is_in_the_example(field: object) -> None:
    key, argument = getattr(field, "key", ""), getattr(field, "argument", None)
    assert re.search(rf'\b{key}"?: ', example("yaml")) or f"{key}:\n" in example("yaml")
    if key not in ("name", "type"):
        assert f"{argument or key}=" in example("python")
