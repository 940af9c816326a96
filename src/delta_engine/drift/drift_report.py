"""The drift report as data: the source of its JSON and of the published schema, whose texts are these docstrings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from delta_engine.actions.drift_policy import Severity
from delta_engine.drift.drifted_resources import Finding, UnmanagedPart
from delta_engine.models.open_struct import Moment

FORMAT: Final = "delta-engine/drift-report"
VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """A recommended step.

    Args:
        text: what it does.
        command: the command; empty for a step without one.
        consents: the changes that it needs to be allowed, each as kind, table and part. The command allows them for one
            run; the entry allows them in the pull request, so that the command needs no `--allow`.
        file: the file for the entry, `conf/consents.yml` or `conf/drift-policy.yml`; empty without an entry.
        entry: the text to add to the file; its reason is to be replaced. Empty without one.
    """

    text: str
    command: str
    consents: tuple[str, ...] = ()
    file: str = ""
    entry: str = ""


class NextSync(Enum):
    """What the next sync does about the drift of a securable, unless it is handled before."""

    REFUSES = "refuses"  # `policy.drift_from`
    REVERTS = "reverts"
    REVERTS_SOME = "reverts_some"
    KEEPS = "keeps"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDrift:
    """One securable with at least one finding.

    Args:
        resource: its key, `table.<catalog>.<schema>.<table>` or `schema.<catalog>.<schema>`.
        findings: the worst first.
        next_sync: what the next sync does about it, unless it is handled before; None if no model declares it.
        alternatives: what can be done about it; one of them is enough.
    """

    resource: str
    findings: tuple[Finding, ...]
    next_sync: NextSync | None = None
    alternatives: tuple[Recommendation, ...] = ()

    @property
    def severity(self) -> Severity:
        """The worst of its findings."""
        return max((finding.severity for finding in self.findings), key=lambda severity: severity.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredFinding:
    """A finding that the drift policy ignores.

    Args:
        resource: the key of the securable.
        finding: the finding.
        reason: why it is ignored.
        expires: the last day on which it is ignored, ISO 8601; None for no end.
    """

    resource: str
    finding: Finding
    reason: str
    expires: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyNote:
    """An entry of the drift policy without an effect.

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
    """One change that the model wants and no run has applied yet. No drift.

    Args:
        is_rename: whether it changes a name.
    """

    field: str
    observed: str | None
    desired: str | None
    is_rename: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingResource:
    """A securable that the next sync would change.

    Args:
        resource: its key.
        changes: what it would change; empty for one that it would create.
    """

    resource: str
    changes: tuple[PendingChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastReport:
    """The counts of an earlier report.

    Args:
        at: when, UTC.
        drifted: tables that had drifted.
        deleted: tables that were gone.
        unmanaged: tables that no model declares.
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
    """What was changed in one environment, outside the engine, since it was applied.

    Args:
        environment: the environment's name.
        host: the workspace; empty without one.
        checked_at: when the catalog was read, UTC.
        state_id: the deployment state's identity; empty if there is none yet.
        serial: the deployment state's serial.
        lineage: the commit that was deployed last.
        tables_checked: how many tables were compared with what was applied.
        functions_checked: how many functions were.
        policies_checked: how many policies were.
        views_checked: how many views were.
        drifted: tables, functions and policies that are not as they were applied.
        deleted: tables, functions and policies that were applied and are gone.
        unmanaged: tables, functions and policies in managed schemas that are in no model.
        schemas: declared schemas that are not as they were applied, or are gone.
        ignored: findings that the drift policy ignores; they count nowhere else.
        policy_notes: entries of the drift policy without an effect.
        pending: what the models want and no run has applied yet; no drift.
        left_alone: unmanaged parts of tables; no drift.
        unfinished: tables that a run of the engine left half done; no drift.
        recommendations: the next steps for all drift. Tables and schemas have alternatives of their own.
        notes: what could not be found out, and why drift cannot be reverted.
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
    functions_checked: int = 0
    policies_checked: int = 0
    views_checked: int = 0
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

    @property
    def checked(self) -> Counter[str]:
        """The numbers of securables but schemas that were compared with what was applied, by kind."""
        return Counter(
            function=self.functions_checked,
            policy=self.policies_checked,
            table=self.tables_checked,
            view=self.views_checked,
        )

    @property
    def resources(self) -> tuple[ResourceDrift, ...]:
        """Every securable with findings that are not ignored."""
        return (*self.schemas, *self.drifted, *self.deleted, *self.unmanaged)

    @property
    def for_all(self) -> tuple[Recommendation, ...]:
        """The recommendations about more than one securable."""
        tables = [resource for resource in self.resources if resource.resource.startswith("table.")]
        of_tables = {step.command for table in tables for step in table.alternatives}
        if len(self.resources) == 1 and any(resource.alternatives for resource in self.resources):
            return ()
        return tuple(
            step for step in self.recommendations if not step.command or step.command not in of_tables
        )

    def findings(self) -> Iterator[tuple[str, Finding]]:
        """Yield every finding that is not ignored, with the key of its securable."""
        return ((resource.resource, finding) for resource in self.resources for finding in resource.findings)

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(finding.severity is severity for _, finding in self.findings())

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of drifted, deleted and unmanaged tables, and of findings by severity."""
        tables = {
            "drifted": len(self.drifted),
            "deleted": len(self.deleted),
            "unmanaged": len(self.unmanaged),
        }
        return tables | {severity.value: self.count(severity) for severity in reversed(Severity)}

    @property
    def max_severity(self) -> Severity | None:
        """The worst severity; None without findings."""
        severities = [finding.severity for _, finding in self.findings()]
        return max(severities, key=lambda severity: severity.rank) if severities else None

    def reaches(self, severity: Severity) -> bool:
        """Whether there is a finding of this severity or a higher one."""
        return self.max_severity is not None and self.max_severity.rank >= severity.rank
