"""Drift reports to render: one with everything in it, a huge one, a hostile one, and one without findings."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from delta_engine.drift.drift_report import (
    Attribution,
    DriftReport,
    Finding,
    ForeignPart,
    IgnoredFinding,
    PastRun,
    PendingChange,
    PendingResource,
    PolicyNote,
    Recommendation,
    ResourceDrift,
)
from delta_engine.drift_policy import DriftKind, Severity

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
            changed=Attribution(who="alice@example.com", at=CHECKED_AT),
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
            ForeignPart(resource="table.prod.silver.orders", key="pipelines.owner", value="ingestion"),
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


def huge_report(tables: int = 200, findings: int = 10) -> DriftReport:
    """Return a report with many findings, by default 2,000."""
    kinds = [kind for kind in DriftKind if kind is not DriftKind.UNMANAGED]
    worst_first = list(reversed(Severity))
    return DriftReport(
        environment="prod",
        checked_at=CHECKED_AT,
        serial=7,
        tables_checked=5_000,
        drifted=tuple(
            ResourceDrift(
                resource=f"table.prod.silver.table_{table:04}",
                findings=tuple(
                    Finding(
                        kind=kinds[(table + number) % len(kinds)],
                        field=f"column column_{number:02} of {table}",
                        expected=f"The {number}th value of table {table}, applied by the nightly deployment job",
                        actual=f"The {number}th value of table {table}, changed by hand in a hurry",
                        severity=worst_first[number * len(worst_first) // findings],
                        changed=Attribution(
                            who=f"user{table % 17}@example.com",
                            at=CHECKED_AT - timedelta(minutes=table * findings + number),
                            operation="CHANGE COLUMN",
                            version=table + number,
                        ),
                    )
                    for number in range(findings)
                ),
            )
            for table in range(tables)
        ),
    )


def report_saying(text: str) -> DriftReport:
    """Return a report that says one text wherever a report can say any text."""
    finding = Finding(
        kind=DriftKind.COLUMN_COMMENT,
        field=text,
        expected=text,
        actual=None,
        severity=Severity.HIGH,
        changed=Attribution(who=text, at=CHECKED_AT, operation=text, version=3, job=text, notebook=text),
    )
    gone = Finding(
        kind=DriftKind.TABLE_DELETED, field=text, expected=None, actual=text, severity=Severity.MEDIUM
    )
    return DriftReport(
        environment=text,
        host=text,
        checked_at=CHECKED_AT,
        state_id=text,
        lineage=text,
        tables_checked=3,
        drifted=(ResourceDrift(resource=text, findings=(finding,)),),
        deleted=(ResourceDrift(resource=f"table.{text}", findings=(gone,)),),
        unmanaged=(ResourceDrift(resource=f"table.prod.{text}.orders", findings=(finding, gone)),),
        ignored=(IgnoredFinding(resource=text, finding=finding, reason=text, expires=text),),
        policy_notes=(
            PolicyNote(resource=text, fields=(text, text), reason=text, problem=text, location=text),
        ),
        pending=(
            PendingResource(resource=text, changes=(PendingChange(field=text, observed=text, desired=None),)),
            PendingResource(resource=text, changes=()),
        ),
        left_alone=(ForeignPart(resource=text, key=text, value=text),),
        unfinished=(text,),
        recommendations=(Recommendation(text=text, command=text),),
        format=text,
    )


# What texts try, when they want to be more than text.
HOSTILE_TEXTS = (
    "<script>window.__xss = 1; alert(1)</script>",
    "</script><script>window.__xss = 1</script>",
    "</style><img src=x onerror='window.__xss = 1; alert(1)'>",
    "</title></textarea><svg onload=window.__xss=1>",
    '" onmouseover="window.__xss = 1" autofocus onfocus=\'alert(1)\'',
    "' onclick='window.__xss = 1",
    "javascript:window.__xss=1",
    "--><iframe srcdoc='<script>parent.__xss=1</script>'></iframe><!--",
    "<a href='javascript:window.__xss=1'>x</a><form action=x><button>x</button></form>",
    "]]><base href='//evil.example'><meta http-equiv=refresh content='0;url=javascript:1'>",
    "{{ 7 * 7 }}{% for x in range(10) %}{# gone #}${7 * 7}",
    "&lt;b&gt; &#60;script&#62; &amp;amp; &",
    "line\u2028separator\u2029paragraph\u0085next",
    "nul \x00 bell \x07 escape \x1b[31m delete \x7f",
    "\u202egnp.exe\u202c \u2066isolated\u2069 \u200bzero\ufeffwidth",
    "lone \ud800 surrogate and \uffff",
    "طلبات العملاء و שלום",
    "a" * 10_000,
    "`orders`; DROP TABLE orders; -- ' \\ \"",
    "\r\n\ttabs  and   blanks \n",
)


def hostile_report() -> DriftReport:
    """Return one report with every hostile text in it, as a table, a field, both values and a person."""
    base = report_saying(HOSTILE_TEXTS[0])
    return DriftReport(
        environment=base.environment,
        host=base.host,
        checked_at=CHECKED_AT,
        lineage=base.lineage,
        tables_checked=len(HOSTILE_TEXTS),
        drifted=tuple(
            ResourceDrift(
                resource=f"table.{text}",
                findings=(
                    Finding(
                        kind=DriftKind.COLUMN_COMMENT,
                        field=text,
                        expected=text,
                        actual=f"{text} or {text}",
                        severity=Severity.HIGH,
                        changed=Attribution(who=text, operation=text, job=text, notebook=text),
                    ),
                ),
            )
            for text in HOSTILE_TEXTS
        ),
        ignored=base.ignored,
        policy_notes=base.policy_notes,
        pending=base.pending,
        left_alone=base.left_alone,
        unfinished=base.unfinished,
        recommendations=tuple(Recommendation(text=text, command=text) for text in HOSTILE_TEXTS),
    )
