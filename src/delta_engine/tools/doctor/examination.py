"""Checks an environment part by part. A failed check never stops the others, and no written data stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from importlib.metadata import requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from typing_extensions import assert_never

from delta_engine.aspects.aspect import Right
from delta_engine.config.settings import BackendType, Settings, load_settings
from delta_engine.config.state_backend import DatabricksState, S3State
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.stores.databricks import HEADS, LOCKS
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import (
    DISTRIBUTION,
    DeltaEngineError,
    RefusalGroup,
    RefusedError,
    StatementError,
    engine_version,
)
from delta_engine.models import Function, QualifiedName, Schema, SchemaName, Table, View, of_kind
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.deployments import (
    git_lineage,
    open_deployment,
    open_s3_folder,
    open_volume,
    volume_path,
)
from delta_engine.orchestrate.opening import open_backend, open_environment
from delta_engine.orchestrate.planning import plan_unlocked
from delta_engine.orchestrate.project import Project, load_project
from delta_engine.sql.governance import sql_grant
from delta_engine.state.catalog_reader import bare_model, readable_snapshot
from delta_engine.state.lineage import LineageReader
from delta_engine.state.states import CatalogState
from delta_engine.telemetry.context import utc_now
from delta_engine.telemetry.visible import counted
from delta_engine.tools.doctor.checks import (
    SCRATCH_NAME,
    CatalogUse,
    basic_needs,
    bucket_check,
    catalog_checks,
    catalog_uses,
    clock_check,
    document_check,
    engine_check,
    extras_of,
    file_names_check,
    folder_check,
    lineage_check,
    lock_check,
    package_checks,
    plan_checks,
    platform_check,
    right_checks,
    unchecked_rights,
    view_check,
    volume_check,
)
from delta_engine.tools.doctor.report import Check, DoctorReport, DoctorStatus, Topic, doctor_report
from delta_engine.tools.doctor.statuses import status_of
from delta_engine.validation.needed_rights import SecurableObject, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Found = TypeVar("Found")

_TOPICS_OF_LOGIN: Final = (Topic.PLATFORM, Topic.CATALOGS, Topic.PLAN, Topic.RIGHTS)


def examine(
    conf_dir: Path,
    environment: str,
    *,
    spark: SparkSession | None = None,
    lineage: str = "",
    notify: Callable[[str], None] = lambda _note: None,
) -> DoctorReport:
    """Check everything that an environment needs, as the identity that runs this.

    `lineage` is the deployed commit, detected by default. `notify` receives a note before slow steps.
    """
    findings = Findings()
    subject = f"{conf_dir}/{environment}.yml"
    settings = findings.attempt(Topic.CONFIGURATION, subject, lambda: load_settings(conf_dir, environment))
    findings.checks.append(engine_check(version))
    extras = extras_of(settings) if settings else ()
    findings.checks += package_checks(requires(DISTRIBUTION) or (), extras, version)
    if settings is not None:
        project = findings.attempt(Topic.CONFIGURATION, subject, lambda: load_project(conf_dir, environment))
        if project is None:
            findings.leave_out(settings, (Topic.PLAN,), "the models cannot be loaded")
        else:
            valid = f"valid, with {counted(len(project.selectable), 'model')}"
            findings.checks.append(Check.ok(Topic.CONFIGURATION, subject, valid))
        findings.checks.append(lineage_check(lineage or git_lineage(settings.project_dir)))
        _check_environment(findings, settings, project, spark, notify)
    return doctor_report(
        findings.checks,
        environment=environment,
        checked_at=utc_now(),
        run_by=findings.run_by,
        engine_version=engine_version(),
        platform_version=findings.platform_version,
    )


@dataclass(slots=True)
class Findings:
    """The checks so far, with the identity and the platform version."""

    checks: list[Check] = field(default_factory=list)
    run_by: str = ""
    platform_version: str = ""

    def attempt(
        self, topic: Topic, subject: str, act: Callable[[], Found], way_out: str = ""
    ) -> Found | None:
        """Return an action's result; on an error, record it with the way out of a missing right and return None."""
        try:
            return act()
        except (DeltaEngineError, OSError) as error:
            self.checks += failure_checks(topic, subject, error, way_out)
            return None

    def check(self, topic: Topic, subject: str, act: Callable[[], Check], way_out: str = "") -> bool:
        """Record an action's check or its error; return whether it is in order."""
        outcome = self.attempt(topic, subject, act, way_out)
        self.checks += [outcome] if outcome else []
        return outcome is not None and outcome.status is DoctorStatus.OK

    def leave_out(self, settings: Settings, topics: Iterable[Topic], why: str) -> None:
        """Record that some topics cannot be checked."""
        self.checks += (
            Check.unknown(topic, settings.backend.value, f"not checked: {why}") for topic in topics
        )


def failure_checks(
    topic: Topic, subject: str, error: DeltaEngineError | OSError, way_out: str
) -> tuple[Check, ...]:
    """Return an error as a check, or several refusals as one check each."""
    if isinstance(error, RefusalGroup):
        return tuple(
            check for refusal in error.refusals for check in failure_checks(topic, subject, refusal, way_out)
        )
    finding, ways_out = str(error), [way_out]
    if isinstance(error, StatementError):
        finding = error.first_line
    elif isinstance(error, RefusedError):
        finding, ways_out = finding.removesuffix(error.way_out).strip(), [error.way_out, way_out]
    text = " ".join(filter(None, ways_out))
    return (Check(topic=topic, subject=subject, status=status_of(error), found=finding, way_out=text),)


def _check_environment(
    findings: Findings,
    settings: Settings,
    project: Project | None,
    spark: SparkSession | None,
    notify: Callable[[str], None],
) -> None:
    backend = _opened_backend(findings, settings, spark, notify)
    _check_store(findings, settings)
    if backend is None:
        return
    platform_version = findings.attempt(Topic.PLATFORM, "version", backend.platform_version)
    if platform_version is not None:
        findings.platform_version = platform_version
        findings.checks.append(platform_check(platform_version))
    if backend.principals is not None:
        findings.check(Topic.CLOCK, "clock", lambda: clock_check(backend.runner, time.time))
    if settings.backend is BackendType.EMBEDDED:
        folder = settings.warehouse
        findings.check(Topic.WAREHOUSE, str(folder), lambda: folder_check(Topic.WAREHOUSE, folder))
        findings.check(Topic.WAREHOUSE, "file names", lambda: file_names_check(backend.runner))
    deployment = _readable_deployment(findings, settings, backend)
    if backend.principals is None:
        _check_plan(findings, project, backend, deployment)
    else:
        _check_catalogs(findings, settings, project, backend, deployment)


def _opened_backend(
    findings: Findings, settings: Settings, spark: SparkSession | None, notify: Callable[[str], None]
) -> Backend | None:
    def opened() -> tuple[Backend, str]:
        backend = open_backend(settings, spark, notify=notify)
        backend.start()
        return backend, backend.principals.principal(()).name if backend.principals is not None else ""

    session = findings.attempt(Topic.LOGIN, settings.backend.value, opened)
    if session is None:
        findings.leave_out(settings, _TOPICS_OF_LOGIN, "no login")
        return None
    backend, findings.run_by = session
    host = f" on {backend.host}" if backend.host else ""
    login = f"{findings.run_by}{host}" if findings.run_by else "no login is needed"
    findings.checks.append(Check.ok(Topic.LOGIN, settings.backend.value, login))
    return backend


def _check_store(findings: Findings, settings: Settings) -> None:
    if settings.state_backend.cache is not None:
        cache = settings.state_backend.cache.path
        findings.check(Topic.STATE, str(cache), lambda: folder_check(Topic.STATE, cache))
    match settings.state_backend.place:
        case Path() as path:
            findings.check(Topic.STATE, str(path), lambda: folder_check(Topic.STATE, path))
        case S3State() as bucket:
            subject = f"s3://{bucket.bucket}/{bucket.prefix}"
            findings.check(Topic.STATE, subject, lambda: bucket_check(open_s3_folder(bucket)))
        case DatabricksState() as place:
            address = SecurableObject((place.catalog, place.schema, place.volume)).address
            principal = findings.run_by or "principal"
            grant = sql_grant(f"VOLUME {address}", ("READ VOLUME", "WRITE VOLUME"), principal)
            way_out = f"If the volume exists: {grant}"
            volume = volume_path(place)
            files = findings.attempt(Topic.STATE, volume, lambda: open_volume(settings, place))
            if files is not None:
                findings.check(Topic.STATE, volume, lambda: volume_check(files, volume), way_out)
        case other:
            assert_never(other)


def _readable_deployment(findings: Findings, settings: Settings, backend: Backend) -> Deployment | None:
    deployment = findings.attempt(Topic.STATE, "document", lambda: open_deployment(settings, backend))
    if deployment is None:
        return None
    is_readable = findings.check(Topic.STATE, "document", lambda: document_check(deployment))
    findings.check(Topic.LOCK, "lock", lambda: lock_check(deployment))
    return deployment if is_readable else None


def _check_catalogs(
    findings: Findings,
    settings: Settings,
    project: Project | None,
    backend: Backend,
    deployment: Deployment | None,
) -> None:
    place = settings.state_backend.place
    own = [table for table in (settings.drift_history, settings.run_history) if table is not None]
    if isinstance(place, DatabricksState):
        own += (QualifiedName(place.catalog, place.schema, name) for name in (HEADS, LOCKS))
    uses = catalog_uses(
        [table.qualified_name for table in project.tables] if project else (),
        _schemas_of(project) if project else (),
        own,
        creates_schemas=settings.policy.create_schemas,
    )
    readable: list[CatalogUse] = []
    observed = CatalogState(tables={})
    for use in uses:
        state = _read_catalog(findings, backend, use)
        if state is not None:
            readable.append(use)
            schema_states = {**observed.schema_states, **state.schema_states}
            observed = replace(observed.with_tables(state), schema_states=schema_states)
    planned = _check_plan(findings, project, backend, deployment)
    needed = [*basic_needs(readable, own, observed)]
    if planned is not None:
        needed += needs(planned.plan, planned.basis.observed)
        read = planned.basis.observed
        observed = replace(observed, functions=read.functions, views=read.views)
        findings.checks += unchecked_rights(planned.plan, observed, findings.run_by)
    principals = backend.principals
    if principals is not None:
        findings.checks += (
            findings.attempt(Topic.RIGHTS, "rights", lambda: list(right_checks(principals, needed, observed)))
            or ()
        )
    _check_lineage(findings, backend.lineage)


def _schemas_of(project: Project) -> list[SchemaName]:
    models: list[Schema | Function | View] = [
        *of_kind(Schema, project.models),
        *of_kind(Function, project.models),
        *of_kind(View, project.models),
    ]
    return [SchemaName(model.catalog_name, model.schema_name) for model in models]


def _check_lineage(findings: Findings, lineage: LineageReader) -> None:
    """Check whether plans can name recent readers, which is optional. The query reads today's events alone."""
    subject = "lineage in system.access"
    try:
        lineage.read((SCRATCH_NAME,), {SCRATCH_NAME: (SCRATCH_NAME,)}, since=utc_now(), limit=1)
    except StatementError as error:
        finding = f"unreadable, so plans do not name recent readers: {error.first_line}"
        grants = (
            sql_grant(securable, privileges, findings.run_by)
            for securable, privileges in (
                ("CATALOG system", ("USE CATALOG",)),
                ("SCHEMA system.access", ("USE SCHEMA", "SELECT")),
            )
        )
        way_out = f"If an administrator has enabled the schema: {'; '.join(grants)}"
        findings.checks.append(Check.unknown(Topic.RIGHTS, subject, finding, way_out))
    else:
        findings.checks.append(Check.ok(Topic.RIGHTS, subject, "readable"))


def _read_catalog(findings: Findings, backend: Backend, use: CatalogUse) -> CatalogState | None:
    """Check a catalog; return its readable part, or None."""
    subject = f"catalog {use.catalog}"
    grant = SecurableObject((use.catalog,)).grant(Right.USE_CATALOG, findings.run_by)
    schemas = (Schema(use.catalog, schema) for schema in use.schemas)
    models: list[Table | Schema] = [*map(bare_model, use.tables), *schemas]
    outcome = findings.attempt(
        Topic.CATALOGS,
        subject,
        lambda: readable_snapshot(backend.reader, models),
        f"If it exists: {grant}",
    )
    if outcome is None:
        return None
    observed, refusals = outcome
    checks = tuple(catalog_checks(use, observed, refusals))
    findings.checks += checks
    if observed.schema_states or all(check.status is DoctorStatus.OK for check in checks):
        views = f"{use.catalog}.information_schema"
        findings.check(Topic.VIEWS, views, lambda: view_check(backend.runner, use.catalog))
    return observed


def _check_plan(
    findings: Findings, project: Project | None, backend: Backend, deployment: Deployment | None
) -> PlannedRun | None:
    if project is None:
        return None
    environment = open_environment(project, backend, deployment or Deployment.unrecorded())
    planned = findings.attempt(
        Topic.PLAN, "sync", lambda: plan_unlocked(environment, project.synced, allow_cached=False)
    )
    if planned is not None:
        findings.checks += plan_checks(planned, is_recorded=deployment is not None)
    return planned
