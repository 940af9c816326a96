"""Two at once on a real server: increments, and a holder that is stopped past its lease."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stores.s3 import S3LockRecords, S3StateStore
from tests.builders.deployment import HOLDER
from tests.integration.counter_increments import increment
from tests.servers.places import PREFIX, REGION, Bucket

ROOT = Path(__file__).parents[2]
LEASE_SECONDS = 1.0


def test_two_that_count_lose_nothing(bucket: Bucket, tmp_path: Path) -> None:
    def count(name: str) -> int:
        documents = StateRepository(S3StateStore(bucket.folder(), "test"), "test", errored_dir=tmp_path)
        return sum(increment(documents, name) for _ in range(15))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(count, ["a", "b"]))
    documents = StateRepository(S3StateStore(bucket.folder(), "test"), "test", errored_dir=tmp_path)
    loaded = documents.load()
    assert loaded is not None
    assert loaded.state.environment.variables == {"catalog": "dev", "a": "15", "b": "15"}
    assert loaded.state.serial == 30


HOLD = """
import sys
from delta_engine.deployment.stores.aws import open_client
from delta_engine.deployment.stores.s3 import S3Folder
from delta_engine.deployment.errors import LockLost
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.stores.s3 import S3LockRecords
from tests.builders.deployment import HOLDER

region, endpoint, bucket, prefix, lease_seconds = sys.argv[1:]
records = S3LockRecords(S3Folder(open_client("s3", region, endpoint), bucket, prefix), "test")
lease = LeaseLock(records, lease_seconds=float(lease_seconds)).acquire(HOLDER, timeout_seconds=0)
lease.check()
print("held", flush=True)
sys.stdin.readline()
try:
    lease.check()
    print("still held")
except LockLost as error:
    print(error)
lease.release()
"""


def test_a_holder_that_is_stopped_past_its_lease_finds_out_when_it_wakes(bucket: Bucket) -> None:
    other = msgspec.structs.replace(HOLDER, who="bo@example.com")
    arguments = [REGION, bucket.server.endpoint, bucket.name, PREFIX, str(LEASE_SECONDS)]
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, *arguments],
        cwd=ROOT,
        env=dict(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        lock = LeaseLock(S3LockRecords(bucket.folder(), "test"), lease_seconds=LEASE_SECONDS)
        lease = lock.acquire(other, timeout_seconds=30)
        assert (lease.fence, lease.taken_over_from) == (2, HOLDER)
        holder.send_signal(signal.SIGCONT)
        output, _ = holder.communicate("go on\n")
    assert "the lock was lost" in output
    assert "bo@example.com" in output
    assert lock.holder() == other
    lease.check()
    lease.release()
    assert lock.holder() is None
