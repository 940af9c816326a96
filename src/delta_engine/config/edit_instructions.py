"""Renders model changes as instructions for models that the engine cannot edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from delta_engine.aspects.facet import Facet
from delta_engine.config.model_text import (
    COLUMN_FIELDS,
    Code,
    Values,
    as_code,
    code_of,
    column_call,
    fields_of,
    literal,
    on_one_line,
    sources_of_items,
    written_values,
)
from delta_engine.models import Securable, Table


def edit_instructions(
    before: Securable, after: Securable | None, renames: Mapping[str, str] | None = None
) -> str:
    """Return the model's place and name, and a line per change; `after` is None to remove the model."""
    where = f"{before.declared_at} " if before.declared_at else ""
    lines = _changes(before, after, renames or {})
    return "\n  ".join((f"{where}{before.qualified_name}:", *lines))


def _changes(before: Securable, after: Securable | None, renames: Mapping[str, str]) -> Iterator[str]:
    if after is None:
        yield f"remove the {before.qualified_name.kind}"
        return
    for field in fields_of(before):
        if field.key == "columns" and isinstance(before, Table) and isinstance(after, Table):
            yield from _columns(before, after, renames)
        else:
            yield from _field(field, before, after)
    if isinstance(before, Table) and isinstance(after, Table):
        defaults = (dict(model.default_table_properties) for model in (before, after))
        yield from _entries("default property (environment)", *defaults)


def _columns(before: Table, after: Table, renames: Mapping[str, str]) -> Iterator[str]:
    old, new = (
        [written_values(COLUMN_FIELDS, column) for column in model.columns] for model in (before, after)
    )
    sources = sources_of_items(old, new, renames)
    for place, column in enumerate(before.columns):
        if place not in sources:
            yield f"remove column {column.name}"
    for position, (source, column) in enumerate(zip(sources, after.columns, strict=True)):
        if source is None:
            where = f"after {literal(after.columns[position - 1].name)}" if position else "as the first"
            yield f"add {on_one_line(column_call(column))} {where}"
            continue
        if before.columns[source].name != column.name:
            yield f"rename column {before.columns[source].name} to {column.name}"
        for field in COLUMN_FIELDS[1:]:
            for change in _field(field, before.columns[source], column):
                yield f"column {column.name}: {change}"
    kept = [source for source in sources if source is not None]
    if kept != sorted(kept):
        yield f"order of the columns: {', '.join(column.name for column in after.columns)}"


def _field(field: Facet[Any, Any, Any], before: object, after: object) -> Iterator[str]:
    old, new = field.written_value(before), field.written_value(after)
    match old, new:
        case _ if old == new:
            return
        case Mapping(), Mapping() if field.entry:
            yield from _entries(field.entry, old, new)
        case list(), list() if field.entry:
            yield from (f"remove {_item(code_of(field, [item]))}" for item in old if item not in new)
            yield from (f"add {_item(code_of(field, [item]))}" for item in new if item not in old)
        case _:
            shown = ("none" if value is None else on_one_line(code_of(field, value)) for value in (old, new))
            yield f"{field.key.replace('_', ' ')} {' → '.join(map(str, shown))}"


def _entries(what: str, before: Values, after: Values) -> Iterator[str]:
    old, new = ({key: on_one_line(as_code(value)) for key, value in side.items()} for side in (before, after))
    for key in sorted({*old, *new}):
        if key not in new:
            yield f"remove {what} {literal(key)}"
        elif key not in old:
            yield f"add {what} {literal(key)}: {new[key]}"
        elif old[key] != new[key]:
            yield f"{what} {literal(key)}: {old[key]} → {new[key]}"


def _item(code: Code) -> str | None:
    assert isinstance(code, list)
    (item,) = code
    return on_one_line(item)
