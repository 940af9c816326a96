"""What every store and every lock record must do: each implementation's tests call these checks.

A check takes a factory. Each call of it makes a new client of the same, still empty place, as another process
would have one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest

from delta_engine.deployment.errors import (
    ConflictError,
    CorruptStateError,
    StaleStateError,
    StateMismatchError,
)
from delta_engine.deployment.files import ReportFiles
from delta_engine.deployment.ports import JournalStore, LockRecords, StateStore
from delta_engine.deployment.stored import (
    DocumentIdentity,
    LockHolder,
    LockRecord,
    StateVersion,
    StoredDocument,
)
from tests.builders.deployment import deployment_over, deployment_state
from tests.builders.models import orders

STATE_ID = "5f0c7c1e-3f5e-4b67-9f0f-6d4f2f9f8a11"
RACERS = 8


def identity(serial: int, write_id: str | None = None) -> DocumentIdentity:
    """Return the identity of a document."""
    return DocumentIdentity(state_id=STATE_ID, serial=serial, write_id=write_id or f"write{serial}")


def document(serial: int, *, text: str = "", write_id: str | None = None) -> bytes:
    """Return a document with a write id of its own, as every saved one has."""
    content = {"serial": serial, "write_id": write_id or f"write{serial}", "text": text}
    return json.dumps(content, ensure_ascii=False).encode()


def lock_record(
    lock_id: str = "lock-a", *, fence: int = 1, beat: int = 0, released: bool = False, who: str = "ana"
) -> LockRecord:
    """Return a record of a lock."""
    holder = LockHolder(
        who=who,
        host="build-7",
        pid=4711,
        since=datetime(2026, 3, 1, 12, 30, tzinfo=timezone.utc),
        operation="sync",
        run_url="https://example.com/runs/1",
    )
    return LockRecord(
        lock_id=lock_id, fence=fence, beat=beat, lease_seconds=30.0, released=released, holder=holder
    )


def check_state_store(make_store: Callable[[], StateStore]) -> None:
    """Check the document, its versions and its backups."""
    _check_compare_and_swap(make_store)
    _check_bytes(make_store)
    _check_versions(make_store)
    store = make_store()
    assert store.versions.back_up("test.state.v0.backup.json", document(0))
    assert "test.state.v0.backup.json" in store.versions.back_up("test.state.v0.backup.json", document(0))
    assert [version.version_id for version in store.versions.list()] == [
        version.version_id for version in make_store().versions.list()
    ]


def check_state_store_race(make_store: Callable[[], StateStore]) -> None:
    """Check that of several writers of the same place exactly one wins: creating, and replacing."""
    stores = [make_store() for _ in range(RACERS)]
    for serial in (1, 2, 3):
        winner = _save_at_once(stores, make_store().read(), serial)
        stored = make_store().read()
        assert stored is not None
        assert stored.data == document(serial, write_id=winner)


def check_restore_of_a_lost_document(
    make_store: Callable[[], StateStore], lose: Callable[[], object], folder: Path
) -> None:
    """Check that a kept version replaces a document that was damaged or removed, and nothing else does."""
    deployment = deployment_over(folder, store=make_store())
    repository = deployment.repository
    first = repository.save(deployment_state(serial=0), None)
    base = repository.save(first.state, repository.save(first.state, first))
    lose()
    with pytest.raises(CorruptStateError, match="state restore"):
        repository.load()

    version = repository.load_version("1")
    assert version == first.state
    other_life = msgspec.structs.replace(version, state_id="another life", serial=99)
    outdated = msgspec.structs.replace(version, lineage="git:outdated")
    for refused in (other_life, outdated):
        with pytest.raises(StateMismatchError, match="--force"):
            deployment.restore(refused, lambda _note: None, force=False, is_version=False)
    restored = deployment.restore(version, lambda _note: None, force=False, is_version=True)
    assert restored.state.serial > base.state.serial
    assert restored.state.write_id != first.state.write_id
    assert deployment_over(folder, store=make_store()).repository.load() == restored
    with pytest.raises(StaleStateError):
        repository.save(base.state, base)
    following = repository.save(restored.state, restored)
    serials = [
        int(version.version_id[:8]) for version in repository.versions() if version.version_id[:8].isdecimal()
    ]
    assert max(serials) < following.state.serial


def check_a_lost_document_is_noticed(
    make_store: Callable[[], StateStore], lose: Callable[[], object], folder: Path
) -> None:
    """Check that a document that was removed after its only save is missed, until it is restored or given up."""
    deployment = deployment_over(folder, store=make_store())
    repository = deployment.repository
    assert repository.load() is None
    first = repository.save(deployment_state(orders(), serial=0), None)
    assert repository.versions() == []
    with pytest.raises(StateMismatchError, match="usable document, at serial 1"):
        deployment.start_over(lambda _note: None)
    for _ in range(2):
        lose()
        for read in (repository.load, deployment.peek, deployment.peek_replayed):
            with pytest.raises(CorruptStateError, match=r"is gone.*state restore.*state start-over"):
                read()
        with pytest.raises(CorruptStateError, match="is gone"), deployment.locked("sync", lambda _note: None):
            pass
        newest = repository.load_version(repository.versions()[0].version_id)
        assert newest.resources == first.state.resources
        first = deployment.restore(newest, lambda _note: None, force=False, is_version=True)
        assert deployment.peek_replayed() == first.state
    lose()
    started = deployment.start_over(lambda _note: None)
    assert started.state.resources == {}
    assert started.state.state_id != first.state.state_id
    assert started.state.serial > first.state.serial
    assert deployment_over(folder, store=make_store()).repository.load() == started


def check_journal_store(make_journal: Callable[[], JournalStore]) -> None:
    """Check that entries come back in order, by run, and go away as told."""
    journal = make_journal()
    assert dict(journal.read()) == {}
    journal.remove("run-1")
    first = [json.dumps({"position": position, "text": "ä 表"}).encode() for position in range(12)]
    for position, entry in enumerate(first):
        journal.append("run-1", position, entry)
    make_journal().append("run-2", 0, b"{}")
    assert _entries(make_journal()) == {"run-1": first, "run-2": [b"{}"]}
    make_journal().remove("run-1")
    assert _entries(journal) == {"run-2": [b"{}"]}
    journal.append("run-1", 0, b'{"again": true}')
    assert _entries(journal) == {"run-1": [b'{"again": true}'], "run-2": [b"{}"]}
    journal.remove("run-1")
    journal.remove("run-2")
    journal.remove("run-2")
    assert dict(make_journal().read()) == {}


def check_reports(store: StateStore, journals: JournalStore, files: ReportFiles) -> None:
    """Check that reports are no documents, versions or journals, although they lie beside them."""
    for name in ("prod.drift.html", "prod.drift.json", "prod.drift.html.drift.json"):
        assert name in files.write(name, b"old")
        assert name in files.write(name, "<p>Größe 表\r\n</p>".encode())
    assert store.read() is None
    saved = store.replace(document(1), identity(1), None)
    store.versions.keep("00000000-a", document(0))
    files.write("prod.drift.json", b"{}")
    assert store.read() == saved
    assert [version.version_id for version in store.versions.list()] == ["00000000-a"]
    assert journals.read() == {}


def check_lock_records(make_records: Callable[[], LockRecords]) -> None:
    """Check the compare-and-swap of a lock's record, alone and in a race."""
    records = make_records()
    assert records.location
    assert records.read() is None
    _check_record_race(make_records, fence=1)
    created, token = _read(make_records())
    beating = lock_record(created.lock_id, beat=1, who="Ünal 表")
    beating_token = records.replace(beating, token)
    assert _read(records) == (beating, beating_token)
    for stale in (token, None):
        with pytest.raises(ConflictError):
            records.replace(lock_record("other", fence=2), stale)
    released = lock_record(created.lock_id, beat=1, released=True, who="Ünal 表")
    records.replace(released, beating_token)
    assert _read(make_records())[0] == released
    with pytest.raises(ConflictError):
        records.replace(lock_record("late", fence=2), None)
    _check_record_race(make_records, fence=2)


def _check_compare_and_swap(make_store: Callable[[], StateStore]) -> None:
    store, other = make_store(), make_store()
    assert store.location
    assert store.read() is None
    first = store.replace(document(1), identity(1), None)
    assert first.data == document(1)
    assert other.read() == first
    with pytest.raises(ConflictError):
        other.replace(document(1, write_id="other"), identity(1, "other"), None)
    second = other.replace(document(2), identity(2), first)
    assert second.token != first.token
    assert store.read() == second
    for stale in (first, None, StoredDocument(data=b"", token="replaced since")):
        with pytest.raises(ConflictError):
            store.replace(document(2, write_id="late"), identity(2, "late"), stale)
    assert make_store().read() == second
    # a store of immutable documents has the first one anyhow; none has the current one or those that lost
    assert {version.version_id for version in store.versions.list()} <= {identity(1).version_id}


def _check_bytes(make_store: Callable[[], StateStore]) -> None:
    """Check that bytes come back as they went in: much, not ASCII, and with line ends that tempt."""
    store = make_store()
    for serial, text in ((13, "x" * 1_000_000), (14, "Größe 表 🏔"), (15, "a\r\nb\n")):
        data = document(serial, text=text) + text.encode() + b"\n"
        saved = store.replace(data, identity(serial), make_store().read())
        assert saved.data == data
        assert make_store().read() == saved
        assert make_store().read(allow_cached=True) == saved


def _check_versions(make_store: Callable[[], StateStore]) -> None:
    """Check versions that are older than the document, as all are."""
    store = make_store()
    begin = datetime.now(timezone.utc) - timedelta(seconds=5)

    def version_id(serial: int) -> str:
        return identity(serial, f"kept{serial}").version_id

    def kept(some_store: StateStore) -> list[StateVersion]:
        return [version for version in some_store.versions.list() if "kept" in version.version_id]

    assert store.versions.read(version_id(9)) is None
    for serial in (9, 10, 2):
        store.versions.keep(version_id(serial), document(serial, text="ü" * serial))
    versions = kept(make_store())
    assert [version.version_id for version in versions] == [version_id(n) for n in (10, 9, 2)]
    assert all(version.size > 0 for version in versions)
    assert all(version.saved_at.utcoffset() == timedelta(0) for version in versions)
    assert all(
        begin <= version.saved_at <= datetime.now(timezone.utc) + timedelta(seconds=5) for version in versions
    )
    make_store().versions.keep(version_id(9), document(9, text="ü" * 9))
    assert [version.version_id for version in kept(store)] == [version_id(n) for n in (10, 9, 2)]
    assert make_store().versions.read(version_id(9)) == document(9, text="ü" * 9)
    assert store.versions.read("00000077-none") is None


def _save_at_once(stores: Sequence[StateStore], expected: StoredDocument | None, serial: int) -> str:
    def save(number: int) -> str:
        write_id = f"{serial}-{number}"
        stores[number].replace(document(serial, write_id=write_id), identity(serial, write_id), expected)
        return write_id

    return _only_winner(save)


def _check_record_race(make_records: Callable[[], LockRecords], *, fence: int) -> None:
    clients = [make_records() for _ in range(RACERS)]
    stored = make_records().read()
    token = stored[1] if stored else None

    def take(number: int) -> str:
        clients[number].replace(lock_record(f"racer-{fence}-{number}", fence=fence), token)
        return f"racer-{fence}-{number}"

    winner = _only_winner(take)
    assert _read(make_records())[0] == lock_record(winner, fence=fence)


def _only_winner(write: Callable[[int], str]) -> str:
    """Let all write at once; all but one must be refused."""
    start = threading.Barrier(RACERS, timeout=60)

    def race(number: int) -> str | None:
        start.wait()
        try:
            return write(number)
        except ConflictError:
            return None

    with ThreadPoolExecutor(RACERS) as threads:
        winners = [winner for winner in threads.map(race, range(RACERS)) if winner is not None]
    assert len(winners) == 1, winners
    return winners[0]


def _entries(journal: JournalStore) -> dict[str, Sequence[bytes]]:
    return {run: list(entries) for run, entries in journal.read().items()}


def _read(records: LockRecords) -> tuple[LockRecord, str]:
    stored = records.read()
    assert stored is not None
    return stored
