"""The SQL that addresses a table: its three-part name, or its folder.

Addresses are in lower case, as Unity Catalog stores names, so that two spellings of a name never become two folders.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from delta_engine.models import QualifiedName
from delta_engine.sql.text import quote_ident, sql_name


class Addressing(Protocol):
    """Turns names into SQL; `has_schemas` says whether a table needs an existing schema."""

    has_schemas: ClassVar[bool]

    def table(self, name: QualifiedName) -> str:
        """Return the SQL that addresses a table."""
        ...


@dataclass(frozen=True, slots=True)
class CatalogAddressing:
    """Three-part names, as the catalog resolves them."""

    has_schemas: ClassVar[bool] = True

    def table(self, name: QualifiedName) -> str:
        """Return the three parts, each quoted."""
        return sql_name(name)


@dataclass(frozen=True, slots=True)
class PathAddressing:
    """Tables by path: `dev.silver.orders` is the folder `<warehouse>/dev/silver/orders`; `warehouse` is absolute.

    A schema is a folder, created with its first table.
    """

    has_schemas: ClassVar[bool] = False
    warehouse: Path

    def table(self, name: QualifiedName) -> str:
        """Return the folder in the form that Delta accepts as a table name."""
        return f"delta.{quote_ident(str(self.folder(name)))}"

    def folder(self, name: QualifiedName) -> Path:
        """Return the folder of a table."""
        return self.warehouse.joinpath(*name.parts)
