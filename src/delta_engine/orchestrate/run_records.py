"""The records of tables and schemas as one run leaves them: what was applied, with its unmanaged parts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.deployment.definitions import TableDefinition, define, definition_checksum
from delta_engine.deployment.document import Resource, Status
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.renamed_resources import pointing_at, with_renamed, with_settled_renames
from delta_engine.deployment.resources import (
    applied_schema,
    applied_table,
    noted,
    recorded_version,
    resource_key,
)
from delta_engine.drift.status import synchronize
from delta_engine.drift.unmanaged import with_unmanaged_parts
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.state.states import ABSENT, CatalogState
from delta_engine.state.table_queries import TableVersion


class RunRecords:
    """Changes the records of one run; saves nothing.

    Args:
        recorder: keeps them.
    """

    def __init__(self, recorder: RunRecorder) -> None:
        self._recorder = recorder
        self._observed = CatalogState(tables={})
        self._settles_attempts = True
        self._renamed: list[tuple[QualifiedName, QualifiedName]] = []
        self._earlier: dict[str, Resource] = {}

    def settle_renames(self, models: Sequence[Table], observed: CatalogState) -> None:
        """Move records to the new names that tables have by now; see `with_settled_renames`."""
        self._recorder.state = with_settled_renames(self._recorder.state, models, observed)

    def synchronize(
        self, observed: CatalogState, *, managed: Collection[str] | None, policy: Policy = NO_POLICY
    ) -> None:
        """Record the statuses that the catalog shows before the run changes it; see `status.synchronize`."""
        self._observed = self._observed.with_tables(observed)
        recorder = self._recorder
        recorder.state = synchronize(
            recorder.state, observed, managed=managed, now=recorder.now(), policy=policy
        )

    def keep_attempts(self) -> None:
        """Keep what unfinished runs attempted: this run brings tables to no model."""
        self._settles_attempts = False

    def earlier(self, key: str) -> Resource | None:
        """Return the record of a table before this run applied it."""
        return self._earlier.get(key)

    def applied(
        self, model: Table, earlier: Resource | None, *, version: TableVersion | None = None
    ) -> Resource:
        """Return the record of a table that is as its model says."""
        if earlier is not None:
            self._earlier.setdefault(resource_key(model.qualified_name), earlier)
        return applied_table(
            model,
            at=self._recorder.now(),
            by=self._recorder.who,
            version=version,
            earlier=earlier,
            with_others=self._with_unmanaged_parts(model, earlier),
            settles=self._settles_attempts,
        )

    def adopt(self, models: Sequence[Table | Schema], observed: CatalogState) -> None:
        """Record tables and schemas that are as their models say without a statement of this run."""
        resources = self._recorder.resources
        for model in models:
            key = resource_key(model.qualified_name)
            earlier = resources.get(key)
            if isinstance(model, Schema):
                resources[key] = applied_schema(
                    model, at=self._recorder.now(), by=self._recorder.who, earlier=earlier
                )
                continue
            self.note_schema(model)
            is_known = earlier and earlier.config_checksum == definition_checksum(define(model))
            if not (earlier and is_known) or earlier.metadata.attempted:
                version = recorded_version(earlier.metadata) if earlier else None
                resource = self.applied(model, earlier, version=version)
                resources[key] = noted(resource, observed.table(model.qualified_name))

    def note_schema(self, model: Table) -> None:
        """Record that a table's schema exists."""
        name = SchemaName(model.catalog_name, model.schema_name)
        key, resources = resource_key(name), self._recorder.resources
        known = resources.get(key)
        is_declared = known is not None and known.metadata.schema_definition is not None
        if (
            known is None
            or known.status is Status.MISSING
            or not (is_declared or known.metadata.attempted_schemas or known.status is Status.HEALTHY)
        ):
            resources[key] = applied_schema(name, at=self._recorder.now(), by=self._recorder.who)

    def rename(self, former: QualifiedName, table: QualifiedName) -> None:
        """Move a table's record to the table's new name."""
        self._renamed.append((former, table))
        self._recorder.resources = with_renamed(self._recorder.resources, former, table)

    def _with_unmanaged_parts(self, model: Table, earlier: Resource | None) -> TableDefinition | None:
        """Return a model's definition with the unmanaged parts, if there are any, and the new names of tables."""
        observed = self._observed.tables.get(model.key, ABSENT)
        found = with_unmanaged_parts(model, observed, earlier.metadata if earlier else None)
        if found == model:
            return None
        definition = define(found)
        for former, name in self._renamed:
            definition = pointing_at(name, former, definition)
        return definition
