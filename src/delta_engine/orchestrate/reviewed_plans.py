"""Writes plan files, and checks that nothing has changed since a file was written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import Allowance
from delta_engine.aspects.delta_properties import is_catalog_managed
from delta_engine.config.whole_files import write_atomically
from delta_engine.deployment.document import AppliedPlan, DeploymentState, records_of
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.models import by_resource, resource_key
from delta_engine.orchestrate.runs import Environment, OpenRun
from delta_engine.plan_files.codec import encode_plan_file, is_replaceable, plan_again, sealed
from delta_engine.plan_files.document import (
    SCHEMA_URI,
    VERSION,
    Options,
    Origin,
    PlanFile,
    PlanFileError,
    PolicyRecord,
    TouchedResource,
    planned_statements,
)
from delta_engine.plan_files.staleness import StalePlanError, moves
from delta_engine.plan_files.touched import touched_keys, touched_resource
from delta_engine.report.json_documents import plan_content
from delta_engine.state.states import SecurableState, TableState
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
        like: an earlier file to compare with: the result has its origin, and covers what it touches too.
    """
    name, loaded = project.settings.environment, planned.basis.loaded
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
            policy=_policy(project),
            state_id=loaded.state_id if loaded and loaded.serial else None,  # a first run's is not saved yet
            touched=_touched(environment, planned, like.touched if like else ()),
            plan=plan_content(planned, environment=name),
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
    return next(
        (applied_plan for applied_plan in state.applied_plans if applied_plan.checksum == file.checksum), None
    )


def require_fresh(
    file: PlanFile, path: Path | None, project: Project, run: OpenRun, planned: PlannedRun
) -> None:
    """Compare a plan file with the plan of a locked run.

    Args:
        path: of the file, for messages; None for a plan that was never written.

    Raises:
        StalePlanError: something changed since the file was written.
    """
    current = make_plan_file(project, run.environment, planned, file.options, file)
    moved = moves(file, current)
    if not moved:
        return
    note, applied = "", earlier_apply(file, run.loaded)
    if applied is not None:
        note = (
            f"an apply of it by {applied.applied_by} ({shown_moment(applied.applied_at)}) did not get "
            "through, and what it did is kept"
        )
    again = (
        plan_again(file.environment, str(path), file.options)
        if path
        else "Plan again, and review the new plan."
    )
    raise StalePlanError(moved, where=str(path or ""), way_out=again, note=note)


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
        removed_functions=policy.removed_functions.value,
        removed_policies=policy.removed_policies.value,
        removed_views=policy.removed_views.value,
    )


def _allowance(allowance: Allowance) -> str:
    return allowance.kind.value if allowance.tables == "*" else f"{allowance.kind.value}:{allowance.tables}"


def _touched(
    environment: Environment, planned: PlannedRun, further: Iterable[str]
) -> dict[str, TouchedResource]:
    """Return what a plan touches, and `further` resources, by key; runs statements for the tables that it changes."""
    basis, observed = planned.basis, planned.snapshot
    keys = touched_keys(planned.plan, basis.tables, observed) | {*further}
    records = records_of(basis.loaded)
    models = by_resource(planned.models)
    states: dict[str, SecurableState] = {
        f"{kind}.{key}": state for kind, of_kind in observed.by_kind.items() for key, state in of_kind.items()
    }
    ids = _table_ids(environment, planned.plan, {key: states[key] for key in sorted(keys & states.keys())})
    return {
        key: touched_resource(states.get(key), models.get(key), records.get(key), ids.get(key))
        for key in sorted(keys)
    }


def _table_ids(
    environment: Environment, plan: TablePlan, states: Mapping[str, SecurableState]
) -> Mapping[str, str]:
    """Return Delta's ids of existing tables, by resource key: of all that show it, and of those that a plan changes."""
    tables = {
        key: state
        for key, state in states.items()
        if isinstance(state, TableState) and state.exists and not _is_told_by_its_age(state)
    }
    ids = {key: state.audit.table_id for key, state in tables.items()}
    changed = {resource_key(action.table): action.table for action in plan.table_actions()}
    names = {
        key: tables[key].former_name or changed[key] for key in tables if key in changed and not ids[key]
    }
    if environment.versions is not None and names:
        asked = {name.key for name in names.values()}
        versions = environment.versions.read_versions(tuple(names.values()), with_id=asked)
        ids |= {key: versions[name.key].table_id for key, name in names.items() if name.key in versions}
    return {key: table_id for key, table_id in ids.items() if table_id is not None}


def _is_told_by_its_age(table: TableState) -> bool:
    """Whether the creation time tells another table of the name, and Delta's id does not: see `drift.replacements`."""
    return is_catalog_managed(table.table_properties) and table.audit.created_at is not None
