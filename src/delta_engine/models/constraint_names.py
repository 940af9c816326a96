"""Deterministic constraint names: same table and columns, same name, on every machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from delta_engine.models import QualifiedName

MAX_NAME_LENGTH = 255
"""Unity Catalog's limit for object names, in characters."""

RESERVED_CHECK_PREFIX = "delta_engine_not_null_"
"""How the names of checks begin that stand for NOT NULL; no other check may be called so."""

_HASH_LENGTH = 12

_IS_SAFE = re.compile(r"[a-z0-9_]*").fullmatch


def build_primary_key_name(table: QualifiedName, columns: Sequence[str]) -> str:
    """Return the derived name of a primary key, such as `pk_dev_silver_orders__id`.

    Lower case, because that is how Unity Catalog stores names (Databricks documentation, "Names"). Where letters had
    to be replaced, or the name would pass 255 characters, a hash of the exact names keeps it unique.
    """
    readable = f"pk_{table.catalog}_{table.schema}_{table.table}__{'_'.join(columns)}"
    return _name(readable.lower(), table.catalog, table.schema, table.table, *columns)


def build_foreign_key_name(table: QualifiedName, columns: Sequence[str], references: QualifiedName) -> str:
    """Return the derived name of a foreign key, such as `fk_dev_silver_orders__customer_id__customers`.

    The same rules hold as for primary keys. The referenced table's name keeps two keys over the same columns
    apart; that of another schema stands with its schema and a hash.
    """
    parts = (table.catalog, table.schema, table.table)
    is_near = references.catalog.lower() == parts[0].lower() and references.schema.lower() == parts[1].lower()
    parent = references.table if is_near else f"{references.schema}.{references.table}"
    readable = f"fk_{'_'.join(parts)}__{'_'.join(columns)}__{parent}".lower()
    return _name(readable, *parts, *columns, references.key)


def build_not_null_check_name(column: str) -> str:
    """Return the reserved name of the CHECK that stands for NOT NULL where a column cannot be tightened."""
    return _name(f"{RESERVED_CHECK_PREFIX}{column}".lower(), column)


def _name(readable: str, *exact: str) -> str:
    if _IS_SAFE(readable) and len(readable) <= MAX_NAME_LENGTH:
        return readable
    safe = re.sub(r"[^a-z0-9_]", "_", readable)
    digest = hashlib.sha256("\x1f".join(exact).lower().encode()).hexdigest()[:_HASH_LENGTH]
    return f"{safe[: MAX_NAME_LENGTH - _HASH_LENGTH - 1]}_{digest}"
