"""Completes foreign keys: whole table names, referenced columns, names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from delta_engine.models import ForeignKey, QualifiedName, Table
from delta_engine.models.constraint_names import build_foreign_key_name


def resolved(models: Sequence[Table]) -> tuple[Table, ...]:
    """Return models with complete foreign keys; `models` are all declared models."""
    if not any(model.foreign_keys for model in models):
        return tuple(models)
    parents = {model.key: model for model in models}
    return tuple(
        replace(model, foreign_keys=resolved_keys(model, parents), declared_at=model.declared_at)
        if model.foreign_keys
        else model
        for model in models
    )


def resolved_keys(model: Table, parents: Mapping[str, Table]) -> tuple[ForeignKey, ...]:
    """Return a model's foreign keys, completed from the declared tables (`parents`, by `QualifiedName.key`)."""
    return tuple(_resolved(model.qualified_name, key, parents) for key in model.foreign_keys)


def referenced_table(table: QualifiedName, key: ForeignKey) -> QualifiedName | None:
    """Return the table that a foreign key references; None if it names none."""
    try:
        return table.resolve(key.references)
    except ValueError:
        return None


def referenced_tables(model: Table) -> Iterator[QualifiedName]:
    """Yield the tables that a model's foreign keys reference."""
    for key in model.foreign_keys:
        referenced = referenced_table(model.qualified_name, key)
        if referenced is not None:
            yield referenced


def _resolved(table: QualifiedName, key: ForeignKey, parents: Mapping[str, Table]) -> ForeignKey:
    referenced = referenced_table(table, key)
    if referenced is None:
        return key
    parent = parents.get(referenced.key)
    parent_key = parent.primary_key if parent else None
    return ForeignKey(
        key.columns,
        referenced,
        key.referenced_columns or (parent_key.columns if parent_key else ()),
        key.name or build_foreign_key_name(table, key.columns, referenced),
        key.rely,
    )
