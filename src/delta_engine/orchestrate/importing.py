"""Reads tables that exist as models: importing what exists, and planning, gives an empty plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from delta_engine.aspects.foreign_keys import as_declared
from delta_engine.aspects.primary_key import named_primary_key
from delta_engine.aspects.table_properties import is_set_by_platform
from delta_engine.errors import ConfigError, RefusedError
from delta_engine.models import AUTO, Column, PrimaryKey, QualifiedName, Schema, SchemaName, Table
from delta_engine.orchestrate.backend import Backend
from delta_engine.state.catalog_reader import bare_model, readable_snapshot
from delta_engine.state.states import ABSENT, REDACTED, CatalogState, RelationKind, SchemaState, TableState
from delta_engine.validation.unsupported_relations import PARTS_OF_STREAMING_TABLES
from delta_engine.validation.validator import PlanValidator


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was read.

    Args:
        tables: the models, sorted by name.
        schemas: the schema of a whole schema's tables, if there is anything to say of it.
        refusals: why others could not be taken.
    """

    tables: tuple[Table, ...]
    schemas: tuple[Schema, ...]
    refusals: tuple[RefusedError, ...]


def import_tables(backend: Backend, target: str) -> Imported:
    """Return models for a table, or for a whole schema and its tables, with one snapshot.

    Args:
        backend: what to read from.
        target: `catalog.schema.table` or `catalog.schema`, without quotes.

    Raises:
        ConfigError: the target is neither, or there is nothing of that name.
        CatalogReadError, StatementError: the catalog cannot be read.
    """
    names = _names(backend, target)
    found, unreadable = _read(backend, names)
    models = [as_model(name, found.table(name)) for name in names if _exists(found, name)]
    violations = tuple(PlanValidator().model_violations(models))
    refused = {violation.table for violation in violations}
    return Imported(
        tables=tuple(model for model in models if str(model.qualified_name) not in refused),
        schemas=() if _names_a_table(target) else tuple(_schemas(found)),
        refusals=(*unreadable, *violations),
    )


def as_model(name: QualifiedName, state: TableState) -> Table:
    """Return a model that an existing table matches.

    What platforms set by themselves is left out, and so are owner and grants: they are others' business until a
    model says otherwise.
    """
    if state.relation is RelationKind.STREAMING_TABLE:
        return _as_model_of_parts(name, state)
    properties = {
        key: value
        for key, value in state.table_properties.items()
        if not is_set_by_platform(key) and value != REDACTED
    }
    model = Table(
        name.catalog,
        name.schema,
        name.table,
        state.columns,
        state.table_comment,
        properties,
        state.primary_key.columns if state.primary_key else None,
        foreign_keys=[as_declared(name, key) for key in state.foreign_keys],
        checks=state.checks,
        cluster_by=AUTO if state.clusters_automatically else state.cluster_by,
        partitioned_by=state.partitioned_by,
        tags=state.tags,
        row_filter=state.row_filter,
        location=state.location,
    )
    derived, observed = named_primary_key(model), state.primary_key
    if observed is None or derived is None or (observed.name or "").lower() == derived.name:
        return model
    return replace(model, primary_key=PrimaryKey(observed.columns, observed.name))


def as_schema_model(name: SchemaName, state: SchemaState) -> Schema | None:
    """Return a model that an existing schema matches; None if there is nothing to say of it.

    Owner and grants are left out, as for tables.
    """
    if not state.comment and not state.tags:
        return None
    return Schema(name.catalog, name.schema, state.comment or None, tags=state.tags)


def _as_model_of_parts(name: QualifiedName, state: TableState) -> Table:
    """Return a model of a streaming table: its pipeline owns all but comments and tags."""
    return Table(
        name.catalog,
        name.schema,
        name.table,
        [Column(one.name, one.data_type, comment=one.comment, tags=one.tags) for one in state.columns],
        state.table_comment,
        tags=state.tags,
        manages=PARTS_OF_STREAMING_TABLES,
    )


def _names_a_table(target: str) -> bool:
    return target.count(".") == 2


def _names(backend: Backend, target: str) -> tuple[QualifiedName, ...]:
    match [part.strip() for part in target.split(".")]:
        case [catalog, schema, table] if catalog and schema and table:
            return (QualifiedName(catalog, schema, table),)
        case [catalog, schema] if catalog and schema:
            names = backend.lister.tables_in(catalog, schema)
            if not names:
                raise ConfigError(
                    f"{target} has no Delta tables, or none that you may see",
                    way_out="Correct the name, which is addressed in lower case, or ask for USE SCHEMA and SELECT.",
                )
            return names
    raise ConfigError(
        f"{target!r} names neither a table nor a schema",
        way_out="Write catalog.schema.table or catalog.schema, without quotes.",
    )


def _read(backend: Backend, names: Sequence[QualifiedName]) -> tuple[CatalogState, tuple[RefusedError, ...]]:
    """Return a snapshot, and why other tables cannot be read."""
    found, unreadable = readable_snapshot(backend.reader, list(map(bare_model, names)))
    if not unreadable and not any(_exists(found, name) for name in names):
        raise ConfigError(
            f"{names[0]} does not exist, or you may not see it",
            way_out="Correct the name, or ask for SELECT on it.",
        )
    return found, unreadable


def _exists(found: CatalogState, name: QualifiedName) -> bool:
    return found.tables.get(name.key, ABSENT).exists


def _schemas(found: CatalogState) -> Iterator[Schema]:
    for key, state in found.schema_states.items():
        model = as_schema_model(SchemaName(*key.split(".")), state)
        if model is not None:
            yield model
