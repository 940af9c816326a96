"""Every facet has all its pieces: fields of the model and the state, a form that loses nothing, a part, a meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import msgspec
import pytest

from delta_engine.aspects import COLUMN_FACETS, SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.deployment.definitions import as_table, define
from delta_engine.deployment.stored_definitions import (
    ATTEMPTED_FACETS,
    PLAIN_DEFINITIONS,
    ColumnDefinition,
    TableDefinition,
)
from delta_engine.models import Column, Part, Schema, Table
from delta_engine.state.states import SchemaState, TableState, state_of
from delta_engine.validation.capability_rules import declared_features, without_features
from delta_engine.validation.model_rules import DeclaresOnlyWhatItManages
from tests.cases.documented_models import WHOLE_COLUMN, WHOLE_SCHEMA, WHOLE_TABLE

EMPTY_TABLE = Table("c", "s", "t", [Column("id", "int")])
KINDS: dict[str, tuple[Sequence[Facet[Any, Any, Any]], Any, Any, Any, Any, set[str]]] = {
    "table": (
        TABLE_FACETS,
        WHOLE_TABLE,
        EMPTY_TABLE,
        state_of(as_table(define(WHOLE_TABLE))),
        TableDefinition,
        {"catalog_name", "schema_name", "table_name", "columns", "manages", "default_table_properties"},
    ),
    "column": (
        COLUMN_FACETS,
        WHOLE_COLUMN,
        Column("id", "int"),
        WHOLE_COLUMN,
        ColumnDefinition,
        {"name", "data_type"},
    ),
    "schema": (
        SCHEMA_FACETS,
        WHOLE_SCHEMA,
        Schema("c", "s"),
        SchemaState(**{facet.attribute: facet.declared(WHOLE_SCHEMA) for facet in SCHEMA_FACETS}),
        PLAIN_DEFINITIONS["schema"],
        {"catalog_name", "schema_name"},
    ),
}
CASES = [pytest.param(kind, facet, id=f"{kind}-{facet.key}") for kind in KINDS for facet in KINDS[kind][0]]
NO_FACETS_OF_STATES = {
    "exists",
    "columns",
    "not_null_checks",
    "referenced_by",
    "unique_constraints",
    "relation",
    "former_name",
    "audit",
    "described",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_model_is_a_facet(kind: str) -> None:
    facets, full, *_, others = KINDS[kind]
    attributes = [facet.attribute for facet in facets]
    assert sorted(attributes) == sorted({field.name for field in fields(full)} - others - {"declared_at"})


@pytest.mark.parametrize(("kind", "state"), [("table", TableState), ("schema", SchemaState)])
def test_every_field_of_a_state_is_a_facet(kind: str, state: Any) -> None:
    observed = [facet for facet in KINDS[kind][0] if facet.observed is not None]
    assert len(observed) == len({field.name for field in fields(state)} - NO_FACETS_OF_STATES)


@pytest.mark.parametrize(("kind", "facet"), CASES)
def test_a_facet_is_declared_and_observed(kind: str, facet: Facet[Any, Any, Any]) -> None:
    _, full, empty, state, _, _ = KINDS[kind]
    assert facet.declared(full) == getattr(full, facet.attribute)
    assert facet.is_declared(full)
    assert not facet.is_declared(empty)
    assert facet.observed is None or facet.observed(state) == (facet.recorded or facet.declared)(full)


@pytest.mark.parametrize(("kind", "facet"), CASES)
def test_a_recorded_facet_comes_back(kind: str, facet: Facet[Any, Any, Any]) -> None:
    _, full, empty, _, definition, _ = KINDS[kind]
    keys = {field.name for field in msgspec.structs.fields(definition)}
    assert (facet.key in keys) == (facet.observed is not None or facet in ATTEMPTED_FACETS)
    for model in (full, empty):
        value = (facet.recorded or facet.declared)(model)
        data = msgspec.json.encode(facet.form.encode(value))
        decoded = facet.form.decode(msgspec.json.decode(data, type=facet.form.recorded_type))
        assert replace(model, **{facet.attribute: decoded}) == replace(model, **{facet.attribute: value})


@pytest.mark.parametrize(("kind", "facet"), CASES)
def test_a_facet_belongs_to_a_part_and_is_explained(kind: str, facet: Facet[Any, Any, Any]) -> None:
    assert facet.part is not None or kind == "schema"
    assert facet.meaning or facet.key == "clusters_automatically"
    assert bool(facet.title) or facet.key in {"nullable", "renamed_fields"} or kind == "schema"
    assert facet.form.words


@pytest.mark.parametrize("facet", TABLE_FACETS, ids=lambda facet: facet.key)
def test_a_facet_is_refused_where_its_part_is_not_managed(facet: Facet[Any, Any, Any]) -> None:
    declared = replace(EMPTY_TABLE, **{facet.attribute: getattr(WHOLE_TABLE, facet.attribute)})
    other = Part.TAGS if facet.part is not Part.TAGS else Part.GRANTS
    (refusal,) = DeclaresOnlyWhatItManages().check([replace(declared, manages=frozenset({other}))])
    assert (
        refusal.reason == f"it declares {facet.title}, but does not manage {facet.part and facet.part.value}"
    )
    assert not list(
        DeclaresOnlyWhatItManages().check([replace(declared, manages=frozenset({facet.part or other}))])
    )


def test_a_feature_can_be_left_out() -> None:
    model = replace(WHOLE_TABLE, columns=(WHOLE_COLUMN,), primary_key=None)
    features = {feature for feature, _ in declared_features(model)}
    facets: list[Facet[Any, Any, Any]] = [*TABLE_FACETS, *COLUMN_FACETS]
    assert features == {facet.feature for facet in facets} - {None}
    assert list(declared_features(without_features(model, features))) == []
