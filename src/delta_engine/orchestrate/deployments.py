"""Opens the deployment state that the settings name: store, lock, journals, and the facts of the run."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from subprocess import SubprocessError, run
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from delta_engine.config.settings import Settings
from delta_engine.config.state_backend import (
    DatabricksState,
    DynamoDBLockTable,
    LocalState,
    S3State,
    StateBackend,
)
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.locks.file import FileLock
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.ports import JournalStore, LockRecords, ReportFiles, StateLock, StateStore
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.run_facts import RunFacts, environment_record
from delta_engine.deployment.stores.hybrid import HybridStateStore
from delta_engine.deployment.stores.local import LocalJournalStore, LocalReportFiles, LocalStateStore
from delta_engine.errors import ConfigError
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql import quote_ident

if TYPE_CHECKING:
    from delta_engine.deployment.aws.clients import ClientLimits
    from delta_engine.deployment.aws.s3_folder import S3Folder

_SHORTEST_TIMEOUT_SECONDS = 60.0
_S3_LEASE_SECONDS = 30.0
_LOCK_LIMITS: Mapping[str, int] = {
    "attempts": 2,
    "connect_timeout_seconds": 2,
    "read_timeout_seconds": 4,
}
"""A renewal that takes longer than a lease is none."""

_DELTA_LEASE_SECONDS = 120.0
"""A beat is a commit of seconds there, and competes with the run's own statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """What a run is told about where it comes from; empty texts are found out as far as possible.

    Args:
        lineage: the deployed commit, such as `git:abc123`; `git:` alone, from a project without git, counts as empty.
        run_url: where to watch the run.
        host: the workspace that is deployed to.
    """

    lineage: str = ""
    run_url: str = ""
    host: str = ""


UNKNOWN_ORIGIN = RunOrigin()


def state_needs_backend(settings: Settings) -> bool:
    """Whether the deployment state is reached through the backend's SQL."""
    return isinstance(settings.state_backend.place, DatabricksState)


def open_deployment(
    settings: Settings, backend: Backend | None, origin: RunOrigin = UNKNOWN_ORIGIN
) -> Deployment:
    """Open the deployment state of an environment; nothing is read yet.

    Args:
        settings: the environment's.
        backend: what runs SQL; may be None for commands that only touch a state outside of the platform.
        origin: where the run comes from.

    Raises:
        ConfigError: the state needs the backend, and there is none.
        MissingDependencyError: boto3 or databricks-sdk is not installed.
    """
    store, journals, lock, lease_seconds = _parts(settings, backend)
    return Deployment(
        repository=StateRepository(
            store, settings.environment, errored_dir=settings.project_dir / ".delta-engine"
        ),
        journals=journals,
        lock=lock,
        facts=partial(_facts, settings, backend, origin),
        lock_timeout_seconds=_lock_timeout(settings.state_backend, lease_seconds),
    )


def open_report_files(settings: Settings) -> ReportFiles:
    """Open the place for reports, beside the deployment state; of a cached state that is the remote place.

    Args:
        settings: the environment's.

    Raises:
        MissingDependencyError: boto3 or databricks-sdk is not installed.
        StoreError: there are no credentials for the workspace.
    """
    match settings.state_backend.place:
        case LocalState(path=path):
            return LocalReportFiles(path)
        case S3State() as place:
            from delta_engine.deployment.aws.clients import ClientLimits
            from delta_engine.deployment.stores.s3 import S3ReportFiles

            return S3ReportFiles(open_s3_folder(place, ClientLimits()))
        case DatabricksState() as place:
            from delta_engine.deployment.databricks.volume_files import open_volume_files
            from delta_engine.deployment.stores.databricks import VolumeReportFiles

            return VolumeReportFiles(open_volume_files(login_profile(settings)), volume=volume_path(place))
        case other:
            assert_never(other)


def git_lineage(project_dir: Path) -> str:
    """Return the commit of a project, `git:<commit>`, with `-dirty` where it has changes that are not committed."""
    try:
        commit = _git(project_dir, "rev-parse", "HEAD")
        changes = _git(project_dir, "status", "--porcelain", "--untracked-files=normal", "--", ".")
    except (OSError, SubprocessError):
        return "unknown"
    return f"git:{commit}{'-dirty' if changes else ''}"


def _parts(settings: Settings, backend: Backend | None) -> tuple[StateStore, JournalStore, StateLock, float]:
    """Return store, journals and lock, and the lock's lease in seconds; a file lock needs none."""
    environment, state = settings.environment, settings.state_backend
    match state.place:
        case LocalState(path=path):
            lock = FileLock(path, environment)
            return LocalStateStore(path, environment), LocalJournalStore(path, environment), lock, 0
        case S3State() as place:
            store, journals, records = _s3_parts(environment, place)
            lease_seconds = _S3_LEASE_SECONDS
        case DatabricksState() as place:
            store, journals, records = _databricks_parts(settings, place, backend)
            lease_seconds = _DELTA_LEASE_SECONDS
        case other:
            assert_never(other)
    if state.lock_table is not None:
        records, lease_seconds = _dynamodb_records(store.location, state.lock_table), _S3_LEASE_SECONDS
    if state.cache is not None:
        store = HybridStateStore(
            store, state.cache.path, environment, max_age_seconds=state.cache.max_age_seconds
        )
    lease_seconds = state.lease_seconds or lease_seconds
    return store, journals, LeaseLock(records, lease_seconds=lease_seconds), lease_seconds


def _facts(settings: Settings, backend: Backend | None, origin: RunOrigin) -> RunFacts:
    """Find out who runs what, from where; called once a run holds the lock, or is about to."""
    has_commit = bool(origin.lineage.removeprefix("git:"))
    return RunFacts(
        environment=environment_record(
            settings.environment,
            origin.host or (backend.host if backend else "") or os.environ.get("DATABRICKS_HOST", ""),
            settings.variables,
        ),
        who=_who(settings, backend),
        host=socket.gethostname(),
        pid=os.getpid(),
        run_url=origin.run_url or _ci_run_url(os.environ),
        lineage=origin.lineage if has_commit else git_lineage(settings.project_dir),
        engine_version=version("delta-engine"),
        platform_version=backend.platform_version() if backend else "unknown",
    )


def _lock_timeout(state: StateBackend, lease_seconds: float) -> float:
    """Return how long to wait: who waits for less than a lease never takes over from a dead run."""
    if state.lock_timeout_seconds is not None:
        return state.lock_timeout_seconds
    return max(_SHORTEST_TIMEOUT_SECONDS, 1.5 * lease_seconds)


def open_s3_folder(place: S3State, limits: ClientLimits) -> S3Folder:
    """Return the folder of a bucket that holds the deployment state.

    Raises:
        MissingDependencyError: boto3 is not installed.
        StoreError: region, endpoint or profile are not usable.
    """
    from delta_engine.deployment.aws.clients import open_s3_client
    from delta_engine.deployment.aws.s3_folder import S3Folder

    return S3Folder(
        open_s3_client(place.region, place.endpoint_url, limits=limits), place.bucket, place.prefix
    )


def login_profile(settings: Settings) -> str | None:
    """Return the login of the workspace that runs SQL, which has the volume as well."""
    return settings.sql_warehouse.profile if settings.sql_warehouse else None


def volume_path(place: DatabricksState) -> str:
    """Return the path of the volume that holds the deployment state."""
    return f"/Volumes/{place.catalog}/{place.schema}/{place.volume}"


def _git(folder: Path, *arguments: str) -> str:
    found = run(["git", *arguments], cwd=folder, capture_output=True, check=True, timeout=10, text=True)
    return found.stdout.strip()


def _s3_parts(environment: str, place: S3State) -> tuple[StateStore, JournalStore, LockRecords]:
    from delta_engine.deployment.aws.clients import ClientLimits
    from delta_engine.deployment.locks.s3_records import S3LockRecords
    from delta_engine.deployment.stores.s3 import S3JournalStore, S3StateStore

    documents = open_s3_folder(place, ClientLimits())
    records = S3LockRecords(open_s3_folder(place, ClientLimits(**_LOCK_LIMITS)), environment)
    return S3StateStore(documents, environment), S3JournalStore(documents, environment), records


def _databricks_parts(
    settings: Settings, place: DatabricksState, backend: Backend | None
) -> tuple[StateStore, JournalStore, LockRecords]:
    from delta_engine.deployment.databricks.volume_files import open_volume_files
    from delta_engine.deployment.locks.delta_records import LOCKS, DeltaLockRecords
    from delta_engine.deployment.stores.databricks import (
        HEADS,
        DatabricksJournalStore,
        DatabricksStateStore,
    )

    if backend is None:
        raise ConfigError("a state_backend of type databricks is reached through the backend's SQL")
    files, runner = open_volume_files(login_profile(settings)), backend.runner
    environment, volume = settings.environment, volume_path(place)
    heads, locks = (
        ".".join(map(quote_ident, (place.catalog, place.schema, name))) for name in (HEADS, LOCKS)
    )
    store = DatabricksStateStore(runner, files, heads=heads, volume=volume, environment=environment)
    journals = DatabricksJournalStore(files, volume=volume, environment=environment)
    return store, journals, DeltaLockRecords(runner, locks, environment)


def _dynamodb_records(lock_id: str, lock: DynamoDBLockTable) -> LockRecords:
    from delta_engine.deployment.aws.clients import ClientLimits, open_dynamodb_client
    from delta_engine.deployment.locks.dynamodb_records import DynamoDBLockRecords

    client = open_dynamodb_client(lock.region, lock.endpoint_url, limits=ClientLimits(**_LOCK_LIMITS))
    return DynamoDBLockRecords(client, lock.table, lock_id)


def _who(settings: Settings, backend: Backend | None) -> str:
    """Return whom the platform knows this run as; on a laptop, the user."""
    if backend is not None and settings.backend.is_databricks:
        (row,) = backend.runner.run("SELECT current_user() AS who")
        return str(row["who"])
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"user {os.getuid()}"


def _ci_run_url(environ: Mapping[str, str]) -> str:
    """Return where to watch this run in the CI system that it runs in; empty outside of one."""
    if environ.get("GITHUB_RUN_ID"):
        server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
        return f"{server}/{repository}/actions/runs/{environ['GITHUB_RUN_ID']}"
    return environ.get("CI_JOB_URL") or environ.get("BUILD_URL") or ""
