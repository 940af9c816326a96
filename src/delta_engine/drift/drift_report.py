"""The drift report as data: immutable, and the one source of its JSON and of the published schema.

Three renderings of it are in `report`: text, JSON and HTML.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.deployment.lock_record import Moment

FORMAT: Final = "delta-engine/drift-report"
VERSION: Final = 1

NOT_DELTA: Final = "exists, and is no Delta table that can be read"
"""The actual side of an unmanaged table that no import would take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Who made a change, as far as the platform knows; None for what it does not say.

    Args:
        who: the user or service principal.
        at: when, UTC.
        operation: Delta's name of the operation, such as `ADD COLUMNS`, or the audit log's, such as `deleteTable`.
        version: the version of the table that it made.
        job: the job that did it, its name or id.
        notebook: the notebook that did it, its id.
    """

    who: str | None = None
    at: Moment | None = None
    operation: str | None = None
    version: int | None = None
    job: str | None = None
    notebook: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it was applied.

    Args:
        kind: what was done.
        field: what it was done to, such as `column amount type` or `property delta.appendOnly`.
        expected: as it was applied last; None for what was not there.
        actual: as it is; None for what is gone.
        severity: how bad it is.
        changed: by whom and when; None if nobody can tell.
        last_written: where that is unknown, the principal that the catalog names as the last to alter the table or
            schema: any write to a table counts, so it need not be the author.
    """

    kind: DriftKind
    field: str
    expected: str | None
    actual: str | None
    severity: Severity
    changed: Attribution | None = None
    last_written: Attribution | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDrift:
    """One table or schema with at least one finding.

    Args:
        resource: its key, `table.<catalog>.<schema>.<table>` or `schema.<catalog>.<schema>`.
        findings: the worst first.
    """

    resource: str
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """The worst of its findings."""
        return max((finding.severity for finding in self.findings), key=lambda severity: severity.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredFinding:
    """A finding that the drift policy ignores.

    Args:
        resource: the key of the table or schema.
        finding: what it is.
        reason: why it is ignored.
        expires: the last day on which it is, ISO 8601; None for ever.
    """

    resource: str
    finding: Finding
    reason: str
    expires: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNote:
    """An entry of the drift policy that does nothing.

    Args:
        resource: the entry's pattern.
        fields: the entry's fields.
        reason: the entry's reason.
        problem: `expired on 2025-01-20`, or `matches nothing`.
        location: file and line.
    """

    resource: str
    fields: tuple[str, ...]
    reason: str
    problem: str
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingChange:
    """One thing that the model wants and nobody has applied yet. No drift."""

    field: str
    observed: str | None
    desired: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingResource:
    """A table or schema that the next sync would change.

    Args:
        resource: its key.
        changes: what it would change; empty for one that it would create.
    """

    resource: str
    changes: tuple[PendingChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedPart:
    """A part of a table that nobody declared. The engine never applied it, and leaves it alone.

    Args:
        resource: the table's key.
        key: the property; or another part, such as `check positive`.
        value: its value, or what it is.
    """

    resource: str
    key: str
    value: str

    @property
    def table(self) -> str:
        """The table's name."""
        return self.resource.partition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What to do, and the command that does it."""

    text: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """What an earlier report counted.

    Args:
        at: when, UTC.
        drifted: tables that had drifted.
        deleted: tables that were gone.
        unmanaged: tables that nobody declared.
        high: findings of that severity.
        medium: findings of that severity.
        low: findings of that severity.
    """

    at: Moment
    drifted: int
    deleted: int
    unmanaged: int
    high: int
    medium: int
    low: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """What somebody changed in one environment since it was applied.

    Args:
        environment: the environment's name.
        host: the workspace; empty without one.
        checked_at: when the catalog was read, UTC.
        state_id: the deployment state's identity; empty if there is none yet.
        serial: the deployment state's serial.
        lineage: the commit that was deployed last.
        tables_checked: how many tables were compared with what was applied.
        drifted: tables that are not as they were applied.
        deleted: tables that were applied and are gone.
        unmanaged: tables in managed schemas that are in no model.
        schemas: declared schemas that are not as they were applied, or are gone.
        ignored: findings that the drift policy ignores; they count nowhere else.
        policy_notes: entries of the drift policy that do nothing.
        pending: what the models want and nobody has applied yet; no drift.
        left_alone: parts of tables that nobody declared; no drift.
        unfinished: tables that a run of the engine left half done; no drift either.
        recommendations: what to do now.
        notes: what could not be found out.
        format: what this document is.
        version: the format's version.
    """

    environment: str
    host: str = ""
    checked_at: Moment
    state_id: str = ""
    serial: int = 0
    lineage: str = "unknown"
    tables_checked: int = 0
    drifted: tuple[ResourceDrift, ...] = ()
    deleted: tuple[ResourceDrift, ...] = ()
    unmanaged: tuple[ResourceDrift, ...] = ()
    schemas: tuple[ResourceDrift, ...] = ()
    ignored: tuple[IgnoredFinding, ...] = ()
    policy_notes: tuple[PolicyNote, ...] = ()
    pending: tuple[PendingResource, ...] = ()
    left_alone: tuple[UnmanagedPart, ...] = ()
    unfinished: tuple[str, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    notes: tuple[str, ...] = ()
    format: str = field(default=FORMAT)
    version: int = field(default=VERSION)

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """Yield every finding with its table's or schema's key; what is ignored is not among them."""
        for one in (*self.schemas, *self.drifted, *self.deleted, *self.unmanaged):
            for finding in one.findings:
                yield one.resource, finding

    def count(self, severity: Severity) -> int:
        """Return how many findings there are of a severity."""
        return sum(finding.severity is severity for _, finding in self.findings())

    @property
    def max_severity(self) -> Severity | None:
        """The worst severity; None without findings."""
        found = [finding.severity for _, finding in self.findings()]
        return max(found, key=lambda severity: severity.rank) if found else None

    def reaches(self, severity: Severity) -> bool:
        """Whether there is a finding of this severity, or of a worse one."""
        return self.max_severity is not None and self.max_severity.rank >= severity.rank
