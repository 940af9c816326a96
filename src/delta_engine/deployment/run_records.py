"""The records of tables and schemas as one run finds and leaves them. Writes nothing anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

import msgspec

from delta_engine.deployment.definitions import TableDefinition, define, definition_checksum
from delta_engine.deployment.document import Resource, Status
from delta_engine.deployment.left_alone import ours_of, with_others
from delta_engine.deployment.renamed_resources import pointing_at, with_renamed, with_renamed_columns
from delta_engine.deployment.resources import (
    applied_table,
    noted,
    recorded_version,
    resource_key,
    table_key,
    with_version,
)
from delta_engine.deployment.schema_resources import applied_schema, declared_schema, schema_key
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.state.states import ABSENT, CatalogState, TableState
from delta_engine.state.table_queries import TableVersion


class RunRecords:
    """The records of one run.

    Args:
        resources: those of the document that the run began with, by their keys.
        who: who runs.
        now: the clock, UTC.
    """

    def __init__(self, resources: Mapping[str, Resource], who: str, now: Callable[[], datetime]) -> None:
        self.resources = dict(resources)
        self._who = who
        self._now = now
        self._observed = CatalogState(tables={})
        self._settles_attempts = True
        self._renamed: list[tuple[QualifiedName, QualifiedName]] = []
        self._earlier: dict[str, Resource] = {}

    def look_at(self, observed: CatalogState) -> None:
        """Take note of what was there before the run changed anything."""
        self._observed = self._observed.with_tables(observed)

    def keep_attempts(self) -> None:
        """Let what unfinished runs attempted stand in this run's records: it brings tables to no model."""
        self._settles_attempts = False

    def applied(
        self, model: Table, earlier: Resource | None, *, version: TableVersion | None = None
    ) -> Resource:
        """Return the record of a table that is as its model says, beside its record so far."""
        if earlier is not None:
            self._earlier.setdefault(table_key(model.qualified_name), earlier)
        return applied_table(
            model,
            at=self._now(),
            by=self._who,
            version=version,
            earlier=earlier,
            with_others=self._with_others(model, earlier),
            settles=self._settles_attempts,
        )

    def ours_before(self, key: str) -> tuple[Table, ...]:
        """Return what was on record of a table before this run applied it."""
        earlier = self._earlier.get(key)
        return ours_of(earlier.metadata) if earlier else ()

    def adopt(self, models: Sequence[Table], observed: CatalogState) -> None:
        """Record tables that are as their models say without any statement of this run."""
        for model in models:
            self.note_schema(model)
            key = table_key(model.qualified_name)
            earlier = self.resources.get(key)
            is_known = earlier and earlier.config_checksum == definition_checksum(define(model))
            if earlier and is_known and not earlier.metadata.attempted:
                continue
            version = recorded_version(earlier.metadata) if earlier else None
            resource = self.applied(model, earlier, version=version)
            self.resources[key] = noted(resource, observed.table(model.qualified_name))

    def accept(
        self,
        model: Table,
        observed: TableState,
        version: TableVersion | None,
        *,
        renames: Mapping[str, str] = MappingProxyType({}),
        has_other_order: bool = False,
    ) -> None:
        """Record a table as it is now, with what somebody changed by hand.

        Args:
            model: the table's definition with that in it.
            observed: the table as it is.
            version: its id and version, if they are known.
            renames: the columns that he renamed, new names by old ones.
            has_other_order: whether its columns stand in an order that was not accepted.
        """
        key = table_key(model.qualified_name)
        earlier = with_renamed_columns(self.resources[key], renames)
        known = earlier.metadata
        self.keep_attempts()
        resource = self.applied(model, earlier, version=version or recorded_version(known))
        resource = noted(resource, observed)
        if has_other_order:
            metadata = msgspec.structs.replace(resource.metadata, column_order=known.column_order)
            resource = msgspec.structs.replace(resource, metadata=metadata)
        self.resources[key] = resource

    def renew(self, table: QualifiedName, version: TableVersion, observed: TableState) -> None:
        """Record that a table of the same name is another one, and the engine's by now."""
        key = table_key(table)
        resource = with_version(self.resources[key], version)
        metadata = msgspec.structs.replace(resource.metadata, created_at=observed.audit.created_at)
        self.resources[key] = msgspec.structs.replace(resource, metadata=metadata)

    def rename(self, former: QualifiedName, table: QualifiedName) -> None:
        """Take a table's record along to the name that the table has now; nothing where there is none."""
        self._renamed.append((former, table))
        self.resources = with_renamed(self.resources, former, table)

    def forget(self, name: QualifiedName | SchemaName) -> None:
        """Drop the record of a table or schema."""
        self.resources.pop(resource_key(name), None)

    def adopt_schemas(self, schemas: Sequence[Schema]) -> None:
        """Record declared schemas that are as their models say without any statement of this run."""
        for schema in schemas:
            key = schema_key(schema.catalog_name, schema.schema_name)
            self.resources[key] = declared_schema(
                schema, at=self._now(), by=self._who, earlier=self.resources.get(key)
            )

    def note_schema(self, model: Table) -> None:
        """Record that a table's schema is there."""
        key = schema_key(model.catalog_name, model.schema_name)
        known = self.resources.get(key)
        is_declared = known is not None and known.metadata.schema_definition is not None
        if (
            known is None
            or known.status is Status.MISSING
            or not (is_declared or known.metadata.attempted_schemas or known.status is Status.HEALTHY)
        ):
            self.resources[key] = applied_schema(
                model.catalog_name, model.schema_name, at=self._now(), by=self._who
            )

    def _with_others(self, model: Table, earlier: Resource | None) -> TableDefinition | None:
        """Return a model with what is beside it and no drift, if there is anything.

        The tables that this run renamed have their new names in it.
        """
        observed = self._observed.tables.get(model.qualified_name.key, ABSENT)
        found = with_others(model, observed, earlier.metadata if earlier else None)
        if found == model:
            return None
        definition = define(found)
        for former, name in self._renamed:
            definition = pointing_at(name, former, definition)
        return definition
