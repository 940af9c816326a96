"""Immutable catalog state: tables and schemas as the catalog has them, and the snapshot of all securables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Final, TypeAlias

from delta_engine.models import (
    CheckConstraint,
    Column,
    ForeignKey,
    FunctionName,
    Grants,
    PolicyName,
    PrimaryKey,
    QualifiedName,
    Reference,
    RowFilter,
    Schema,
    SchemaName,
    SecurableName,
    Table,
    ViewName,
)
from delta_engine.models.parts import read_only, set_fields, to_grants, to_items, to_names
from delta_engine.state.audits import NO_AUDIT, Audit
from delta_engine.state.function_states import FunctionState
from delta_engine.state.policy_states import PolicyState
from delta_engine.state.unmanaged import Unmanaged
from delta_engine.state.view_states import ViewState

SECRET_KEY: Final = re.compile(r"secret|password|token|access[.]?key|url", re.IGNORECASE)
"""Keys of properties whose values may be secrets: Spark's own patterns (`spark.redaction.regex`,
`spark.sql.redaction.options.regex`). Their values are never stored."""

REDACTED: Final = "*********(redacted)"
"""Replaces a secret value, spelled as Spark does."""


class RelationKind(Enum):
    """The kind of relation under a table name."""

    TABLE = "a Delta table"
    STREAMING_TABLE = "a streaming table"  # its pipeline owns everything but comments and tags


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """One table as the catalog has it.

    Args:
        exists: False for a missing table; all other fields are then empty.
        columns: in order, with canonical types.
        table_properties: all properties that the platform shows, its own included.
        primary_key: with its name as the catalog spells it.
        foreign_keys: sorted by name, with referenced columns and whole table names.
        unique_constraints: the names of informational UNIQUE constraints, sorted; the engine does not manage them.
        checks: enforced conditions as the catalog spells them, sorted by name.
        not_null_checks: the columns that are NOT NULL by a check of the engine, which is not in `checks`.
        cluster_by: the clustering columns, also those that the platform has chosen.
        clusters_automatically: whether the platform chooses the clustering columns.
        partitioned_by: the columns of Hive-style partitioning, in order.
        owner: None if the platform has no owners.
        grants: the privileges granted on the table itself, by principal.
        location: the location of an external table's files; None for a managed table.
        predictive_optimization: the setting of the table itself; None if the platform shows none.
        referenced_by: the foreign keys of other tables that reference this one.
        former_name: the table's name in the catalog if its model renames it (`renamed_from`).
        described: what the table's own description, which never lags, has of masks, by `Column.key`, and of the row
            filter, as an empty string; None if the table was listed and not asked. Descriptions of older runtimes have
            neither.
    """

    exists: bool = True
    columns: tuple[Column, ...] = ()
    table_comment: str = ""
    table_properties: Mapping[str, str] = field(default_factory=dict)
    primary_key: PrimaryKey | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique_constraints: tuple[str, ...] = ()
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
    predictive_optimization: str | None = None
    referenced_by: tuple[Reference, ...] = ()
    relation: RelationKind = RelationKind.TABLE
    former_name: QualifiedName | None = None
    described: frozenset[str] | None = field(default=None, compare=False, repr=False)
    audit: Audit = field(default=NO_AUDIT, compare=False)

    def __post_init__(self) -> None:
        given = self.table_properties.items()
        properties = {key: REDACTED if SECRET_KEY.search(key) else value for key, value in given}
        set_fields(
            self,
            columns=to_items(self.columns, Column, "columns"),
            table_properties=read_only(properties),
            foreign_keys=to_items(self.foreign_keys, ForeignKey, "foreign_keys"),
            unique_constraints=to_names("unique_constraints", self.unique_constraints),
            checks=to_items(self.checks, CheckConstraint, "checks"),
            not_null_checks=to_names("not_null_checks", self.not_null_checks),
            cluster_by=to_names("cluster_by", self.cluster_by),
            partitioned_by=to_names("partitioned_by", self.partitioned_by),
            tags=read_only(self.tags),
            grants=to_grants(self.grants),
            referenced_by=to_items(self.referenced_by, Reference, "referenced_by"),
        )


ABSENT = TableState(exists=False)


def with_described_protection(table: TableState) -> TableState:
    """Return a table with the row filter and masks that its own description names, and no others."""
    return with_protection(table, table.described or frozenset())


def without_described_protection(table: TableState) -> TableState:
    """Return a table with the row filter and masks that only views show."""
    return with_protection(table, protections_of(table) - (table.described or frozenset()))


def with_protection(table: TableState, kept: Collection[str]) -> TableState:
    """Return a table with some of its row filter and masks; `kept` has them as in `TableState.described`."""
    columns = tuple(column if column.key in kept else replace(column, mask=None) for column in table.columns)
    return replace(table, row_filter=table.row_filter if "" in kept else None, columns=columns)


def protections_of(table: TableState) -> frozenset[str]:
    """Return what a table has of a row filter and masks, as in `TableState.described`."""
    masks = {column.key for column in table.columns if column.mask is not None}
    return frozenset(masks if table.row_filter is None else {*masks, ""})


def state_of(table: Table) -> TableState:
    """Return the state of a table that is exactly as its model declares it, with all names completed."""
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
        predictive_optimization=table.predictive_optimization,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """One schema as the catalog has it; fields that the platform does not support are empty.

    Args:
        exists: False for a missing schema; all other fields are then empty.
        owner: None if the platform has no owners.
        grants: the privileges granted on the schema itself, by principal.
        predictive_optimization: the setting of the schema itself; None if it was not read.
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    exists: bool = True
    comment: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    predictive_optimization: str | None = None
    audit: Audit = field(default=NO_AUDIT, compare=False)

    def __post_init__(self) -> None:
        set_fields(self, tags=read_only(self.tags), grants=to_grants(self.grants))


ABSENT_SCHEMA = SchemaState(exists=False)


def schema_state_of(schema: Schema) -> SchemaState:
    """Return the state of a schema that is exactly as its model declares it."""
    return SchemaState(
        comment=schema.comment or "",
        tags=schema.tags,
        owner=schema.owner,
        grants=schema.grants,
        predictive_optimization=schema.predictive_optimization,
    )


SecurableState: TypeAlias = TableState | SchemaState | FunctionState | PolicyState | ViewState
"""What exists, of any kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """A snapshot of the catalog.

    Args:
        tables: the states of the requested tables, by `QualifiedName.key`.
        missing_schemas: the (catalog, schema) pairs, in lower case, that models need and that do not exist.
        other_tables: the other tables of the models' schemas, sorted by name.
        audits: creation and last change of the other tables, by `QualifiedName.key`.
        schema_states: the existing schemas that were read, by `Schema.key`.
        files: the Delta tables that lie at the locations of missing tables, by `QualifiedName.key`; None where none
            lies. Without unreadable locations, and empty until a plan asks (`state.existing_files`).
        functions: the functions of the models' schemas, by `FunctionName.key`; each declared one, also a missing one.
        policies: the policies of the models' scopes, by `PolicyName.key`; each declared one, also a missing one.
        other_routines: the routines of these schemas that the engine does not manage, by `FunctionName.key`.
        function_uses: the tables whose row filter calls a function, and the columns whose mask does, by
            `FunctionName.key`: pairs of `QualifiedName.key` and the column's key, None for the rows.
        other_policies: the policies of these scopes that the engine does not manage, by `PolicyName.key`.
        views: the declared and recorded views, by `ViewName.key`; each declared one, also a missing one.
        other_views: creation and last change of the other views of these schemas, by `ViewName.key`.
        by_kind: the states of each kind, by its word.
    """

    tables: Mapping[str, TableState]
    missing_schemas: frozenset[tuple[str, str]] = frozenset()
    other_tables: tuple[QualifiedName, ...] = ()
    audits: Mapping[str, Audit] = field(default_factory=dict, compare=False)
    schema_states: Mapping[str, SchemaState] = field(default_factory=dict)
    files: Mapping[str, TableState | None] = field(default_factory=dict)
    functions: Mapping[str, FunctionState] = field(default_factory=dict)
    policies: Mapping[str, PolicyState] = field(default_factory=dict)
    other_routines: Mapping[str, Unmanaged] = field(default_factory=dict)
    other_policies: Mapping[str, Unmanaged] = field(default_factory=dict)
    function_uses: Mapping[str, tuple[tuple[str, str | None], ...]] = field(default_factory=dict)
    views: Mapping[str, ViewState] = field(default_factory=dict)
    other_views: Mapping[str, Audit] = field(default_factory=dict, compare=False)
    by_kind: Mapping[str, Mapping[str, SecurableState]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        set_fields(
            self,
            tables=MappingProxyType(dict(self.tables)),
            missing_schemas=frozenset(self.missing_schemas),
            other_tables=to_items(self.other_tables, QualifiedName, "other_tables"),
            audits=MappingProxyType(dict(self.audits)),
            schema_states=MappingProxyType(dict(self.schema_states)),
            files=MappingProxyType(dict(self.files)),
            functions=MappingProxyType(dict(self.functions)),
            policies=MappingProxyType(dict(self.policies)),
            other_routines=MappingProxyType(dict(self.other_routines)),
            other_policies=MappingProxyType(dict(self.other_policies)),
            function_uses=MappingProxyType(dict(self.function_uses)),
            views=MappingProxyType(dict(self.views)),
            other_views=MappingProxyType(dict(self.other_views)),
        )
        states: Mapping[str, Mapping[str, SecurableState]] = {
            SchemaName.kind: self.schema_states,
            FunctionName.kind: self.functions,
            QualifiedName.kind: self.tables,
            PolicyName.kind: self.policies,
            ViewName.kind: self.views,
        }
        set_fields(self, by_kind=states)

    @property
    def schemas(self) -> frozenset[tuple[str, str]]:
        """The existing schemas of the requested tables: (catalog, schema) pairs in lower case."""
        pairs = (key.split(".")[:2] for key in self.tables)
        return frozenset((catalog, schema) for catalog, schema in pairs) - self.missing_schemas

    def with_tables(self, other: CatalogState) -> CatalogState:
        """Return this snapshot with another one's tables added."""
        return replace(self, tables={**self.tables, **other.tables})

    def table(self, name: QualifiedName) -> TableState:
        """Return one table's state; KeyError if it was not requested."""
        return self.tables[name.key]

    def of(self, name: SecurableName) -> SecurableState | None:
        """Return the state under a name; None if the snapshot does not cover it."""
        state = self.by_kind[name.kind].get(name.key)
        is_missing = state is None and tuple(name.key.split(".")) in self.missing_schemas
        return ABSENT_SCHEMA if is_missing else state


def exists_in(observed: CatalogState, name: SecurableName) -> bool:
    """Whether a snapshot shows a table or view: as requested, or among the others of its schema."""
    state = observed.of(name)
    if state is not None:
        return state.exists
    if isinstance(name, ViewName):
        return name.key in observed.other_views
    return any(other.key == name.key for other in observed.other_tables)


def former_name_of(state: SecurableState | None) -> SecurableName | None:
    """Return the name that a table or view still has, if its model renames it."""
    return state.former_name if isinstance(state, TableState | ViewState) else None


def has_tags(table: Table | TableState) -> bool:
    """Whether a table or one of its columns has tags, which policies (ABAC) may depend on."""
    return bool(table.tags) or any(column.tags for column in table.columns)
