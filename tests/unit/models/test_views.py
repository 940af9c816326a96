"""Views as models: names, modes, documented columns."""

from __future__ import annotations

from typing import Any

import pytest

from delta_engine.errors import InvalidModelError, SourceLocation
from delta_engine.models.views import SchemaMode, View, ViewColumn, ViewName, repeated_view_columns

QUERY = "SELECT id FROM dev.silver.orders"


def view(**changes: Any) -> View:
    return View("Dev", "gold", "Revenue", **{"query": QUERY, **changes})


def test_names_compare_in_lower_case() -> None:
    name = view().qualified_name
    assert name == ViewName("Dev", "gold", "Revenue")
    assert (str(name), name.key, name.parts) == (
        "Dev.gold.Revenue",
        "dev.gold.revenue",
        ("dev", "gold", "revenue"),
    )
    assert view().key == name.key
    assert ViewName.kind == "view"


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (None, None),
        ("binding", SchemaMode.BINDING),
        ("COMPENSATION", SchemaMode.COMPENSATION),
        ("type_evolution", SchemaMode.TYPE_EVOLUTION),
        (" Type  Evolution", SchemaMode.TYPE_EVOLUTION),
        (SchemaMode.EVOLUTION, SchemaMode.EVOLUTION),
    ],
)
def test_modes_have_names(text: Any, mode: SchemaMode | None) -> None:
    assert view(schema_mode=text).schema_mode is mode


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="Use one of: binding, compensation, type evolution, evolution"):
        view(schema_mode="strict")


@pytest.mark.parametrize(
    ("argument", "value"),
    [("query", 1), ("columns", [1]), ("comment", None), ("query_file", 3), ("tags", {"a": 1}), ("owner", 5)],
)
def test_values_of_other_types_are_refused(argument: str, value: object) -> None:
    with pytest.raises(TypeError, match=argument):
        view(**{argument: value})


def test_the_file_of_a_query_does_not_make_two_views_differ() -> None:
    assert view(query_file="a.sql") == view()
    assert view(query=f"{QUERY} -- all") != view()


def test_two_columns_of_one_name_are_refused_in_python_and_reported_for_files() -> None:
    columns = [ViewColumn("a"), ViewColumn("A", "x")]
    with pytest.raises(InvalidModelError, match="documents column 'a' twice"):
        view(columns=columns)
    from_file = view(columns=columns, declared_at=SourceLocation("views.yml", 3))
    assert [repetition.column for repetition in repeated_view_columns(from_file.columns)] == ["a"]


def test_former_names_are_in_the_same_schema() -> None:
    assert view(renamed_from=["Income", "Sales"]).former_names == (
        ViewName("Dev", "gold", "Income"),
        ViewName("Dev", "gold", "Sales"),
    )


def test_grants_and_tags_have_the_form_of_every_model() -> None:
    model = view(
        grants={"analysts": ["select"]},
        tags={"b": "1", "a": "2"},
        columns=[ViewColumn("id", tags={"pii": "no"})],
    )
    assert model.grants == {"analysts": ("SELECT",)}
    assert list(model.tags) == ["a", "b"]
    assert model.columns[0].tags == {"pii": "no"}
    assert hash(model) == hash(view(grants={}, columns=[ViewColumn("id")]))
