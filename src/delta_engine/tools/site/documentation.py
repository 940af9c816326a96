"""Collects what the site of the declared models shows: the models, and what the deployment state says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from delta_engine.deployment.definitions import config_checksum
from delta_engine.deployment.document import DeploymentState
from delta_engine.drift.drift_report import DriftReport
from delta_engine.errors import DeltaEngineError
from delta_engine.models import AbacPolicy, Function, Schema, Securable, Table, View, of_kind, resource_key
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.deployments import open_deployment, state_needs_backend
from delta_engine.orchestrate.project import Project
from delta_engine.ownership.recorded import Status
from delta_engine.tools.site.documented import (
    Applied,
    Documentation,
    DocumentedStatus,
    SourceLinks,
)

_STATUSES: Final[Mapping[Status, DocumentedStatus]] = {
    Status.HEALTHY: DocumentedStatus.HEALTHY,
    Status.DEGRADED: DocumentedStatus.DEGRADED,
    Status.FAILED: DocumentedStatus.FAILED,
    Status.UNKNOWN: DocumentedStatus.UNKNOWN,
    Status.MISSING: DocumentedStatus.MISSING,
    Status.DRIFTED: DocumentedStatus.DRIFTED,
    Status.UNMANAGED: DocumentedStatus.NOT_APPLIED,
}

NOT_WANTED: Final = "The site was made without the deployment state."
NONE_YET: Final = "Nothing was applied to this environment yet."
UNREADABLE: Final = "The deployment state could not be read."


def document_project(
    project: Project, state: DeploymentState | None, links: SourceLinks, *, why_not_applied: str
) -> Documentation:
    """Return what the site shows of a project.

    Args:
        state: None to show none.
        why_not_applied: why there is none.
    """
    return Documentation(
        environment=project.settings.environment,
        tables=tuple(sorted(project.tables, key=_sort_key)),
        views=tuple(sorted(of_kind(View, project.models), key=_sort_key)),
        functions=tuple(sorted(of_kind(Function, project.models), key=_sort_key)),
        policies=tuple(sorted(of_kind(AbacPolicy, project.models), key=lambda policy: policy.key)),
        schemas={schema.key: schema for schema in of_kind(Schema, project.models)},
        deployment=state,
        why_not_applied=why_not_applied,
        applied={resource_key(model.qualified_name): applied(model, state) for model in project.selectable}
        if state
        else {},
        links=links,
    )


def _sort_key(model: Table | View | Function) -> tuple[str, str, str]:
    return model.qualified_name.parts


def read_deployment_state(
    project: Project, open_backend: Callable[[], Backend], notify: Callable[[str], None]
) -> tuple[DeploymentState | None, str]:
    """Return the deployment state; if there is none, or it cannot be read, None and a sentence that says so.

    Args:
        open_backend: opens the backend, for a deployment state that is reached through its SQL.
    """
    try:
        backend = open_backend() if state_needs_backend(project.settings) else None
        state = open_deployment(project.settings, backend).peek_replayed(allow_cached=True)
    except DeltaEngineError as error:
        notify(f"the site shows no status: the deployment state cannot be read: {error}")
        return None, UNREADABLE
    return (None, NONE_YET) if state is None else (state, "")


def with_found_drift(documentation: Documentation, report: DriftReport) -> Documentation:
    """Return a documentation with the drift of a report, instead of the recorded one."""
    drifted = {resource.resource: resource for resource in report.drifted}
    deleted = {resource.resource for resource in report.deleted}
    applied = {}
    for model in documentation.models:
        key = resource_key(model.qualified_name)
        before = documentation.applied.get(key, Applied(status=DocumentedStatus.NOT_APPLIED))
        status = before.status
        if key in deleted:
            status = DocumentedStatus.MISSING
        elif key in drifted:
            status = DocumentedStatus.DRIFTED
        elif status in (DocumentedStatus.DRIFTED, DocumentedStatus.MISSING):
            status = DocumentedStatus.HEALTHY
        findings = drifted[key].findings if key in drifted else ()
        applied[key] = replace(before, status=status, drift=findings)
    deployment = documentation.deployment
    return replace(
        documentation,
        applied=applied,
        deployment=deployment and deployment.compared(deployment.resources, at=report.checked_at),
    )


def applied(model: Securable, state: DeploymentState) -> Applied:
    """Return what the deployment state says of a model, with the drift that it recorded last."""
    record = state.resources.get(resource_key(model.qualified_name))
    if record is None or record.applied is None:
        problem = record.reason if record is not None else None
        return Applied(status=DocumentedStatus.NOT_APPLIED, problem=problem or "")
    return Applied(
        status=_STATUSES[record.status],
        at=record.deployed_at,
        by=record.deployed_by,
        run=record.run,
        is_behind=record.config_checksum != config_checksum(model),
        drift=record.differences,
        problem=record.reason or "",
    )
