"""What runs attempt: recorded before they begin, so that none that ends half-way leaves things that are nobody's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from delta_engine import aspects
from delta_engine.actions import AlignTable, TablePlan
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import AS_APPLIED, Policy
from delta_engine.aspects.aspect import Comparison
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.renames import with_renames
from delta_engine.compile.attempts import Attempts
from delta_engine.deployment.definitions import (
    SchemaDefinition,
    TableDefinition,
    as_schema,
    as_table,
    define,
    define_schema,
)
from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.deployment.resources import table_key
from delta_engine.deployment.schema_resources import schema_key
from delta_engine.models import Schema, Table
from delta_engine.state.states import CatalogState, TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """What a run is about to apply, by the resources' keys.

    Args:
        tables: the definitions, and what was applied before under the names that the run gives its columns.
        schemas: the definitions of those that are declared.
    """

    tables: Mapping[str, tuple[TableDefinition, ...]]
    schemas: Mapping[str, SchemaDefinition]


NOTHING_ATTEMPTED = Attempted(tables={}, schemas={})


def attempted_by(
    plan: TablePlan, models: Iterable[Table], schemas: Iterable[Schema], resources: Mapping[str, Resource]
) -> Attempted:
    """Return what a run is about to apply.

    Args:
        plan: its plan.
        models: the declared tables, resolved.
        schemas: the declared schemas.
        resources: the records so far.
    """
    by_key = {table_key(model.qualified_name): model for model in models}
    aligned = {table_key(align.table): align for align in plan.align_tables}
    changed = {*aligned, *(table_key(create.table) for create in plan.create_tables)} & by_key.keys()
    changed_schemas = {(one.catalog_name.lower(), one.schema_name.lower()) for one in plan.align_schemas}
    return Attempted(
        tables={
            key: (define(by_key[key]), *_renamed(aligned.get(key), resources.get(key)))
            for key in sorted(changed)
        },
        schemas={
            schema_key(schema.catalog_name, schema.schema_name): define_schema(schema)
            for schema in schemas
            if (schema.catalog_name.lower(), schema.schema_name.lower()) in changed_schemas
        },
    )


def attempts_of(state: DeploymentState, models: Iterable[Table], observed: CatalogState) -> Attempts:
    """Return what failed and killed runs attempted, for the planner.

    Args:
        state: the document.
        models: the declared tables.
        observed: a snapshot that covers them: what is renamed has its attempts under the new name.
    """
    tables: dict[str, tuple[Table, ...]] = {}
    schemas: dict[str, tuple[Schema, ...]] = {}
    for key, resource in state.resources.items():
        name = key.partition(".")[2]
        if resource.metadata.attempted:
            tables[name] = tuple(map(as_table, resource.metadata.attempted))
        if resource.metadata.attempted_schemas:
            schemas[name] = tuple(map(as_schema, resource.metadata.attempted_schemas))
    if tables:
        for model in models:
            former = observed.table(model.qualified_name).former_name
            if former is not None and former.key in tables:
                key = model.qualified_name.key
                tables[key] = (*tables.get(key, ()), *tables[former.key])
    return Attempts(tables=tables, schemas=schemas)


def not_of_runs(
    found: Iterable[aspects.Difference],
    attempted: Sequence[Table],
    observed: TableState,
    policy: Policy = AS_APPLIED,
) -> tuple[aspects.Difference, ...]:
    """Return the differences from what was applied last that no unfinished run can have made: somebody else did.

    What a run did is not different from what it attempted. In passing, runs take keys and checks away that stand in
    the way, and with them NOT NULL where a check stands for it.

    Args:
        found: how the table differs from what was applied last.
        attempted: what runs attempted since.
        observed: the table as it is.
        policy: whose the things are that nobody applied.
    """
    left = tuple(found)
    for model in attempted:
        others = aspects.differences(Comparison.of(model, observed, policy=policy))
        seen = {(one.change.subject, one.change.observed) for one in others}
        left = tuple(
            one
            for one in left
            if (one.change.subject, one.change.observed) in seen and not _may_be_in_passing(one)
        )
    return left


def _may_be_in_passing(difference: aspects.Difference) -> bool:
    match difference.kind:
        case DriftKind.CHECK | DriftKind.PRIMARY_KEY | DriftKind.FOREIGN_KEY:
            return difference.change.observed is None
    return difference.kind is DriftKind.COLUMN_NULLABILITY


def _renamed(align: AlignTable | None, earlier: Resource | None) -> Iterable[TableDefinition]:
    """Yield what is on record with the new names of the columns that a run renames: it may be found under them."""
    if align is None or earlier is None:
        return
    renames = renamed_columns(align)
    definition = earlier.metadata.definition
    if renames:
        for known in (*((definition,) if definition else ()), *earlier.metadata.attempted):
            model = with_renames(as_table(known), renames)
            yield define(model)
