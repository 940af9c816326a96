"""What is pending, or drifted, as counts and as one JSON document: for job tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from delta_engine.actions import AlignTable, CreateTable, DropTable, TableAction, TablePlan
from delta_engine.actions.drift_policy import Severity
from delta_engine.drift.drift_report import DriftReport

FORMAT = "delta-engine/job-summary"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """The result of a task that changed nothing.

    Args:
        task: `sync` or `drift_report`.
        environment: the environment it ran for.
        counts: tables by what became of them.
        tables: what is pending or drifted, by qualified name.
    """

    task: str
    environment: str
    counts: Mapping[str, int]
    tables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("counts", "tables"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def as_json(self) -> str:
        """Return the summary as one JSON document with a versioned format."""
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "task": self.task,
                "environment": self.environment,
                "counts": dict(self.counts),
                "tables": dict(self.tables),
            },
            indent=2,
            ensure_ascii=False,
        )


def drift_summary(report: DriftReport) -> JobSummary:
    """Return what a drift report counts, and the worst severity of each table and schema."""
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
    """Return what a plan would do: tables and schemas that it would change, none of which has been."""
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
