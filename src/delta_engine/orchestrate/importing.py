"""Reads tables that exist as models: importing what exists, and planning, gives an empty plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from delta_engine.actions.policy import matches_any
from delta_engine.aspects import COLUMN_FACETS, SCHEMA_FACETS, TABLE_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.errors import ConfigError, RefusedError, SourceLocation
from delta_engine.models import Column, QualifiedName, Schema, SchemaName, Table
from delta_engine.orchestrate.backend import Backend
from delta_engine.state.catalog_reader import bare_model, readable_snapshot
from delta_engine.state.states import ABSENT, CatalogState, RelationKind, SchemaState, TableState
from delta_engine.validation.owned_names import OwnedTables, schemas_of_others
from delta_engine.validation.relations import PARTS_OF_STREAMING_TABLES
from delta_engine.validation.validator import PlanValidator

_CATALOG = SourceLocation("the catalog")
"""The place that messages give for an imported model."""

State = TypeVar("State", TableState, SchemaState, Column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The models that were read; `schemas` has one if a whole schema was read that has a comment or tags."""

    tables: tuple[Table, ...]
    schemas: tuple[Schema, ...]
    refusals: tuple[RefusedError, ...]


def import_tables(backend: Backend, target: str, owns: Sequence[str] = ("*",)) -> Imported:
    """Return models for `catalog.schema.table`, or for `catalog.schema` and its tables, with one snapshot.

    Args:
        owns: globs of the project's tables; others are left out of a schema.

    Raises:
        ConfigError: the target is neither, or nothing of that name exists.
    """
    names = _names(backend, target, owns)
    found, unreadable = _read(backend, names)
    models = [as_model(name, found.table(name)) for name in names if _exists(found, name)]
    violations = (*PlanValidator().model_violations(models), *OwnedTables(owns).check(models))
    refused = {violation.table for violation in violations}
    schemas = () if target.count(".") == 2 else found.schema_states.items()
    read = (as_schema_model(SchemaName(*key.split(".")), state) for key, state in schemas)
    known = [model for model in read if model is not None]
    return Imported(
        tables=tuple(model for model in models if str(model.qualified_name) not in refused),
        schemas=tuple(model for model in known if not any(schemas_of_others([model], owns))),
        refusals=(*unreadable, *violations),
    )


def as_model(name: QualifiedName, state: TableState) -> Table:
    """Return a model that an existing table matches.

    It leaves out what platforms set by themselves. Owner and grants stay unmanaged until a model declares them.
    """
    if state.relation is RelationKind.STREAMING_TABLE:
        return _as_model_of_parts(name, state)
    arguments = _arguments(TABLE_FACETS, name, state)
    return Table(name.catalog, name.schema, name.table, state.columns, declared_at=_CATALOG, **arguments)


def as_schema_model(name: SchemaName, state: SchemaState) -> Schema | None:
    """Return a model that an existing schema matches, or None if it has no comment and no tags.

    Owner and grants are left out, as for tables.
    """
    arguments = _arguments(SCHEMA_FACETS, name, state)
    model = Schema(name.catalog, name.schema, **arguments, declared_at=_CATALOG)
    return model if any(facet.is_declared(model) for facet in SCHEMA_FACETS) else None


def _as_model_of_parts(name: QualifiedName, state: TableState) -> Table:
    """Return a model of a streaming table: its pipeline owns all but comments and tags."""
    return Table(
        name.catalog,
        name.schema,
        name.table,
        [
            Column(one.name, one.data_type, **_arguments(_streaming(COLUMN_FACETS), name, one))
            for one in state.columns
        ],
        manages=PARTS_OF_STREAMING_TABLES,
        declared_at=_CATALOG,
        **_arguments(_streaming(TABLE_FACETS), name, state),
    )


def _streaming(facets: Iterable[Facet[Any, State, Any]]) -> Iterator[Facet[Any, State, Any]]:
    return (facet for facet in facets if facet.part in PARTS_OF_STREAMING_TABLES)


def _arguments(
    facets: Iterable[Facet[Any, State, Any]], name: QualifiedName | SchemaName, state: State
) -> dict[str, Any]:
    """Return the arguments of the model that declares what exists."""
    return {
        facet.attribute: facet.imported_value(name, state)
        for facet in facets
        if facet.is_imported and facet.observed is not None
    }


def _names(backend: Backend, target: str, owns: Sequence[str]) -> tuple[QualifiedName, ...]:
    match [part.strip() for part in target.split(".")]:
        case [catalog, schema, table] if catalog and schema and table:
            return (QualifiedName(catalog, schema, table),)
        case [catalog, schema] if catalog and schema:
            found = backend.lister.tables_in(catalog, schema)
            names = tuple(name for name in found if matches_any(name, owns))
            if not names:
                of_project = " of this project (owns)" if found else ""
                raise ConfigError(
                    f"{target} has no Delta tables{of_project}, or none that you may see",
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
