"""Drift reports that are hard to render: a huge one, and hostile ones."""

from datetime import timedelta

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.drift.drift_report import (
    DriftReport,
    IgnoredFinding,
    PendingChange,
    PendingResource,
    PolicyNote,
    Recommendation,
    ResourceDrift,
)
from delta_engine.drift.drifted_resources import Attribution, Finding, UnmanagedPart
from tests.builders.drift_reports import CHECKED_AT


def huge_report(tables: int = 200, findings: int = 10) -> DriftReport:
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
                alternatives=(
                    Recommendation(
                        text="Revert it to what was applied",
                        command=f"delta-engine -e prod drift --revert -t prod.silver.table_{table:04}",
                    ),
                    Recommendation(
                        text="Ignore it until a date",
                        command="",
                        file="conf/drift-policy.yml",
                        entry=f"ignore_drift:\n  - resource: table.prod.silver.table_{table:04}\n",
                    ),
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
    step = Recommendation(text=text, command=text, consents=(text,), file=text, entry=text)
    return DriftReport(
        environment=text,
        host=text,
        checked_at=CHECKED_AT,
        state_id=text,
        lineage=text,
        tables_checked=3,
        drifted=(ResourceDrift(resource=text, findings=(finding,), alternatives=(step, step)),),
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
        left_alone=(UnmanagedPart(resource=text, key=text, value=text),),
        unfinished=(text,),
        recommendations=(step,),
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
