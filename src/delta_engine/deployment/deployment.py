"""One environment's deployment state, as runs use it: lock, load, record, save, unlock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from delta_engine.deployment.lock_record import LockHolder
from delta_engine.deployment.locks.unlocked import NoLock
from delta_engine.deployment.ports import JournalStore, LockLease, StateLock
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.repository import LoadedState, StateRepository, utc_now
from delta_engine.deployment.run_facts import RunFacts, environment_record
from delta_engine.deployment.stores.memory import MemoryJournalStore, MemoryStateStore

Notify = Callable[[str], None]
"""Tells people something while a run goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedRun:
    """A run that holds the lock.

    Args:
        lease: the lock.
        recorder: what it records.
    """

    lease: LockLease
    recorder: RunRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The parts that belong together.

    Args:
        repository: the documents.
        journals: the journals of runs.
        lock: keeps runs apart.
        facts: finds out who runs, and where; that can cost a statement.
        lock_timeout_seconds: how long to wait for the lock.
    """

    repository: StateRepository
    journals: JournalStore
    lock: StateLock
    facts: Callable[[], RunFacts]
    lock_timeout_seconds: float = 60

    @classmethod
    def unrecorded(cls) -> Deployment:
        """Return a deployment state that nobody keeps: for callers without one."""
        return cls(
            repository=StateRepository(MemoryStateStore(), "unrecorded", errored_dir=Path(gettempdir())),
            journals=MemoryJournalStore(),
            lock=NoLock(),
            facts=_nobody,
        )

    def peek(self) -> LoadedState | None:
        """Return the document without a lock; a recent copy will do."""
        return self.repository.load(allow_cached=True)

    @contextmanager
    def locked(self, operation: str, notify: Notify) -> Iterator[LockedRun]:
        """Hold the lock for a run.

        Args:
            operation: what the run does, for whoever has to wait.
            notify: is told what people should know, such as whose lock ran out.

        Raises:
            LockHeld: somebody else has it, also after the timeout.
            StoreError, CorruptStateError, NewerStateError, StateMismatchError: no deployment state to go on from.
        """
        facts = self.facts()
        lease = self.lock.acquire(
            _holder(facts, operation),
            timeout_seconds=self.lock_timeout_seconds,
            on_wait=lambda holder: notify(f"waiting for the lock: held by {holder}"),
        )
        try:
            if lease.taken_over_from is not None:
                notify(f"took over the lock of a run that died: {lease.taken_over_from}")
            recorder = RunRecorder(self.repository, self.journals, facts, fence=lease.fence)
            for note in recorder.notes:
                notify(note)
            yield LockedRun(lease=lease, recorder=recorder)
        finally:
            lease.release()


def _holder(facts: RunFacts, operation: str) -> LockHolder:
    return LockHolder(
        who=facts.who,
        host=facts.host,
        pid=facts.pid,
        since=utc_now(),
        operation=operation,
        run_url=facts.run_url,
    )


def _nobody() -> RunFacts:
    return RunFacts(
        environment=environment_record("unrecorded", "", {}),
        who="unknown",
        host="",
        pid=0,
        run_url="",
        lineage="unknown",
        engine_version="",
        platform_version="",
    )
