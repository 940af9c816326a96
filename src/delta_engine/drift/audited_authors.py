"""The authors of deletions, privileges and tags, from the audit log: a table's history does not explain them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.drift.drift_report import Attribution
from delta_engine.drift.drifted_resources import ClassifiedDrift, DriftedResource
from delta_engine.drift.reporting import DriftFacts
from delta_engine.errors import StatementError
from delta_engine.state.audit_log import AuditEvent, AuditLogReader

_LONGEST_LOOK: Final = timedelta(days=30)
_MOST_NAMES: Final = 200

_DELETIONS: Final = MappingProxyType(
    {DriftKind.TABLE_DELETED: "deleteTable", DriftKind.SCHEMA_DELETED: "deleteSchema"}
)
ACTIONS: Final[Mapping[DriftKind, str]] = MappingProxyType(
    {
        **_DELETIONS,
        DriftKind.GRANT: "updatePermissions",
        DriftKind.GRANT_ADDED: "updatePermissions",
        DriftKind.SCHEMA_GRANT: "updatePermissions",
        DriftKind.SCHEMA_GRANT_ADDED: "updatePermissions",
        DriftKind.TABLE_TAG: "UpdateTagSecurableAssignments",
        DriftKind.SCHEMA_TAG: "UpdateTagSecurableAssignments",
        DriftKind.COLUMN_TAG: "UpdateTagSubentityAssignments",
    }
)
"""The action that makes a kind of drift. Not `updateTables`: a write to a table may cause one, too."""

_Change = tuple[DriftKind, str]
"""The kind of a change, and the dotted name of its table or schema in lower case."""


def with_audited_authors(facts: DriftFacts, log: AuditLogReader) -> DriftFacts:
    """Return the facts with authors from the audit log, at the cost of at most one query.

    The query goes back to the oldest apply, 30 days at most, and covers at most 200 tables and schemas. If several
    principals made such changes since the apply, none is named. If the log may not be read, a note reports it.
    """
    unexplained = dict(_unexplained(facts))
    if not unexplained:
        return facts
    names = sorted({name for _, name in unexplained})[:_MOST_NAMES]
    since = max(min(unexplained.values()), facts.checked_at - _LONGEST_LOOK)
    try:
        events = log.read({ACTIONS[kind] for kind, _ in unexplained}, names, since=since)
    except StatementError as error:  # the report stays correct without authors
        note = (
            f"The audit log may not be read, which knows who deleted, granted and tagged: {error.first_line}"
        )
        return replace(facts, notes=(*facts.notes, note))
    found = {change: _author(change, applied_at, events) for change, applied_at in unexplained.items()}
    authors = {change: author for change, author in found.items() if author is not None}
    return replace(facts, drifted=[_with_authors(one, authors) for one in facts.drifted])


def _unexplained(facts: DriftFacts) -> Iterator[tuple[_Change, datetime]]:
    for one in facts.drifted:
        resource = facts.state.resources.get(one.resource) if facts.state else None
        applied_at = resource.deployed_at if resource else None
        for detail in one.drift:
            if applied_at and detail.finding.changed is None and detail.finding.kind in ACTIONS:
                yield (detail.finding.kind, one.name.key), applied_at


def _author(change: _Change, applied_at: datetime, events: Sequence[AuditEvent]) -> Attribution | None:
    """Return the author of the newest change of a kind; None if several principals made some."""
    kind, name = change
    found = [
        event
        for event in events
        if event.action.lower() == ACTIONS[kind].lower() and event.name == name and event.at > applied_at
    ]
    if not found or (kind not in _DELETIONS and len({event.who for event in found}) > 1):
        return None
    return Attribution(who=found[0].who, at=found[0].at, operation=found[0].action)


def _with_authors(drifted: DriftedResource, authors: Mapping[_Change, Attribution]) -> DriftedResource:
    details = tuple(
        _explained(detail, authors.get((detail.finding.kind, drifted.name.key))) for detail in drifted.details
    )
    return replace(drifted, details=details)


def _explained(detail: ClassifiedDrift, author: Attribution | None) -> ClassifiedDrift:
    if author is None or detail.finding.changed is not None:
        return detail
    return replace(detail, finding=replace(detail.finding, changed=author, last_written=None))
