"""Opens the deployment state that the settings name: store, lock, journals, and the facts of the run."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import SubprocessError, run
from typing import Final

from typing_extensions import assert_never

from delta_engine.config.settings import Settings
from delta_engine.config.state_backend import DatabricksState, S3State
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.files import ReportFiles
from delta_engine.deployment.locks.file import FileLock
from delta_engine.deployment.locks.lease import LeaseLock
from delta_engine.deployment.ports import JournalStore, LockRecords, StateLock, StateStore
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.run_facts import RunFacts, environment_record
from delta_engine.deployment.stores.aws import DOCUMENT_LIMITS, ClientLimits, DynamoDBLockRecords, open_client
from delta_engine.deployment.stores.databricks import HEADS, LOCKS, DatabricksStateStore, DeltaLockRecords
from delta_engine.deployment.stores.files import FileJournals
from delta_engine.deployment.stores.local import (
    HybridStateStore,
    LocalFiles,
    LocalJournalStore,
    LocalStateStore,
)
from delta_engine.deployment.stores.s3 import S3Folder, S3LockRecords, S3StateStore, s3_journals
from delta_engine.deployment.stores.volume_files import VolumeFiles, open_volume_files
from delta_engine.errors import ConfigError, engine_version
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql.text import sql_path

_SHORTEST_TIMEOUT_SECONDS: Final = 60.0
_S3_LEASE_SECONDS: Final = 30.0
_LOCK_LIMITS: Final = ClientLimits(attempts=2, connect_timeout_seconds=2, read_timeout_seconds=4)
"""A renewal that takes longer than a lease is useless."""

_DELTA_LEASE_SECONDS: Final = 120.0
"""A beat is a commit that takes seconds there, and competes with the run's own statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """Where a run comes from. The engine determines empty values itself, as far as possible.

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
    """Return whether the engine reaches the deployment state through the backend's SQL."""
    return isinstance(settings.state_backend.place, DatabricksState)


def open_deployment(
    settings: Settings, backend: Backend | None, origin: RunOrigin = UNKNOWN_ORIGIN
) -> Deployment:
    """Open the deployment state of an environment; nothing is read yet.

    Args:
        backend: may be None for a deployment state outside the platform.

    Raises:
        ConfigError: the deployment state needs the backend, and there is none.
        MissingDependencyError: boto3 or databricks-sdk is not installed.
        StoreError: there is no login, or region, endpoint or profile are not usable.
    """
    store, journals, lock, lease_seconds = _parts(settings, backend)
    timeout = settings.state_backend.lock_timeout_seconds
    if timeout is None:  # a run that waits less than a lease never takes over from a dead run
        timeout = max(_SHORTEST_TIMEOUT_SECONDS, 1.5 * lease_seconds)
    return Deployment(
        repository=StateRepository(
            store, settings.environment, errored_dir=settings.project_dir / ".delta-engine"
        ),
        journals=journals,
        lock=lock,
        facts=partial(_facts, settings, backend, origin),
        lock_timeout_seconds=timeout,
    )


def open_report_files(settings: Settings) -> ReportFiles:
    """Open the place for reports, next to the deployment state; with a local copy, next to the remote document."""
    match settings.state_backend.place:
        case Path() as path:
            return LocalFiles(path)
        case S3State() as place:
            return open_s3_folder(place)
        case DatabricksState() as place:
            return open_volume(settings, place)
        case other:
            assert_never(other)


def open_s3_folder(place: S3State, limits: ClientLimits = DOCUMENT_LIMITS) -> S3Folder:
    """Return the folder of the bucket that holds the deployment state; raises as `open_deployment`."""
    return S3Folder(open_client("s3", place.region, place.endpoint_url, limits), place.bucket, place.prefix)


def open_volume(settings: Settings, place: DatabricksState, folder: str = "") -> VolumeFiles:
    """Return the volume that holds the deployment state, or a folder of it; raises as `open_deployment`."""
    profile = settings.sql_warehouse.profile if settings.sql_warehouse else None
    return open_volume_files(f"{volume_path(place)}/{folder}".rstrip("/"), profile)


def volume_path(place: DatabricksState) -> str:
    """Return the path of the volume that holds the deployment state."""
    return f"/Volumes/{place.catalog}/{place.schema}/{place.volume}"


def git_lineage(project_dir: Path) -> str:
    """Return a project's commit, `git:<commit>`, with `-dirty` if it has uncommitted changes."""
    try:
        commit = _git(project_dir, "rev-parse", "HEAD")
        changes = _git(project_dir, "status", "--porcelain", "--untracked-files=normal", "--", ".")
    except (OSError, SubprocessError):
        return "unknown"
    return f"git:{commit}{'-dirty' if changes else ''}"


def _git(folder: Path, *arguments: str) -> str:
    done = run(["git", *arguments], cwd=folder, capture_output=True, check=True, timeout=10, text=True)
    return done.stdout.strip()


def _parts(settings: Settings, backend: Backend | None) -> tuple[StateStore, JournalStore, StateLock, float]:
    """Return store, journals and lock, and the lock's lease in seconds; a file lock needs none."""
    environment, state = settings.environment, settings.state_backend
    store: StateStore
    records: LockRecords
    match state.place:
        case Path() as path:
            lock = FileLock(path, environment)
            return LocalStateStore(path, environment), LocalJournalStore(path, environment), lock, 0
        case S3State() as place:
            folder = open_s3_folder(place)
            store, journals = S3StateStore(folder, environment), s3_journals(folder, environment)
            records = S3LockRecords(open_s3_folder(place, _LOCK_LIMITS), environment)
            lease_seconds = _S3_LEASE_SECONDS
        case DatabricksState() as place:
            if backend is None:
                raise ConfigError("a state_backend of type databricks is reached through the backend's SQL")
            files = open_volume(settings, place, environment)
            heads, locks = (sql_path((place.catalog, place.schema, name)) for name in (HEADS, LOCKS))
            store = DatabricksStateStore(backend.runner, files, heads=heads, environment=environment)
            journals = FileJournals(files, "journal")
            records = DeltaLockRecords(backend.runner, locks, environment)
            lease_seconds = _DELTA_LEASE_SECONDS
        case other:
            assert_never(other)
    if state.lock_table is not None:
        table = state.lock_table
        client = open_client("dynamodb", table.region, table.endpoint_url, _LOCK_LIMITS)
        records = DynamoDBLockRecords(client, table.table, store.location, table.region)
        lease_seconds = _S3_LEASE_SECONDS
    if state.cache is not None:
        max_age = state.cache.max_age_seconds
        store = HybridStateStore(store, state.cache.path, environment, max_age_seconds=max_age)
    lease_seconds = state.lease_seconds or lease_seconds
    return store, journals, LeaseLock(records, lease_seconds=lease_seconds), lease_seconds


def _facts(settings: Settings, backend: Backend | None, origin: RunOrigin) -> RunFacts:
    """Determine the principal, host and lineage of a run that holds the lock, or is about to."""
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
        engine_version=engine_version(),
        platform_version=backend.platform_version() if backend else "unknown",
    )


def _who(settings: Settings, backend: Backend | None) -> str:
    """Return the platform's principal; on a laptop, the user."""
    if backend is not None and settings.backend.is_databricks:
        (row,) = backend.runner.run("SELECT current_user() AS who")
        return str(row["who"])
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"user {os.getuid()}"


def _ci_run_url(environ: Mapping[str, str]) -> str:
    """Return where to watch this run in its CI system; empty outside of one."""
    if environ.get("GITHUB_RUN_ID"):
        server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
        return f"{server}/{repository}/actions/runs/{environ['GITHUB_RUN_ID']}"
    return environ.get("CI_JOB_URL") or environ.get("BUILD_URL") or ""
