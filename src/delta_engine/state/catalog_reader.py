"""The port through which observed state comes in, and what its implementations share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from delta_engine.backends.sql_runner import Row, query_threads
from delta_engine.errors import CatalogReadError, RefusalGroup, RefusedError, raise_all
from delta_engine.models import CheckConstraint, Column, Identity, QualifiedName, Schema, Table
from delta_engine.models.constraint_names import RESERVED_CHECK_PREFIX, build_not_null_check_name
from delta_engine.models.types import DataType, first_unsupported
from delta_engine.state.states import CatalogState, TableState
from delta_engine.telemetry.context import command

_CLUSTERING = "clusteringColumns"
_AUTOMATIC_CLUSTERING = "clusterByAuto"
CHECK_PREFIX = "delta.constraints."


class CatalogReader(Protocol):
    """Reads what exists. It takes from the models where to look, and which grants to look for."""

    def snapshot(self, models: Sequence[Table], schemas: Sequence[Schema] = ()) -> CatalogState:
        """Return the state of every model's table, and of schemas where the platform keeps anything about them.

        Args:
            models: whose tables to read; their schemas are read with them. A platform may hide grants in bulk
                queries: those that a model names are then looked for one by one.
            schemas: schemas to read as well, which need not hold any of those tables; with their grants as for models.

        Raises:
            CatalogReadError: a table exists but is not a Delta table that can be read whole. A table is
                never returned with something missing: that would look like a difference.
            RefusalGroup: several such tables.
            StatementError: the platform refused a query.
        """
        ...

    def snapshot_directly(self, models: Sequence[Table]) -> CatalogState:
        """Return the state of tables that were just changed, from the tables themselves as far as they tell it.

        The rest is what `snapshot` sees, and may lag behind. Raises as `snapshot` does.
        """
        ...


class TableLister(Protocol):
    """Tells which tables there are."""

    def tables_in(self, catalog: str, schema: str) -> tuple[QualifiedName, ...]:
        """Return the Delta tables of a schema, sorted by name; none if it does not exist.

        Raises:
            CatalogReadError: the catalog does not exist or is not visible.
            StatementError: the platform refused the query.
        """
        ...


def listed_schemas(rows: Iterable[Row]) -> set[str]:
    """Return the schemas in the rows of SHOW SCHEMAS as they are spelled; it quotes the names that need it."""
    return {unquoted(str(name)) for row in rows for name in row.values()}


def unquoted(name: str) -> str:
    """Return a name without the backticks that platforms put around odd ones."""
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
    """Return an observed column.

    Raises:
        CatalogReadError: its type is one that the engine does not know, or a text of it is none.
    """
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
    """Refuse a column whose type Delta cannot store, or that the engine does not know.

    Raises:
        CatalogReadError: it has such a type, or has one inside.
    """
    unsupported = first_unsupported(data_type)
    if unsupported:
        raise CatalogReadError(
            f"type {unsupported.text!r} is not one that the engine can manage: {unsupported.reason}",
            table=str(table),
            column=column,
            way_out="Leave this table out of the models.",
        )


def take_out_clustering(properties: dict[str, str]) -> tuple[str, ...]:
    """Return the clustering columns, and remove the synthetic property in which the platform shows them.

    SHOW TBLPROPERTIES lists them as `clusteringColumns`, a JSON list of paths: `[["a"],["b"]]`.
    """
    paths = json.loads(properties.pop(_CLUSTERING, "[]"))
    return tuple(".".join(path) for path in paths)


def snapshot_with_former_names(
    reader: CatalogReader, models: Sequence[Table], schemas: Sequence[Schema] = ()
) -> CatalogState:
    """Return a snapshot that finds tables under the names they had before, where models say so.

    Such a table stands under its model's name, with its `former_name`. Costs a second snapshot while a rename is
    not done yet.

    Raises:
        CatalogReadError, RefusalGroup, StatementError: as `CatalogReader.snapshot`.
    """
    observed = reader.snapshot(models, schemas)
    listed = {name.key: name for name in observed.unasked}
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
        unasked=tuple(name for name in observed.unasked if name.key not in renamed),
    )


def former_name(model: Table) -> QualifiedName | None:
    """Return the whole name that a table had before its model renamed it; None if it never did."""
    if model.renamed_from is None:
        return None
    return replace(model.qualified_name, table=model.renamed_from)


def take_out_automatic_clustering(properties: dict[str, str]) -> bool:
    """Return whether the platform chooses the clustering columns, and remove the property that says so."""
    return properties.pop(_AUTOMATIC_CLUSTERING, "false").lower() == "true"


def checks_of(properties: Mapping[str, str]) -> tuple[CheckConstraint, ...]:
    """Return the CHECK constraints by name, from the properties in which Delta keeps them.

    Those that stand for NOT NULL are left out: see `not_null_checks_of`.
    """
    names = sorted(key for key in properties if key.startswith(CHECK_PREFIX))
    return tuple(
        CheckConstraint(key.removeprefix(CHECK_PREFIX), properties[key])
        for key in names
        if not key.startswith(CHECK_PREFIX + RESERVED_CHECK_PREFIX)
    )


def not_null_checks_of(properties: Mapping[str, str], columns: Iterable[str]) -> tuple[str, ...]:
    """Return those of some columns for which a reserved check stands for NOT NULL."""
    return tuple(name for name in columns if CHECK_PREFIX + build_not_null_check_name(name) in properties)


def readable_snapshot(
    reader: CatalogReader, models: Sequence[Table], schemas: Sequence[Schema] = ()
) -> tuple[CatalogState, tuple[RefusedError, ...]]:
    """Return a snapshot of the tables that can be read, and why others cannot. Then it takes a second one.

    Args:
        reader: reads what exists.
        models: whose tables to read.
        schemas: schemas to read as well.

    Raises:
        CatalogReadError, RefusalGroup: a whole catalog cannot be read.
        StatementError: as `CatalogReader.snapshot`.
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
    """Return a snapshot with further tables in it; those that cannot be read are left out.

    Raises:
        CatalogReadError, RefusalGroup: a whole catalog cannot be read.
        StatementError: as `CatalogReader.snapshot`.
    """
    tables = list(map(bare_model, names))
    return observed.with_tables(readable_snapshot(reader, tables)[0])


def bare_model(name: QualifiedName) -> Table:
    """Return a model that says nothing but a name: all that a snapshot needs."""
    return Table(name.catalog, name.schema, name.table, ())


def not_a_delta_table(table: QualifiedName, what: str) -> CatalogReadError:
    """Return the refusal of something that stands where a Delta table should."""
    return CatalogReadError(
        f"it exists, but it is {what}, not a Delta table",
        table=str(table),
        way_out="Rename the model, or move what is there out of the way. A table that is no longer declared "
        f"is forgotten with {command('state rm')}.",
    )


def read_tables(
    tables: Iterable[QualifiedName],
    read: Callable[[QualifiedName], TableState],
    parallelism: int,
    refused: Iterable[RefusedError] = (),
) -> dict[str, TableState]:
    """Read tables at the same time and return their states by `QualifiedName.key`.

    Args:
        tables: what to read.
        read: returns a table's state.
        parallelism: how many at once, at most.
        refused: why others cannot be read: raised with what cannot be read here.

    Raises:
        CatalogReadError: one table could not be read.
        RefusalGroup: several could not.
    """
    refusals = list(refused)
    states: dict[str, TableState] = {}
    with query_threads(parallelism) as pool:
        for table, state in [(table, pool.submit(read, table)) for table in tables]:
            try:
                states[table.key] = state.result()
            except CatalogReadError as refusal:
                refusals.append(refusal)
    raise_all(refusals)
    return states
