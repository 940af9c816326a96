"""Keeps the deployment state of one locked run: what it found, what it changed, what it saves.

A run that ends in any way but an orderly one saves nothing: its journal stays, and the next run takes it in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

import msgspec

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.deployment.attempts import NOTHING_ATTEMPTED, attempted_by
from delta_engine.deployment.document import (
    AppliedPlan,
    ApplyActions,
    Checkpoint,
    Checksum,
    DeploymentState,
    Resource,
    Status,
)
from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.journal import Journal, JournalEntry, JournalStart, replay
from delta_engine.deployment.ports import JournalStore
from delta_engine.deployment.renamed_resources import with_settled_renames
from delta_engine.deployment.repository import LoadedState, StateRepository
from delta_engine.deployment.resources import (
    failed_table,
    table_key,
    with_version,
)
from delta_engine.deployment.run_facts import RunFacts, apply_record, described, first_document
from delta_engine.deployment.run_records import RunRecords
from delta_engine.deployment.schema_resources import (
    applied_schema,
    declared_schema,
    failed_schema,
    schema_key,
)
from delta_engine.deployment.stamps import new_id, utc_now
from delta_engine.deployment.synchronizer import confirmed, synchronize
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind, SchemaOutcome, TableOutcome, of_tables
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import TableVersion, TableVersionReader

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

    What becomes of single records is the business of `records`; here is when they are journaled and saved.
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
        self._outcomes: list[AnyOutcome] = []
        self._attempted = NOTHING_ATTEMPTED
        self._warnings: list[str] = []
        self._plan_file: Checksum | None = None
        self._base: LoadedState | None = repository.load()
        replayed = replay(
            self._base.state if self._base else first_document(facts, now=now()), journals.read()
        )
        self._obsolete_journals = replayed.run_ids
        self.records = RunRecords(replayed.state.resources, facts.who, now)
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
        return msgspec.structs.replace(self._state, resources=self.records.resources)

    def synchronize(
        self, observed: CatalogState, *, managed: Collection[str] | None, policy: Policy = NO_POLICY
    ) -> None:
        """Take in what the catalog shows; see `synchronizer.synchronize`."""
        self.records.look_at(observed)
        self._state = synchronize(self.state, observed, managed=managed, now=self._now(), policy=policy)
        self.records.resources = dict(self._state.resources)

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
        self._attempted = attempted_by(plan, models, schemas, self.records.resources)
        self._journal.append(
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

    def record_drop(self, outcome: TableOutcome) -> None:
        """Take in a dropped table. The journal has nothing of it: the next run sees that it is gone."""
        self._outcomes.append(outcome)
        self.records.forget(outcome.name)

    def record(self, outcome: TableOutcome, model: Table | None) -> None:
        """Take in a finished table, and write it into the journal.

        Args:
            outcome: what became of it.
            model: what was applied; None for a table that is not declared any more, and could not be dropped.

        A journal that cannot be written is a warning: the tables are what the user asked for, and the save at the
        end records them all.
        """
        key = table_key(outcome.name)
        earlier = self.records.resources.get(key)
        if model is not None and outcome.failure is None:
            self.records.note_schema(model)
        if model is None or outcome.failure is not None:
            attempted = self._attempted.tables.get(key, ())
            resource = failed_table(outcome, attempted=attempted, earlier=earlier)
        else:
            resource = self.records.applied(model, earlier)
        self._take_in(key, resource, outcome)

    def record_schema(self, outcome: SchemaOutcome, schema: Schema | None) -> None:
        """Take in a finished schema, and write it into the journal.

        Args:
            outcome: what became of it.
            schema: its model; None for one that is not declared, and that tables need.
        """
        key = schema_key(outcome.name.catalog, outcome.name.schema)
        earlier = self.records.resources.get(key)
        if outcome.failure is not None:
            attempted = self._attempted.schemas.get(key)
            resource = failed_schema(outcome, attempted=attempted, earlier=earlier)
        elif schema is not None:
            resource = declared_schema(schema, at=self._now(), by=self._facts.who, earlier=earlier)
        else:
            resource = applied_schema(
                outcome.name.catalog, outcome.name.schema, at=self._now(), by=self._facts.who
            )
        self._take_in(key, resource, outcome)

    def _take_in(self, key: str, resource: Resource, outcome: AnyOutcome) -> None:
        checkpoint = Checkpoint(
            resource=key,
            status=resource.status,
            statements_done=outcome.statements,
            statement=(outcome.failure.sql or None) if outcome.failure else None,
            error=outcome.failure.message if outcome.failure else None,
        )
        self.records.resources[key] = resource
        self._checkpoints.append(checkpoint)
        self._outcomes.append(outcome)
        try:
            self._journal.append(JournalEntry(key=key, resource=resource, checkpoint=checkpoint))
        except StoreError as error:
            self.warn(f"the journal could not be written: {error}")

    def note_versions(self, versions: TableVersionReader) -> None:
        """Ask Delta for the versions of the tables that were changed, and for the ids that are not known."""
        done = [
            one for one in of_tables(self._outcomes) if one.kind in (OutcomeKind.CREATED, OutcomeKind.CHANGED)
        ]
        ids = {
            outcome.name.key: None if outcome.kind is OutcomeKind.CREATED else self._known_id(outcome.name)
            for outcome in done
        }
        unknown = [key for key, table_id in ids.items() if table_id is None]
        found = versions.read_versions([outcome.name for outcome in done], with_id=unknown)
        for outcome in done:
            version = found.get(outcome.name.key)
            if version is not None:
                key, table_id = table_key(outcome.name), version.table_id or ids[outcome.name.key]
                known = TableVersion(table_id=table_id, version=version.version)
                self.records.resources[key] = with_version(self.records.resources[key], known)

    def confirm(
        self, wanted: Sequence[Table], observed: CatalogState, policy: Policy = NO_POLICY
    ) -> frozenset[str]:
        """Compare what was just applied with what the catalog shows.

        A difference is no drift: Unity Catalog's views may lag behind. The next run tells.

        Args:
            wanted: what the changed tables were meant to become.
            observed: a snapshot of them.
            policy: what the plan was made by.

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
                self.records.resources[checkpoint.resource],
                model,
                observed.table(model.qualified_name),
                ours=self.records.ours_before(checkpoint.resource),
                policy=policy,
            )
            self.records.resources[checkpoint.resource] = found
            if found.status is Status.HEALTHY:
                verified.add(model.qualified_name.key)
        return frozenset(verified)

    def settle_renames(self, models: Sequence[Table], observed: CatalogState) -> None:
        """Take records along to new names where tables have them by now; see `with_settled_renames`."""
        self.records.resources = dict(with_settled_renames(self.state, models, observed).resources)

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
            kinds = [outcome.kind for outcome in self._outcomes]
            record = apply_record(
                ApplyActions(
                    added=kinds.count(OutcomeKind.CREATED),
                    changed=kinds.count(OutcomeKind.CHANGED),
                    destroyed=kinds.count(OutcomeKind.DROPPED),
                ),
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

    def _is_as_saved(self, saved: DeploymentState) -> bool:
        plans = self._state.applied_plans
        return self.records.resources == saved.resources and plans == saved.applied_plans

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
