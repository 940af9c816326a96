"""Writes the plan of a project into a file, and takes a file up again if nothing has moved since."""

from __future__ import annotations

import os
from pathlib import Path

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance
from delta_engine.compile.compiled_plan import CompiledPlan
from delta_engine.compile.compiler import compile_plan
from delta_engine.deployment.document import AppliedPlan, DeploymentState
from delta_engine.deployment.local_files import write_atomically
from delta_engine.deployment.stamps import utc_now
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.orchestrator import Orchestrator, Preview
from delta_engine.orchestrate.project import Project
from delta_engine.orchestrate.sync_run import SyncRun
from delta_engine.plan_files.codec import encode_plan_file, is_replaceable, plan_again, sealed
from delta_engine.plan_files.document import (
    SCHEMA_URI,
    VERSION,
    Fingerprints,
    Options,
    Origin,
    PlanFile,
    PolicyRecord,
    planned_statements,
)
from delta_engine.plan_files.errors import PlanFileError, StalePlanError
from delta_engine.plan_files.fingerprints import model_checksums, schema_checksums
from delta_engine.plan_files.staleness import ReviewedPlan, moves
from delta_engine.report.plan_document import plan_content

_ANOTHER_FILE = "Name another file with --out."


def make_plan_file(
    project: Project, backend: Backend, engine: Orchestrator, preview: Preview, options: Options
) -> PlanFile:
    """Return a plan that may be applied, as a file has it.

    Args:
        project: the project, loaded with the same options.
        backend: its backend.
        engine: its pipeline.
        preview: the plan, made without a cached copy of the deployment state.
        options: what the command was told.
    """
    facts = engine.run_facts()
    return _plan_file(
        project,
        preview.plan,
        compile_plan(preview.plan, backend.addressing, backend.capabilities),
        engine.fingerprints(preview),
        options=options,
        engine_version=facts.engine_version,
        origin=Origin(made_at=utc_now(), made_by=facts.who, lineage=facts.lineage),
    )


def write_plan_file(file: PlanFile, path: Path) -> None:
    """Write a plan file, whole or not at all.

    Raises:
        PlanFileError: it cannot be written there, or another file would be lost.
    """
    target = Path(os.path.realpath(path))  # a link stays one
    try:
        if not is_replaceable(target):
            raise PlanFileError(
                "there is a file already, and it is no plan file", where=str(path), way_out=_ANOTHER_FILE
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, encode_plan_file(file))
    except OSError as error:
        raise PlanFileError(
            f"the plan file cannot be written: {error.strerror}",
            where=str(path),
            way_out=_ANOTHER_FILE,
        ) from None


def earlier_apply(file: PlanFile, state: DeploymentState) -> AppliedPlan | None:
    """Return what the deployment state remembers of a plan file; None if it was never applied."""
    return next((known for known in state.applied_plans if known.checksum == file.checksum), None)


def reviewed_plan(
    file: PlanFile, path: Path, project: Project, backend: Backend, run: SyncRun, plan: TablePlan
) -> ReviewedPlan:
    """Hold a plan file against the plan that would be made now.

    Args:
        file: the plan file.
        path: where it is.
        project: the project, loaded with the file's options.
        backend: its backend.
        run: the run that holds the lock.
        plan: what the run would do.

    Raises:
        StalePlanError: something has moved since the file was written.
        CatalogReadError, RefusalGroup, StatementError: a table of the file that no model declares cannot be read.
    """
    current = _plan_file(
        project,
        plan,
        compile_plan(plan, backend.addressing, backend.capabilities),
        run.fingerprints(plan, file.fingerprints),
        options=file.options,
        engine_version=file.engine_version,
        origin=file.origin,
    )
    moved = moves(file, current)
    if moved:
        raise StalePlanError(
            moved,
            where=str(path),
            way_out=plan_again(file.environment, str(path), file.options),
            note=_unfinished(earlier_apply(file, run.loaded)),
        )
    return ReviewedPlan(checksum=file.checksum, statements=file.statements)


def _plan_file(
    project: Project,
    plan: TablePlan,
    compiled: CompiledPlan,
    fingerprints: Fingerprints,
    *,
    options: Options,
    engine_version: str,
    origin: Origin,
) -> PlanFile:
    environment = project.settings.environment
    return sealed(
        PlanFile(
            schema_uri=SCHEMA_URI,
            version=VERSION,
            checksum="",
            engine_version=engine_version,
            environment=environment,
            origin=origin,
            options=options,
            is_partial=project.is_partial,
            policy=_policy(project),
            models=model_checksums(project.models),
            declared_schemas=schema_checksums(project.schemas),
            fingerprints=fingerprints,
            plan=plan_content(plan, environment=environment),
            statements=planned_statements(compiled),
        )
    )


def _policy(project: Project) -> PolicyRecord:
    policy = project.settings.policy
    return PolicyRecord(
        allow=tuple(map(_allowance, policy.allow)),
        create_schemas=policy.create_schemas,
        tags=policy.tags.value,
        grants=policy.grants.value,
        column_order=policy.column_order.value,
        removed_tables=policy.removed_tables.value,
        rules=policy.rules,
        drift=project.settings.drift_policy.handling.value,
    )


def _allowance(allowance: Allowance) -> str:
    return allowance.kind.value if allowance.tables == "*" else f"{allowance.kind.value}:{allowance.tables}"


def _unfinished(applied: AppliedPlan | None) -> str:
    if applied is None:
        return ""
    return (
        f"an apply of it by {applied.applied_by} ({applied.applied_at:%Y-%m-%d %H:%M:%S} UTC) did not get through, "
        "and what it did is kept"
    )
