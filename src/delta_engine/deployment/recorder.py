"""Keeps the deployment state of one locked run: loads it, journals its changes, saves it.

An interrupted run saves nothing. It leaves its journal (`journal`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delta_engine.actions.policy import Consent
from delta_engine.deployment.document import (
    VERSION,
    AppliedPlan,
    ApplyActions,
    ApplyRecord,
    Checkpoint,
    Checksum,
    DeploymentState,
    UsedConsent,
    consent_key,
)
from delta_engine.deployment.errors import StoreError
from delta_engine.deployment.journal import (
    JournalEntry,
    JournalStart,
    attempted_fields,
    replay,
    require_no_journal,
)
from delta_engine.deployment.ports import JournalStore
from delta_engine.deployment.run_facts import RunFacts, apply_record, described, first_document, signed
from delta_engine.deployment.stored_records import resource_of
from delta_engine.models.open_struct import encode_open
from delta_engine.ownership.recorded import AnyRecord, Kept, LastChange
from delta_engine.telemetry.context import new_id, utc_now

if TYPE_CHECKING:
    from delta_engine.deployment.repository import LoadedState, StateRepository

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
    ) -> None:
        self.run_id = new_id()
        self.who = facts.who
        self._clock = now
        self._latest = now()
        self.warnings: list[str] = []
        self._repository = repository
        self._journals = journals
        self.facts = facts
        self._fence = fence
        self._notify = notify
        self._journal_length = 0
        self._began_at = time.monotonic()
        self._checkpoints: list[Checkpoint] = []
        self._base: LoadedState | None = repository.load()
        lines = journals.read()
        if self._base is None:
            require_no_journal(lines, repository.location)
        self._obsolete_journals = tuple(lines)
        self.state, notes = replay(
            self._base.state if self._base else first_document(facts, now=self.now()), lines
        )
        for note in notes:
            self.warn(note)

    def now(self) -> datetime:
        """Return the time. It does not go back during a run, even if the clock does: records order facts by time."""
        self._latest = max(self._latest, self._clock())
        return self._latest

    @property
    def state(self) -> DeploymentState:
        """The document with the changes of this run so far."""
        return self._state.with_resources(self.resources)

    @state.setter
    def state(self, state: DeploymentState) -> None:
        self._state = state
        self.resources = dict(state.resources)

    def begin(
        self,
        tables: Iterable[str],
        attempted: Mapping[str, Sequence[Kept[Any]]],
        changes: Mapping[str, LastChange],
        *,
        plan_file: Checksum | None,
    ) -> None:
        """Write the first document and the journal's first entry, so that a killed apply leaves its traces.

        Args:
            tables: the keys of the tables that the run is about to change.
            attempted: the models that the run is about to apply, by the keys of securables.
            changes: what the resources record of the run, by their keys.
            plan_file: the checksum of the plan file that the run follows.
        """
        self._began_at = time.monotonic()
        if self._base is None:
            first = described(self.state, self.facts, fence=self._fence)
            self._base = self._repository.save(first, None)
        start = JournalStart(
            state_id=self._base.state.state_id,
            serial=self._base.state.serial,
            fence=self._fence,
            started_at=self.now(),
            started_by=self.who,
            resources=tuple(tables),
            **attempted_fields(attempted),
            changes=dict(changes),
            plan=plan_file,
            version=VERSION,
        )
        self._journals.append(self.run_id, 0, encode_open(start))
        self._journal_length = 1

    def record(self, record: AnyRecord, checkpoint: Checkpoint) -> None:
        """Record and journal a finished securable; a failed journal is a warning, because `save` records all."""
        self.resources[checkpoint.resource] = record
        self._checkpoints.append(checkpoint)
        entry = JournalEntry(key=checkpoint.resource, resource=resource_of(record), checkpoint=checkpoint)
        try:
            self._journals.append(self.run_id, self._journal_length, encode_open(entry))
            self._journal_length += 1
        except StoreError as error:
            self.warn(f"the journal could not be written: {error}")

    def remember_plan(self, plan_file: Checksum, *, is_whole: bool) -> None:
        """Remember the plan file that this run followed, and whether all of it was applied."""
        applied = AppliedPlan(
            checksum=plan_file, applied_at=self.now(), applied_by=self.who, is_whole=is_whole
        )
        self._state = self._state.with_applied_plan(applied)

    def remember_consents(self, used: Iterable[Consent], given: Iterable[Consent]) -> None:
        """Remember the consents that this run used; forget those that the configuration does not have any more."""
        uses = {(use.change, use.expires): use for use in self._state.used_consents}
        for consent in used:
            change, expires = consent_key(consent)
            use = UsedConsent(change=change, expires=expires, run=self.run_id, at=self.now())
            uses.setdefault((change, expires), use)
        kept = {consent_key(consent) for consent in given}
        consents = tuple(uses[key] for key in sorted(uses) if key in kept)
        self._state = self._state.with_values(used_consents=consents)

    def save(self, applied: ApplyActions | None = None, *, is_forced: bool = False) -> LoadedState | None:
        """Save the changes of this run, if any, then remove the journals; after an error, the journal stays.

        Args:
            applied: what the run applied, also if the records are as before it; None for an empty plan.
            is_forced: also save if nothing changed, to date the comparison with the catalog.
        """
        state = self.state
        saved = self._base and self._base.state
        if saved and applied is None and not is_forced and _says_the_same(saved, state):
            self._remove_journals()
            return self._base
        metadata = self._apply_record(applied, state.metadata)
        state = described(state, self.facts, fence=self._fence)
        state = state.with_values(synced_at=self.now(), metadata=metadata)
        self._base = self._repository.save(state, self._base, write_id=self.run_id)
        self._remove_journals()
        return self._base

    def save_edited(self, state: DeploymentState) -> LoadedState:
        """Save a manually edited document; raises as `save`."""
        self._base = self._repository.save(signed(state, self.facts, fence=self._fence), self._base)
        self._remove_journals()
        return self._base

    def warn(self, warning: str) -> None:
        """Show a warning once, and keep it with the document."""
        if warning not in self.warnings:
            self.warnings.append(warning)
            self._notify(warning)

    def _apply_record(self, applied: ApplyActions | None, earlier: ApplyRecord) -> ApplyRecord:
        """Return the record of this apply; that of the last one if this run applied nothing, with its own warnings."""
        if applied is not None:
            seconds = time.monotonic() - self._began_at
            return apply_record(applied, self._checkpoints, self.warnings, seconds=seconds)
        warnings = tuple(self.warnings) or earlier.warnings
        return earlier.with_values(warnings=warnings)

    def _remove_journals(self) -> None:
        """Remove the journals that the document now includes; a replay recognizes a remaining one by its run id."""
        for run_id in (*self._obsolete_journals, self.run_id):
            try:
                self._journals.remove(run_id)
            except StoreError as error:
                self._notify(f"a journal could not be removed: {error}")


def _says_the_same(saved: DeploymentState, state: DeploymentState) -> bool:
    return (
        state.resources == saved.resources
        and state.applied_plans == saved.applied_plans
        and state.used_consents == saved.used_consents
    )
