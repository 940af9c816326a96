"""Increments a number in a deployment state, again and again: run several of these at once.

    python -m tests.integration.counter_increments NAME INCREMENTS FOLDER HOST

Each increment loads, adds one and saves, and starts over when somebody else was faster. Prints `ready` after the
first; at the end how many times it started over, and what all have counted until then.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.deployment.errors import StaleStateError
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stores.databricks import DatabricksStateStore
from delta_engine.deployment.stores.volume_files import VolumeFiles
from tests.builders.deployment import deployment_state

VOLUME = "/Volumes/dev/delta_engine/deployment_state"


def volume_files(host: str, folder: str = "") -> VolumeFiles:
    """Return the files of a fake workspace's volume."""
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.config import Config

    config = Config(host=host, token="not a real one", retry_timeout_seconds=5, http_timeout_seconds=5)
    return VolumeFiles(WorkspaceClient(config=config), f"{VOLUME}/{folder}".rstrip("/"))


def repository(runner: SqlRunner, folder: Path, host: str) -> StateRepository:
    """Return the documents of the environment `test`, heads in a Delta table by path."""
    store = DatabricksStateStore(
        runner, volume_files(host, "test"), heads=f"delta.`{folder / 'heads'}`", environment="test"
    )
    return StateRepository(store, "test", errored_dir=folder)


def increment(documents: StateRepository, name: str) -> int:
    """Add one to the number of a name; return how often somebody else was faster."""
    for attempt in range(1_000):
        if increment_once(documents, name):
            return attempt
    raise AssertionError("never first")


def increment_once(documents: StateRepository, name: str) -> bool:
    """Load, add one to the number of a name, save; whether nobody else was faster."""
    base = documents.load()
    state = base.state if base else deployment_state(serial=0)
    variables = state.environment.variables
    counted = {**variables, name: str(int(variables.get(name, "0")) + 1)}
    environment = msgspec.structs.replace(state.environment, variables=counted)
    try:
        documents.save(msgspec.structs.replace(state, environment=environment), base)
    except StaleStateError:
        return False
    return True


def main() -> None:
    """Increment in a Spark of this process's own."""
    from delta_engine.backends.spark_sessions import open_local_session
    from delta_engine.backends.spark_sql_runner import SparkSqlRunner

    name, increments, folder, host = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    spark = open_local_session({}, scratch=folder / f"scratch-{name}")
    documents = repository(SparkSqlRunner(spark), folder, host)
    tries = increment(documents, name)
    print("ready", flush=True)
    print(tries + sum(increment(documents, name) for _ in range(increments - 1)))
    loaded = documents.load()
    assert loaded is not None
    counted = loaded.state.environment.variables
    print(",".join(f"{key}={value}" for key, value in counted.items() if value.isdigit()))


if __name__ == "__main__":
    main()
