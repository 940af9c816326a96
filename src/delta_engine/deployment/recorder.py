"""Keeps the deployment state of one locked run: what it found, what it changed, what it saves.

A run that ends in any way but an orderly one saves nothing: its journal stays, and the next run takes it in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

import msgspec

from delta_engine.actions import TablePlan
from delta_engine.deployment.attempts import NOTHING_ATTEMPTED, attempted_by
from delta_engine.deployment.definitions import as_table, define, define_parts, definition_checksum
from delta_engine.deployment.document import (
    AppliedPlan,
    Checkpoint,
    Checksum,
    DeploymentState,
    Difference,
    Resource,
    Status,
)
from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.journal import Journal, JournalEntry, JournalStart, replay
from delta_engine.deployment.ports import JournalStore
from delta_engine.deployment.renamed_resources import with_renamed, with_settled_renames
from delta_engine.deployment.repository import LoadedState, StateRepository, new_id, utc_now
from delta_engine.deployment.resources import (
    applied_table,
    failed_table,
    noted,
    recorded_version,
    resource_key,
    table_key,
    with_version,
)
from delta_engine.deployment.run_document import apply_record, described, first_document
from delta_engine.deployment.run_facts import RunFacts
from delta_engine.deployment.schema_resources import (
    applied_schema,
    declared_schema,
    failed_schema,
    schema_key,
)
from delta_engine.deployment.synchronizer import beside, confirmed, synchronize
from delta_engine.execute.action_runner import OutcomeKind, SchemaOutcome, TableOutcome
from delta_engine.models import QualifiedName, Schema, SchemaName, Table
from delta_engine.state.states import ABSENT, CatalogState, TableState
from delta_engine.state.table_versions import TableVersion, TableVersionReader

Notify = Callable[[str], None]
"""Tells people something while a run goes on."""


class RunRecorder:
    """Records one run.

    Args:
        repository: loads and saves the document.
        journals: keeps the journals of runs.
        facts: who runs, and where.
        fence: the lock's.
        notify: is told what people should know.
        now: the clock, UTC.
        seconds: a monotonic clock.
    """

    def __init__(
        self,
        repository: StateRepository,
        journals: JournalStore,
        facts: RunFacts,
        *,
        fence: int,
        notify: Notify = lambda _note: None,
        now: Callable[[], datetime] = utc_now,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._repository = repository
        self._journals = journals
        self._facts = facts
        self._fence = fence
        self._notify = notify
        self._now = now
        self._seconds = seconds
        self._run_id = new_id()
        self._journal = Journal(journals, self._run_id)
        self._began_at = seconds()
        self._checkpoints: list[Checkpoint] = []
        self._outcomes: list[TableOutcome | SchemaOutcome] = []
        self._attempted = NOTHING_ATTEMPTED
        self._observed = CatalogState(tables={})
        self._settles_attempts = True
        self._warnings: list[str] = []
        self._plan_file: Checksum | None = None
        self._base: LoadedState | None = repository.load()
        replayed = replay(
            self._base.state if self._base else first_document(facts, now=now()), journals.read()
        )
        self._obsolete_journals = replayed.run_ids
        self._resources = dict(replayed.state.resources)
        self._state = replayed.state
        for note in replayed.notes:
            self.warn(note)

    @property
    def run_id(self) -> str:
        """The run's id; the document that it saves carries it as its write_id."""
        return self._run_id

    @property
    def warnings(self) -> tuple[str, ...]:
        """What people were told in this run."""
        return tuple(self._warnings)

    @property
    def state(self) -> DeploymentState:
        """The document as it stands in this run."""
        return msgspec.structs.replace(self._state, resources=self._resources)

    def synchronize(self, observed: CatalogState, *, managed: Collection[str] | None) -> None:
        """Take in what the catalog shows; see `synchronizer.synchronize`."""
        self._observed = self._observed.with_tables(observed)
        self._state = synchronize(self.state, observed, managed=managed, now=self._now())
        self._resources = dict(self._state.resources)

    def follow(self, plan_file: Checksum) -> None:
        """Say that this run applies a plan file, by its checksum."""
        self._plan_file = plan_file

    def remember_plan(self, *, is_whole: bool) -> None:
        """Remember the plan file that this run followed, if it followed one, and whether it got through."""
        if self._plan_file is not None:
            applied = AppliedPlan(
                checksum=self._plan_file,
                applied_at=self._now(),
                applied_by=self._facts.who,
                is_whole=is_whole,
            )
            self._state = self._state.with_applied_plan(applied)

    def begin(self, plan: TablePlan, models: Sequence[Table], schemas: Sequence[Schema]) -> None:
        """Make sure that a killed apply leaves its traces: the first document, and the journal's first entry.

        Args:
            plan: what is about to be done.
            models: the declared tables, resolved.
            schemas: the declared schemas.

        Raises:
            StoreError, UnsavedStateError: nothing may be changed then.
        """
        self._began_at = self._seconds()
        if self._base is None:
            self._base = self._repository.save(described(self.state, self._facts), None)
        self._attempted = attempted_by(plan, models, schemas, self._resources)
        self._journal.start(
            JournalStart(
                state_id=self._base.state.state_id,
                serial=self._base.state.serial,
                fence=self._fence,
                started_at=self._now(),
                started_by=self._facts.who,
                resources=tuple(table_key(action.table) for action in plan.table_actions()),
                attempted=dict(self._attempted.tables),
                attempted_schemas=dict(self._attempted.schemas),
                plan=self._plan_file,
            )
        )

    def keep_attempts(self) -> None:
        """Let what unfinished runs attempted stand in this run's records: it brings tables to no model."""
        self._settles_attempts = False

    def record_drop(self, outcome: TableOutcome) -> None:
        """Take in a dropped table. The journal has nothing of it: the next run sees that it is gone."""
        self._outcomes.append(outcome)
        self.forget(outcome.table)

    def record(self, outcome: TableOutcome, model: Table | None) -> None:
        """Take in a finished table, and write it into the journal.

        Args:
            outcome: what became of it.
            model: what was applied; None for a table that is not declared any more, and could not be dropped.

        A journal that cannot be written is a warning: the tables are what the user asked for, and the save at the
        end records them all.
        """
        key = table_key(outcome.table)
        earlier = self._resources.get(key)
        if model is not None and outcome.failure is None:
            self._record_schema(model)
        if model is None or outcome.failure is not None:
            attempted = self._attempted.tables.get(key, ())
            resource = failed_table(outcome, attempted=attempted, earlier=earlier)
        else:
            resource = self._applied(model, earlier, version=None)
        self._take_in(key, resource, outcome)

    def record_schema(self, outcome: SchemaOutcome, schema: Schema | None) -> None:
        """Take in a finished schema, and write it into the journal.

        Args:
            outcome: what became of it.
            schema: its model; None for one that is not declared, and that tables need.
        """
        key = schema_key(outcome.catalog_name, outcome.schema_name)
        earlier = self._resources.get(key)
        if outcome.kind is OutcomeKind.FAILED:
            attempted = self._attempted.schemas.get(key)
            resource = failed_schema(outcome, attempted=attempted, earlier=earlier)
        elif schema is not None:
            resource = declared_schema(schema, at=self._now(), by=self._facts.who, earlier=earlier)
        else:
            resource = applied_schema(
                outcome.catalog_name, outcome.schema_name, at=self._now(), by=self._facts.who
            )
        self._take_in(key, resource, outcome)

    def _take_in(self, key: str, resource: Resource, outcome: TableOutcome | SchemaOutcome) -> None:
        checkpoint = Checkpoint(
            resource=key,
            status=resource.status,
            statements_done=outcome.statements,
            statement=(outcome.failure.sql or None) if outcome.failure else None,
            error=outcome.failure.message if outcome.failure else None,
        )
        self._resources[key] = resource
        self._checkpoints.append(checkpoint)
        self._outcomes.append(outcome)
        try:
            self._journal.record(JournalEntry(key=key, resource=resource, checkpoint=checkpoint))
        except StoreError as error:
            self.warn(f"the journal could not be written: {error}")

    def note_versions(self, versions: TableVersionReader) -> None:
        """Ask Delta for the versions of the tables that were changed, and for the ids that are not known."""
        done = [
            one
            for one in self._outcomes
            if isinstance(one, TableOutcome) and one.kind in (OutcomeKind.CREATED, OutcomeKind.CHANGED)
        ]
        ids = {
            outcome.table.key: None if outcome.kind is OutcomeKind.CREATED else self._known_id(outcome.table)
            for outcome in done
        }
        unknown = [key for key, table_id in ids.items() if table_id is None]
        found = versions.read([outcome.table for outcome in done], with_id=unknown)
        for outcome in done:
            version = found.get(outcome.table.key)
            if version is not None:
                key, table_id = table_key(outcome.table), version.table_id or ids[outcome.table.key]
                known = TableVersion(table_id=table_id, version=version.version)
                self._resources[key] = with_version(self._resources[key], known)

    def confirm(self, wanted: Sequence[Table], observed: CatalogState) -> frozenset[str]:
        """Compare what was just applied with what the catalog shows.

        A difference is no drift: Unity Catalog's views may lag behind. The next run tells.

        Args:
            wanted: what the changed tables were meant to become.
            observed: a snapshot of them.

        Returns:
            The tables that are as they were meant to be, by `QualifiedName.key`.
        """
        verified = set()
        tables = {table_key(model.qualified_name): model for model in wanted}
        for checkpoint in self._checkpoints:
            model = tables.get(checkpoint.resource)
            if model is None or checkpoint.status is not Status.HEALTHY:
                continue
            found = confirmed(
                self._resources[checkpoint.resource], define(model), observed.table(model.qualified_name)
            )
            self._resources[checkpoint.resource] = found
            if found.status is Status.HEALTHY:
                verified.add(model.qualified_name.key)
        return frozenset(verified)

    def adopt(self, models: Sequence[Table], observed: CatalogState) -> None:
        """Record tables that are as their models say without any statement of this run."""
        for model in models:
            self._record_schema(model)
            key = table_key(model.qualified_name)
            earlier = self._resources.get(key)
            is_known = earlier and earlier.config_checksum == definition_checksum(define(model))
            if earlier and is_known and not earlier.metadata.attempted:
                continue
            version = recorded_version(earlier.metadata) if earlier else None
            resource = self._applied(model, earlier, version=version)
            self._resources[key] = noted(resource, observed.table(model.qualified_name))

    def accept(
        self,
        model: Table,
        observed: TableState,
        version: TableVersion | None,
        *,
        has_other_order: bool = False,
    ) -> None:
        """Record a table as it is now, with what somebody changed by hand.

        Args:
            model: the table's definition with that in it.
            observed: the table as it is.
            version: its id and version, if they are known.
            has_other_order: whether its columns stand in an order that was not accepted.
        """
        key = table_key(model.qualified_name)
        earlier = self._resources[key]
        known = earlier.metadata
        self.keep_attempts()
        resource = self._applied(model, earlier, version=version or recorded_version(known))
        resource = noted(resource, observed)
        if has_other_order:
            metadata = msgspec.structs.replace(resource.metadata, column_order=known.column_order)
            resource = msgspec.structs.replace(resource, metadata=metadata)
        self._resources[key] = resource

    def renew(self, table: QualifiedName, version: TableVersion, observed: TableState) -> None:
        """Record that a table of the same name is another one, and the engine's by now."""
        key = table_key(table)
        resource = with_version(self._resources[key], version)
        metadata = msgspec.structs.replace(resource.metadata, created_at=observed.audit.created_at)
        self._resources[key] = msgspec.structs.replace(resource, metadata=metadata)

    def rename(self, former: QualifiedName, table: QualifiedName) -> None:
        """Take a table's record along to the name that the table has now; nothing where there is none."""
        self._resources = with_renamed(self._resources, former, table)

    def settle_renames(self, models: Sequence[Table], observed: CatalogState) -> None:
        """Take records along to new names where tables have them by now; see `with_settled_renames`."""
        self._resources = dict(with_settled_renames(self.state, models, observed).resources)

    def forget(self, name: QualifiedName | SchemaName) -> None:
        """Drop the record of a table or schema."""
        self._resources.pop(resource_key(name), None)

    def _applied(self, model: Table, earlier: Resource | None, *, version: TableVersion | None) -> Resource:
        return applied_table(
            model,
            at=self._now(),
            by=self._facts.who,
            version=version,
            earlier=earlier,
            left_alone=self._left_alone(model, earlier),
            settles=self._settles_attempts,
        )

    def _left_alone(self, model: Table, earlier: Resource | None) -> tuple[Difference, ...]:
        """Return what is beside a model and no drift: what was there when the table was first applied."""
        definition = earlier.metadata.definition if earlier else None
        if earlier and definition and definition.manages == define_parts(model):
            return earlier.metadata.left_alone
        attempted = earlier.metadata.attempted if earlier else ()
        observed = self._observed.tables.get(model.qualified_name.key, ABSENT)
        return beside(model, observed, tuple(map(as_table, attempted)))

    def save(self, plan: TablePlan) -> LoadedState | None:
        """Save what this run found and did, if that is anything; then let go of the journals.

        Raises:
            StaleStateError, UnsavedStateError: it could not be saved; the journal stays.
        """
        if self._base and not self._checkpoints and self._is_as_saved(self._base.state):
            self._remove_journals()
            return self._base
        state = described(self.state, self._facts)
        if plan:
            record = apply_record(
                [outcome.kind for outcome in self._outcomes],
                self._checkpoints,
                self._warnings,
                seconds=self._seconds() - self._began_at,
            )
            state = msgspec.structs.replace(state, metadata=record)
        elif self._warnings:
            metadata = msgspec.structs.replace(state.metadata, warnings=tuple(self._warnings))
            state = msgspec.structs.replace(state, metadata=metadata)
        self._base = self._repository.save(state, self._base, write_id=self._run_id)
        self._remove_journals()
        return self._base

    def save_edited(self, state: DeploymentState) -> LoadedState:
        """Save a document that was changed by hand.

        Raises:
            StaleStateError, UnsavedStateError: as `save`.
        """
        self._base = self._repository.save(state, self._base)
        self._remove_journals()
        return self._base

    def warn(self, warning: str) -> None:
        """Tell people, and keep it with the document; once is enough."""
        if warning not in self._warnings:
            self._warnings.append(warning)
            self._notify(warning)

    def adopt_schemas(self, schemas: Sequence[Schema]) -> None:
        """Record declared schemas that are as their models say without any statement of this run."""
        for schema in schemas:
            key = schema_key(schema.catalog_name, schema.schema_name)
            self._resources[key] = declared_schema(
                schema, at=self._now(), by=self._facts.who, earlier=self._resources.get(key)
            )

    def _record_schema(self, model: Table) -> None:
        key = schema_key(model.catalog_name, model.schema_name)
        known = self._resources.get(key)
        is_declared = known is not None and known.metadata.schema_definition is not None
        if (
            known is None
            or known.status is Status.MISSING
            or not (is_declared or known.metadata.attempted_schemas or known.status is Status.HEALTHY)
        ):
            self._resources[key] = applied_schema(
                model.catalog_name, model.schema_name, at=self._now(), by=self._facts.who
            )

    def _is_as_saved(self, saved: DeploymentState) -> bool:
        plans = self._state.applied_plans
        return self._resources == saved.resources and plans == saved.applied_plans

    def _known_id(self, table: QualifiedName) -> str | None:
        """Return the id that was recorded before this run."""
        resource = self._base.state.resources.get(table_key(table)) if self._base else None
        return resource.metadata.delta_table_id if resource else None

    def _remove_journals(self) -> None:
        """Let go of the journals that are in the document now; one that stays is known by its run's id."""
        for run_id in (*self._obsolete_journals, self._run_id):
            try:
                self._journals.remove(run_id)
            except StoreError as error:
                self._notify(f"a journal could not be removed: {error}")
