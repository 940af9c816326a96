"""The kinds of securables: each is found by its names, models and states."""

from __future__ import annotations

from typing import Any

import pytest

from delta_engine.actions import Create, TablePlan
from delta_engine.aspects import KINDS, after_create, differences, kind_of
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.kind import Kind
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.compile.compiler import compile_plan
from delta_engine.models import Column, Schema, Table
from delta_engine.ownership.recorded import resource_key

MODELS: dict[str, Any] = {
    "schema": Schema("dev", "silver", "clean", tags={"pii": "no"}, owner="ann"),
    "table": Table("dev", "silver", "orders", [Column("id", "int")], tags={"pii": "no"}, owner="ann"),
}

pytestmark = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)


def test_each_part_tells_its_kind(kind: Kind) -> None:
    model = MODELS[kind.word]
    assert kind_of(model) is kind_of(model.qualified_name) is kind_of(kind.created(model)) is kind
    assert resource_key(model.qualified_name).startswith(f"{kind.word}.dev.silver")


def test_a_created_securable_lacks_what_its_next_statements_add(kind: Kind) -> None:
    model = MODELS[kind.word]
    later = {type(action) for action in after_create(model)}
    missing = {
        type(difference.action) for difference in differences(Comparison.of(model, kind.created(model)))
    }
    assert later
    assert later <= missing


def test_its_create_statement_names_it(kind: Kind) -> None:
    model = MODELS[kind.word]
    compiled = compile_plan(TablePlan((Create(model),)), CatalogAddressing(), DATABRICKS)
    first = next(compiled.sql())
    path = ".".join(f"`{part}`" for part in model.qualified_name.parts)
    assert first.startswith(f"CREATE {kind.word.upper()} ")
    assert path in first
