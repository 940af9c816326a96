"""JSON documents for machines, each with a versioned format, and the reports' published schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Final

import msgspec

from delta_engine.actions import AlignTable, CreateTable, DropTable, TableAction, TablePlan
from delta_engine.actions.drift_policy import Severity
from delta_engine.config.json_schema import described_schema
from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.deployment.ports import StateVersion
from delta_engine.drift.drift_report import DriftReport
from delta_engine.drift.status import ResourceChange
from delta_engine.report.plan_document import change_document
from delta_engine.report.run_report import RunReport

VERSION: Final = 1
"""The version of the documents that are not reports."""

MOST_BYTES_OF_A_NOTEBOOK: Final = 4_000_000
"""The Jobs API returns the first 5 MB of a notebook's exit value (docs.databricks.com: "NotebookOutput")."""

_LONGEST_MESSAGE: Final = 500


def report_json(report: object, *, indent: int | None = 2) -> str:
    """Return a report as one JSON document. Lone surrogates are escaped, so that any file can hold the text."""
    text = json.dumps(msgspec.to_builtins(report), indent=indent, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def report_schema(report: type) -> str:
    """Return a report's schema as indented JSON, the content of `docs/schemas/<report>-v<version>.json`."""
    defaults = {one.name: one.default for one in fields(report)}
    name, version = str(defaults["format"]).removeprefix("delta-engine/"), defaults["version"]
    uri, title = f"urn:delta-engine:{name}:v{version}", f"Delta Engine {name.replace('-', ' ')}"
    return described_schema(report, uri=uri, title=title)


def short_run_json(report: RunReport, most_bytes: int = MOST_BYTES_OF_A_NOTEBOOK) -> str:
    """Return a run report on one line, shortened to fit; its `left_out` names the omitted parts."""
    text = ""
    for candidate in _shorter(report):
        text = report_json(candidate, indent=None)
        if len(text.encode("utf-8")) <= most_bytes:
            break
    return text


def _shorter(report: RunReport) -> Iterator[RunReport]:
    """Yield a report and then ever shorter ones, in which failures stay longest."""
    yield report
    tables = tuple(
        replace(table, statements=(), actions=()) if table.error is None else table for table in report.tables
    )
    yield replace(report, tables=tables, left_out="actions and statements of tables that are done")
    tables = tuple(
        replace(
            table,
            statements=(),
            actions=(),
            error=replace(table.error, message=table.error.message[:_LONGEST_MESSAGE], sql=None),
        )
        for table in tables
        if table.error is not None
    )
    yield replace(
        report, tables=tables, left_out="tables that are done; actions, statements and the ends of messages"
    )
    yield replace(report, tables=(), warnings=(), left_out="tables and warnings")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """The result of a task that changed nothing: tables by status, and the pending change or drift by table name."""

    task: str
    environment: str
    counts: Mapping[str, int]
    tables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", MappingProxyType(dict(self.counts)))
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))

    def as_json(self) -> str:
        """Return the summary as one JSON document."""
        return _document(
            "delta-engine/job-summary",
            task=self.task,
            environment=self.environment,
            counts=dict(self.counts),
            tables=dict(self.tables),
        )


def drift_summary(report: DriftReport) -> JobSummary:
    """Return the counts of a drift report, and the worst severity of each table and schema."""
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
        tables={
            one.resource: one.severity.value
            for one in (*report.schemas, *report.drifted, *report.deleted, *report.unmanaged)
        },
    )


def pending_summary(task: str, environment: str, plan: TablePlan) -> JobSummary:
    """Return the pending changes of a plan."""
    actions = list(plan.table_actions())
    return JobSummary(
        task=task,
        environment=environment,
        counts={
            "pending": len(actions) + len(plan.changed_schemas()),
            "create": len(plan.create_tables),
            "change": len(plan.align_tables),
            "drop": len(plan.drop_tables),
            "schemas": len(plan.changed_schemas()),
        },
        tables={str(action.table): _verb(action) for action in actions},
    )


def _verb(action: TableAction) -> str:
    match action:
        case CreateTable():
            return "create"
        case AlignTable():
            return "change"
        case DropTable():
            return "drop"


def resources_document(state: DeploymentState, resources: Mapping[str, Resource]) -> str:
    """Return a document of resources of the deployment state."""
    return _document(
        "delta-engine/state-resources",
        environment=state.environment.name,
        serial=state.serial,
        resources={
            key: {
                "type": resource.type.value,
                "id": resource.id,
                "status": resource.status.value,
                "deployed_at": resource.deployed_at and resource.deployed_at.isoformat(),
                "deployed_by": resource.deployed_by,
            }
            for key, resource in resources.items()
        },
    )


def versions_document(versions: Sequence[StateVersion]) -> str:
    """Return a document of the kept versions of the deployment state, newest first; sizes in bytes."""
    return _document(
        "delta-engine/state-versions",
        versions=[
            {"version_id": one.version_id, "saved_at": one.saved_at.isoformat(), "size": one.size}
            for one in versions
        ],
    )


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
                "changes": [change_document(part) for part in change.changes],
            }
            for change in changes
        ],
    )


def _document(name: str, **content: object) -> str:
    return json.dumps({"format": name, "version": VERSION, **content}, indent=2, ensure_ascii=False)
