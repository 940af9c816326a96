"""The deployment state of one environment, as runs use it: lock, load, record, save, unlock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import gettempdir

from delta_engine.backends.cancellation import Stop, deferred_signals, stopped_by_signals
from delta_engine.deployment.document import VERSION, DeploymentState
from delta_engine.deployment.errors import CorruptStateError, StateMismatchError, StoreError
from delta_engine.deployment.journal import replay, require_no_journal
from delta_engine.deployment.ports import JournalStore, LockLease, StateLock
from delta_engine.deployment.recorder import Notify, RunRecorder
from delta_engine.deployment.repository import LoadedState, StateRepository
from delta_engine.deployment.run_facts import RunFacts, described, environment_record, first_document, signed
from delta_engine.deployment.stored import DocumentIdentity, LockHolder
from delta_engine.deployment.stores.memory import MemoryStateStore, NoLock, memory_journals
from delta_engine.telemetry.context import command, utc_now


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The documents, journals and lock of one environment; `facts` may run a statement."""

    repository: StateRepository
    journals: JournalStore
    lock: StateLock
    facts: Callable[[], RunFacts]
    lock_timeout_seconds: float = 60

    @classmethod
    def unrecorded(cls) -> Deployment:
        """Return a deployment state in memory, for callers without one."""
        return cls(
            repository=StateRepository(MemoryStateStore(), "unrecorded", errored_dir=Path(gettempdir())),
            journals=memory_journals(),
            lock=NoLock(),
            facts=_unknown_facts,
        )

    def peek(self) -> LoadedState | None:
        """Return the document without a lock, possibly a recent copy."""
        return self.repository.load(allow_cached=True)

    def peek_replayed(self, *, allow_cached: bool = False) -> DeploymentState | None:
        """Return the document without a lock, with the journals of killed runs replayed; a recent copy if allowed."""
        journals = self.journals.read()  # first: a run that ends meanwhile is in the later document
        loaded = self.repository.load(allow_cached=allow_cached)
        if loaded is None:
            require_no_journal(journals, self.repository.location)
            return None
        return replay(loaded.state, journals)[0]

    @contextmanager
    def locked(self, operation: str, notify: Notify) -> Iterator[tuple[LockLease, RunRecorder]]:
        """Hold the lock for a run; `operation` is shown to runs that wait for it, `notify` receives notes for the user.

        Raises:
            LockHeld: another run still holds it after the timeout.
            StoreError, CorruptStateError, NewerStateError, StateMismatchError: the deployment state is unusable.
        """
        facts = self.facts()
        with self._leased(facts, operation, notify) as lease:
            yield (
                lease,
                RunRecorder(self.repository, self.journals, facts, fence=lease.fence, notify=notify),
            )

    def migrate(self, notify: Notify) -> int | None:
        """Save the document in the current format with a backup; return the old format, None if it is current.

        Raises as `locked`.
        """
        facts = self.facts()
        with self._leased(facts, "state migrate", notify) as lease:
            loaded = self.repository.load()
            if loaded is None or loaded.format_version == VERSION:
                return None
            self.repository.save(signed(loaded.state, facts, fence=lease.fence), loaded)
            return loaded.format_version

    def restore(
        self, state: DeploymentState, notify: Notify, *, force: bool, is_version: bool
    ) -> LoadedState:
        """Make a document the current one, under the next serial, and keep the one that it replaces.

        Args:
            force: also replace a document with another state_id, or one that was saved later.
            is_version: whether it is a kept version, which is always older.

        Raises:
            StateMismatchError: it does not belong to this environment.
        """
        facts = self.facts()
        with self._leased(facts, "state restore", notify) as lease:
            require = partial(_require_successor, force=force, is_version=is_version)
            try:
                current = self.repository.load()
            except CorruptStateError as error:
                notify(f"the current document cannot be read; any remains are kept as a backup: {error}")
                current = None
            if current is None:
                return self.repository.replace_lost(signed(state, facts, fence=lease.fence), require)
            require(state, current.identity)
            fence = max(lease.fence, current.state.fence or 0)
            return self.repository.save(signed(state, facts, fence=fence), current)

    def start_over(self, notify: Notify) -> LoadedState:
        """Save an empty document in place of one that is gone or cannot be read; its versions stay.

        Raises:
            StateMismatchError: there is a usable document.
        """
        facts = self.facts()
        with self._leased(facts, "state start-over", notify) as lease:
            with suppress(CorruptStateError):
                current = self.repository.load()
                if current is not None:
                    raise StateMismatchError(
                        f"there is a usable document, at serial {current.state.serial}",
                        where=self.repository.location,
                        way_out=f"{command('state rm')} forgets resources.",
                    )
            empty = described(first_document(facts, now=utc_now()), facts, fence=lease.fence)
            return self.repository.replace_lost(empty, lambda _state, _lost: None)

    @contextmanager
    def _leased(self, facts: RunFacts, operation: str, notify: Notify) -> Iterator[LockLease]:
        lease = self.lock.acquire(
            _holder(facts, operation),
            timeout_seconds=self.lock_timeout_seconds,
            on_wait=lambda holder: notify(f"waiting for the lock: held by {holder}"),
        )
        try:
            if lease.taken_over_from is not None:
                notify(f"took over the lock of a run that died: {lease.taken_over_from}")
            yield lease
        except BaseException:
            with stopped_by_signals(Stop()):  # the original error is more informative than a second signal
                _release(lease, notify)
            raise
        with deferred_signals():
            _release(lease, notify)


def _release(lease: LockLease, notify: Notify) -> None:
    """Release a lock. A failure is a note, because it must not hide how the run ended."""
    try:
        lease.release()
    except StoreError as error:
        notify(f"the release of the lock was not recorded: {error}")


def _require_successor(
    state: DeploymentState, current: DocumentIdentity, *, force: bool, is_version: bool
) -> None:
    if force:
        return
    if state.state_id != current.state_id:
        raise StateMismatchError(
            f"its state_id is {state.state_id}, and this environment's is {current.state_id}",
            way_out="To replace the deployment state of this environment with it: --force.",
        )
    if not is_version and current.serial >= state.serial:
        raise StateMismatchError(
            f"the deployment state was saved again since: it is at serial {current.serial}, the file at {state.serial}",
            way_out="A sync records what the catalog shows. To go back to the file anyway: --force.",
        )


def _holder(facts: RunFacts, operation: str) -> LockHolder:
    return LockHolder(
        who=facts.who,
        host=facts.host,
        pid=facts.pid,
        since=utc_now(),
        operation=operation,
        run_url=facts.run_url,
    )


def _unknown_facts() -> RunFacts:
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
