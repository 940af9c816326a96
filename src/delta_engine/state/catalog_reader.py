"""The port for reading the catalog, snapshots over it, and the parts of a table that all readers interpret alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from delta_engine.backends.sql_runner import Row, query_each
from delta_engine.errors import CatalogReadError, RefusalGroup, RefusedError, raise_all
from delta_engine.models import CheckConstraint, Column, Identity, QualifiedName, Schema, Table
from delta_engine.models.constraints import RESERVED_CHECK_PREFIX, build_not_null_check_name
from delta_engine.models.types import DataType, first_unsupported
from delta_engine.state.states import CatalogState, TableState
from delta_engine.telemetry.context import command

_CLUSTERING = "clusteringColumns"
_AUTOMATIC_CLUSTERING = "clusterByAuto"
CHECK_PREFIX = "delta.constraints."


class CatalogReader(Protocol):
    """Reads what exists."""

    def snapshot(self, models: Sequence[Table], schemas: Sequence[Schema] = ()) -> CatalogState:
        """Return the state of every model's table and schema; schemas only if the platform stores details of them.

        Args:
            models: their declared grants are requested one by one if the platform hides grants in bulk queries.
            schemas: further schemas to read, with or without tables.

        Raises:
            CatalogReadError: a table is not a Delta table, or not completely readable: missing parts look like drift.
            RefusalGroup: several such tables.
            StatementError: the platform refused a query.
        """
        ...

    def snapshot_directly(self, models: Sequence[Table]) -> CatalogState:
        """Return the state of tables just changed, as far as possible from the tables; other sources may lag."""
        ...


class TableLister(Protocol):
    """Lists tables."""

    def tables_in(self, catalog: str, schema: str) -> tuple[QualifiedName, ...]:
        """Return the Delta tables of a schema, sorted by name; CatalogReadError if the catalog is not visible.

        Empty if the schema does not exist.
        """
        ...


def snapshot_with_former_names(
    reader: CatalogReader, models: Sequence[Table], schemas: Sequence[Schema] = ()
) -> CatalogState:
    """Return a snapshot that also finds tables under the names from which models rename them.

    Such a table has its model's name as key, and a `former_name`. A pending rename costs a second snapshot.
    """
    observed = reader.snapshot(models, schemas)
    listed = {name.key: name for name in observed.other_tables}
    formers = {
        model.qualified_name.key: listed[former.key]
        for model in models
        for former in [former_name(model)]
        if former is not None and former.key in listed and not observed.table(model.qualified_name).exists
    }
    if not formers:
        return observed
    granted = {model.key: model.grants for model in models}
    found = reader.snapshot(
        [replace(bare_model(former), grants=granted[key]) for key, former in formers.items()]
    )
    tables = {
        key: replace(found.table(former), former_name=former)
        for key, former in formers.items()
        if found.table(former).exists
    }
    renamed = {former.key for former in formers.values()}
    return replace(
        observed,
        tables={**observed.tables, **tables},
        other_tables=tuple(name for name in observed.other_tables if name.key not in renamed),
    )


def readable_snapshot(
    reader: CatalogReader, models: Sequence[Table], schemas: Sequence[Schema] = ()
) -> tuple[CatalogState, tuple[RefusedError, ...]]:
    """Return a snapshot of the readable tables, and why others are unreadable, at the cost of a second snapshot.

    An unreadable catalog raises CatalogReadError or RefusalGroup.
    """
    try:
        return snapshot_with_former_names(reader, models, schemas), ()
    except (CatalogReadError, RefusalGroup) as error:
        refusals = error.refusals if isinstance(error, RefusalGroup) else (error,)
        if any(refusal.table is None for refusal in refusals):
            raise
    unreadable = {refusal.table for refusal in refusals}
    readable = [model for model in models if str(model.qualified_name) not in unreadable]
    if not readable and not schemas:
        return CatalogState(tables={}), refusals
    return snapshot_with_former_names(reader, readable, schemas), refusals


def with_tables_read(
    reader: CatalogReader, observed: CatalogState, names: Iterable[QualifiedName]
) -> CatalogState:
    """Return a snapshot extended by further readable tables; CatalogReadError or RefusalGroup for a whole catalog."""
    tables = list(map(bare_model, names))
    return observed.with_tables(readable_snapshot(reader, tables)[0])


def former_name(model: Table) -> QualifiedName | None:
    """Return the whole name from which a model renames its table; None if it does not."""
    if model.renamed_from is None:
        return None
    return replace(model.qualified_name, table=model.renamed_from)


def bare_model(name: QualifiedName) -> Table:
    """Return a model with nothing but a name, which is enough for a snapshot."""
    return Table(name.catalog, name.schema, name.table, ())


def read_tables(
    tables: Iterable[QualifiedName],
    read: Callable[[QualifiedName], TableState],
    parallelism: int,
    refusals: Iterable[RefusedError] = (),
) -> dict[str, TableState]:
    """Read tables in parallel, by `QualifiedName.key`; raise given and new refusals together."""
    found = query_each(partial(_state_or_refusal, read), tables, parallelism)
    raise_all((*refusals, *(one for _, one in found if isinstance(one, CatalogReadError))))
    return {table.key: one for table, one in found if isinstance(one, TableState)}


def _state_or_refusal(
    read: Callable[[QualifiedName], TableState], table: QualifiedName
) -> TableState | CatalogReadError:
    try:
        return read(table)
    except CatalogReadError as refusal:
        return refusal


def not_a_delta_table(table: QualifiedName, what: str) -> CatalogReadError:
    """Return the refusal of a table name that belongs to another kind of relation."""
    return CatalogReadError(
        f"it exists, but it is {what}, not a Delta table",
        table=str(table),
        way_out="Rename the model, or rename or move the existing object. "
        f"To forget a table that is no longer declared, use {command('state rm')}.",
    )


def listed_schemas(rows: Iterable[Row]) -> set[str]:
    """Return the schemas in the rows of SHOW SCHEMAS, which quotes unusual names."""
    return {unquoted(str(name)) for row in rows for name in row.values()}


def unquoted(name: str) -> str:
    """Return a name without backticks around it."""
    is_quoted = len(name) > 1 and name.startswith("`") and name.endswith("`")
    return name[1:-1].replace("``", "`") if is_quoted else name


def readable_column(
    table: QualifiedName,
    name: str,
    data_type: DataType,
    *,
    is_nullable: bool,
    comment: str,
    default: str | None = None,
    generated_as: str | None = None,
    identity: Identity | None = None,
) -> Column:
    """Return an observed column; CatalogReadError if its type is unsupported, or a text is invalid."""
    require_known_type(table, name, data_type)
    try:
        return Column(
            name,
            data_type,
            is_nullable,
            comment,
            default=default,
            generated_as=generated_as,
            identity=identity,
        )
    except ValueError as error:
        raise CatalogReadError(
            str(error),
            table=str(table),
            column=name,
            way_out="Correct that text in the catalog, or leave this table out of the models.",
        ) from None


def require_known_type(table: QualifiedName, column: str, data_type: DataType) -> None:
    """Refuse a column with an unsupported or unknown type inside its type (CatalogReadError)."""
    unsupported = first_unsupported(data_type)
    if unsupported:
        raise CatalogReadError(
            f"type {unsupported.text!r} is not one that the engine can manage: {unsupported.reason}",
            table=str(table),
            column=column,
            way_out="Leave this table out of the models.",
        )


def pop_clustering(properties: dict[str, str]) -> tuple[str, ...]:
    """Remove the synthetic property `clusteringColumns`, a JSON list of paths (`[["a"],["b"]]`); return the columns."""
    paths = json.loads(properties.pop(_CLUSTERING, "[]"))
    return tuple(".".join(path) for path in paths)


def pop_automatic_clustering(properties: dict[str, str]) -> bool:
    """Remove the property `clusterByAuto`; return whether the platform chooses the clustering columns."""
    return properties.pop(_AUTOMATIC_CLUSTERING, "false").lower() == "true"


def checks_of(properties: Mapping[str, str]) -> tuple[CheckConstraint, ...]:
    """Return the CHECK constraints in properties, by name, without those of `not_null_checks_of`."""
    names = sorted(key for key in properties if key.startswith(CHECK_PREFIX))
    return tuple(
        CheckConstraint(key.removeprefix(CHECK_PREFIX), properties[key])
        for key in names
        if not key.startswith(CHECK_PREFIX + RESERVED_CHECK_PREFIX)
    )


def not_null_checks_of(properties: Mapping[str, str], columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns for which a reserved CHECK stands for NOT NULL."""
    return tuple(name for name in columns if CHECK_PREFIX + build_not_null_check_name(name) in properties)
