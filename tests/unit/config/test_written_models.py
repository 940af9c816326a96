"""Models as text: what is written loads as the same tables and schemas."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.config.model_writer import python_models, yaml_models
from delta_engine.models import AbacPolicy, Column, Function, PrimaryKey, Schema, Securable, Table, View
from tests.builders.models import WORKED_MODEL
from tests.projects.models import (
    HOSTILE,
    all_declared_in_python,
    all_declared_in_yaml,
    declared_in_python,
    declared_in_yaml,
    functions,
    hostile_texts,
    load_python,
    load_yaml,
    policies,
    schemas,
    settings_of,
    tables,
    temporary_settings,
    views,
)

variables = st.dictionaries(
    st.sampled_from(["catalog", "schema", "x", " y", "a}b", "it's"]), hostile_texts, max_size=4
)


@pytest.mark.parametrize(
    ("variables", "catalog", "schema"),
    [
        ({}, "dev", "silver"),
        ({"b": "dev", "a": "dev"}, "${a}", "silver"),
        ({"a": "dev", "catalog": "dev"}, "${catalog}", "silver"),
        ({"catalog": "DEV", "schema": "silver"}, "dev", "${schema}"),
        ({"layer": "silver"}, "dev", "silver"),
        ({" a": "dev", "b}": "dev"}, "dev", "silver"),
    ],
)
def test_only_whole_names_become_variables(variables: dict[str, str], catalog: str, schema: str) -> None:
    lines = yaml_models([WORKED_MODEL], variables).splitlines()
    assert lines[1:3] == [f"  - catalog: {catalog}", f"    schema: {schema}"]


@pytest.mark.parametrize("text", HOSTILE)
def test_awkward_texts_load_as_they_were(text: str, tmp_path: Path) -> None:
    table = Table(
        text or "c",
        text or "s",
        text or "t",
        [Column(text or "n", "int", comment=text)],
        text,
        {text: text},
        PrimaryKey([text or "n"], text),
        cluster_by=[text or "n"],
    )
    project = settings_of(tmp_path, {"catalog": text})
    assert load_yaml(yaml_models([table], project.variables), project) == (table,)
    assert load_python(python_models([table], project.variables), project) == (table,)


@settings(deadline=None)
@given(st.lists(tables(), min_size=1, max_size=3), st.lists(schemas(), max_size=2), variables)
def test_written_models_load_alike(
    written: list[Table], beside: list[Schema], variables: dict[str, str]
) -> None:
    with temporary_settings(variables) as project:
        expected = (tuple(written), tuple(beside))
        assert declared_in_yaml(yaml_models([*written, *beside], variables), project) == expected
        assert declared_in_python(python_models([*written, *beside], variables), project) == expected


@settings(deadline=None)
@given(st.lists(functions(), min_size=1, max_size=3), st.lists(policies(), max_size=2), tables(), variables)
def test_written_functions_and_policies_load_alike(
    written: list[Function], beside: list[AbacPolicy], table: Table, variables: dict[str, str]
) -> None:
    models: tuple[Securable, ...] = (*written, table, *beside)
    with temporary_settings(variables) as project:
        assert all_declared_in_yaml(yaml_models(models, variables), project) == models
        assert all_declared_in_python(python_models(models, variables), project) == models


@settings(deadline=None)
@given(tables(), st.lists(views(), min_size=1, max_size=3), variables)
def test_written_views_load_alike(table: Table, written: list[View], variables: dict[str, str]) -> None:
    models: tuple[Securable, ...] = (table, *written)
    with temporary_settings(variables) as project:
        assert all_declared_in_yaml(yaml_models(models, variables), project) == models
        assert all_declared_in_python(python_models(models, variables), project) == models
