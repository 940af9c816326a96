"""Plans the smallest set of actions that brings the catalog to the models. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from delta_engine import aspects
from delta_engine.actions import (
    Action,
    Align,
    AlignTable,
    Create,
    CreateTable,
    Keep,
    SecurableChange,
    TablePlan,
)
from delta_engine.actions.policy import NO_POLICY, Ownership, Policy, Removed
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.governed_tables import with_uses
from delta_engine.backends.capabilities import DATABRICKS, Capabilities
from delta_engine.compile.adopting import adoption
from delta_engine.compile.keys import dropped_tables, with_referencing_keys
from delta_engine.compile.rewriting import with_lost_parts
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.models.constraints import resolved
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import CatalogState, RelationKind
from delta_engine.telemetry.garbage import no_garbage_collection


def while_renaming(records: Mapping[str, Recorded], align: AlignTable) -> Mapping[str, Recorded]:
    """Return records that also attempt their models under the new column names of an alignment under way."""
    key, renames = align.table.key, renamed_columns(align)
    record = records.get(key)
    if record is None or not renames:
        return records
    return {**records, key: record.attempting(map(renames.applied_to, record.ours))}


@dataclass(frozen=True, slots=True)
class TablePlanner:
    """Compares models with the observed state under a policy, for a platform."""

    policy: Policy = NO_POLICY
    capabilities: Capabilities = DATABRICKS

    def for_reverts(self) -> TablePlanner:
        """Return this planner for reverts: its models are what was applied, and undeclared definitions are removed."""
        return replace(self, policy=replace(self.policy, definitions=Ownership.FULL))

    @property
    def drops_tables(self) -> bool:
        """Whether tables that are no longer declared are dropped."""
        return self.policy.removed_tables is Removed.DROP

    @no_garbage_collection()
    def plan(
        self,
        models: Sequence[Table | Schema],
        state: CatalogState,
        records: Mapping[str, Recorded[Any]] = MappingProxyType({}),
        removed: Mapping[QualifiedName, int | None] = MappingProxyType({}),
        *,
        undoes: bool = False,
    ) -> TablePlan:
        """Return the actions that bring the catalog to the models; empty when it matches.

        The planner refuses nothing: see `validation.relations.checked_plan`.

        Args:
            records: of tables and schemas, by the keys of their models; parts that only they declare are removed.
                Without those of schemas if only some models were loaded.
            removed: existing tables that are no longer declared, with their numbers of rows; None keeps a table.
            undoes: whether tables are dropped because the creation is undone.
        """
        tables = [model for model in models if isinstance(model, Table)]
        schemas = [model for model in models if not isinstance(model, Table)]
        by_key = {table.key: table for table in resolved(tables)}
        existing = {key: model for key, model in by_key.items() if state.tables[key].exists}
        changes = self._changes(existing, state, records)
        gone = {name: rows for name, rows in removed.items() if rows is not None}
        needed = with_referencing_keys(changes, by_key, state, {name.key for name in gone})
        created = tuple(self._created(by_key[key], state) for key in sorted(by_key.keys() - existing.keys()))
        aligned = tuple(
            AlignTable(
                existing[key].qualified_name,
                actions,
                existing[key].declared_at,
                is_streaming=state.tables[key].relation is RelationKind.STREAMING_TABLE,
                columns=existing[key].columns,
            )
            for key, actions in sorted(needed.items())
            if key in existing
        )
        dropped = dropped_tables(gone, (*created, *aligned), needed, state)
        plan = TablePlan(
            (
                *self._schemas(schemas, tables, state, records),
                *created,
                *aligned,
                *(
                    replace(drop, can_be_undropped=self.capabilities.undrops_tables, undoes_creation=undoes)
                    for drop in dropped
                ),
                *map(Keep, removed.keys() - gone.keys()),
            )
        )
        return with_uses(plan, state)

    def _created(self, model: Table, state: CatalogState) -> CreateTable:
        files = state.files.get(model.key)
        return CreateTable(model, None if files is None else adoption(model, files, self.policy))

    def _changes(
        self, existing: Mapping[str, Table], state: CatalogState, records: Mapping[str, Recorded]
    ) -> dict[str, tuple[Action, ...]]:
        """Return the actions of the existing tables that need some, ordered by key.

        Tables are compared in the order of their models, which is their order in memory: another order takes a fifth
        longer for thousands of tables. Comparisons are not kept, which saves time and memory.
        """
        changes: dict[str, tuple[Action, ...]] = {}
        for key, model in existing.items():
            observed, record = state.tables[key], records.get(key)
            if actions := tuple(aspects.diff(Comparison.of(model, observed, record, self.policy))):
                changes[key] = with_lost_parts(actions, model, observed, record, self.policy)
        return dict(sorted(changes.items()))

    def _schemas(
        self,
        schemas: Sequence[Schema],
        tables: Sequence[Table],
        state: CatalogState,
        records: Mapping[str, Recorded[Any]],
    ) -> Iterator[SecurableChange]:
        """Yield what becomes of the schemas that are declared, that tables need, or that only records have."""
        declared = {schema.key for schema in schemas}
        needed = {(table.catalog_name.lower(), table.schema_name.lower()) for table in tables}
        for name in needed:
            if ".".join(name) not in declared and _is_absent(SchemaName(*name), state):
                yield Create(Schema(*name))
        for schema in schemas:
            yield from self._declared(schema, state, records.get(schema.key))
        for key, record in records.items():
            if record.name.kind != SchemaName.kind or key in declared or record.declared is None:
                continue
            if not _is_absent(record.declared.qualified_name, state):
                yield Keep(record.declared.qualified_name)

    def _declared(
        self, schema: Schema, state: CatalogState, record: Recorded[Schema] | None
    ) -> Iterator[SecurableChange]:
        name = schema.qualified_name
        observed = state.schema(name)
        if observed is None:  # unknown schema
            return
        if observed.exists:
            actions = tuple(aspects.diff(Comparison.of(schema, observed, record, self.policy)))
        else:
            yield Create(Schema(*name.parts, schema.comment, declared_at=schema.declared_at))
            actions = tuple(aspects.after_create(schema))
        if actions:
            yield Align(name, actions, schema.declared_at)


def _is_absent(name: SchemaName, state: CatalogState) -> bool:
    schema_state = state.schema(name)
    return schema_state is not None and not schema_state.exists
