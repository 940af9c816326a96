"""The tables of docs/models.md: the keys of tables and columns in model files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from delta_engine.aspects import COLUMN_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.config.model_fields import COLUMN_FIELDS, TABLE_FIELDS, ModelField

_HEAD = "| key | type | default | meaning |\n| --- | --- | --- | --- |\n"

_TABLE_ROWS = {
    "catalog": ("text", "required", "the catalog, usually a variable: see [Variables](#variables)"),
    "schema": ("text", "required", "the schema"),
    "name": ("text", "required", "the table"),
    "manages": (
        "list",
        "all",
        "the [parts](#a-part-of-a-table) that the model manages, if another owns the rest",
    ),
    "columns": ("list", "required", "at least one [column](#column), in the table's order"),
}
_COLUMN_ROWS = {
    "name": ("text", "required", "the column; keeps its case, compares without it"),
    "type": ("text", "required", "a [SQL type](#types)"),
}


def table_keys() -> str:
    """Return the keys of a table as a Markdown table."""
    return _keys(TABLE_FIELDS, TABLE_FACETS, _TABLE_ROWS)


def column_keys() -> str:
    """Return the keys of a column as a Markdown table."""
    return _keys(COLUMN_FIELDS, COLUMN_FACETS, _COLUMN_ROWS)


def _keys(
    fields: Sequence[ModelField[Any]],
    facets: Iterable[Facet[Any, Any, Any]],
    others: Mapping[str, tuple[str, str, str]],
) -> str:
    rows = {facet.key: (facet.form.words, _default(facet), facet.meaning or "") for facet in facets}
    rows |= others
    return _HEAD + "".join(f"| `{field.key}` | {' | '.join(rows[field.key])} |\n" for field in fields)


def _default(facet: Facet[Any, Any, Any]) -> str:
    if facet.default is not None:
        return facet.default
    match facet.form.write(facet.absent):
        case None:
            return "none"
        case "":
            return '`""`'
        case bool(flag):
            return f"`{str(flag).lower()}`"
        case Mapping():
            return "`{}`"
    return "`[]`"
