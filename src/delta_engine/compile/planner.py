"""The planner: the smallest set of actions that brings the catalog to the models. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from delta_engine import aspects
from delta_engine.actions import Action, AlignSchema, AlignTable, CreateSchema, CreateTable, TablePlan
from delta_engine.actions.policy import NO_POLICY, Ownership, Policy, RemovedTables
from delta_engine.aspects.aspect import Comparison
from delta_engine.compile.attempts import NO_ATTEMPTS, Attempts
from delta_engine.compile.coexistence import incompatible
from delta_engine.compile.dropped_tables import dropped_tables
from delta_engine.compile.holders import held_columns
from delta_engine.compile.manageability import unmanageable
from delta_engine.compile.parents import unfit_parents
from delta_engine.compile.referenced_keys import with_referencing_keys
from delta_engine.errors import InvalidModelError, raise_all
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.models.resolution import resolved
from delta_engine.state.states import CatalogState, RelationKind
from delta_engine.telemetry.garbage import no_garbage_collection


class TablePlanner:
    """Compares models with the observed state.

    Args:
        policy: whose the things are that no model names.
        schemas: the declared schemas.
    """

    def __init__(self, policy: Policy = NO_POLICY, schemas: Sequence[Schema] = ()) -> None:
        self.policy = policy
        self.schemas = tuple(sorted(schemas, key=lambda schema: schema.key))

    def with_schemas(self, schemas: Sequence[Schema]) -> TablePlanner:
        """Return this planner with other schemas."""
        return TablePlanner(self.policy, schemas)

    def restoring(self) -> TablePlanner:
        """Return this planner for models that are what was applied: what defines tables beside them goes."""
        return TablePlanner(replace(self.policy, definitions=Ownership.FULL), self.schemas)

    @property
    def drops_tables(self) -> bool:
        """Whether tables that are not declared any more are to be dropped."""
        return self.policy.removed_tables is RemovedTables.DROP

    @no_garbage_collection()
    def plan(
        self,
        models: Sequence[Table],
        state: CatalogState,
        last_applied: Mapping[str, Table] = MappingProxyType({}),
        removed: Mapping[QualifiedName, int | None] = MappingProxyType({}),
        applied_schemas: Mapping[str, Schema] = MappingProxyType({}),
        *,
        attempts: Attempts = NO_ATTEMPTS,
    ) -> TablePlan:
        """Return what has to be done; empty when the catalog matches.

        Args:
            models: the declared tables, in any order.
            state: a snapshot that was taken for these models.
            last_applied: the models that were applied last, by `QualifiedName.key`; what they say and the
                models no longer say is ours to remove.
            removed: tables that exist, were applied, and are not declared any more, with how many rows they have;
                None where nobody counted, for then they stay.
            applied_schemas: the schemas as they were applied last, by `Schema.key`; none where only a part of the
                models was loaded.
            attempts: what later runs failed to apply: ours to remove as well.

        Raises:
            InvalidModelError: a model cannot be about what stands under its table's name.
            RefusalGroup: several such models, or reasons.
            KeyError: the snapshot does not cover a model.
        """
        by_key = {model.key: model for model in resolved(models)}
        existing = {key: model for key, model in by_key.items() if state.tables[key].exists}
        changes = self._changes(existing, state, last_applied, attempts)
        raise_all(
            refusal
            for key, actions in changes.items()
            for judge in (incompatible, held_columns)
            for refusal in judge(existing[key], state.tables[key], actions)
        )
        gone = {name: rows for name, rows in removed.items() if rows is not None}
        needed = with_referencing_keys(changes, by_key, state, {name.key for name in gone})
        created = tuple(CreateTable(by_key[key]) for key in sorted(by_key.keys() - existing.keys()))
        aligned = tuple(
            AlignTable(
                existing[key].qualified_name,
                actions,
                existing[key].declared_at,
                is_streaming=state.tables[key].relation is RelationKind.STREAMING_TABLE,
            )
            for key, actions in sorted(needed.items())
            if key in existing
        )
        raise_all(unfit_parents((*created, *aligned), by_key, state))
        return TablePlan(
            create_tables=created,
            align_tables=aligned,
            create_schemas=tuple(self._missing_schemas(models, state)),
            align_schemas=tuple(self._changed_schemas(state, applied_schemas, attempts)),
            drop_tables=dropped_tables(gone, (*created, *aligned), needed, state),
            kept_tables=tuple(sorted(removed.keys() - gone.keys(), key=lambda name: name.key)),
            kept_schemas=tuple(self._kept_schemas(state, applied_schemas)),
        )

    def _changes(
        self,
        existing: Mapping[str, Table],
        state: CatalogState,
        last_applied: Mapping[str, Table],
        attempts: Attempts,
    ) -> dict[str, tuple[Action, ...]]:
        """Return what existing tables need, by key in order; a table that needs nothing is not among them.

        Tables are compared in the order of their models, which is how they lie in memory: in another one, thousands
        of them take a fifth longer. No comparison is kept: that would cost time and memory.
        """
        refusals: dict[str, tuple[InvalidModelError, ...]] = {}
        changes: dict[str, tuple[Action, ...]] = {}
        for key, model in existing.items():
            observed, applied = state.tables[key], last_applied.get(key)
            comparison = Comparison.of(model, observed, applied, self.policy, attempts.tables.get(key, ()))
            if found := tuple(unmanageable(model, state, comparison.renames)):
                refusals[key] = found
            elif actions := tuple(aspects.diff(comparison)):
                changes[key] = actions
        raise_all(refusal for key in sorted(refusals) for refusal in refusals[key])
        return dict(sorted(changes.items()))

    def _missing_schemas(self, models: Sequence[Table], state: CatalogState) -> Iterator[CreateSchema]:
        """Yield the schemas that do not exist, and that are declared or that models need."""
        comments = {schema.key: schema.comment or "" for schema in self.schemas}
        needed = {SchemaName(model.catalog_name.lower(), model.schema_name.lower()) for model in models}
        needed |= {SchemaName(one.catalog_name.lower(), one.schema_name.lower()) for one in self.schemas}
        for name in sorted(needed, key=str):
            if _is_absent(name, state):
                yield CreateSchema(name.catalog, name.schema, comments.get(name.key, ""))

    def _kept_schemas(self, state: CatalogState, applied: Mapping[str, Schema]) -> Iterator[SchemaName]:
        """Yield the schemas that were applied and are not declared any more: a plan neither changes nor drops them."""
        declared = {schema.key for schema in self.schemas}
        for key, schema in sorted(applied.items()):
            if key not in declared and not _is_absent(schema.qualified_name, state):
                yield schema.qualified_name

    def _changed_schemas(
        self, state: CatalogState, applied: Mapping[str, Schema], attempts: Attempts
    ) -> Iterator[AlignSchema]:
        for schema in self.schemas:
            observed, key = state.schema(schema.qualified_name), schema.key
            if observed is None:  # nothing is known of it
                continue
            attempted = attempts.schemas.get(key, ())
            actions = tuple(
                aspects.diff(Comparison.of(schema, observed, applied.get(key), self.policy, attempted))
                if observed.exists
                else aspects.after_create(schema)
            )
            if actions:
                yield AlignSchema(schema.catalog_name, schema.schema_name, actions, schema.declared_at)


def _is_absent(name: SchemaName, state: CatalogState) -> bool:
    found = state.schema(name)
    return found is not None and not found.exists
