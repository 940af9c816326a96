"""Writes plan files, and checks that nothing has changed since a file was written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from delta_engine.actions.policy import Allowance
from delta_engine.aspects.delta_properties import is_catalog_managed
from delta_engine.deployment.document import AppliedPlan, DeploymentState
from delta_engine.deployment.local_files import write_atomically
from delta_engine.deployment.recorded_models import with_recorded_grants
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.runs import Environment, OpenRun, PlannedRun
from delta_engine.plan_files.codec import encode_plan_file, is_replaceable, plan_again, sealed
from delta_engine.plan_files.document import (
    SCHEMA_URI,
    VERSION,
    Fingerprints,
    Options,
    Origin,
    PlanFile,
    PlanFileError,
    PolicyRecord,
    planned_statements,
)
from delta_engine.plan_files.fingerprints import (
    deployment_fingerprint,
    fingerprints,
    model_checksums,
    schema_checksums,
)
from delta_engine.plan_files.staleness import ReviewedPlan, StalePlanError, moves
from delta_engine.plan_files.touched import touched_resources
from delta_engine.report.json_documents import plan_content
from delta_engine.state.catalog_reader import bare_model, snapshot_by
from delta_engine.state.states import TableState
from delta_engine.telemetry.context import utc_now
from delta_engine.telemetry.visible import shown_moment

if TYPE_CHECKING:
    from delta_engine.orchestrate.project import Project

_ANOTHER_FILE = "Name another file with --out."


def make_plan_file(
    project: Project,
    environment: Environment,
    planned: PlannedRun,
    options: Options,
    like: PlanFile | None = None,
) -> PlanFile:
    """Return the file of a plan that was made without a cached copy of the deployment state.

    Args:
        like: an earlier file to compare with: the result has its origin, and covers its tables too.
    """
    name = project.settings.environment
    if like is None:
        facts = environment.deployment.facts()
        engine_version = facts.engine_version
        origin = Origin(made_at=utc_now(), made_by=facts.who, lineage=facts.lineage)
    else:
        engine_version, origin = like.engine_version, like.origin
    return sealed(
        PlanFile(
            schema_uri=SCHEMA_URI,
            version=VERSION,
            checksum="",
            engine_version=engine_version,
            environment=name,
            origin=origin,
            options=options,
            is_partial=project.is_partial,
            policy=_policy(project),
            models=model_checksums(planned.models if options.undoes else project.models),
            declared_schemas=schema_checksums(planned.schemas if options.undoes else project.synced_schemas),
            fingerprints=_fingerprints(environment, planned, like.fingerprints if like else None),
            plan=plan_content(
                planned.plan, environment=name, undone=planned.undone, consents=planned.consents
            ),
            statements=planned_statements(planned.compiled),
        )
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
    file: PlanFile, path: Path | None, project: Project, run: OpenRun, planned: PlannedRun
) -> ReviewedPlan:
    """Compare a plan file with the plan of a locked run.

    Args:
        path: of the file, for messages; None for a plan that was never written.

    Raises:
        StalePlanError: something changed since the file was written.
    """
    current = make_plan_file(project, run.environment, planned, file.options, file)
    moved = moves(file, current)
    if not moved:
        return ReviewedPlan(checksum=file.checksum, statements=file.statements)
    note, applied = "", earlier_apply(file, run.loaded)
    if applied is not None:
        note = (
            f"an apply of it by {applied.applied_by} ({shown_moment(applied.applied_at)}) did not get "
            "through, and what it did is kept"
        )
    if path is None:
        raise StalePlanError(moved, where="", way_out="Plan again, and review the new plan.", note=note)
    way_out = plan_again(file.environment, str(path), file.options)
    raise StalePlanError(moved, where=str(path), way_out=way_out, note=note)


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
        max_rewrite_bytes=policy.max_rewrite_bytes,
        drift=project.settings.drift_policy.handling.value,
    )


def _allowance(allowance: Allowance) -> str:
    return allowance.kind.value if allowance.tables == "*" else f"{allowance.kind.value}:{allowance.tables}"


def _fingerprints(environment: Environment, planned: PlannedRun, like: Fingerprints | None) -> Fingerprints:
    """Fingerprint what a plan was made from; run statements for the tables that it changes or that `like` touches."""
    basis, seen, plan = planned.basis, planned.seen, planned.plan
    touched = like.deployment_state.records if like else touched_resources(plan, basis.models, seen)
    recorded = deployment_fingerprint(basis.loaded, touched)
    changed = {action.table.key for action in plan.table_actions()}
    if like is not None:
        changed = {key for key, one in like.tables.items() if one.table_id is not None}
        unread = {*like.tables} & recorded.touched - {*seen.tables}
        models = [bare_model(QualifiedName.of_key(key)) for key in sorted(unread)]
        if models:
            seen = seen.with_tables(
                snapshot_by(environment.reader, with_recorded_grants(models, basis.loaded))
            )
    keys = {model.key for model in basis.models} | recorded.touched
    tables = {key: seen.tables[key] for key in keys & seen.tables.keys()}
    asked = (
        key for key in changed & tables.keys() if tables[key].exists and not _is_told_by_its_age(tables[key])
    )
    ids = _table_ids(environment, {key: tables[key] for key in asked})
    return fingerprints(tables, basis.observed, recorded, ids)


def _is_told_by_its_age(table: TableState) -> bool:
    """Whether the creation time tells another table of the name, and Delta's id does not: see `drift.replacements`."""
    return is_catalog_managed(table.table_properties) and table.audit.created_at is not None


def _table_ids(environment: Environment, tables: Mapping[str, TableState]) -> Mapping[str, str]:
    """Return Delta's ids of existing tables, as far as they are known."""
    if environment.versions is None or not tables:
        return {}
    names = {key: state.former_name or QualifiedName.of_key(key) for key, state in tables.items()}
    found = environment.versions.read_versions(
        tuple(names.values()), with_id={name.key for name in names.values()}
    )
    versions = {key: found[name.key] for key, name in names.items() if name.key in found}
    return {key: one.table_id for key, one in versions.items() if one.table_id is not None}
