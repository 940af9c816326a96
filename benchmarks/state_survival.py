"""What the deployment state survives: kills in mid-save, and two processes at once. Prints figures; exits 1 on a loss.

python benchmarks/state_survival.py [--kills 200] [--increments 200] [--stores local,s3,…]
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from delta_engine.deployment.locks.file import FileLock
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.ports import StateLock, StateStore
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stores.local import LocalStateStore
from tests.builders.deployment import HOLDER, deployment_state
from tests.builders.models import orders
from tests.integration.counter_increments import increment_once
from tests.servers.places import ACCESS_KEY, PREFIX, REGION, SECRET_KEY
from tests.servers.processes import free_port, running

if TYPE_CHECKING:
    from delta_engine.deployment.stores.s3 import S3Folder

ROOT = Path(__file__).resolve().parents[1]
THIS = [sys.executable, "-m", "benchmarks.state_survival"]
SEED = 20_260_301
BUCKET, TABLE = "states", "locks"


def main() -> int:
    """Measure, print, and say whether anything was lost."""
    arguments = parsed()
    is_lost = False
    with TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        if arguments.kills:
            is_lost |= killed_in_mid_save(folder / "kills", arguments.kills)
        stores = arguments.stores.split(",") if arguments.increments else []
        if any(store.startswith(("s3", "dynamodb")) for store in stores):
            stack.enter_context(moto(folder))
        for store in stores:
            is_lost |= two_processes(store, folder / store, arguments.increments)
    return int(is_lost)


def parsed() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--increments", type=int, default=200, help="by each of the two processes")
    parser.add_argument("--stores", default="local,local-unlocked,s3,s3-unlocked,dynamodb,databricks")
    return parser.parse_args()


def killed_in_mid_save(folder: Path, kills: int) -> bool:
    """Kill a process that saves without pause, again and again; look at what is on disk each time."""
    moments = random.Random(SEED)
    corrupt = lost = acknowledged = 0
    repository_in(folder).save(deployment_state(*(orders(name=f"t{n}") for n in range(500))), None)
    for _ in range(kills):
        acknowledged, was_last = save_until_killed(folder, moments.uniform(0.0, 0.05)), acknowledged
        acknowledged = max(acknowledged, was_last)
        try:
            loaded = repository_in(folder).load()
            serial = loaded.state.serial if loaded else 0
        except Exception as error:  # noqa: BLE001 - whatever it is, the document is not readable
            print(f"  {error}")
            corrupt, serial = corrupt + 1, acknowledged
        lost += serial < acknowledged
    loaded = repository_in(folder).load()
    assert loaded is not None
    repository_in(folder).save(loaded.state, loaded)
    strays = len(list(folder.glob(".*.tmp")))
    print(
        f"killed {kills} times in mid-save: {corrupt} corrupt, {lost} lost, {strays} stray files left "
        f"(serial {loaded.state.serial}, document of {len(loaded.stored.data) / 1e6:.1f} MB)"
    )
    return bool(corrupt or lost or strays)


def save_until_killed(folder: Path, seconds: float) -> int:
    """Let a process save until it is killed; return the last serial that it had seen acknowledged."""
    command = [*THIS, "--save-forever", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as saver:
        assert saver.stdout is not None
        first = saver.stdout.readline()  # it is at work
        select.select([], [], [], seconds)
        saver.send_signal(signal.SIGKILL)
        lines = (first + saver.stdout.read()).split(b"\n")[:-1]
    return int(lines[-1])


def save_forever(folder: Path) -> None:
    """Save without pause; say each serial once the save has returned."""
    loaded = repository_in(folder).load()
    assert loaded is not None
    while True:
        loaded = repository_in(folder).save(loaded.state, loaded)
        os.write(1, b"%d\n" % loaded.state.serial)


def repository_in(folder: Path) -> StateRepository:
    """Return the documents of a folder."""
    return StateRepository(LocalStateStore(folder, "test"), "test", errored_dir=folder)


def two_processes(store: str, folder: Path, increments: int) -> bool:
    """Let two processes count in one document; look whether anything is missing."""
    folder.mkdir()
    with ExitStack() as stack:
        host = ""
        if store == "databricks":
            from tests.fakes.files_api import fake_files_api

            host = stack.enter_context(fake_files_api()).host
        began = time.perf_counter()
        commands = [command_for(store, name, increments, folder, host) for name in ("a", "b")]
        counters = [
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for command in commands
        ]
        outputs = [counter.communicate()[0].split() for counter in counters]
        seconds = time.perf_counter() - began
        variables = variables_in(store, folder, outputs)
    lost = 2 * increments - sum(int(variables.get(name, "0")) for name in ("a", "b"))
    again = sum(int(output[-2 if store == "databricks" else -1]) for output in outputs)
    print(
        f"{store}: 2 × {increments} increments: {lost} lost, {again} done again after another process was "
        f"faster, {1000 * seconds / (2 * increments):.0f} ms each"
    )
    return lost != 0 or any(counter.returncode for counter in counters)


def command_for(store: str, name: str, increments: int, folder: Path, host: str) -> list[str]:
    """Return the command of one counting process."""
    if store == "databricks":
        module = "tests.integration.counter_increments"
        return [sys.executable, "-m", module, name, str(increments), str(folder), host]
    return [*THIS, "--count", store, name, str(increments), str(folder)]


def variables_in(store: str, folder: Path, outputs: list[list[str]]) -> Mapping[str, str]:
    """Return what was counted: from the document, or as the last of two JVMs saw it."""
    if store == "databricks":
        return max(
            (dict(pair.split("=") for pair in output[-1].split(",")) for output in outputs),
            key=lambda variables: sum(map(int, variables.values())),
        )
    loaded = StateRepository(STORES[store](folder)[0], "test", errored_dir=folder).load()
    assert loaded is not None
    return loaded.state.environment.variables


def count(store: str, name: str, increments: int, folder: Path) -> None:
    """Add one, again and again; print how often another process was faster."""
    documents, lock = STORES[store](folder)
    repository = StateRepository(documents, "test", errored_dir=folder)
    again = 0
    for _ in range(increments):
        with held(lock):
            while not increment_once(repository, name):
                again += 1
    print(again)


@contextmanager
def held(lock: StateLock | None) -> Iterator[None]:
    """Hold a lock, if there is one."""
    if lock is None:
        yield
        return
    lease = lock.acquire(HOLDER, timeout_seconds=60)
    try:
        yield
    finally:
        lease.release()


def local(folder: Path) -> tuple[StateStore, StateLock | None]:
    """Return local files with their lock."""
    return LocalStateStore(folder, "test"), FileLock(folder, "test", pause=lambda _seconds: time.sleep(0.001))


def s3(folder: Path) -> tuple[StateStore, StateLock | None]:
    """Return S3 with its lock."""
    from delta_engine.deployment.stores.s3 import S3LockRecords

    store, s3_folder = s3_parts(folder)
    return store, LeaseLock(S3LockRecords(s3_folder, "test"), lease_seconds=30, pause=short_pause)


def dynamodb(folder: Path) -> tuple[StateStore, StateLock | None]:
    """Return S3 with a lock in DynamoDB."""
    from delta_engine.deployment.stores.aws import DynamoDBLockRecords, open_client

    client = open_client("dynamodb", REGION, os.environ["MOTO_ENDPOINT"])
    records = DynamoDBLockRecords(client, TABLE, folder.name)
    return s3_parts(folder)[0], LeaseLock(records, lease_seconds=30, pause=short_pause)


def s3_parts(folder: Path) -> tuple[StateStore, S3Folder]:
    """Return the store and its folder; each benchmark has a prefix of its own."""
    from delta_engine.deployment.stores.aws import open_client
    from delta_engine.deployment.stores.s3 import S3Folder, S3StateStore

    client = open_client("s3", REGION, os.environ["MOTO_ENDPOINT"])
    s3_folder = S3Folder(client, BUCKET, f"{PREFIX}/{folder.name}")
    return S3StateStore(s3_folder, "test"), s3_folder


def short_pause(seconds: float) -> None:
    """Wait a tenth of what a waiter usually waits."""
    time.sleep(seconds / 10)


STORES: Mapping[str, Callable[[Path], tuple[StateStore, StateLock | None]]] = {
    "local": local,
    "local-unlocked": lambda folder: (local(folder)[0], None),
    "s3": s3,
    "s3-unlocked": lambda folder: (s3(folder)[0], None),
    "dynamodb": dynamodb,
}


@contextmanager
def moto(folder: Path) -> Iterator[None]:
    """Run a moto server with a bucket and a table; the processes find it in the environment."""
    import boto3

    port = free_port()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_EC2_METADATA_DISABLED": "true",
        "MOTO_ENDPOINT": f"http://127.0.0.1:{port}",
    }
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(command, port, log=folder / "moto.log", environment=dict(os.environ)):
        session = boto3.session.Session()
        options = {"region_name": REGION, "endpoint_url": os.environ["MOTO_ENDPOINT"]}
        session.client("s3", **options).create_bucket(Bucket=BUCKET)
        session.client("dynamodb", **options).create_table(
            TableName=TABLE,
            AttributeDefinitions=[{"AttributeName": "LockID", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "LockID", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--save-forever", folder]:
            save_forever(Path(folder))
        case ["--count", store, name, increments, folder]:
            count(store, name, int(increments), Path(folder))
        case _:
            sys.exit(main())
