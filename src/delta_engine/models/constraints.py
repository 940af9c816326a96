"""Names that are derived for keys, and keys with everything filled in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol, TypeVar

from delta_engine.models import Securable, Table, of_kind
from delta_engine.models.parts import ForeignKey, PrimaryKey, QualifiedName

_Model = TypeVar("_Model", bound=Securable)

MAX_NAME_LENGTH = 255
"""Unity Catalog's limit for object names, in characters."""

RESERVED_CHECK_PREFIX = "delta_engine_not_null_"
"""The prefix of checks that stand for NOT NULL; reserved for them."""

_HASH_LENGTH = 12

_IS_SAFE = re.compile(r"[a-z0-9_]*").fullmatch


def build_primary_key_name(table: QualifiedName, columns: Sequence[str]) -> str:
    """Return the derived name of a primary key, such as `pk_dev_silver_orders__id`.

    Lower case, because Unity Catalog stores names so (Databricks documentation, "Names"). If letters were replaced, or
    the name would exceed 255 characters, a hash of the exact names keeps it unique.
    """
    readable = f"pk_{table.catalog}_{table.schema}_{table.table}__{'_'.join(columns)}"
    return _name(readable.lower(), table.catalog, table.schema, table.table, *columns)


def build_foreign_key_name(table: QualifiedName, columns: Sequence[str], references: QualifiedName) -> str:
    """Return the derived name of a foreign key, such as `fk_dev_silver_orders__customer_id__customers`.

    The referenced table distinguishes two keys over the same columns. For a table in another schema, the name includes
    the schema and a hash.
    """
    parts = (table.catalog, table.schema, table.table)
    is_near = references.catalog.lower() == parts[0].lower() and references.schema.lower() == parts[1].lower()
    parent = references.table if is_near else f"{references.schema}.{references.table}"
    readable = f"fk_{'_'.join(parts)}__{'_'.join(columns)}__{parent}".lower()
    return _name(readable, *parts, *columns, references.key)


def build_not_null_check_name(column: str) -> str:
    """Return the reserved name of the CHECK that stands for NOT NULL."""
    return _name(f"{RESERVED_CHECK_PREFIX}{column}".lower(), column)


def _name(readable: str, *exact: str) -> str:
    if _IS_SAFE(readable) and len(readable) <= MAX_NAME_LENGTH:
        return readable
    safe = re.sub(r"[^a-z0-9_]", "_", readable)
    digest = hashlib.sha256("\x1f".join(exact).lower().encode()).hexdigest()[:_HASH_LENGTH]
    return f"{safe[: MAX_NAME_LENGTH - _HASH_LENGTH - 1]}_{digest}"


class Keyed(Protocol):
    """A table, declared or observed, that foreign keys may reference."""

    @property
    def primary_key(self) -> PrimaryKey | None:
        """The key that they reference; None if the table has no primary key."""


def resolved(
    models: Sequence[_Model], others: Mapping[str, Keyed] = MappingProxyType({})
) -> tuple[_Model, ...]:
    """Return models, tables with complete foreign keys.

    Args:
        models: all declared models.
        others: further tables that they reference, by `QualifiedName.key`.
    """
    tables = of_kind(Table, models)
    if not any(table.foreign_keys for table in tables):
        return tuple(models)
    parents: dict[str, Keyed] = {**others, **{table.key: table for table in tables}}
    return tuple(
        replace(model, foreign_keys=resolved_keys(model, parents), declared_at=model.declared_at)
        if isinstance(model, Table) and model.foreign_keys
        else model
        for model in models
    )


def resolved_keys(model: Table, parents: Mapping[str, Keyed]) -> tuple[ForeignKey, ...]:
    """Return a model's foreign keys, completed from the tables that they reference, by `QualifiedName.key`."""
    return tuple(_resolved(model.qualified_name, key, parents) for key in model.foreign_keys)


def referenced_table(table: QualifiedName, key: ForeignKey) -> QualifiedName | None:
    """Return the table that a foreign key references; None if it names none."""
    try:
        return table.resolve(key.references)
    except ValueError:
        return None


def referenced_tables(
    model: Table, chosen: Callable[[ForeignKey], bool] = lambda _key: True
) -> Iterator[QualifiedName]:
    """Yield the tables that a model's foreign keys reference, or those of the chosen keys."""
    for key in filter(chosen, model.foreign_keys):
        referenced = referenced_table(model.qualified_name, key)
        if referenced is not None:
            yield referenced


def tables_of_open_keys(models: Iterable[Securable]) -> Iterator[QualifiedName]:
    """Yield the tables that foreign keys reference without their columns."""
    for table in of_kind(Table, models):
        yield from referenced_tables(table, lambda key: not key.referenced_columns)


def _resolved(table: QualifiedName, key: ForeignKey, parents: Mapping[str, Keyed]) -> ForeignKey:
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
