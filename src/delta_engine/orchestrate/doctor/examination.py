"""Runs all probes of one environment: each finds what it can, whatever becomes of the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from importlib.metadata import requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from delta_engine.aspects.rights import Right
from delta_engine.config.settings import BackendType, Settings, load_settings
from delta_engine.config.state_backend import DatabricksState, LocalState, S3State
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.stamps import utc_now
from delta_engine.errors import DeltaEngineError
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.deployments import (
    git_lineage,
    login_profile,
    open_deployment,
    open_s3_folder,
    volume_path,
)
from delta_engine.orchestrate.doctor.catalogs import (
    Wanted,
    look_at_catalog,
    view_checks,
    wanted_by_catalog,
)
from delta_engine.orchestrate.doctor.failures import checked, failed
from delta_engine.orchestrate.doctor.installation import (
    extras_of,
    folder_checks,
    lineage_check,
    package_checks,
)
from delta_engine.orchestrate.doctor.plan import needs_around, plan_checks, right_checks, unseen_right_checks
from delta_engine.orchestrate.doctor.platform import clock_check, platform_check
from delta_engine.orchestrate.doctor.state import (
    bucket_checks,
    document_checks,
    lock_checks,
    volume_checks,
)
from delta_engine.orchestrate.project import Project, load_project, open_backend, orchestrator
from delta_engine.report.doctor_report import Check, DoctorReport, Status, Topic, doctor_report
from delta_engine.report.plan_tree import counted
from delta_engine.sql import sql_grant
from delta_engine.state.states import CatalogState
from delta_engine.validation.needed_rights import Need, Securable, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEED_A_LOGIN = (Topic.PLATFORM, Topic.CATALOGS, Topic.PLAN, Topic.RIGHTS)


def examine(
    conf_dir: Path,
    environment: str,
    *,
    spark: SparkSession | None = None,
    lineage: str = "",
    notify: Callable[[str], None] = lambda _note: None,
    now: Callable[[], float] = time.time,
) -> DoctorReport:
    """Look at everything that an environment needs, as the identity that runs this. Nothing that is written stays.

    Args:
        conf_dir: the folder with the environments' configurations.
        environment: which one.
        spark: the session to use; one is opened if the backend needs it and there is none.
        lineage: the deployed commit, where the caller knows it; found out otherwise.
        notify: is told what takes time, such as a SQL warehouse that has to start.
        now: the local clock, in seconds since 1970.
    """
    examination = _Examination(conf_dir, environment, lineage, notify, now)
    examination.run(spark)
    return doctor_report(
        examination.found,
        environment=environment,
        checked_at=utc_now(),
        run_by=examination.run_by,
        engine_version=version("delta-engine"),
        platform_version=examination.platform_version,
    )


@dataclass(slots=True)
class _Examination:
    """What was found so far."""

    conf_dir: Path
    environment: str
    lineage: str
    notify: Callable[[str], None]
    now: Callable[[], float]
    found: list[Check] = field(default_factory=list)
    run_by: str = ""
    platform_version: str = ""

    def run(self, spark: SparkSession | None) -> None:
        """Run all probes, as far as those before them make it possible."""
        settings = self._settings()
        self._packages(settings)
        if settings is None:
            return
        project = self._project(settings)
        self.found.append(lineage_check(self.lineage or git_lineage(settings.project_dir)))
        backend = self._backend(settings, spark)
        self._store(settings)
        if backend is None:
            return
        self._probe(Topic.PLATFORM, "version", lambda: self._platform(backend))
        if backend.principals is not None:
            self._probe(Topic.CLOCK, "clock", lambda: iter([clock_check(backend.runner, self.now)]))
        if settings.backend is BackendType.EMBEDDED:
            self._probe(
                Topic.WAREHOUSE,
                str(settings.warehouse),
                lambda: folder_checks(Topic.WAREHOUSE, settings.warehouse),
            )
        deployment = self._deployment(settings, backend)
        self._catalogs(settings, project, backend, deployment)

    def _probe(
        self, topic: Topic, subject: str, probe: Callable[[], Iterator[Check]], way_out: str = ""
    ) -> bool:
        """Run a probe and keep what it found; return whether all of it is in order."""
        checks = checked(topic, subject, probe, way_out)
        self.found += checks
        return all(check.status is Status.OK for check in checks)

    def _settings(self) -> Settings | None:
        try:
            return load_settings(self.conf_dir, self.environment)
        except (DeltaEngineError, OSError) as error:
            self.found += failed(Topic.CONFIGURATION, self._configuration, error)
            return None

    def _project(self, settings: Settings) -> Project | None:
        """Return the settings with their models, if these can be loaded."""
        try:
            project = load_project(self.conf_dir, self.environment)
        except (DeltaEngineError, OSError) as error:
            self.found += failed(Topic.CONFIGURATION, self._configuration, error)
            self._leave_out(settings, (Topic.PLAN,), "the models cannot be loaded")
            return None
        found = f"valid, with {counted(len(project.models), 'model')}"
        valid = Check(topic=Topic.CONFIGURATION, subject=self._configuration, status=Status.OK, found=found)
        self.found.append(valid)
        return project

    @property
    def _configuration(self) -> str:
        return f"{self.conf_dir}/{self.environment}.yml"

    def _packages(self, settings: Settings | None) -> None:
        extras = extras_of(settings) if settings else ()
        required = requires("delta-engine") or ()
        self.found += package_checks(version("delta-engine"), required, extras, version)

    def _leave_out(self, settings: Settings, topics: Iterable[Topic], why: str) -> None:
        """Say that nothing can be told of some topics."""
        subject, found = settings.backend.value, f"not looked at: {why}"
        self.found += (
            Check(topic=topic, subject=subject, status=Status.UNKNOWN, found=found) for topic in topics
        )

    def _backend(self, settings: Settings, spark: SparkSession | None) -> Backend | None:
        """Open the backend and say who this is; what needs it cannot be told without."""
        subject = settings.backend.value
        try:
            backend = open_backend(settings, spark, notify=self.notify)
            if backend.principals is not None:
                self.run_by = backend.principals.principal(()).name
        except (DeltaEngineError, OSError) as error:
            self.found += failed(Topic.LOGIN, subject, error)
            self._leave_out(settings, _NEED_A_LOGIN, "there is no login")
            return None
        host = f" on {backend.host}" if backend.host else ""
        found = f"{self.run_by}{host}" if self.run_by else "no login is needed"
        self.found.append(Check(topic=Topic.LOGIN, subject=subject, status=Status.OK, found=found))
        return backend

    def _store(self, settings: Settings) -> None:
        """Look whether files and objects can be written where the deployment state is."""
        cache = settings.state_backend.cache
        if cache is not None:
            self._probe(Topic.STATE, str(cache.path), lambda: folder_checks(Topic.STATE, cache.path))
        match settings.state_backend.place:
            case LocalState(path=path):
                self._probe(Topic.STATE, str(path), lambda: folder_checks(Topic.STATE, path))
            case S3State() as bucket:
                subject = f"s3://{bucket.bucket}/{bucket.prefix}"
                self._probe(Topic.STATE, subject, lambda: _bucket_checks(bucket))
            case DatabricksState() as place:
                volume = Securable((place.catalog, place.schema, place.volume))
                rights = sql_grant(
                    f"VOLUME {volume.address}", ("READ VOLUME", "WRITE VOLUME"), self.run_by or "principal"
                )
                self._probe(
                    Topic.STATE,
                    volume_path(place),
                    lambda: _volume_checks(settings, place),
                    f"If the volume exists: {rights}",
                )
            case other:
                assert_never(other)

    def _platform(self, backend: Backend) -> Iterator[Check]:
        self.platform_version = backend.platform_version()
        yield platform_check(self.platform_version)

    def _deployment(self, settings: Settings, backend: Backend) -> Deployment | None:
        """Return the deployment state, if it can be read."""
        try:
            deployment = open_deployment(settings, backend)
        except (DeltaEngineError, OSError) as error:
            self.found += failed(Topic.STATE, "document", error)
            return None
        is_readable = self._probe(Topic.STATE, "document", lambda: document_checks(deployment))
        self._probe(Topic.LOCK, "lock", lambda: lock_checks(deployment))
        return deployment if is_readable else None

    def _catalogs(
        self, settings: Settings, project: Project | None, backend: Backend, deployment: Deployment | None
    ) -> None:
        if backend.principals is None:
            self._plan(project, backend, deployment)
            return
        own = tuple(_own_tables(settings))
        wanted = wanted_by_catalog(
            [model.qualified_name for model in project.models] if project else (),
            project.schemas if project else (),
            own,
            makes_schemas=settings.policy.create_schemas,
        )
        found = {one: self._catalog(backend, one) for one in wanted}
        readable = {one: state for one, state in found.items() if state is not None}
        observed = reduce(_together, readable.values(), CatalogState(tables={}))
        planned = self._plan(project, backend, deployment)
        asked = (*needs_around(tuple(readable), own, observed), *planned)
        principals = backend.principals
        self._probe(Topic.RIGHTS, "rights", lambda: right_checks(principals, asked, observed))

    def _catalog(self, backend: Backend, wanted: Wanted) -> CatalogState | None:
        """Look at a catalog; return what was read, or None if it cannot be read at all."""
        subject = f"catalog {wanted.catalog}"
        grant = Securable((wanted.catalog,)).grant(Right.USE_CATALOG, self.run_by)
        observed: CatalogState | None = None

        def look() -> Iterator[Check]:
            nonlocal observed
            checks, observed = look_at_catalog(backend, wanted)
            yield from checks

        is_whole = self._probe(Topic.CATALOGS, subject, look, f"If it exists: {grant}")
        if is_whole or (observed and observed.schema_states):
            self._probe(
                Topic.VIEWS,
                f"{wanted.catalog}.information_schema",
                lambda: view_checks(backend.runner, wanted.catalog),
            )
        return observed

    def _plan(
        self, project: Project | None, backend: Backend, deployment: Deployment | None
    ) -> tuple[Need, ...]:
        """Make the plan of a sync; return what it needs."""
        if project is None:
            return ()
        engine = orchestrator(project, backend, deployment or Deployment.unrecorded())
        needed: tuple[Need, ...] = ()

        def look() -> Iterator[Check]:
            nonlocal needed
            preview = engine.preview(project.models, allow_cached=False)
            needed = needs(preview.plan, preview.basis.observed)
            yield from plan_checks(preview, is_recorded=deployment is not None)
            if backend.principals is not None:
                yield from unseen_right_checks(preview.plan, self.run_by)

        self._probe(Topic.PLAN, "sync", look)
        return needed


def _bucket_checks(place: S3State) -> Iterator[Check]:
    from delta_engine.deployment.aws.clients import ClientLimits

    yield from bucket_checks(open_s3_folder(place, ClientLimits()))


def _volume_checks(settings: Settings, place: DatabricksState) -> Iterator[Check]:
    from delta_engine.deployment.databricks.volume_files import open_volume_files

    yield from volume_checks(open_volume_files(login_profile(settings)), volume_path(place))


def _own_tables(settings: Settings) -> Iterator[QualifiedName]:
    """Yield the tables that the engine keeps for itself in Unity Catalog."""
    from delta_engine.deployment.locks.delta_records import LOCKS
    from delta_engine.deployment.stores.databricks import HEADS

    place = settings.state_backend.place
    if isinstance(place, DatabricksState):
        yield QualifiedName(place.catalog, place.schema, HEADS)
        yield QualifiedName(place.catalog, place.schema, LOCKS)
    for table in (settings.drift_history, settings.run_history):
        if table is not None:
            yield table


def _together(one: CatalogState, other: CatalogState) -> CatalogState:
    return CatalogState(
        tables={**one.tables, **other.tables},
        schema_states={**one.schema_states, **other.schema_states},
    )
