"""Immutable observed state: tables as the catalog has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from delta_engine.models import Column, PrimaryKey, QualifiedName, read_only


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """One table as it is.

    Args:
        exists: False for a table that is not there; everything else is then empty.
        columns: the columns in order, types canonical.
        table_comment: empty for none.
        table_properties: all properties that the platform shows, its own included.
        primary_key: the key with its name as the catalog spells it.
    """

    exists: bool = True
    columns: tuple[Column, ...] = ()
    table_comment: str = ""
    table_properties: Mapping[str, str] = field(default_factory=dict)
    primary_key: PrimaryKey | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "table_properties", read_only(self.table_properties))


ABSENT = TableState(exists=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """A snapshot: the state of every table that was asked for.

    Args:
        tables: states by the tables' `QualifiedName.key`.
        missing_schemas: (catalog, schema) pairs, in lower case, that models need and nobody created.
        unasked: the other tables of the models' schemas, sorted by name.
    """

    tables: Mapping[str, TableState]
    missing_schemas: frozenset[tuple[str, str]] = frozenset()
    unasked: tuple[QualifiedName, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))

    @property
    def schemas(self) -> frozenset[tuple[str, str]]:
        """The (catalog, schema) pairs, in lower case, of the tables that were asked for, and exist."""
        pairs = (key.split(".")[:2] for key in self.tables)
        return frozenset((catalog, schema) for catalog, schema in pairs) - self.missing_schemas

    def table(self, name: QualifiedName) -> TableState:
        """Return one table's state; absent if nothing was found.

        Raises:
            KeyError: the snapshot was not asked for this table.
        """
        return self.tables[name.key]
