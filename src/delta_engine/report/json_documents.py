"""JSON documents for machines, each with a versioned format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from delta_engine.actions import (
    Align,
    AlignTable,
    CarriedAction,
    Create,
    CreateTable,
    DropTable,
    Keep,
    SecurableChange,
    TableAction,
    TablePlan,
)
from delta_engine.actions.drift_policy import Severity
from delta_engine.actions.policy import Consent, NeededConsent
from delta_engine.aspects import KINDS
from delta_engine.deployment.definitions import define, keep
from delta_engine.deployment.document import DeploymentState
from delta_engine.drift.document_changes import ResourceChange
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.drifted_resources import UndoneDrift
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.drift.saved_documents import SavedDocument
from delta_engine.errors import RefusedError
from delta_engine.models import Schema, SchemaName, Table, resource_id, resource_key
from delta_engine.ownership.recorded import AnyRecord
from delta_engine.report.planned_actions import (
    other_changes,
    planned_action,
    planned_actions,
    planned_change,
    undone_drift_note,
)
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import plural

VERSION: Final = 1
"""The version of the documents that are not reports."""


def plan_document(planned: PlannedRun, *, environment: str, changed_since: object = None) -> str:
    """Return a plan as one JSON document, with what speaks against it; same plan, same bytes.

    Args:
        changed_since: what `--changed-since` chose; None without the option.
    """
    document = plan_content(planned, environment=environment)
    document |= {"changed_since": msgspec.to_builtins(changed_since)} if changed_since else {}
    statements = planned.compiled.sql_by_table()
    for table, action in zip(document["tables"], planned.plan.table_actions(), strict=True):
        table["statements"] = list(statements.get(action.table.key, ()))
    for kind in _LATER:
        for part in document.get(plural(kind), ()):
            part["statements"] = list(statements.get(f"{kind}.{part[kind]}".lower(), ()))
    of_schemas = list(statements.get("", ()))
    document |= {"schema_statements": of_schemas} if of_schemas else {}
    parts = [{"table": part.table, "key": part.key, "value": part.value} for part in planned.unmanaged_parts]
    document |= {"left_alone": parts} if parts else {}
    refused = list(map(_refusal, planned.refusals))
    document |= {"refusals": refused} if refused else {}
    names = list(map(str, planned.adopted))
    document |= {"adopted": names} if names else {}
    needed_consents = [_needed(change) for change in planned.needed_consents]
    document |= {"needed_consents": needed_consents} if needed_consents else {}
    warnings = list(map(redacted, planned.warnings))
    document |= {"warnings": warnings} if warnings else {}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _refusal(refusal: RefusedError) -> dict[str, str]:
    place = str(refusal.location) if refusal.location else None
    fields = {
        "table": refusal.table,
        "securable": refusal.securable,
        "column": refusal.column,
        "location": place,
    }
    texts = {"reason": redacted(refusal.reason), "way_out": redacted(refusal.way_out)}
    return {key: value for key, value in (fields | texts).items() if value}


def _needed(change: NeededConsent | Consent) -> dict[str, str]:
    fields = {"kind": change.kind.value, "table": str(change.securable), "part": change.part}
    return {key: value for key, value in fields.items() if value is not None}


def _consent(consent: Consent) -> dict[str, str]:
    reason, place = redacted(consent.reason), str(consent.location)
    return {**_needed(consent), "reason": reason, "expires": str(consent.expires), "location": place}


def plan_content(planned: PlannedRun, *, environment: str) -> dict[str, Any]:
    """Return a plan as JSON data, without its statements and the unmanaged parts."""
    plan, undone = planned.plan, planned.undone
    allowed = [_consent(consent) for consent in planned.consents]

    def noted(resource: str, field: str) -> dict[str, Any]:
        note = undone_drift_note(undone.get((resource, field)))
        return {"undoes_drift": msgspec.to_builtins(note)} if note else {}

    return {
        "format": "delta-engine/plan",
        "version": VERSION,
        "environment": environment,
        "has_changes": bool(plan),
        "create_schemas": [
            {
                "schema": str(create.name),
                **_risks(create),
                "comment": create.desired.comment or "",
                **noted(resource_key(create.name), "schema"),
            }
            for create in plan.create_schemas
        ],
        **(
            {"align_schemas": [_schema(align, undone) for align in plan.align_schemas]}
            if plan.align_schemas
            else {}
        ),
        **({"kept_tables": [str(table) for table in plan.kept_tables]} if plan.kept_tables else {}),
        **_by_kind("kept_", ((name.kind, resource_id(name)) for name in plan.kept_others)),
        **({"consents": allowed} if allowed else {}),
        "tables": [
            {
                **_table(action, undone),
                **(noted(resource_key(action.name), "table") if isinstance(action, CreateTable) else {}),
            }
            for action in plan.table_actions()
        ],
        **_by_kind(
            "",
            (
                (change.name.kind, _other(change, undone))
                for change in other_changes(plan)
                if change.name.kind in _LATER
            ),
        ),
    }


_LATER: Final = tuple(kind.word for kind in KINDS if kind.model not in (Schema, Table))
"""The kinds with a list of their own in a plan, which is left out if it is empty."""


def _by_kind(prefix: str, parts: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    lists: dict[str, list[Any]] = {}
    for kind, part in parts:
        lists.setdefault(f"{prefix}{plural(kind)}", []).append(part)
    return lists


def report_json(report: object, *, indent: int | None = 2) -> str:
    """Return a report as one JSON document. Lone surrogates are escaped, so that any file can hold the text."""
    text = json.dumps(msgspec.to_builtins(report), indent=indent, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """The result of a task that changed nothing: tables by status, and the pending change or drift by table name."""

    task: str
    environment: str
    counts: Mapping[str, int]
    tables: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> str:
        """Return the summary as one JSON document."""
        return _document("delta-engine/job-summary", **msgspec.to_builtins(self))


def drift_summary(report: DriftReport) -> JobSummary:
    """Return the counts of a drift report, and the worst severity of each securable."""
    return JobSummary(
        task="drift_report",
        environment=report.environment,
        counts={
            "drifted": len(report.drifted),
            "deleted": len(report.deleted),
            "unmanaged": len(report.unmanaged),
            "schemas": len(report.schemas),
            **{severity.value: report.count(severity) for severity in reversed(Severity)},
            "ignored": len(report.ignored),
            "pending": len(report.pending),
        },
        tables={resource.resource: resource.severity.value for resource in report.resources},
    )


def pending_summary(task: str, environment: str, plan: TablePlan) -> JobSummary:
    """Return the pending changes of a plan."""
    actions = list(plan.table_actions())
    others = Counter(name.kind for name in plan.changed_names() if name.kind != "table")
    return JobSummary(
        task=task,
        environment=environment,
        counts={
            "pending": len(actions) + others.total(),
            "create": len(plan.create_tables),
            "change": len(plan.align_tables),
            "drop": len(plan.drop_tables),
            "schemas": others["schema"],
            **{plural(kind): others[kind] for kind in _LATER if others[kind]},
        },
        tables={str(action.table): action.verb for action in actions},
    )


def resources_document(state: DeploymentState, records: Mapping[str, AnyRecord]) -> str:
    """Return a document of resources of the deployment state."""
    return _document(
        "delta-engine/state-resources",
        environment=state.environment.name,
        serial=state.serial,
        resources={
            key: {
                "type": record.kind,
                "id": resource_id(record.name),
                "status": record.status.value,
                "deployed_at": record.deployed_at and record.deployed_at.isoformat(),
                "deployed_by": record.deployed_by,
                **_adoption(record),
            }
            for key, record in records.items()
        },
    )


def _adoption(record: AnyRecord) -> dict[str, str]:
    return {"adopted_at": record.adopted_at.isoformat()} if record.adopted_at else {}


def versions_document(documents: Sequence[SavedDocument]) -> str:
    """Return a document of the current deployment state and its kept versions, newest first; sizes in bytes."""
    return _document(
        "delta-engine/state-versions",
        current=next((_saved(document) for document in documents if document.version is None), None),
        versions=[
            {
                "version_id": document.version.version_id,
                "saved_at": document.version.saved_at.isoformat(),
                "size": document.version.size,
                **_saved(document),
            }
            for document in documents
            if document.version is not None
        ],
    )


def history_document(documents: Sequence[SavedDocument]) -> str:
    """Return a document of the latest runs, newest first; `run` is the id that `undo` takes."""
    return _document(
        "delta-engine/history",
        runs=[
            {
                "run": document.state.write_id,
                **_saved(document),
            }
            for document in documents
            if document.state is not None
        ],
    )


def _saved(document: SavedDocument) -> dict[str, Any]:
    """Return what is known of a saved document, null for what is not."""
    state = document.state
    return {
        "saved_by": state.updated_by if state else None,
        "serial": state.serial if state else None,
        "updated_at": state.updated_at.isoformat() if state else None,
        "lineage": state.lineage if state else None,
        "deployed_by": document.deployed_by or None,
        "changes": document.what or None,
    }


def diff_document(earlier: DeploymentState, later: DeploymentState, changes: Sequence[ResourceChange]) -> str:
    """Return a document of the changes between two versions of the deployment state."""
    return _document(
        "delta-engine/state-diff",
        earlier=earlier.serial,
        later=later.serial,
        resources=[
            {
                "key": change.key,
                "sign": change.sign.value,
                "changes": msgspec.to_builtins(list(map(planned_change, change.changes))),
            }
            for change in changes
        ],
    )


def _document(name: str, **content: object) -> str:
    return json.dumps({"format": name, "version": VERSION, **content}, indent=2, ensure_ascii=False)


def _schema(align: Align[SchemaName], undone: UndoneDrift) -> dict[str, Any]:
    actions = [
        {
            "action": action.action,
            "hazards": list(action.hazards),
            "undo": action.undo,
            "change": msgspec.to_builtins(change),
        }
        for action in planned_actions(align.actions, resource_key(align.name), undone)
        for change in action.changes
    ]
    return {"schema": str(align.name), "actions": actions}


def _other(change: SecurableChange, undone: UndoneDrift) -> dict[str, Any]:
    """Return what becomes of a function or policy."""
    key, kind = resource_key(change.name), change.name.kind
    whole = {kind: resource_id(change.name)}
    if isinstance(change, Align):
        actions = [*planned_actions(change.actions, key, undone)]
        return {**whole, "change": "align", "actions": msgspec.to_builtins(actions)}
    assert not isinstance(change, Keep)
    note = undone_drift_note(undone.get((key, kind)))
    undoes = {"undoes_drift": msgspec.to_builtins(note)} if note else {}
    desired = (
        {"desired": msgspec.to_builtins(keep(change.desired).definition)}
        if isinstance(change, Create)
        else {}
    )
    return {**whole, "change": change.verb, **_risks(change), **desired, **undoes}


def _table(action: TableAction, undone: UndoneDrift) -> dict[str, Any]:
    table = str(action.table)
    match action:
        case CreateTable(desired):
            definition = msgspec.to_builtins(define(desired))
            taken = {} if action.adoption is None else {"takes_files_at": desired.location}
            return {"table": table, "change": "create", **taken, **_risks(action), "desired": definition}
        case AlignTable(_, actions):
            return {
                "table": table,
                "change": "align",
                **({"cost": msgspec.to_builtins(action.cost)} if action.cost else {}),
                "actions": msgspec.to_builtins(
                    [*planned_actions(actions, resource_key(action.name), undone)]
                ),
            }
        case DropTable(_, rows):
            return {"table": table, "change": "drop", **_risks(action), "rows": rows}


def _risks(action: CarriedAction) -> dict[str, Any]:
    whole = planned_action(action)
    return {"hazards": list(whole.hazards), "undo": whole.undo}
