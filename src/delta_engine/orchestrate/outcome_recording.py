"""Records and reports the outcomes of one apply: of each schema and table as it is done, and the second read."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from delta_engine.actions.policy import Policy
from delta_engine.aspects.table_names import RenameTable
from delta_engine.deployment.document import ApplyActions, Checkpoint, Resource, Status
from delta_engine.deployment.recorded_models import models_of
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import (
    applied_schema,
    resource_key,
    unfinished,
    with_version,
)
from delta_engine.drift.attempts import attempted_by
from delta_engine.drift.status import confirmed
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind, TableOutcome, is_of_table, of_tables
from delta_engine.models import QualifiedName, SchemaName, Table
from delta_engine.orchestrate.planning import PlannedRun
from delta_engine.orchestrate.records import RunRecords
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import TableVersion, TableVersionReader
from delta_engine.telemetry.logs import log


class OutcomeRecording:
    """Records the outcomes of one apply. A resource that was not begun leaves no record.

    `attempted` is what the run is about to apply, by the resources' keys.
    """

    def __init__(self, recorder: RunRecorder, records: RunRecords, planned: PlannedRun) -> None:
        plan, models, schemas = planned.plan, planned.models, planned.schemas
        self.attempted = attempted_by(plan, models, schemas, recorder.resources)
        self._recorder = recorder
        self._records = records
        self._tables = {model.key: model for model in models}
        self._declared_schemas = {schema.key: schema for schema in schemas}
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

    def record(self, outcome: AnyOutcome) -> None:
        """Record and log the outcome of a schema or table."""
        if outcome.kind is OutcomeKind.STOPPED and not outcome.statements:
            return
        if is_of_table(outcome) and outcome.statements and outcome.name.key in self._renamed:
            self._records.rename(self._renamed[outcome.name.key], outcome.name)  # the first statement
        if outcome.kind is OutcomeKind.DROPPED:  # no journal: the next run sees that it is gone
            self._recorded.append(outcome)
            self._recorder.resources.pop(resource_key(outcome.name), None)
        else:
            self._record(outcome.name, outcome)
        _log_outcome(outcome)

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
            attempted=self.attempted.get(key, ()) if is_touched else (),
            earlier=self._recorder.resources.get(key),
        )


def _known_id(outcome: TableOutcome, earlier: Resource | None) -> str | None:
    """Return the id that was recorded before this run."""
    if outcome.kind is OutcomeKind.CREATED or earlier is None:
        return None
    return earlier.metadata.delta_table_id


def _log_outcome(outcome: AnyOutcome) -> None:
    what = "table" if isinstance(outcome.name, QualifiedName) else "schema"
    facts: dict[str, object] = {
        what: str(outcome.name),
        "status": outcome.kind.value,
        "statements": outcome.statements,
    }
    failure = outcome.failure
    if failure is None:
        log(logging.INFO, f"{what} done", **facts)
    else:
        reason = {"error": failure.message, "error_class": failure.error_class, "sql": failure.sql or None}
        log(logging.ERROR, f"{what} not done", **facts, **reason)
