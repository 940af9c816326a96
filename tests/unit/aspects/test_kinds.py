"""The kinds of securables: each is found by its names, models and states."""

from __future__ import annotations

from typing import Any

import pytest

from delta_engine.aspects import KINDS, after_create, differences, kind_of
from delta_engine.aspects.aspect import RenderContext
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.kind import Kind
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    Parameter,
    PolicyMask,
    PolicyScope,
    Schema,
    Table,
    View,
    ViewColumn,
    resource_key,
)

MODELS: dict[str, Any] = {
    "schema": Schema("dev", "silver", "clean", tags={"pii": "no"}, owner="ann"),
    "function": Function(
        "dev",
        "silver",
        "hide",
        "string",
        "upper(v)",
        [Parameter("v", "string")],
        comment="clean",
        tags={"pii": "no"},
        owner="ann",
        grants={"bob": ["EXECUTE"]},
    ),
    "policy": AbacPolicy(
        "mask_pii",
        PolicyScope("schema", "dev.silver"),
        PolicyMask("dev.silver.hide", "m"),
        ["account users"],
        match={"m": "has_tag('pii')"},
    ),
    "table": Table("dev", "silver", "orders", [Column("id", "int")], tags={"pii": "no"}, owner="ann"),
    "view": View(
        "dev",
        "silver",
        "clean",
        "SELECT id, name AS label FROM dev.silver.orders",
        [ViewColumn("id", "The order", tags={"pii": "no"})],
        tags={"pii": "no"},
        owner="ann",
        grants={"bob": ["SELECT"]},
    ),
}

pytestmark = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.word)


def test_each_part_tells_its_kind(kind: Kind) -> None:
    model = MODELS[kind.word]
    assert kind_of(model) is kind_of(model.qualified_name) is kind_of(kind.created(model)) is kind
    assert resource_key(model.qualified_name) == f"{kind.word}.{model.key}"


def test_a_created_securable_lacks_what_its_next_statements_add(kind: Kind) -> None:
    model = MODELS[kind.word]
    later = {type(action) for action in after_create(model)}
    missing = {
        type(difference.action) for difference in differences(Comparison.of(model, kind.created(model)))
    }
    assert bool(later) is any(aspect.completes_create for aspect in kind.aspects)
    assert later <= missing


def test_its_create_statement_names_it(kind: Kind) -> None:
    model = MODELS[kind.word]
    context = RenderContext(model.qualified_name, CatalogAddressing(), DATABRICKS)
    _, first = next(iter(kind.create(model, context)))
    own = str(model.qualified_name).partition(" ")[0].split(".")
    assert first.startswith(f"CREATE {kind.word.upper()} ")
    assert ".".join(f"`{part}`" for part in own) in first
