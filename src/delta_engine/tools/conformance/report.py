"""The report of a conformance run as data, the source of its JSON, published schema and page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Final

from delta_engine.models.open_struct import Moment

FORMAT: Final = "delta-engine/conformance-report"
VERSION: Final = 1


@unique
class RunOutcome(Enum):
    """How a conformance run ended."""

    AGREED = "agreed"
    FAILED = "failed"
    STOPPED = "stopped"


@unique
class CheckStatus(Enum):
    """The result of a group of tables, or of one of its steps."""

    AGREED = "agreed"
    DIFFERENT = "different"
    REFUSED = "refused"
    NOT_READ_BACK = "not_read_back"
    SKIPPED = "skipped"
    NOT_SUPPORTED = "not_supported"

    @property
    def is_failure(self) -> bool:
        """Whether it fails the run."""
        return self in (CheckStatus.DIFFERENT, CheckStatus.REFUSED)


@unique
class Holds(Enum):
    """Whether an assumption of the engine holds on the platform."""

    YES = "yes"
    NO = "no"
    CANNOT_TELL = "cannot_tell"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorForm:
    """A refusal, in the platform's own words.

    Args:
        condition: the error condition; None if it has none.
        sql_state: the SQLSTATE; None if it has none.
    """

    condition: str | None
    sql_state: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementReport:
    """One statement that was sent.

    Args:
        number: its position in the run, from 1.
        place: the step or probe that sent it.
        seconds: the time until its answer.
        rows: how many rows it returned; None for a refused statement.
        error: the refusal; None for a statement that ran.
    """

    number: int
    place: str
    sql: str
    seconds: float
    rows: int | None = None
    error: ErrorForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One step of a group: a plan that was applied and read back.

    Args:
        name: the step, as in the `place` of its statements.
        actions: the types of the planned actions, sorted.
        differences: how what was read differs from what was written, or why the step was not done.
        repeats: how often the tables were read again because they differed.
    """

    name: str
    status: CheckStatus
    actions: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    repeats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """Tables that belong together, step by step.

    Args:
        features: the features of the platform that it needs.
        status: the result of the group, from its steps.
        reason: why it was left out; empty for a group that ran.
    """

    name: str
    features: tuple[str, ...]
    status: CheckStatus
    reason: str = ""
    steps: tuple[StepReport, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """One question about the platform. An answer is a fact, never a failure.

    Args:
        name: the probe, as in the `place` of its statements.
        assumption: what the engine relies on.
        holds: whether the assumption holds here.
        findings: what happened, line by line.
    """

    name: str
    question: str
    assumption: str
    holds: Holds
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUpReport:
    """The clean-up of the scratch objects.

    Args:
        dropped: the objects that were dropped.
        left: the statements that drop what this run created and could not drop.
        earlier: the statements that drop what other runs have in the schema; such a run may still be active.
        files: where files remain that DROP TABLE of an external table does not delete.
    """

    dropped: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """What a conformance run found on one platform.

    Args:
        run_id: the run's id, which is in the names of its scratch objects.
        outcome: agreed: every comparison agreed, and nothing was refused that should run. failed: something
            differs, was refused, was not reached or could not be dropped. stopped: the user ended the run.
        target: the schema that the run worked in.
        started_at: in UTC.
        platform: the platform, as the engine calls it.
        groups: the groups of scratch tables.
        probes: the questions about the platform.
        statements: every statement that was sent, in order.
        format: always the same.
        version: the format's version; fields may be added without a new one.
    """

    run_id: str
    outcome: RunOutcome
    target: str
    started_at: Moment
    seconds: float
    engine_version: str
    platform: str
    platform_version: str
    groups: tuple[GroupReport, ...] = ()
    probes: tuple[ProbeReport, ...] = ()
    clean_up: CleanUpReport = field(default_factory=CleanUpReport)
    statements: tuple[StatementReport, ...] = ()
    format: str = FORMAT
    version: int = VERSION

    def statements_of(self, place: str) -> Iterator[StatementReport]:
        """Yield the statements of a step or probe, in order."""
        return (statement for statement in self.statements if statement.place == place)

    def count(self, status: CheckStatus) -> int:
        """Return the number of groups with a status."""
        return sum(group.status is status for group in self.groups)
