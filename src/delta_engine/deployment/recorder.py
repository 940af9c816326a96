"""Keeps the deployment state of one locked run: loads it, journals its changes, saves it.

An interrupted run saves nothing: its journal stays, and the next run replays it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from delta_engine.deployment.definitions import SchemaDefinition, TableDefinition
from delta_engine.deployment.document import (
    AppliedPlan,
    ApplyActions,
    Checkpoint,
    Checksum,
    DeploymentState,
    Resource,
)
from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.journal import Journal, JournalEntry, JournalStart, replay
from delta_engine.deployment.ports import JournalStore
from delta_engine.deployment.repository import LoadedState, StateRepository
from delta_engine.deployment.resources import Definition
from delta_engine.deployment.run_facts import RunFacts, apply_record, described, first_document
from delta_engine.telemetry.context import new_id, utc_now

Notify = Callable[[str], None]
"""Shows the user a note during a run."""


class RunRecorder:
    """Records one run: `resources` by key, under the `run_id` that becomes the write_id of the saved document."""

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
        self.run_id = new_id()
        self.who = facts.who
        self.now = now
        self.warnings: list[str] = []
        self._repository = repository
        self._journals = journals
        self._facts = facts
        self._fence = fence
        self._notify = notify
        self._seconds = seconds
        self._journal = Journal(journals, self.run_id)
        self._began_at = seconds()
        self._checkpoints: list[Checkpoint] = []
        self._base: LoadedState | None = repository.load()
        replayed = replay(
            self._base.state if self._base else first_document(facts, now=now()), journals.read()
        )
        self._obsolete_journals = replayed.run_ids
        self.state = replayed.state
        for note in replayed.notes:
            self.warn(note)

    @property
    def state(self) -> DeploymentState:
        """The document with the changes of this run so far."""
        return msgspec.structs.replace(self._state, resources=dict(self.resources))

    @state.setter
    def state(self, state: DeploymentState) -> None:
        self._state = state
        self.resources = dict(state.resources)

    def begin(
        self,
        tables: Iterable[str],
        attempted: Mapping[str, Sequence[Definition]],
        *,
        plan_file: Checksum | None,
    ) -> None:
        """Write the first document and the journal's first entry, so that a killed apply leaves its traces.

        Args:
            tables: the keys of the tables that the run is about to change.
            attempted: the definitions that the run is about to apply, by the keys of tables and schemas.
            plan_file: the checksum of the plan file that the run follows.
        """
        self._began_at = self._seconds()
        if self._base is None:
            self._base = self._repository.save(described(self.state, self._facts), None)
        of_tables = {
            key: tuple(one for one in found if isinstance(one, TableDefinition))
            for key, found in attempted.items()
        }
        of_schemas = {
            key: one for key, found in attempted.items() for one in found if isinstance(one, SchemaDefinition)
        }
        self._journal.append(
            JournalStart(
                state_id=self._base.state.state_id,
                serial=self._base.state.serial,
                fence=self._fence,
                started_at=self.now(),
                started_by=self.who,
                resources=tuple(tables),
                attempted={key: found for key, found in of_tables.items() if found},
                attempted_schemas=of_schemas,
                plan=plan_file,
            )
        )

    def record(self, resource: Resource, checkpoint: Checkpoint) -> None:
        """Record and journal a finished table or schema; a failed journal is a warning, because `save` records all."""
        self.resources[checkpoint.resource] = resource
        self._checkpoints.append(checkpoint)
        try:
            self._journal.append(
                JournalEntry(key=checkpoint.resource, resource=resource, checkpoint=checkpoint)
            )
        except StoreError as error:
            self.warn(f"the journal could not be written: {error}")

    def remember_plan(self, plan_file: Checksum, *, is_whole: bool) -> None:
        """Remember the plan file that this run followed, and whether all of it was applied."""
        applied = AppliedPlan(
            checksum=plan_file, applied_at=self.now(), applied_by=self.who, is_whole=is_whole
        )
        self._state = self._state.with_applied_plan(applied)

    def save(self, applied: ApplyActions | None = None) -> LoadedState | None:
        """Save the changes of this run, if any, then remove the journals; after an error, the journal stays."""
        state = self.state
        saved = self._base and self._base.state
        if saved and not self._checkpoints and _says_the_same(saved, state):
            self._remove_journals()
            return self._base
        state = described(state, self._facts)
        if applied is not None:
            seconds = self._seconds() - self._began_at
            record = apply_record(applied, self._checkpoints, self.warnings, seconds=seconds)
            state = msgspec.structs.replace(state, metadata=record)
        elif self.warnings:
            metadata = msgspec.structs.replace(state.metadata, warnings=tuple(self.warnings))
            state = msgspec.structs.replace(state, metadata=metadata)
        self._base = self._repository.save(state, self._base, write_id=self.run_id)
        self._remove_journals()
        return self._base

    def save_edited(self, state: DeploymentState) -> LoadedState:
        """Save a manually edited document; raises as `save`."""
        self._base = self._repository.save(state, self._base)
        self._remove_journals()
        return self._base

    def warn(self, warning: str) -> None:
        """Show a warning once, and keep it with the document."""
        if warning not in self.warnings:
            self.warnings.append(warning)
            self._notify(warning)

    def _remove_journals(self) -> None:
        """Remove the journals that the document now includes; a replay recognizes a remaining one by its run id."""
        for run_id in (*self._obsolete_journals, self.run_id):
            try:
                self._journals.remove(run_id)
            except StoreError as error:
                self._notify(f"a journal could not be removed: {error}")


def _says_the_same(saved: DeploymentState, state: DeploymentState) -> bool:
    return state.resources == saved.resources and state.applied_plans == saved.applied_plans
