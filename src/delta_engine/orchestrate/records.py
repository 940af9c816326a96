"""Records what one run leaves: applied models and adopted drift."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final

import msgspec

from delta_engine.actions.policy import ColumnOrder, Policy
from delta_engine.aspects.renames import Renames, pending_renames
from delta_engine.deployment.definitions import as_table, define
from delta_engine.deployment.document import Resource, SchemaResource, Status, TableResource
from delta_engine.deployment.recorded_models import applied_schema, applied_table, table_record
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import (
    is_unrecorded,
    noted,
    pointing_at,
    recorded_schema,
    recorded_table,
    redefined,
    with_agreed_order,
    with_columns_in_order,
    with_renamed,
    with_version,
)
from delta_engine.drift.baselines import with_unmanaged_parts
from delta_engine.drift.replacements import is_replaced_by_run
from delta_engine.drift.status import with_accepted_drift
from delta_engine.models import Part, QualifiedName, Schema, SchemaName, Table
from delta_engine.models.open_struct import canonical_checksum
from delta_engine.models.record import Record, resource_key
from delta_engine.orchestrate.runs import Undo
from delta_engine.state.states import ABSENT, Audit, CatalogState, TableState
from delta_engine.state.table_queries import TableVersion

_MOST_RETRIES: Final = 50
"""How many unknown versions a run reads again: each costs a statement, and a principal may never see some."""


class RunRecords:
    """Changes the records of one run; saves nothing.

    Args:
        observed: the snapshot that the run started from.
        policy: of the run.
        column_renames: the renames outside the engine that the models have taken, by table key.
        ignored_renames: the keys of tables whose recorded version stays: the history goes on telling of renames.
        undo: what the run undoes; None for other runs.
        settles_attempts: whether the run settles what unfinished runs attempted.

    `earlier` has the records of tables before this run applied them.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        observed: CatalogState,
        policy: Policy,
        column_renames: Mapping[str, Renames],
        ignored_renames: Collection[str],
        undo: Undo | None = None,
        *,
        settles_attempts: bool,
    ) -> None:
        self._recorder = recorder
        self._observed = observed
        self._full_ownership = policy.full_ownership
        self._moves_columns = policy.column_order is ColumnOrder.ENFORCE
        self._column_renames = column_renames
        self.ignored_renames = ignored_renames
        self._undo = undo or Undo(run="")
        self._settles_attempts = settles_attempts
        self._renamed: list[tuple[QualifiedName, QualifiedName]] = []
        self.earlier: dict[str, TableResource] = {}

    def applied(
        self,
        model: Table,
        earlier: TableResource | None,
        *,
        version: TableVersion | None = None,
        is_changed: bool = False,
        is_rewritten: bool = False,
    ) -> TableResource:
        """Return the record of a table that is as its model says.

        Args:
            version: the present one; None if it is not read, or not yet.
            is_changed: whether this run changed the table, so that it no longer has its recorded version.
            is_rewritten: whether this run replaced the table: it has another id and creation time than recorded.
        """
        renames = self._column_renames.get(model.key)
        if earlier is not None and renames:
            earlier = redefined(earlier, lambda one: define(renames.applied_to(as_table(one))))
            order = earlier.metadata.column_order
            order = order and tuple(renames.columns.get(name, name) for name in order)
            metadata = msgspec.structs.replace(earlier.metadata, column_order=order)
            earlier = msgspec.structs.replace(earlier, metadata=metadata)
        observed = self._observed.tables.get(model.key, ABSENT)
        if is_rewritten:  # the snapshot has the creation time of the former table
            observed = replace(observed, audit=Audit())
        is_another = is_rewritten or not observed.exists or _is_replaced_by_run(earlier, observed)
        if earlier is not None:
            self.earlier.setdefault(resource_key(model.qualified_name), earlier)
        resource = applied_table(
            model,
            at=self._recorder.now(),
            by=self._recorder.who,
            version=version,
            created_at=None if is_another or earlier is None else earlier.metadata.created_at,
            earlier=earlier,
            baseline=self._baseline(model, earlier),
            full_ownership=self._owned(earlier),
            settles=self._settles_attempts,
        )
        if earlier is not None and observed.exists and version is None:
            is_outdated = is_changed or bool(earlier.metadata.attempted)
            metadata = msgspec.structs.replace(
                resource.metadata,
                delta_table_id=None if is_another else earlier.metadata.delta_table_id,
                delta_version=None if is_outdated else earlier.metadata.delta_version,
            )
            resource = msgspec.structs.replace(resource, metadata=metadata)
        if observed.exists and is_unrecorded(earlier):
            metadata = msgspec.structs.replace(resource.metadata, adopted_at=self._recorder.now())
            resource = msgspec.structs.replace(resource, metadata=metadata)
        promised = self._promised(model, observed)
        if earlier is not None and earlier.metadata.accepted and self._settles_attempts:
            resource = with_accepted_drift(resource, model, observed, promised, earlier)
        return noted(resource, model, promised, earlier, ordered=self.ordered(model, earlier))

    def ordered(self, model: Table, earlier: TableResource | None) -> TableResource | None:
        """Return the record of the order that a table's columns have, but for those that it does not name.

        RESTORE brings back the order from before the run that is undone.

        Args:
            earlier: the record before this run.
        """
        return self._undo.former[model.key] if model.key in self._undo.restored else earlier

    def adopt(
        self,
        models: Sequence[Table | Schema],
        versions: Mapping[str, TableVersion] = MappingProxyType({}),
    ) -> None:
        """Record tables and schemas that are as their models say without a statement of this run.

        Args:
            versions: the current ones of the tables in `with_new_version`, by `QualifiedName.key`.
        """
        resources = self._recorder.resources
        for model in models:
            key = resource_key(model.qualified_name)
            if isinstance(model, Schema):
                resources[key] = self.applied_schema(model)
                continue
            earlier = recorded_table(resources, model.qualified_name)
            self.note_schema(model)
            is_known = earlier and earlier.config_checksum == canonical_checksum(define(model))
            if earlier is None or not is_known or earlier.metadata.attempted:
                resources[key] = self.applied(model, earlier, version=versions.get(model.key))
                continue
            observed = self._observed.table(model.qualified_name)
            resource = with_agreed_order(earlier, model, observed)
            if resource.metadata.full_ownership != self._full_ownership:
                metadata = msgspec.structs.replace(resource.metadata, full_ownership=self._full_ownership)
                resource = msgspec.structs.replace(resource, metadata=metadata)
            if model.key in versions:
                resource = with_version(resource, versions[model.key], observed.audit.created_at)
            if resource is not earlier:
                resources[key] = resource

    def applied_schema(self, schema: Schema | SchemaName) -> SchemaResource:
        """Return the record of a schema that is as its model says."""
        name = schema if isinstance(schema, SchemaName) else schema.qualified_name
        earlier = recorded_schema(self._recorder.resources, name)
        return applied_schema(
            schema,
            at=self._recorder.now(),
            by=self._recorder.who,
            earlier=earlier,
            full_ownership=self._owned(earlier),
        )

    def _owned(self, earlier: Resource | None) -> tuple[str, ...] | None:
        """Return the recorded ownership of tags and grants. A revert changes nothing but drift."""
        is_revert = not self._settles_attempts
        return earlier.metadata.full_ownership if earlier and is_revert else self._full_ownership

    def with_new_version(self, models: Iterable[Table]) -> list[QualifiedName]:
        """Return the tables that are recorded for the first time, or after an unfinished run, or with renames.

        These are renames by others that the models have taken. A few more have no version, because it could not be
        read, or a killed run made them.
        """
        known = [(one, recorded_table(self._recorder.resources, one.qualified_name)) for one in models]
        new = [
            one.qualified_name
            for one, found in known
            if found is None
            or found.metadata.declared is None
            or found.metadata.attempted
            or self._takes_renames(one)
        ]
        unknown = (
            one.qualified_name
            for one, found in known
            if found is not None and found.metadata.declared and found.metadata.delta_version is None
        )
        return [*new, *islice(unknown, _MOST_RETRIES)]

    def _takes_renames(self, model: Table) -> bool:
        return model.key in self._column_renames and model.key not in self.ignored_renames

    def note_schema(self, model: Table) -> None:
        """Record that a table's schema exists."""
        name = SchemaName(model.catalog_name, model.schema_name)
        key, resources = resource_key(name), self._recorder.resources
        known = resources.get(key)
        is_declared = known is not None and known.metadata.declared is not None
        if (
            known is None
            or known.status is Status.MISSING
            or not (is_declared or known.metadata.attempted or known.status is Status.HEALTHY)
        ):
            resources[key] = self.applied_schema(name)

    def rename(self, former: QualifiedName, table: QualifiedName) -> None:
        """Move a table's record to the table's new name. The record of an earlier table of that name gives way."""
        self._renamed.append((former, table))
        gone = recorded_table(self._recorder.resources, table)
        if gone is not None and gone.metadata.declared is not None:
            del self._recorder.resources[resource_key(table)]
        self._recorder.resources = with_renamed(self._recorder.resources, former, table)

    def _promised(self, model: Table, observed: TableState) -> TableState:
        """Return a table with the columns that its plan leaves, in their order. A second read confirms it."""
        if not observed.exists or self._moves_columns:
            return replace(observed, exists=True, columns=model.columns)
        if not model.is_about(Part.COLUMNS):
            return observed
        wanted = {column.key for column in model.columns}
        present = pending_renames(model, observed).applied_to(observed).columns
        if model.key in self._undo.restored:
            present = with_columns_in_order(model, self._undo.former[model.key])
        kept = [column for column in present if column.key in wanted]
        known = {column.key for column in kept}
        return replace(observed, columns=(*kept, *(one for one in model.columns if one.key not in known)))

    def _baseline(self, model: Table, earlier: TableResource | None) -> Table | None:
        """Return a model with the unmanaged parts, if there are any, and the new names of tables."""
        observed = self._observed.tables.get(model.key, ABSENT)
        if model.key in self._undo.former:
            return table_record(self._undo.former[model.key].metadata).with_unmanaged_parts
        record = table_record(earlier.metadata) if earlier else Record()
        if not self._settles_attempts:
            return record.with_unmanaged_parts  # a revert brings it back
        if not observed.exists:
            return None
        found = with_unmanaged_parts(model, observed, record)
        for former, name in self._renamed:
            found = found and as_table(pointing_at(name, former, define(found)))
        return found


def _is_replaced_by_run(earlier: TableResource | None, observed: TableState) -> bool:
    """Whether an unfinished run has rewritten or moved a recorded table."""
    if earlier is None or not earlier.metadata.attempted:
        return False
    record = table_record(earlier.metadata)
    return is_replaced_by_run(observed, record)
