"""Models with one column, type, field or property changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload

from delta_engine.aspects.delta_properties import comparable
from delta_engine.models import Column, Table, View, ViewColumn
from delta_engine.models.nested_types import Path, with_field_at
from delta_engine.models.types import DataType


@overload
def with_column(model: Table, name: str, change: Callable[[Column], Column]) -> Table: ...


@overload
def with_column(model: View, name: str, change: Callable[[ViewColumn], ViewColumn]) -> View: ...


def with_column(model: Any, name: str, change: Callable[[Any], Any]) -> Any:
    """Return a model with one column changed; the model itself if it lacks the column."""
    columns = (change(column) if column.key == name.lower() else column for column in model.columns)
    return replace(model, columns=tuple(columns))


def with_type(model: Table, name: str, change: Callable[[DataType], DataType]) -> Table:
    """Return a model with the type of one column changed."""
    return with_column(model, name, lambda column: replace(column, data_type=change(column.data_type)))


def with_part(model: Table, name: str, path: Path, change: Callable[[Any], Any]) -> Table:
    """Return a model with one column changed, or with the field at `path` inside it changed."""
    if not path:
        return with_column(model, name, change)
    return with_type(model, name, lambda whole: with_field_at(whole, path, change))


def with_property(model: Table, key: str, value: str | None) -> Table:
    """Return a model with one property changed, as the model spells it. None removes it unless it is a default."""
    own = next((name for name in model.table_properties if comparable(name) == comparable(key)), key)
    kept = {name: text for name, text in model.table_properties.items() if name != own}
    return replace(model, table_properties=kept if value is None else {**kept, own: value})
