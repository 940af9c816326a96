"""Immutable observed state: tables as the catalog has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from delta_engine.models import Column, PrimaryKey, QualifiedName, read_only


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a catalog notes of a table's life; None for what it does not say.

    Args:
        created_at: when the table was created, UTC.
        created_by: by whom.
        altered_at: when its definition was changed last, UTC.
        altered_by: by whom.
    """

    created_at: datetime | None = None
    created_by: str | None = None
    altered_at: datetime | None = None
    altered_by: str | None = None


NO_AUDIT = Audit()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """One table as it is.

    Args:
        exists: False for a table that is not there; everything else is then empty.
        columns: the columns in order, types canonical.
        table_comment: empty for none.
        table_properties: all properties that the platform shows, its own included.
        primary_key: the key with its name as the catalog spells it.
        cluster_by: the columns of liquid clustering, in order.
        audit: by whom and when; not a part of what the table is.
    """

    exists: bool = True
    columns: tuple[Column, ...] = ()
    table_comment: str = ""
    table_properties: Mapping[str, str] = field(default_factory=dict)
    primary_key: PrimaryKey | None = None
    cluster_by: tuple[str, ...] = ()
    audit: Audit = field(default=NO_AUDIT, compare=False)

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
        audits: by whom and when, for those that were not asked for, by `QualifiedName.key`.
    """

    tables: Mapping[str, TableState]
    missing_schemas: frozenset[tuple[str, str]] = frozenset()
    unasked: tuple[QualifiedName, ...] = ()
    audits: Mapping[str, Audit] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))

    @property
    def schemas(self) -> frozenset[tuple[str, str]]:
        """The (catalog, schema) pairs, in lower case, of the tables that were asked for, and exist."""
        pairs = (key.split(".")[:2] for key in self.tables)
        return frozenset((catalog, schema) for catalog, schema in pairs) - self.missing_schemas

    def with_tables(self, other: CatalogState) -> CatalogState:
        """Return this snapshot with another one's tables in it as well."""
        return replace(self, tables={**self.tables, **other.tables})

    def table(self, name: QualifiedName) -> TableState:
        """Return one table's state; absent if nothing was found.

        Raises:
            KeyError: the snapshot was not asked for this table.
        """
        return self.tables[name.key]
