"""Drift reports to render: one with everything in it, one on schemas, one without findings, and earlier runs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.drift.drift_report import (
    DriftReport,
    IgnoredFinding,
    PastRun,
    PendingChange,
    PendingResource,
    PolicyNote,
    Recommendation,
    ResourceDrift,
)
from delta_engine.drift.drifted_resources import Attribution, Finding, UnmanagedPart

CHECKED_AT = datetime(2025, 1, 15, 6, 30, tzinfo=timezone.utc)


def schema_report() -> DriftReport:
    """Return a report on schemas: one that was changed, one that is gone, one that is pending."""
    findings = (
        Finding(
            kind=DriftKind.SCHEMA_GRANT,
            field="grant SELECT to analysts",
            expected="granted",
            actual=None,
            severity=Severity.HIGH,
            last_written=Attribution(who="alice@example.com", at=CHECKED_AT),
        ),
        Finding(
            kind=DriftKind.SCHEMA_COMMENT,
            field="schema comment",
            expected="'Clean'",
            actual="'Dirty'",
            severity=Severity.LOW,
        ),
    )
    gone = Finding(
        kind=DriftKind.SCHEMA_DELETED,
        field="schema",
        expected="applied 2025-01-14 06:30:00 by etl",
        actual=None,
        severity=Severity.HIGH,
    )
    tag = PendingChange(field="tag domain", observed=None, desired="'sales'")
    return DriftReport(
        environment="prod",
        checked_at=CHECKED_AT,
        state_id="0b9c2f4e-5d1a-4a52-9f0e-6f1c86a1d3b7",
        tables_checked=1,
        schemas=(
            ResourceDrift(resource="schema.prod.gold", findings=(gone,)),
            ResourceDrift(resource="schema.prod.silver", findings=findings),
        ),
        pending=(PendingResource(resource="schema.prod.bronze", changes=(tag,)),),
    )


def full_report() -> DriftReport:
    """Return a small report with every section and every kind of side in it."""
    alice = Attribution(
        who="alice@example.com",
        at=datetime(2025, 1, 14, 16, 42, 7, tzinfo=timezone.utc),
        operation="CHANGE COLUMN",
        version=41,
        job="nightly-orders-backfill",
        notebook="3478112",
    )
    bob = Attribution(
        who="bob@example.com",
        at=datetime(2025, 1, 14, 9, 3, 55, tzinfo=timezone.utc),
        operation="SET TBLPROPERTIES",
    )
    return DriftReport(
        environment="prod",
        host="adb-1234567890.11.azuredatabricks.net",
        checked_at=CHECKED_AT,
        state_id="0b9c2f4e-5d1a-4a52-9f0e-6f1c86a1d3b7",
        serial=118,
        lineage="9f3c1ab",
        tables_checked=41,
        drifted=(
            ResourceDrift(
                resource="table.prod.silver.customer",
                findings=(
                    Finding(
                        kind=DriftKind.COLUMN_NULLABILITY,
                        field="column c_custkey nullability",
                        expected="NOT NULL",
                        actual="nullable",
                        severity=Severity.MEDIUM,
                        changed=bob,
                    ),
                    Finding(
                        kind=DriftKind.TABLE_COMMENT,
                        field="table comment",
                        expected="One row per customer. Owned by the customer domain; see the runbook first.",
                        actual="One row per customer. Owned by the marketing domain; see Bob before changing it.",
                        severity=Severity.LOW,
                        changed=bob,
                    ),
                ),
            ),
            ResourceDrift(
                resource="table.prod.silver.orders",
                findings=(
                    Finding(
                        kind=DriftKind.COLUMN_TYPE,
                        field="column o_totalprice type",
                        expected="decimal(18,2)",
                        actual="decimal(20,4)",
                        severity=Severity.HIGH,
                        changed=alice,
                    ),
                    Finding(
                        kind=DriftKind.COLUMN_ADDED,
                        field="column o_discount_tmp",
                        expected=None,
                        actual="double",
                        severity=Severity.MEDIUM,
                        changed=alice,
                    ),
                    Finding(
                        kind=DriftKind.PROPERTY,
                        field="property delta.deletedFileRetentionDuration",
                        expected="interval 30 days",
                        actual="interval 2 days",
                        severity=Severity.MEDIUM,
                        changed=None,
                    ),
                    Finding(
                        kind=DriftKind.COLUMN_COMMENT,
                        field="column o_orderdate comment",
                        expected="Day on which the order was placed",
                        actual="",
                        severity=Severity.LOW,
                        changed=Attribution(operation="CHANGE COLUMN"),
                    ),
                ),
            ),
        ),
        deleted=(
            ResourceDrift(
                resource="table.prod.gold.revenue_by_region",
                findings=(
                    Finding(
                        kind=DriftKind.TABLE_DELETED,
                        field="table",
                        expected="4 columns, last applied at serial 112",
                        actual=None,
                        severity=Severity.HIGH,
                    ),
                ),
            ),
        ),
        unmanaged=(
            ResourceDrift(
                resource="table.prod.silver.orders_backup_2",
                findings=(
                    Finding(
                        kind=DriftKind.UNMANAGED,
                        field="table",
                        expected=None,
                        actual="9 columns",
                        severity=Severity.LOW,
                        changed=alice,
                    ),
                ),
            ),
        ),
        ignored=(
            IgnoredFinding(
                resource="table.prod.silver.part",
                finding=Finding(
                    kind=DriftKind.CLUSTERING,
                    field="clustering",
                    expected="(p_partkey)",
                    actual="(p_partkey, p_brand)",
                    severity=Severity.MEDIUM,
                    changed=bob,
                ),
                reason="Hotfix for the slow brand report, declared next sprint",
                expires="2025-01-31",
            ),
            IgnoredFinding(
                resource="table.prod.silver.nation",
                finding=Finding(
                    kind=DriftKind.PROPERTY,
                    field="property pipelines.owner",
                    expected="data-platform",
                    actual=None,
                    severity=Severity.LOW,
                ),
                reason="Set by the ingestion service",
            ),
        ),
        policy_notes=(
            PolicyNote(
                resource="table.prod.silver.line*",
                fields=("column_comment", "table_comment"),
                reason="Comments are being rewritten",
                problem="expired on 2025-01-10",
                location="conf/drift-policy.yml:14",
            ),
        ),
        pending=(
            PendingResource(
                resource="table.prod.silver.supplier",
                changes=(
                    PendingChange(field="column s_phone comment", observed="Phone", desired="Phone, E.164"),
                    PendingChange(field="column s_rating", observed=None, desired="int"),
                    PendingChange(field="property owner", observed="nobody", desired=None),
                ),
            ),
            PendingResource(resource="table.prod.gold.churn", changes=()),
        ),
        left_alone=(
            UnmanagedPart(resource="table.prod.silver.orders", key="pipelines.owner", value="ingestion"),
        ),
        unfinished=("table.prod.silver.lineitem",),
        recommendations=(
            Recommendation(
                text="Put the tables back as they were applied.",
                command="delta-engine -e prod drift --revert -t 'prod.silver.*'",
            ),
            Recommendation(
                text="Or take the changes into the models.",
                command="delta-engine -e prod drift --accept -t prod.silver.orders",
            ),
            Recommendation(
                text="Declare the tables that no model declares.",
                command="delta-engine -e prod import prod.silver.orders_backup_2",
            ),
        ),
    )


def empty_report() -> DriftReport:
    """Return a report without drift."""
    return DriftReport(
        environment="prod",
        host="adb-1234567890.11.azuredatabricks.net",
        checked_at=CHECKED_AT,
        state_id="0b9c2f4e-5d1a-4a52-9f0e-6f1c86a1d3b7",
        serial=118,
        lineage="9f3c1ab",
        tables_checked=41,
    )


def past_runs(number: int = 30) -> tuple[PastRun, ...]:
    """Return what earlier reports counted, one a day, the oldest first; some found nothing."""
    return tuple(
        PastRun(
            at=CHECKED_AT - timedelta(days=number - day),
            drifted=day % 5,
            deleted=day % 9 // 8,
            unmanaged=day % 4 // 2,
            high=day % 7 // 4,
            medium=day % 5,
            low=day % 4 // 2 if day % 5 else 0,
        )
        for day in range(number)
    )
