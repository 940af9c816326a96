"""What the doctor found, as data: immutable, and the one source of its JSON and of the published schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final

from delta_engine.config.json_schema import described_schema
from delta_engine.deployment.lock_record import Moment
from delta_engine.report.json_text import json_text
from delta_engine.telemetry.redaction import redacted

FORMAT: Final = "delta-engine/doctor-report"
VERSION: Final = 1
SCHEMA_URI: Final = "urn:delta-engine:doctor-report:v1"


class Topic(Enum):
    """What a check is about, in the order of the report."""

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


class Status(Enum):
    """Whether a point is in order."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One point that was looked at.

    Args:
        topic: what it is about.
        subject: the object, such as `schema dev.silver`.
        status: whether it is in order. cannot tell: it could not be looked at, or not wholly.
        found: what was found.
        way_out: the statement or setting that mends it; empty if nothing has to be done.
    """

    topic: Topic
    subject: str
    status: Status
    found: str
    way_out: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "found", redacted(self.found))


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """What was looked at in one environment.

    Args:
        environment: the environment's name.
        checked_at: when, UTC.
        run_by: the identity that looked; empty if there was no login.
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
        """The checks of what is missing."""
        return tuple(check for check in self.checks if check.status is Status.MISSING)


def doctor_report(
    checks: Sequence[Check],
    *,
    environment: str,
    checked_at: datetime,
    run_by: str,
    engine_version: str,
    platform_version: str,
) -> DoctorReport:
    """Return a report with its counts, the checks in the order of their topics."""
    order = {topic: place for place, topic in enumerate(Topic)}
    return DoctorReport(
        environment=environment,
        checked_at=checked_at,
        run_by=run_by,
        engine_version=engine_version,
        platform_version=platform_version,
        counts={status.value: sum(check.status is status for check in checks) for status in Status},
        checks=tuple(sorted(checks, key=lambda check: order[check.topic])),
    )


def doctor_json(report: DoctorReport) -> str:
    """Return a report as one indented JSON document."""
    return json_text(report)


def doctor_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/doctor-report-v1.json` holds."""
    return described_schema(DoctorReport, uri=SCHEMA_URI, title="Delta Engine doctor report")
