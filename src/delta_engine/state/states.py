"""Immutable observed state: tables as the catalog has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Final

from delta_engine.models import (
    CheckConstraint,
    Column,
    ForeignKey,
    Grants,
    PrimaryKey,
    QualifiedName,
    Reference,
    RowFilter,
    SchemaName,
    Table,
)
from delta_engine.models.values import read_only, set_fields, to_grants, to_items, to_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a catalog notes of the life of a table or schema; None for what it does not say.

    Args:
        created_at: when it was created, UTC.
        created_by: by whom.
        altered_at: when its definition was changed last, UTC.
        altered_by: by whom.
    """

    created_at: datetime | None = None
    created_by: str | None = None
    altered_at: datetime | None = None
    altered_by: str | None = None


NO_AUDIT = Audit()


SECRET_KEY: Final = re.compile(r"secret|password|token|access[.]?key|url", re.IGNORECASE)
"""Keys of properties whose values sound like secrets or addresses of them: Spark's own patterns
(`spark.redaction.regex`, `spark.sql.redaction.options.regex`). Their values are nobody's business here."""

REDACTED: Final = "*********(redacted)"
"""What stands for such a value, wherever it comes from: the words in which Spark says it."""


class RelationKind(Enum):
    """What stands under a table's name."""

    TABLE = "a Delta table"
    STREAMING_TABLE = "a streaming table"  # its pipeline owns all but comments and tags


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """One table as it is.

    Args:
        exists: False for a table that is not there; everything else is then empty.
        columns: the columns in order, types canonical.
        table_comment: empty for none.
        table_properties: all properties that the platform shows, its own included.
        primary_key: the key with its name as the catalog spells it.
        foreign_keys: the keys with names and referenced columns, by name; tables by their whole names.
        checks: the enforced conditions as the catalog spells them, by name.
        not_null_checks: the columns that are NOT NULL by a check of the engine's own; it is none of `checks`.
        cluster_by: the columns of liquid clustering, in order.
        clusters_automatically: whether the platform chooses those columns.
        partitioned_by: the columns of Hive-style partitioning, in order.
        tags: Unity Catalog's tags.
        row_filter: the function that decides who sees which rows.
        owner: who owns it; None where the platform knows no owners.
        grants: the privileges that were granted on the table itself, by principal.
        location: where an external table's files are; None for a managed one.
        referenced_by: the foreign keys of other tables that point here.
        relation: what it is.
        former_name: the name that it still has, where its model has another (`renamed_from`).
        audit: by whom and when; not a part of what the table is.
    """

    exists: bool = True
    columns: tuple[Column, ...] = ()
    table_comment: str = ""
    table_properties: Mapping[str, str] = field(default_factory=dict)
    primary_key: PrimaryKey | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[CheckConstraint, ...] = ()
    not_null_checks: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    clusters_automatically: bool = False
    partitioned_by: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    row_filter: RowFilter | None = None
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    location: str | None = None
    referenced_by: tuple[Reference, ...] = ()
    relation: RelationKind = RelationKind.TABLE
    former_name: QualifiedName | None = None
    audit: Audit = field(default=NO_AUDIT, compare=False)

    def __post_init__(self) -> None:
        set_fields(
            self,
            columns=to_items(self.columns, Column, "columns"),
            table_properties=read_only(_without_secrets(self.table_properties)),
            foreign_keys=to_items(self.foreign_keys, ForeignKey, "foreign_keys"),
            checks=to_items(self.checks, CheckConstraint, "checks"),
            not_null_checks=to_names("not_null_checks", self.not_null_checks),
            cluster_by=to_names("cluster_by", self.cluster_by),
            partitioned_by=to_names("partitioned_by", self.partitioned_by),
            tags=read_only(self.tags),
            grants=to_grants(self.grants),
            referenced_by=to_items(self.referenced_by, Reference, "referenced_by"),
        )


def _without_secrets(properties: Mapping[str, str]) -> Mapping[str, str]:
    return {key: REDACTED if SECRET_KEY.search(key) else value for key, value in properties.items()}


ABSENT = TableState(exists=False)


def state_of(table: Table) -> TableState:
    """Return a table that is as its definition says, all names filled in, and nothing beside."""
    return TableState(
        columns=table.columns,
        table_comment=table.comment,
        table_properties=table.effective_table_properties,
        primary_key=table.primary_key,
        foreign_keys=table.foreign_keys,
        checks=table.checks,
        cluster_by=table.cluster_by,
        clusters_automatically=table.clusters_automatically,
        partitioned_by=table.partitioned_by,
        tags=table.tags,
        row_filter=table.row_filter,
        owner=table.owner,
        grants=table.grants,
        location=table.location,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """One schema as it is; everything is empty where the platform keeps no such thing.

    Args:
        exists: False for a schema that is not there; everything else is then empty.
        comment: empty for none.
        tags: Unity Catalog's tags.
        owner: who owns it; None where the platform knows no owners.
        grants: the privileges that were granted on the schema itself, by principal.
        audit: by whom and when it was made and changed, as far as the platform notes it.
    """

    exists: bool = True
    comment: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    audit: Audit = field(default=NO_AUDIT, compare=False)

    def __post_init__(self) -> None:
        set_fields(self, tags=read_only(self.tags), grants=to_grants(self.grants))


ABSENT_SCHEMA = SchemaState(exists=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """A snapshot: the state of every table that was asked for.

    Args:
        tables: states by the tables' `QualifiedName.key`.
        missing_schemas: (catalog, schema) pairs, in lower case, that models need and nobody created.
        unasked: the other tables of the models' schemas, sorted by name.
        audits: by whom and when, for those that were not asked for, by `QualifiedName.key`.
        schema_states: the schemas that exist, by `Schema.key`, as far as they were read.
    """

    tables: Mapping[str, TableState]
    missing_schemas: frozenset[tuple[str, str]] = frozenset()
    unasked: tuple[QualifiedName, ...] = ()
    audits: Mapping[str, Audit] = field(default_factory=dict, compare=False)
    schema_states: Mapping[str, SchemaState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_fields(
            self,
            tables=MappingProxyType(dict(self.tables)),
            missing_schemas=frozenset(self.missing_schemas),
            unasked=to_items(self.unasked, QualifiedName, "unasked"),
            audits=MappingProxyType(dict(self.audits)),
            schema_states=MappingProxyType(dict(self.schema_states)),
        )

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

    def schema(self, name: SchemaName) -> SchemaState | None:
        """Return one schema's state; None if the snapshot does not know whether it exists."""
        is_missing = (name.catalog.lower(), name.schema.lower()) in self.missing_schemas
        return self.schema_states.get(name.key, ABSENT_SCHEMA if is_missing else None)
