"""Finds a run in the documents of the deployment state: what it changed, and what was recorded before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.deployment.repository import StateRepository
from delta_engine.ownership.recorded import AnyRecord, LastChange, is_of_table
from delta_engine.telemetry.context import command
from delta_engine.telemetry.visible import shown_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run, with the documents before and after it.

    Args:
        run: its id.
        after: the document that it saved; for a killed run, the one with its journal.
    """

    run: str
    before: DeploymentState
    after: DeploymentState

    def __str__(self) -> str:
        at = f" of {shown_moment(self.change.at)}" if self.change else ""
        return f"run {self.run}{at}"

    @property
    def changed(self) -> Mapping[str, AnyRecord]:
        """The records of the securables that it changed, by key."""
        resources = self.after.resources.items()
        return {key: record for key, record in resources if record.run == self.run}

    @property
    def removed(self) -> Mapping[str, AnyRecord]:
        """The applied securables whose records it removed: those that it dropped. No run drops a schema."""
        gone = self._gone
        new = self.after.resources.keys() - self.before.resources.keys() if gone else ()
        earlier = map(self.record_before, new)
        renamed = {record.key for record in earlier if record is not None}
        return {key: record for key, record in gone.items() if key not in renamed}

    @property
    def change(self) -> LastChange | None:
        """When it was; None for a run that only removed tables."""
        return next((record.change for record in self.changed.values()), None)

    @property
    def unfinished_undo(self) -> str | None:
        """The run that it undoes, if it is an undo that did not finish."""
        halves = (record.change for record in self.changed.values() if self._is_half_done(record))
        return next((change.undoes for change in halves if change is not None), None)

    def record_before(self, key: str) -> AnyRecord | None:
        """Return the record of a securable before the run, if there was one; the run may have renamed it."""
        recorded = self.before.resources.get(key)
        after = self.after.resources[key]
        if recorded is not None:
            return recorded
        if not is_of_table(after):
            return self.before.resources.get(after.former_key) if after.former_key else None
        table_id = after.delta_table_id
        gone = self._gone.values()
        return next((record for record in gone if record.delta_table_id == table_id is not None), None)

    def _is_half_done(self, after: AnyRecord) -> bool:
        """Whether the run did not finish a resource.

        An undo that ends removes the record of what the undone run created, or applies what was recorded before it.
        """
        before, change = self.before.resources.get(after.key), after.change
        if after.is_half_done or before is None or before.change is None or change is None:
            return after.is_half_done
        is_of_created = before.change.is_new and change.undoes == before.change.run
        return is_of_created and after.deployed_at == before.deployed_at

    @property
    def _gone(self) -> Mapping[str, AnyRecord]:
        """The applied securables that are no longer recorded under their names: dropped or renamed."""
        return {
            key: record
            for key, record in self.before.resources.items()
            if not record.name.is_container and record.applied and key not in self.after.resources
        }


def find_run(repository: StateRepository, current: DeploymentState | None, run: str | None) -> PastRun:
    """Return the latest run that changed something, or the one whose id starts with `run`.

    Args:
        current: the document with the journals of killed runs; None if there is none yet.

    Raises:
        StateMismatchError: there is none, or what was before it is not kept any more.
    """
    documents = _documents(repository, current) if current else iter(())
    for after, before in pairwise(documents):
        past = _run_between(before, after, run)
        if past is not None:
            return past
    if run is None:
        raise StateMismatchError(
            "no run is kept that changed anything",
            where=repository.location,
            way_out=f"{command('state versions')} lists what is kept.",
        )
    raise StateMismatchError(
        _why_not(run, repository, current),
        where=repository.location,
        way_out=f"{command('history')} lists the runs. Name one that changed resources.",
    )


def _why_not(run: str, repository: StateRepository, current: DeploymentState | None) -> str:
    documents = _documents(repository, current) if current else iter(())
    if any(document.write_id.startswith(run) for document in documents):
        return f"run {run!r} changed nothing, or the record from before it is not kept"
    return f"no run {run!r} is kept"


def _documents(repository: StateRepository, current: DeploymentState) -> Iterator[DeploymentState]:
    """Yield the documents, newest first."""
    yield current
    saved = repository.load()
    if saved is not None and saved.state != current:
        yield saved.state
    for version in repository.versions():
        if version.is_replaced:
            yield repository.load_version(version.version_id)


def _run_between(before: DeploymentState, after: DeploymentState, run: str | None) -> PastRun | None:
    """Return the latest run between two documents that follow each other, or the named one."""
    earlier_runs = {record.run for record in before.resources.values()}
    changes = (record.change for record in after.resources.values())
    new_changes = sorted(
        (change for change in changes if change is not None and change.run not in earlier_runs),
        key=lambda change: change.at,
    )
    runs = [change.run for change in new_changes]
    past = PastRun(run=after.write_id, before=before, after=after)
    if past.removed and after.write_id not in runs:
        runs.append(after.write_id)
    named = [run_id for run_id in runs if run is None or run_id.startswith(run)]
    return PastRun(run=named[-1], before=before, after=after) if named else None
