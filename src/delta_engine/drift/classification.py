"""Classifies deviations by a target's policy: their severity, and which of them it ignores. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from delta_engine.actions.drift_policy import DriftPolicy, IgnoreEntry
from delta_engine.drift.comparison import Deviation
from delta_engine.drift.drift_report import Attribution, Finding
from delta_engine.models import QualifiedName, SchemaName


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedDrift:
    """A deviation, classified.

    Args:
        finding: the same for the report, with its severity and its author.
        ignored_by: the entry of the policy that ignores it.
    """

    deviation: Deviation
    finding: Finding
    ignored_by: IgnoreEntry | None = None


def classified(
    policy: DriftPolicy,
    name: QualifiedName | SchemaName,
    deviation: Deviation,
    changed: Attribution | None,
    now: datetime,
    *,
    written: Attribution | None = None,
) -> ClassifiedDrift:
    """Return what a policy makes of a deviation.

    Args:
        changed: its author; None if unknown.
        now: when the catalog was read; entries of the policy expire.
        written: the last principal to write to the table or schema, for a deviation without an author.
    """
    kind, field = deviation.kind, deviation.field
    entries = (
        entry for entry in policy.ignores if not entry.is_expired(now) and entry.matches(name, kind, field)
    )
    return ClassifiedDrift(
        deviation=deviation,
        finding=Finding(
            kind=kind,
            field=field,
            expected=deviation.expected,
            actual=deviation.actual,
            severity=policy.severity(name, kind, field),
            changed=changed,
            last_written=written if changed is None else None,
        ),
        ignored_by=next(entries, None),
    )
