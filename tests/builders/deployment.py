"""Short ways to say deployment states in tests."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.document import (
    SCHEMA_URI,
    VERSION,
    ApplyActions,
    ApplyRecord,
    DeploymentState,
)
from delta_engine.deployment.ports import JournalStore, StateLock, StateStore
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.resources import (
    applied_record,
)
from delta_engine.deployment.run_facts import RunFacts, environment_record
from delta_engine.deployment.stored import LockHolder
from delta_engine.deployment.stores.memory import MemoryStateStore, NoLock, memory_journals
from delta_engine.models import Securable, Table, resource_key
from delta_engine.ownership.recorded import Failure, Recorded, Status, is_of_table
from delta_engine.state.table_queries import TableVersion

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)

FACTS = RunFacts(
    environment=environment_record("test", "https://dev.example.com", {"catalog": "dev"}),
    who="ana@example.com",
    host="build-7",
    pid=4711,
    run_url="https://example.com/runs/1",
    lineage="git:abc123",
    engine_version="0.1.0",
    platform_version="spark 4.1.1",
)

HOLDER = LockHolder(
    who=FACTS.who, host=FACTS.host, pid=FACTS.pid, since=NOON, operation="sync", run_url=FACTS.run_url
)


def records_of(models: Iterable[Securable]) -> dict[str, Recorded[Any]]:
    """Return the records of models that were applied and left nothing else, by resource key."""
    return {resource_key(model.qualified_name): Recorded.of(model) for model in models}


def deployment_state(
    *models: Table, serial: int = 7, state_id: str = "state-1", write_id: str = "write-7"
) -> DeploymentState:
    """Return a document that has models as applied."""
    return DeploymentState(
        schema_uri=SCHEMA_URI,
        version=VERSION,
        serial=serial,
        state_id=state_id,
        write_id=write_id,
        recent_write_ids=("write-6",),
        lineage=FACTS.lineage,
        engine_version=FACTS.engine_version,
        platform_version=FACTS.platform_version,
        created_at=NOON,
        updated_at=NOON,
        environment=FACTS.environment,
        resources={resource_key(model.qualified_name): applied(model) for model in models},
        metadata=ApplyRecord(
            last_apply_duration=45.3,
            last_apply_actions=ApplyActions(added=0, changed=1, destroyed=0),
            warnings=(),
            checkpoints=(),
        ),
    )


def applied(model: Table, status: Status = Status.HEALTHY) -> Recorded[Table]:
    """Return the record of a model that was applied."""
    version = TableVersion(table_id="0e8400e2-29b1-41d4-a716-446655440000", version=3)
    resource = applied_record(model, at=NOON, by=FACTS.who, version=version, earlier=None)
    return resource if status is Status.HEALTHY else replace(resource, failure=Failure(status))


def repository_over(store: StateStore, folder: Path, *, write_ids: Iterable[str] = ()) -> StateRepository:
    """Return a repository of the environment `test`, with a clock that stands still."""
    given = iter(write_ids)
    plain = StateRepository(store, "test", errored_dir=folder, now=lambda: NOON)
    if not write_ids:
        return plain
    return StateRepository(
        store, "test", errored_dir=folder, now=lambda: NOON, new_write_id=lambda: next(given)
    )


def deployment_over(
    folder: Path,
    *,
    store: StateStore | None = None,
    journals: JournalStore | None = None,
    lock: StateLock | None = None,
) -> Deployment:
    """Return a deployment of the environment `test`; in memory where nothing else is given."""
    return Deployment(
        repository=repository_over(store or MemoryStateStore(), folder),
        journals=journals or memory_journals(),
        lock=lock or NoLock(),
        facts=lambda: FACTS,
        lock_timeout_seconds=0,
    )


def recorded_table(state: DeploymentState, key: str) -> Recorded[Table]:
    """Return the record of a table."""
    record = state.resources[key]
    assert is_of_table(record)
    return record
