"""Records and reports the outcomes of one apply: of each schema and table as it is done, and the second read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects.table_names import RenameTable
from delta_engine.deployment.document import ApplyActions, Checkpoint, Resource, Status
from delta_engine.deployment.recorded_models import models_of
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import (
    Definition,
    applied_schema,
    resource_key,
    unfinished,
    with_version,
)
from delta_engine.drift.status import confirmed
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind, SchemaOutcome, TableOutcome, of_tables
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.orchestrate.run_records import RunRecords
from delta_engine.orchestrate.run_reporting import RunReporting
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import TableVersion, TableVersionReader


class OutcomeRecording:
    """Takes in the outcomes of one apply. A resource that was not begun leaves no record.

    Args:
        plan: what is applied.
        models: the declared tables.
        schemas: the declared schemas.
        attempted: what is about to be applied, by the resources' keys.
    """

    def __init__(
        self,
        recorder: RunRecorder,
        records: RunRecords,
        reporting: RunReporting,
        plan: TablePlan,
        models: Sequence[Table],
        schemas: Sequence[Schema],
        attempted: Mapping[str, Sequence[Definition]],
    ) -> None:
        self._recorder = recorder
        self._records = records
        self._reporting = reporting
        self._tables = {model.key: model for model in models}
        self._declared_schemas = {schema.key: schema for schema in schemas}
        self._attempted = attempted
        self._renamed = {
            align.table.key: rename.observed
            for align in plan.align_tables
            for rename in align.of_type(RenameTable)
        }
        self._recorded: list[AnyOutcome] = []

    @property
    def applied(self) -> ApplyActions:
        """How many tables and schemas were touched so far."""
        kinds = [outcome.kind for outcome in self._recorded]
        return ApplyActions(
            added=kinds.count(OutcomeKind.CREATED),
            changed=kinds.count(OutcomeKind.CHANGED),
            destroyed=kinds.count(OutcomeKind.DROPPED),
        )

    def table(self, outcome: TableOutcome) -> None:
        """Take in the outcome of a table."""
        if _is_untouched(outcome):
            return
        key = outcome.name.key
        if key in self._renamed and outcome.statements:  # it is the first statement
            self._records.rename(self._renamed[key], outcome.name)
        if outcome.kind is OutcomeKind.DROPPED:  # no journal: the next run sees that it is gone
            self._recorded.append(outcome)
            self._recorder.resources.pop(resource_key(outcome.name), None)
        else:
            self._record(outcome.name, outcome)
        self._reporting.table_done(outcome)

    def schema(self, outcome: SchemaOutcome) -> None:
        """Take in the outcome of a schema."""
        if _is_untouched(outcome):
            return
        self._record(outcome.name, outcome)
        self._reporting.schema_done(outcome)

    def note_versions(self, versions: TableVersionReader) -> None:
        """Ask Delta for the versions of the changed tables, and for the ids that are not known."""
        done = [
            outcome
            for outcome in of_tables(self._recorded)
            if outcome.kind in (OutcomeKind.CREATED, OutcomeKind.CHANGED)
        ]
        ids = {
            outcome.name.key: _known_id(outcome, self._records.earlier(resource_key(outcome.name)))
            for outcome in done
        }
        unknown = [key for key, table_id in ids.items() if table_id is None]
        found = versions.read_versions([outcome.name for outcome in done], with_id=unknown)
        for outcome in done:
            version = found.get(outcome.name.key)
            if version is not None:
                key, table_id = resource_key(outcome.name), version.table_id or ids[outcome.name.key]
                known = TableVersion(table_id=table_id, version=version.version)
                self._recorder.resources[key] = with_version(self._recorder.resources[key], known)

    def confirm(self, wanted: Sequence[Table], observed: CatalogState, policy: Policy) -> frozenset[str]:
        """Compare what was just applied with a second read; a difference is lag, and the next run tells.

        Args:
            wanted: what the changed tables were to become.
            observed: a snapshot of them.
            policy: what the plan was made by.

        Returns:
            The tables that are as they were to be, by `QualifiedName.key`.
        """
        resources = self._recorder.resources
        done = {outcome.name.key for outcome in of_tables(self._recorded)}
        verified = set()
        for model in wanted:
            key = resource_key(model.qualified_name)
            if model.key not in done or resources[key].status is not Status.HEALTHY:
                continue
            earlier = self._records.earlier(key)
            resources[key] = confirmed(
                resources[key],
                model,
                observed.table(model.qualified_name),
                ours=models_of(earlier.metadata) if earlier else (),
                policy=policy,
            )
            if resources[key].status is Status.HEALTHY:
                verified.add(model.key)
        return frozenset(verified)

    def _record(self, name: QualifiedName | SchemaName, outcome: AnyOutcome) -> None:
        failure = outcome.failure
        is_known = isinstance(name, SchemaName) or name.key in self._tables
        is_applied = failure is None and is_known
        resource = self._applied(name) if is_applied else self._unfinished(name, outcome)
        checkpoint = Checkpoint(
            resource=resource_key(name),
            status=resource.status,
            statements_done=outcome.statements,
            statement=(failure.sql or None) if failure else None,
            error=failure.message if failure else None,
        )
        self._recorded.append(outcome)
        self._recorder.record(resource, checkpoint)

    def _applied(self, name: QualifiedName | SchemaName) -> Resource:
        recorder = self._recorder
        earlier = recorder.resources.get(resource_key(name))
        if isinstance(name, SchemaName):
            schema = self._declared_schemas.get(name.key, name)
            return applied_schema(schema, at=recorder.now(), by=recorder.who, earlier=earlier)
        model = self._tables[name.key]
        self._records.note_schema(model)
        return self._records.applied(model, earlier)

    def _unfinished(self, name: QualifiedName | SchemaName, outcome: AnyOutcome) -> Resource:
        key, failure = resource_key(name), outcome.failure
        # a table that only waited for a failed one was not touched
        is_touched = isinstance(name, SchemaName) or outcome.statements or (failure and failure.sql)
        return unfinished(
            name,
            Status.DEGRADED if outcome.statements else Status.FAILED,
            failure.first_line if failure else "",
            attempted=self._attempted.get(key, ()) if is_touched else (),
            earlier=self._recorder.resources.get(key),
        )


def _known_id(outcome: TableOutcome, earlier: Resource | None) -> str | None:
    """Return the id that was recorded before this run."""
    if outcome.kind is OutcomeKind.CREATED or earlier is None:
        return None
    return earlier.metadata.delta_table_id


def _is_untouched(outcome: AnyOutcome) -> bool:
    return outcome.kind is OutcomeKind.STOPPED and not outcome.statements
