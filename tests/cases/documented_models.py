"""The examples of docs/models.md. They declare every facet once, and tests take their values from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from delta_engine.aspects import COLUMN_FACETS, FUNCTION_FACETS, POLICY_FACETS, SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.config.loading import models_of_text
from delta_engine.models import AbacPolicy, Column, Function, Schema, Table
from tests.cases.golden_cases import settings_for

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FILES = {"yaml": EXAMPLES / "every_key.yml", "python": EXAMPLES / "every_key.py"}
"""The same models in both languages."""

VARIABLES = {"catalog": "dev"}


def example(language: str) -> str:
    """Return the code of the example in a language."""
    return FILES[language].read_text("utf-8")


def declared(facets: Iterable[Facet[Any, Any, Any]], models: Iterable[Any]) -> dict[str, Any]:
    """Return the fields of facets, each with the value of the first model that declares it."""
    all_models = [*models]
    return {
        facet.attribute: next(facet.declared(model) for model in all_models if facet.is_declared(model))
        for facet in facets
        if any(map(facet.is_declared, all_models))
    }


def write_bodies(folder: Path) -> Path:
    """Write the files that the example names into a folder, and return the folder."""
    (folder / "functions").mkdir()
    (folder / "functions" / "clean_iban.py").write_text("return iban.replace(' ', '')\n", "utf-8")
    (folder / "views").mkdir()
    query = "SELECT id FROM ${catalog}.sales.customers\n"
    (folder / "views" / "best_customers.sql").write_text(query, "utf-8")
    return folder


with TemporaryDirectory() as _folder:
    _settings = settings_for(write_bodies(Path(_folder)), yaml=FILES["yaml"].name, **VARIABLES)
    MODELS = models_of_text(example("yaml"), FILES["yaml"].name, _settings)
TABLES = [model for model in MODELS if isinstance(model, Table)]
SCHEMAS = [model for model in MODELS if isinstance(model, Schema)]
FUNCTIONS = [model for model in MODELS if isinstance(model, Function)]
POLICIES = [model for model in MODELS if isinstance(model, AbacPolicy)]
COLUMNS = [column for table in TABLES for column in table.columns]

WHOLE_TABLE = replace(
    Table("dev", "silver", "orders", [Column("id", "int")]),
    **declared(TABLE_FACETS, TABLES),
    cluster_by=("id",),
)
"""A table that declares every facet, whether or not they go together."""

WHOLE_COLUMN = replace(Column("mail", "string"), **declared(COLUMN_FACETS, COLUMNS))
"""A column that declares every facet, whether or not they go together."""

WHOLE_SCHEMA = replace(Schema("dev", "silver"), **declared(SCHEMA_FACETS, SCHEMAS))
"""A schema that declares every facet."""

WHOLE_FUNCTION = replace(FUNCTIONS[0], **declared(FUNCTION_FACETS, FUNCTIONS))
"""A function that declares every facet, whether or not they go together."""

WHOLE_POLICY = replace(POLICIES[0], **declared([*POLICY_FACETS[:2], *POLICY_FACETS[3:]], POLICIES))
"""A policy that declares every facet but the filter, whose place its mask has."""
