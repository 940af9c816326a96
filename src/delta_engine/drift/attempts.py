"""Attempts: the definitions that runs record before they apply them, so that parts of unfinished runs stay managed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.comparison import with_renames
from delta_engine.compile.attempts import Attempts
from delta_engine.deployment.definitions import (
    TableDefinition,
    as_schema,
    as_table,
    define,
    define_schema,
)
from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.deployment.resources import Definition, resource_key
from delta_engine.models import Schema, Table
from delta_engine.state.states import CatalogState


def attempted_by(
    plan: TablePlan, models: Iterable[Table], schemas: Iterable[Schema], resources: Mapping[str, Resource]
) -> Mapping[str, tuple[Definition, ...]]:
    """Return the definitions that a run applies, and the recorded ones under new column names, by resource key."""
    by_key = {resource_key(model.qualified_name): model for model in models}
    aligned = {resource_key(align.table): align for align in plan.align_tables}
    changed = {*aligned, *(resource_key(create.table) for create in plan.create_tables)} & by_key.keys()
    changed_schemas = {str(align).lower() for align in plan.align_schemas}
    tables = {
        key: (define(by_key[key]), *_renamed(aligned.get(key), resources.get(key))) for key in sorted(changed)
    }
    return tables | {
        resource_key(schema.qualified_name): (define_schema(schema),)
        for schema in schemas
        if schema.key in changed_schemas
    }


def attempts_of(state: DeploymentState, models: Iterable[Table], observed: CatalogState) -> Attempts:
    """Return the attempts of unfinished runs for the planner. A renamed table has them under its new name."""
    tables: dict[str, tuple[Table, ...]] = {}
    schemas: dict[str, tuple[Schema, ...]] = {}
    for key, resource in state.resources.items():
        name = key.partition(".")[2]
        if resource.metadata.attempted:
            tables[name] = tuple(map(as_table, resource.metadata.attempted))
        if resource.metadata.attempted_schemas:
            schemas[name] = tuple(map(as_schema, resource.metadata.attempted_schemas))
    for model in models if tables else ():
        former = observed.table(model.qualified_name).former_name
        if former is not None and former.key in tables:
            tables[model.key] = (*tables.get(model.key, ()), *tables[former.key])
    return Attempts(tables=tables, schemas=schemas)


def _renamed(align: AlignTable | None, earlier: Resource | None) -> Iterable[TableDefinition]:
    """Yield the recorded definitions under new column names: a half-done rename leaves them there."""
    renames = renamed_columns(align) if align else {}
    if not renames or earlier is None:
        return
    definition = earlier.metadata.definition
    for known in (*((definition,) if definition else ()), *earlier.metadata.attempted):
        yield define(with_renames(as_table(known), renames))
