"""The page about models: its example loads, both languages say the same, and it shows every key that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from delta_engine.actions.policy import Policy
from delta_engine.config.model_text import COLUMN_FIELDS, TABLE_FIELDS
from delta_engine.validation.validator import PlanValidator
from scripts.generated_pages import column_keys, table_keys
from tests.projects.models import load_python, load_yaml, settings_of

DOCS = Path(__file__).parents[2] / "docs"


def example(language: str) -> str:
    """Return the code in a language of the page's full example."""
    _, _, section = (DOCS / "models.md").read_text("utf-8").partition("## Everything at once")
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_valid_and_the_same_in_both_languages(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, {"catalog": "dev"})
    models = load_yaml(example("yaml"), settings)
    assert load_python(example("python"), settings) == models
    assert not list(PlanValidator(Policy()).model_violations(models))


@pytest.mark.parametrize("field", [*TABLE_FIELDS, *COLUMN_FIELDS], ids=lambda field: field.key)
def test_every_key_is_in_the_example(field: object) -> None:
    key, argument = getattr(field, "key", ""), getattr(field, "argument", None)
    assert re.search(rf"\b{key}: ", example("yaml")) or f"{key}:\n" in example("yaml")
    if key not in ("name", "type"):
        assert f"{argument or key}=" in example("python")


@pytest.mark.parametrize("table", [table_keys(), column_keys()], ids=["table", "column"])
def test_every_key_is_explained(table: str) -> None:
    assert table in (DOCS / "models.md").read_text("utf-8"), "run scripts/generated_pages.py"
