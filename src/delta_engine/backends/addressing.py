"""The SQL that addresses a table: its three-part name, or its folder.

Addresses are in lower case, as Unity Catalog stores names, so that two spellings of a name never become two folders.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from delta_engine.models import QualifiedName
from delta_engine.sql.tables import sql_create_schema
from delta_engine.sql.text import quote_ident


class Addressing(Protocol):
    """Turns names into SQL."""

    def table(self, name: QualifiedName) -> str:
        """Return the SQL that addresses a table."""
        ...

    def create_schema(self, catalog: str, schema: str, comment: str = "") -> str | None:
        """Return the statement that creates a schema; None if schemas need none."""
        ...


@dataclass(frozen=True, slots=True)
class CatalogAddressing:
    """Three-part names, as the catalog resolves them."""

    def table(self, name: QualifiedName) -> str:
        """Return the three parts, each quoted."""
        return ".".join(map(quote_ident, name.key.split(".")))

    def create_schema(self, catalog: str, schema: str, comment: str = "") -> str:
        """Return CREATE SCHEMA."""
        return sql_create_schema(catalog.lower(), schema.lower(), comment)


@dataclass(frozen=True, slots=True)
class PathAddressing:
    """Tables by path: `dev.silver.orders` is the folder `<warehouse>/dev/silver/orders`; `warehouse` is absolute."""

    warehouse: Path

    def table(self, name: QualifiedName) -> str:
        """Return the folder in the form that Delta accepts as a table name."""
        return f"delta.{quote_ident(str(self.folder(name)))}"

    def create_schema(self, catalog: str, schema: str, comment: str = "") -> None:
        """Return None: a schema is a folder, created with its first table."""

    def folder(self, name: QualifiedName) -> Path:
        """Return the folder of a table."""
        return self.warehouse.joinpath(*name.key.split("."))
