"""What the S3 stores say when the network, the server or the credentials fail: done, not done, or not known."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from delta_engine.deployment.errors import ConflictError, StoreError, UnansweredError, UncertainWriteError
from delta_engine.deployment.stored import StoredDocument
from delta_engine.deployment.stores.aws import open_client
from delta_engine.deployment.stores.s3 import S3Folder, S3LockRecords, S3StateStore, s3_journals
from tests.cases.store_contract import document, identity, lock_record
from tests.servers.fault_proxy import Fault
from tests.servers.places import ACCESS_KEY, IMPATIENT, REGION, SECRET_KEY, Bucket, Server, new_bucket

DOCUMENT = "prod.state.json"
LOCK = "prod.lock.json"


class Saved:
    """A document that was saved through a proxy, and what comes next."""

    def __init__(self, bucket: Bucket) -> None:
        bucket.prove(bucket.proxy.endpoint)
        self.bucket = bucket
        self.folder = bucket.proxied_folder()
        self.store = S3StateStore(self.folder, "prod")
        self.first = self.store.replace(document(1), identity(1), None)

    def save(self) -> StoredDocument:
        return self.store.replace(document(2), identity(2), self.first)

    def serial(self) -> int:
        stored = S3StateStore(self.bucket.folder(), "prod").read()
        assert stored is not None
        return next(serial for serial in (1, 2) if stored.data == document(serial))


@pytest.fixture
def saved(bucket: Bucket) -> Saved:
    return Saved(bucket)


def error_of(work: Callable[[], object]) -> StoreError:
    """Return the store's error, which holds no credentials."""
    with pytest.raises(StoreError) as caught:
        work()
    assert ACCESS_KEY not in str(caught.value)
    assert SECRET_KEY not in str(caught.value)
    return caught.value


def test_a_hidden_retry_conflicts_with_its_own_save(saved: Saved) -> None:
    saved.bucket.proxy.spoil(Fault.LOST_ANSWER, "PUT", DOCUMENT, times=1)
    assert type(error_of(saved.save)) is ConflictError
    assert saved.serial() == 2


def test_a_hidden_retry_conflicts_with_its_own_lock(saved: Saved) -> None:
    records = S3LockRecords(saved.folder, "prod")
    saved.bucket.proxy.spoil(Fault.LOST_ANSWER, "PUT", LOCK, times=1)
    assert type(error_of(lambda: records.replace(lock_record(), None))) is ConflictError
    record = records.read()
    assert record is not None
    assert record[0] == lock_record()


@pytest.mark.parametrize(
    "fault", [Fault.LOST_ANSWER, Fault.RESET, Fault.UNAVAILABLE, Fault.BROKEN, Fault.GIBBERISH]
)
def test_a_write_without_an_answer_is_not_known(saved: Saved, fault: Fault) -> None:
    saved.bucket.proxy.spoil(fault, "PUT")
    error = error_of(saved.save)
    assert type(error) is UncertainWriteError
    assert saved.bucket.name in str(error)
    assert saved.bucket.proxy.endpoint in str(error)
    assert saved.serial() == (2 if fault is Fault.LOST_ANSWER else 1)
    records = S3LockRecords(saved.folder, "prod")
    assert type(error_of(lambda: records.replace(lock_record(), None))) is UncertainWriteError


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.UNAVAILABLE, Fault.BROKEN])
def test_a_fault_that_passes_is_not_noticed(saved: Saved, fault: Fault) -> None:
    for method in ("GET", "PUT"):
        saved.bucket.proxy.spoil(fault, method, times=2)
    assert saved.store.read() == saved.first
    saved.save()
    assert saved.serial() == 2


@pytest.mark.parametrize("earlier", [Fault.LOST_ANSWER, Fault.UNAVAILABLE])
def test_a_refusal_does_not_undo_what_an_earlier_attempt_may_have_done(saved: Saved, earlier: Fault) -> None:
    saved.bucket.proxy.spoil(earlier, "PUT", DOCUMENT, times=1)
    saved.bucket.proxy.spoil(Fault.FORBIDDEN, "PUT", DOCUMENT)
    assert type(error_of(saved.save)) is UncertainWriteError
    saved.bucket.proxy.calm()
    saved.bucket.proxy.spoil(Fault.FORBIDDEN, "PUT", DOCUMENT)
    assert type(error_of(saved.save)) is StoreError


def test_a_save_that_meets_another_is_a_conflict(saved: Saved) -> None:
    saved.bucket.proxy.spoil(Fault.CONFLICT, "PUT")
    assert type(error_of(saved.save)) is ConflictError
    assert type(error_of(lambda: saved.folder.write("anything", b""))) is StoreError


def test_a_version_that_meets_another_is_kept_or_it_is_an_error(saved: Saved) -> None:
    version_id = identity(1).version_id
    saved.bucket.proxy.spoil(Fault.CONFLICT, "PUT", "versions")
    assert type(error_of(lambda: saved.store.versions.keep(version_id, document(1)))) is ConflictError
    S3StateStore(saved.bucket.folder(), "prod").versions.keep(version_id, document(1))
    saved.store.versions.keep(version_id, document(1))


def test_a_refused_write_was_not_done(saved: Saved) -> None:
    saved.bucket.proxy.spoil(Fault.FORBIDDEN, "PUT", DOCUMENT)
    error = error_of(saved.save)
    assert type(error) is StoreError
    assert "s3:PutObject" in str(error)
    assert saved.serial() == 1


@pytest.mark.parametrize(
    "fault",
    [Fault.RESET, Fault.UNAVAILABLE, Fault.BROKEN, Fault.GIBBERISH, Fault.HALF_ANSWER, Fault.FORBIDDEN],
)
def test_what_cannot_be_read_is_an_error_and_not_an_absence(saved: Saved, fault: Fault) -> None:
    saved.bucket.proxy.spoil(fault, "GET")
    for read in (saved.store.read, saved.store.versions.list, S3LockRecords(saved.folder, "prod").read):
        error = error_of(read)
        assert not isinstance(error, UncertainWriteError | ConflictError)
        if fault in (Fault.RESET, Fault.UNAVAILABLE, Fault.BROKEN):
            assert type(error) is UnansweredError
        assert saved.bucket.name in str(error)


def test_an_answer_that_breaks_off_is_asked_for_again(saved: Saved) -> None:
    saved.bucket.proxy.spoil(Fault.HALF_ANSWER, "GET", DOCUMENT, times=2)
    assert saved.store.read() == saved.first


def test_a_slow_endpoint_is_not_waited_for(saved: Saved) -> None:
    impatient = saved.bucket.proxied_folder(IMPATIENT)
    for method in ("GET", "PUT"):
        saved.bucket.proxy.spoil(Fault.SLOW, method)
    begin = time.monotonic()
    assert type(error_of(S3StateStore(impatient, "prod").read)) is UnansweredError
    assert type(error_of(lambda: impatient.write(DOCUMENT, b""))) is UncertainWriteError
    assert time.monotonic() - begin < 3
    assert saved.serial() == 1


def test_an_endpoint_that_is_down_has_done_nothing(saved: Saved) -> None:
    saved.bucket.proxy.close()
    for work in (saved.save, saved.store.read, saved.store.versions.list):
        error = error_of(work)
        assert type(error) is StoreError
        assert "cannot be reached" in str(error)
        assert saved.bucket.proxy.endpoint in str(error)


def persist(write: Callable[[], None]) -> None:
    for _ in range(10):
        with suppress(StoreError):
            return write()
    raise AssertionError("ten times in a row")


def test_nothing_is_lost_in_chaos(saved: Saved) -> None:
    saved.bucket.proxy.chaos(0.2)
    journal = s3_journals(saved.folder, "prod")
    entries = [f"{position}".encode() for position in range(25)]
    for position, entry in enumerate(entries):
        persist(partial(journal.append, "run-1", position, entry))
        persist(partial(saved.store.versions.keep, identity(position).version_id, entry))
    saved.bucket.proxy.calm()
    assert journal.read() == {"run-1": entries}
    kept = [saved.store.versions.read(version.version_id) for version in saved.store.versions.list()]
    assert kept == entries[::-1]


def test_threads_that_share_a_client_do_not_mix_up_their_answers(saved: Saved) -> None:
    """One thread's lost answer must not make another's refusal uncertain."""
    saved.bucket.proxy.spoil(Fault.RESET, "PUT", "lost")
    saved.bucket.proxy.spoil(Fault.FORBIDDEN, "PUT", "refused")

    def put(name: str) -> type[StoreError]:
        return type(error_of(lambda: saved.folder.write(name, b"{}")))

    names = ["lost", "refused"] * 8
    with ThreadPoolExecutor(4) as threads:
        kinds = list(threads.map(put, names))
    assert kinds == [UncertainWriteError, StoreError] * 8


def test_a_missing_bucket_says_what_to_do(s3_server: Server) -> None:
    store = S3StateStore(
        S3Folder(open_client("s3", REGION, s3_server.endpoint), "no-such-bucket", ""), "prod"
    )
    for work in (store.read, store.versions.list, lambda: store.replace(document(1), identity(1), None)):
        error = error_of(work)
        assert type(error) is StoreError
        assert "'no-such-bucket'" in str(error)
        assert "Create it" in str(error)


def test_an_impossible_bucket_name_is_refused(moto: Server) -> None:
    store = S3StateStore(S3Folder(open_client("s3", REGION, moto.endpoint), "No Bucket!", ""), "prod")
    assert "No Bucket!" in str(error_of(store.read))


def test_missing_credentials_say_what_to_do(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    store = S3StateStore(bucket.proxied_folder(), "prod")
    for work in (store.read, lambda: store.replace(document(1), identity(1), None)):
        error = error_of(work)
        assert type(error) is StoreError
        assert "AWS_PROFILE" in str(error)
    assert bucket.proxy.requests == []


def test_expired_credentials_are_not_repeated(saved: Saved) -> None:
    saved.bucket.proxy.spoil(Fault.EXPIRED, "PUT", DOCUMENT)
    before = len(saved.bucket.proxy.requests)
    error = error_of(saved.save)
    assert type(error) is StoreError
    assert "the credentials were refused (403 ExpiredToken)" in str(error)
    assert len(saved.bucket.proxy.requests) == before + 1
    assert saved.serial() == 1


@pytest.mark.long  # versitygw is built for it
@pytest.mark.parametrize(
    ("variable", "code"),
    [("AWS_ACCESS_KEY_ID", "XAdminUserNotFound"), ("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch")],
)
def test_refused_credentials_are_not_repeated(
    versity: Server, monkeypatch: pytest.MonkeyPatch, variable: str, code: str
) -> None:
    with new_bucket(versity) as bucket:
        saved = Saved(bucket)
        monkeypatch.setenv(variable, "wrong-and-secret")
        folder = bucket.proxied_folder()
        store = S3StateStore(folder, "prod")
        for work in (store.read, store.versions.list, lambda: folder.write("anything", b"")):
            error = error_of(work)
            assert type(error) is StoreError
            assert code in str(error)
            assert "credentials were refused" in str(error)
            assert "wrong-and-secret" not in str(error)
        assert saved.serial() == 1
