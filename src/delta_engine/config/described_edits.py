"""Says in words what to change in a model, for models that people edit by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from delta_engine.config.model_edit_texts import sources_of_columns
from delta_engine.config.model_writer import column_call
from delta_engine.config.python_text import literal, on_one_line
from delta_engine.models import Column, PrimaryKey, Table
from delta_engine.sql import sql_data_type


def described_edit(before: Table, after: Table | None, renames: Mapping[str, str] | None = None) -> str:
    """Return what to change and where, a line per change below the model's place and name.

    Args:
        before: the model as it was loaded, with where it was declared.
        after: the model as it shall be; None removes it.
        renames: new column names by old ones.

    Returns:
        Lines without a line break at the end.
    """
    where = f"{before.declared_at} " if before.declared_at else ""
    lines = ["remove the table"] if after is None else _changes(before, after, renames or {})
    return "\n  ".join((f"{where}{before.qualified_name}:", *lines))


def _changes(before: Table, after: Table, renames: Mapping[str, str]) -> Iterator[str]:
    if before.comment != after.comment:
        yield f"comment {before.comment!r} → {after.comment!r}"
    yield from _columns(before, after, renames)
    yield from _properties(before.table_properties, after.table_properties, "property")
    yield from _properties(
        before.default_table_properties, after.default_table_properties, "default property (environment)"
    )
    if before.primary_key != after.primary_key:
        yield f"primary key {_key(before.primary_key)} → {_key(after.primary_key)}"
    if before.cluster_by != after.cluster_by:
        yield f"cluster by {_listed(before.cluster_by)} → {_listed(after.cluster_by)}"


def _columns(before: Table, after: Table, renames: Mapping[str, str]) -> Iterator[str]:
    sources = sources_of_columns(before.columns, after.columns, renames)
    for place, column in enumerate(before.columns):
        if place not in sources:
            yield f"remove column {column.name}"
    for position, (source, column) in enumerate(zip(sources, after.columns, strict=True)):
        if source is None:
            where = f"after {literal(after.columns[position - 1].name)}" if position else "as the first"
            yield f"add {on_one_line(column_call(column))} {where}"
        else:
            yield from _column(before.columns[source], column)
    kept = [source for source in sources if source is not None]
    if kept != sorted(kept):
        yield f"order of the columns: {', '.join(column.name for column in after.columns)}"


def _column(before: Column, after: Column) -> Iterator[str]:
    if before.name != after.name:
        yield f"rename column {before.name} to {after.name}"
    if before.data_type != after.data_type:
        old, new = sql_data_type(before.data_type), sql_data_type(after.data_type)
        yield f"column {after.name}: type {old} → {new}"
    if before.is_nullable != after.is_nullable:
        yield f"column {after.name}: {_nullability(before)} → {_nullability(after)}"
    if before.comment != after.comment:
        yield f"column {after.name}: comment {before.comment!r} → {after.comment!r}"


def _properties(before: Mapping[str, str], after: Mapping[str, str], what: str) -> Iterator[str]:
    for key in sorted({*before, *after}):
        if key not in after:
            yield f"remove {what} {literal(key)}"
        elif key not in before:
            yield f"add {what} {literal(key)}: {literal(after[key])}"
        elif before[key] != after[key]:
            yield f"{what} {literal(key)}: {literal(before[key])} → {literal(after[key])}"


def _nullability(column: Column) -> str:
    return "nullable" if column.is_nullable else "not null"


def _key(key: PrimaryKey | None) -> str:
    if key is None:
        return "none"
    name = "" if key.name is None else f"{key.name} "
    return f"{name}{_listed(key.columns)}{' rely' if key.rely else ''}"


def _listed(columns: tuple[str, ...]) -> str:
    return f"({', '.join(columns)})" if columns else "none"
