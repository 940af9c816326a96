"""The doctor's report as lines, and as a small page for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby
from typing import Final

from delta_engine.report.doctor_report import Check, DoctorReport, Status
from delta_engine.report.visible import in_one_line

_COLOURS: Final[Mapping[Status, str]] = {
    Status.OK: "#1a7f37",
    Status.MISSING: "#cf222e",
    Status.UNKNOWN: "#9a6700",
}


def doctor_summary(report: DoctorReport) -> str:
    """Return one line that counts what was found."""
    counts = ", ".join(f"{report.counts[status.value]} {status.value}" for status in Status)
    who = f" as {report.run_by}" if report.run_by else ""
    return f"{report.environment}{who}: {counts}"


def doctor_lines(report: DoctorReport) -> Iterator[tuple[Status | None, str]]:
    """Yield the lines of a report, each with the status that it shows: topics and ways out show none."""
    for topic, checks in groupby(report.checks, key=lambda check: check.topic):
        yield None, topic.value
        for check in checks:
            yield check.status, described(check)
            if check.way_out:
                yield None, f"    → {in_one_line(check.way_out)}"


def described(check: Check) -> str:
    """Return a check as one line without its status."""
    return in_one_line(f"{check.subject}: {check.found}")


def status_column(status: Status) -> str:
    """Return a status as it stands at the beginning of a line, as wide as the others."""
    width = max(len(one.value) for one in Status)
    return f"  {status.value:<{width}}  "


def doctor_html(report: DoctorReport) -> str:
    """Return a report as HTML that needs nothing from anywhere."""
    title = f"<p><b>{escape(doctor_summary(report))}</b></p>"
    topics = "".join(
        f"<tr><th colspan=2 style='text-align:left'>{escape(topic.value)}</th></tr>{''.join(map(_row, checks))}"
        for topic, checks in groupby(report.checks, key=lambda check: check.topic)
    )
    return f"<div style='font:13px/1.6 monospace'>{title}<table>{topics}</table></div>"


def _row(check: Check) -> str:
    way_out = f"<br>→ {escape(in_one_line(check.way_out))}" if check.way_out else ""
    status = f"<b style='color:{_COLOURS[check.status]}'>{escape(check.status.value)}</b>"
    cell = "style='vertical-align:top;padding-right:1em;white-space:nowrap'"
    return f"<tr><td {cell}>{status}</td><td>{escape(described(check))}{way_out}</td></tr>"
