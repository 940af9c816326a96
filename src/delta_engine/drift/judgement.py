"""Judges deviations by a target's policy: how bad they are, and which it ignores. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from delta_engine.actions.drift_policy import DriftPolicy, IgnoreEntry
from delta_engine.drift.comparison import Deviation
from delta_engine.drift.drift_report import Attribution, Finding
from delta_engine.models import QualifiedName, SchemaName


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """A deviation, judged.

    Args:
        deviation: what is different.
        finding: the same for the report, with its severity and its author.
        ignored_by: the entry of the policy that ignores it.
    """

    deviation: Deviation
    finding: Finding
    ignored_by: IgnoreEntry | None = None


def judged(
    policy: DriftPolicy,
    name: QualifiedName | SchemaName,
    deviation: Deviation,
    changed: Attribution | None,
    now: datetime,
    *,
    written: Attribution | None = None,
) -> Detected:
    """Return what a policy makes of a deviation.

    Args:
        policy: how bad things are, and what is ignored.
        name: the table or schema.
        deviation: what is different.
        changed: who did it; None if nobody can tell.
        now: when that was seen; entries of the policy expire.
        written: who wrote to the table last; it is said where the author is unknown.
    """
    kind, field = deviation.kind, deviation.field
    entries = (
        entry for entry in policy.ignores if not entry.is_expired(now) and entry.matches(name, kind, field)
    )
    return Detected(
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
