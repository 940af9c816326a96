"""The doctor's report: as data, the source of its JSON and published schema, as lines, and as a small page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from html import escape
from itertools import groupby
from typing import Final

from delta_engine.models.open_struct import Moment
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import in_one_line

FORMAT: Final = "delta-engine/doctor-report"
VERSION: Final = 1


class Topic(Enum):
    """The subject area of a check, in the order of the report."""

    CONFIGURATION = "configuration"
    PACKAGES = "packages"
    LINEAGE = "git commit"
    LOGIN = "login"
    PLATFORM = "platform"
    CLOCK = "clock"
    WAREHOUSE = "warehouse folder"
    CATALOGS = "catalogs"
    VIEWS = "information_schema"
    PLAN = "plan"
    RIGHTS = "rights"
    STATE = "deployment state"
    LOCK = "lock"


class DoctorStatus(Enum):
    """Whether a point is in order."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "cannot tell"


_COLOURS: Final[Mapping[DoctorStatus, str]] = {
    DoctorStatus.OK: "#1a7f37",
    DoctorStatus.MISSING: "#cf222e",
    DoctorStatus.UNKNOWN: "#9a6700",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One point that the doctor checked.

    Args:
        topic: the subject area.
        subject: the object, such as `schema dev.silver`.
        status: whether it is in order. cannot tell: it could not be checked, or not completely.
        found: what was found.
        way_out: the statement or setting that fixes it; empty if there is nothing to do.
    """

    topic: Topic
    subject: str
    status: DoctorStatus
    found: str
    way_out: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "found", redacted(self.found))

    @classmethod
    def ok(cls, topic: Topic, subject: str, found: str) -> Check:
        """Return a check that is in order."""
        return cls(topic=topic, subject=subject, status=DoctorStatus.OK, found=found)

    @classmethod
    def missing(cls, topic: Topic, subject: str, found: str, way_out: str = "") -> Check:
        """Return a check that found something missing."""
        return cls(topic=topic, subject=subject, status=DoctorStatus.MISSING, found=found, way_out=way_out)

    @classmethod
    def unknown(cls, topic: Topic, subject: str, found: str, way_out: str = "") -> Check:
        """Return a check that could not be done."""
        return cls(topic=topic, subject=subject, status=DoctorStatus.UNKNOWN, found=found, way_out=way_out)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """The checks of one environment.

    Args:
        environment: the environment's name.
        checked_at: when, UTC.
        run_by: the identity that ran the checks; empty if there was no login.
        engine_version: of this engine.
        platform_version: of the runtime or warehouse; empty if it was not reached.
        counts: checks by status.
        checks: the checks, by topic.
        format: always the same.
        version: of the format; fields may be added without a new one.
    """

    environment: str
    checked_at: Moment
    run_by: str
    engine_version: str
    platform_version: str
    counts: Mapping[str, int]
    checks: tuple[Check, ...]
    format: str = field(default=FORMAT)
    version: int = field(default=VERSION)

    @property
    def missing(self) -> tuple[Check, ...]:
        """The checks that found something missing."""
        return tuple(check for check in self.checks if check.status is DoctorStatus.MISSING)


def doctor_report(
    checks: Sequence[Check],
    *,
    environment: str,
    checked_at: datetime,
    run_by: str,
    engine_version: str,
    platform_version: str,
) -> DoctorReport:
    """Return a report with its counts; the checks are in topic order."""
    order = {topic: place for place, topic in enumerate(Topic)}
    return DoctorReport(
        environment=environment,
        checked_at=checked_at,
        run_by=run_by,
        engine_version=engine_version,
        platform_version=platform_version,
        counts={status.value: sum(check.status is status for check in checks) for status in DoctorStatus},
        checks=tuple(sorted(checks, key=lambda check: order[check.topic])),
    )


def doctor_summary(report: DoctorReport) -> str:
    """Return one line with the counts."""
    counts = ", ".join(f"{report.counts[status.value]} {status.value}" for status in DoctorStatus)
    who = f" as {report.run_by}" if report.run_by else ""
    return f"{report.environment}{who}: {counts}"


def doctor_lines(report: DoctorReport) -> Iterator[tuple[DoctorStatus | None, str]]:
    """Yield the report's lines, each with its status; None for topics and ways out."""
    for topic, checks in groupby(report.checks, key=lambda check: check.topic):
        yield None, topic.value
        for check in checks:
            yield check.status, described(check)
            if check.way_out:
                yield None, f"    → {in_one_line(check.way_out)}"


def described(check: Check) -> str:
    """Return a check as one line without its status."""
    return in_one_line(f"{check.subject}: {check.found}")


def status_column(status: DoctorStatus) -> str:
    """Return a status as the first column of a line."""
    width = max(len(status.value) for status in DoctorStatus)
    return f"  {status.value:<{width}}  "


def doctor_html(report: DoctorReport) -> str:
    """Return a report as self-contained HTML."""
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
