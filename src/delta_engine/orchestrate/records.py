"""Records what one run leaves: applied models and adopted drift."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from delta_engine.actions.policy import ColumnOrder, Policy
from delta_engine.aspects.renames import Renames, pending_renames
from delta_engine.deployment.definitions import as_table, define
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import (
    applied_schema,
    applied_table,
    noted,
    pointing_at,
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
from delta_engine.orchestrate.intent import Undo
from delta_engine.ownership.recorded import (
    AnyRecord,
    Recorded,
    Status,
    is_unrecorded,
    resource_key,
    schema_record,
    table_record,
)
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
        self.earlier: dict[str, Recorded[Table]] = {}

    def applied(
        self,
        model: Table,
        earlier: Recorded[Table] | None,
        *,
        version: TableVersion | None = None,
        is_changed: bool = False,
        is_rewritten: bool = False,
    ) -> Recorded[Table]:
        """Return the record of a table that is as its model says.

        Args:
            version: the present one; None if it is not read, or not yet.
            is_changed: whether this run changed the table, so that it no longer has its recorded version.
            is_rewritten: whether this run replaced the table: it has another id and creation time than recorded.
        """
        renames = self._column_renames.get(model.key)
        if earlier is not None and renames:
            earlier = redefined(earlier, lambda one: define(renames.applied_to(as_table(one))))
            order = earlier.column_order
            order = order and tuple(renames.columns.get(name, name) for name in order)
            earlier = replace(earlier, column_order=order)
        observed = self._observed.tables.get(model.key, ABSENT)
        if is_rewritten:  # the snapshot has the creation time of the former table
            observed = replace(observed, audit=Audit())
        is_another = is_rewritten or not observed.exists or _is_replaced_by_run(earlier, observed)
        if earlier is not None:
            self.earlier.setdefault(resource_key(model.qualified_name), earlier)
        record = applied_table(
            model,
            at=self._recorder.now(),
            by=self._recorder.who,
            version=version,
            created_at=None if is_another or earlier is None else earlier.created_at,
            earlier=earlier,
            baseline=self._baseline(model, earlier),
            full_ownership=self._owned(earlier),
            settles=self._settles_attempts,
        )
        if earlier is not None and observed.exists and version is None:
            is_outdated = is_changed or bool(earlier.attempts)
            record = replace(
                record,
                delta_table_id=None if is_another else earlier.delta_table_id,
                delta_version=None if is_outdated else earlier.delta_version,
            )
        if observed.exists and is_unrecorded(earlier):
            record = replace(record, adopted_at=self._recorder.now())
        promised = self._promised(model, observed)
        if earlier is not None and earlier.accepted and self._settles_attempts:
            record = with_accepted_drift(record, model, observed, promised, earlier)
        return noted(record, model, promised, earlier, ordered=self.ordered(model, earlier))

    def ordered(self, model: Table, earlier: Recorded[Table] | None) -> Recorded[Table] | None:
        """Return the record of the order that a table's columns have, but for those that it does not name.

        RESTORE brings back the order from before the run that is undone.

        Args:
            earlier: the record before this run.
        """
        return self._undo.former[model.key] if model.key in self._undo.restored else earlier

    def adopt_schemas(self, schemas: Iterable[Schema]) -> None:
        """Record schemas that are as their models say without a statement of this run."""
        for schema in schemas:
            name = schema.qualified_name
            self._recorder.resources[resource_key(name)] = self.applied_schema(name, schema)

    def adopt(
        self, models: Sequence[Table], versions: Mapping[str, TableVersion] = MappingProxyType({})
    ) -> None:
        """Record tables that are as their models say without a statement of this run.

        Args:
            versions: the current ones of the tables in `with_new_version`, by `QualifiedName.key`.
        """
        resources = self._recorder.resources
        for model in models:
            key = resource_key(model.qualified_name)
            earlier = table_record(resources, model.qualified_name)
            self.note_schema(model)
            is_known = earlier and earlier.config_checksum == canonical_checksum(define(model))
            if earlier is None or not is_known or earlier.attempts:
                resources[key] = self.applied(model, earlier, version=versions.get(model.key))
                continue
            observed = self._observed.table(model.qualified_name)
            record = with_agreed_order(earlier, model, observed)
            if record.full_ownership != self._full_ownership:
                record = replace(record, full_ownership=self._full_ownership)
            if model.key in versions:
                record = with_version(record, versions[model.key], observed.audit.created_at)
            if record is not earlier:
                resources[key] = record

    def applied_schema(self, name: SchemaName, schema: Schema | None = None) -> Recorded[Schema]:
        """Return the record of a schema that is as its model says; None if no model declares it."""
        earlier = schema_record(self._recorder.resources, name)
        return applied_schema(
            name,
            schema,
            at=self._recorder.now(),
            by=self._recorder.who,
            earlier=earlier,
            full_ownership=self._owned(earlier),
        )

    def _owned(self, earlier: AnyRecord | None) -> tuple[str, ...] | None:
        """Return the recorded ownership of tags and grants. A revert changes nothing but drift."""
        is_revert = not self._settles_attempts
        return earlier.full_ownership if earlier and is_revert else self._full_ownership

    def with_new_version(self, models: Iterable[Table]) -> list[QualifiedName]:
        """Return the tables that are recorded for the first time, or after an unfinished run, or with renames.

        These are renames by others that the models have taken. A few more have no version, because it could not be
        read, or a killed run made them.
        """
        known = [(model, table_record(self._recorder.resources, model.qualified_name)) for model in models]
        new = [
            model.qualified_name
            for model, record in known
            if record is None or record.applied is None or record.attempts or self._takes_renames(model)
        ]
        unknown = (
            model.qualified_name
            for model, record in known
            if record is not None and record.applied and record.delta_version is None
        )
        return [*new, *islice(unknown, _MOST_RETRIES)]

    def _takes_renames(self, model: Table) -> bool:
        return model.key in self._column_renames and model.key not in self.ignored_renames

    def note_schema(self, model: Table) -> None:
        """Record that a table's schema exists."""
        name = SchemaName(model.catalog_name, model.schema_name)
        key, resources = resource_key(name), self._recorder.resources
        known = resources.get(key)
        is_declared = known is not None and known.applied is not None
        if (
            known is None
            or known.status is Status.MISSING
            or not (is_declared or known.attempts or known.status is Status.HEALTHY)
        ):
            resources[key] = self.applied_schema(name)

    def rename(self, former: QualifiedName, table: QualifiedName) -> None:
        """Move a table's record to the table's new name. The record of an earlier table of that name gives way."""
        self._renamed.append((former, table))
        gone = table_record(self._recorder.resources, table)
        if gone is not None and gone.applied is not None:
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

    def _baseline(self, model: Table, earlier: Recorded[Table] | None) -> Table | None:
        """Return a model with the unmanaged parts, if there are any, and the new names of tables."""
        observed = self._observed.tables.get(model.key, ABSENT)
        if model.key in self._undo.former:
            return self._undo.former[model.key].with_unmanaged_parts
        if not self._settles_attempts:  # a revert brings it back
            return earlier.with_unmanaged_parts if earlier is not None else None
        if not observed.exists:
            return None
        found = with_unmanaged_parts(model, observed, earlier)
        for former, name in self._renamed:
            found = found and as_table(pointing_at(name, former, define(found)))
        return found


def _is_replaced_by_run(earlier: Recorded[Table] | None, observed: TableState) -> bool:
    """Whether an unfinished run has rewritten or moved a recorded table."""
    if earlier is None or not earlier.attempts:
        return False
    return is_replaced_by_run(observed, earlier)
