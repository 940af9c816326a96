"""Plans the smallest set of actions that brings the catalog to the models. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from delta_engine import aspects
from delta_engine.actions import (
    Action,
    Align,
    AlignTable,
    Create,
    CreateTable,
    Drop,
    Keep,
    SecurableChange,
    TablePlan,
)
from delta_engine.actions.policy import NO_POLICY, Ownership, Policy
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.governed_tables import with_uses
from delta_engine.aspects.view_orders import with_view_orders
from delta_engine.backends.capabilities import DATABRICKS, Capabilities
from delta_engine.compile.adopting import adoption
from delta_engine.compile.keys import dropped_tables, with_referencing_keys
from delta_engine.compile.rewriting import with_lost_parts
from delta_engine.models import (
    Function,
    QualifiedName,
    Schema,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    View,
    ViewName,
    by_resource,
    of_kind,
    resource_key,
)
from delta_engine.models.constraints import resolved
from delta_engine.ownership.recorded import Recorded, undeclared
from delta_engine.state.states import CatalogState, RelationKind
from delta_engine.state.view_states import ViewState, with_set_queries
from delta_engine.telemetry.garbage import no_garbage_collection

Removals: TypeAlias = Mapping[QualifiedName, int | None] | Mapping[SecurableName, int | None]
"""Tables that are no longer declared, with their numbers of rows; None keeps a table."""


def while_renaming(records: Mapping[str, Recorded], align: AlignTable) -> Mapping[str, Recorded]:
    """Return records that also attempt their models under the new column names of an alignment under way."""
    key, renames = resource_key(align.name), renamed_columns(align)
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

    @no_garbage_collection()
    def plan(
        self,
        models: Sequence[Securable],
        state: CatalogState,
        records: Mapping[str, Recorded[Any]] = MappingProxyType({}),
        removed: Removals = MappingProxyType({}),
        *,
        undoes: bool = False,
    ) -> TablePlan:
        """Return the actions that bring the catalog to the models; empty when it matches.

        The planner refuses nothing: see `validation.relations.checked_plan`.

        Args:
            records: by the keys of their resources; parts that only they declare are removed. Only with tables if only
                some models were loaded.
            removed: existing tables that are no longer declared. With `undoes`, also functions and policies. Without
                it, the policy and their records decide on these.
            undoes: whether they are dropped because their creation is undone.
        """
        plan = TablePlan(
            (
                *self._others(models, state, records),
                *self._retired(models, state, records, removed if undoes else None),
                *self._tables(of_kind(Table, models), state, records, removed, undoes=undoes),
            )
        )
        views = of_kind(View, models)
        shown = replace(state, views=with_recorded_queries(state.views, records))
        replaces = self.capabilities.session_catalog is not None
        return with_view_orders(with_uses(plan, shown, views), views, shown, replaces=replaces)

    def _tables(
        self,
        models: Sequence[Table],
        state: CatalogState,
        records: Mapping[str, Recorded[Any]],
        removed: Removals,
        *,
        undoes: bool,
    ) -> Iterator[SecurableChange]:
        """Yield what becomes of tables: of those that are declared, and of those that no longer are."""
        declared = {table.key: table for table in resolved(models)}
        existing = {key: model for key, model in declared.items() if state.tables[key].exists}
        named = {name: rows for name, rows in removed.items() if isinstance(name, QualifiedName)}
        gone = {name: rows for name, rows in named.items() if rows is not None}
        changes = self._changes(existing, state, records)
        needed = with_referencing_keys(changes, declared, state, {name.key for name in gone})
        created = [self._created(declared[key], state) for key in sorted(declared.keys() - existing.keys())]
        aligned = [
            _aligned(existing[key], actions, state)
            for key, actions in sorted(needed.items())
            if key in existing
        ]
        changed: list[CreateTable | AlignTable] = [*created, *aligned]
        yield from changed
        for drop in dropped_tables(gone, changed, needed, state):
            yield replace(drop, can_be_undropped=self.capabilities.undrops_tables, undoes_creation=undoes)
        yield from map(Keep, named.keys() - gone.keys())

    def _created(self, model: Table, state: CatalogState) -> CreateTable:
        files = state.files.get(model.key)
        return CreateTable(model, None if files is None else adoption(model, files, self.policy))

    def _changes(
        self, existing: Mapping[str, Table], state: CatalogState, records: Mapping[str, Recorded]
    ) -> dict[str, tuple[Action, ...]]:
        """Return the actions of the existing tables that need some.

        Tables are compared in the order of their models, which is their order in memory: another order takes a fifth
        longer for thousands of tables. Comparisons are not kept, which saves time and memory.
        """
        changes: dict[str, tuple[Action, ...]] = {}
        for key, model in existing.items():
            observed, record = state.tables[key], records.get(f"{QualifiedName.kind}.{key}")
            if actions := tuple(aspects.diff(Comparison.of(model, observed, record, self.policy))):
                changes[key] = with_lost_parts(actions, model, observed, record, self.policy)
        return changes

    def _others(
        self, models: Sequence[Securable], state: CatalogState, records: Mapping[str, Recorded[Any]]
    ) -> Iterator[SecurableChange]:
        """Yield what becomes of all but tables: of those that are declared, and of schemas that these models need."""
        others = [model for model in models if not isinstance(model, Table)]
        declared = by_resource(others).keys()
        inside: list[Table | Function | View] = [
            *of_kind(Table, models),
            *(model for model in others if isinstance(model, Function | View)),
        ]
        first = {
            (model.catalog_name.lower(), model.schema_name.lower()): model.declared_at
            for model in reversed(inside)
        }
        for parts, declared_at in first.items():
            schema = SchemaName(*parts)
            if resource_key(schema) not in declared and _exists(schema, state) is False:
                yield Create(Schema(*schema.parts, declared_at=declared_at))
        for model in others:
            yield from self._declared(model, state, records.get(resource_key(model.qualified_name)))

    def _retired(
        self,
        models: Sequence[Securable],
        state: CatalogState,
        records: Mapping[str, Recorded[Any]],
        undone: Collection[SecurableName] | None,
    ) -> Iterator[SecurableChange]:
        """Yield what becomes of all but tables that only records have; an undo drops what the undone run created."""
        others = {
            key: record for key, record in records.items() if not isinstance(record.name, QualifiedName)
        }
        for record in undeclared(others, (model for model in models if not isinstance(model, Table))):
            if record.declared is None:
                continue
            name = record.declared.qualified_name
            exists = _exists(name, state)
            if exists and (self.policy.drops(name.kind) if undone is None else name in undone):
                yield Drop(name, undoes_creation=undone is not None)
            elif exists is not False:
                yield Keep(name)

    def _declared(
        self, model: Securable, state: CatalogState, record: Recorded[Any] | None
    ) -> Iterator[SecurableChange]:
        name, observed = model.qualified_name, state.of(model.qualified_name)
        actions: tuple[Action, ...] = ()
        if observed is None:  # unknown
            return
        if observed.exists:
            actions = tuple(aspects.diff(Comparison.of(model, observed, record, self.policy)))
        elif isinstance(model, Schema):  # some changes of a schema wait for its tables
            yield Create(Schema(*model.qualified_name.parts, model.comment, declared_at=model.declared_at))
            actions = tuple(aspects.after_create(model))
        else:
            yield Create(model)
        if actions:
            yield Align(name, actions, model.declared_at)


def _aligned(model: Table, actions: tuple[Action, ...], state: CatalogState) -> AlignTable:
    return AlignTable(
        model.qualified_name,
        actions,
        model.declared_at,
        is_streaming=state.tables[model.key].relation is RelationKind.STREAMING_TABLE,
        columns=model.columns,
    )


def with_recorded_queries(
    views: Mapping[str, ViewState], records: Mapping[str, Recorded[Any]]
) -> Mapping[str, ViewState]:
    """Return views, by `ViewName.key`, with what the engine has set, or may have, where the platform hides queries."""
    recorded = {key: records.get(f"{ViewName.kind}.{key}") for key in views}
    return {
        key: view if (record := recorded[key]) is None else with_set_queries(view, record.ours)
        for key, view in views.items()
    }


def _exists(name: SecurableName, state: CatalogState) -> bool | None:
    observed = state.of(name)
    return None if observed is None else observed.exists
