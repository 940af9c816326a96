"""Authors from the audit log, for findings that no table's history explains: deletions, privileges and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, TypeVar

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.drift.detector import DetectedTable
from delta_engine.drift.drift_report import Attribution
from delta_engine.drift.evidence import Evidence
from delta_engine.drift.judgement import Detected
from delta_engine.drift.schemas import DetectedSchema
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
"""What was done, and the dotted name of its table or schema in lower case."""

_Drifted = TypeVar("_Drifted", DetectedTable, DetectedSchema)


def with_audited_authors(evidence: Evidence, log: AuditLogReader) -> Evidence:
    """Return the evidence with the authors that the audit log knows; costs one query if any finding needs it.

    It looks back to the oldest apply of what drifted, 30 days at most, and at 200 tables and schemas at most. Where
    several principals made such changes since the apply, none is named.

    Args:
        evidence: what was found.
        log: the audit log. Where it may not be read, a note says so.
    """
    unexplained = dict(_unexplained(evidence))
    if not unexplained:
        return evidence
    names = sorted({name for _, name in unexplained})[:_MOST_NAMES]
    since = max(min(unexplained.values()), evidence.checked_at - _LONGEST_LOOK)
    try:
        events = log.read({ACTIONS[kind] for kind, _ in unexplained}, names, since=since)
    except StatementError as error:  # the report is poorer without it, and still true
        note = (
            f"The audit log may not be read, which knows who deleted, granted and tagged: {error.first_line}"
        )
        return replace(evidence, notes=(*evidence.notes, note))
    found = {change: _author(change, applied_at, events) for change, applied_at in unexplained.items()}
    authors = {change: author for change, author in found.items() if author is not None}
    return replace(
        evidence,
        detected=[_with_authors(table, authors) for table in evidence.detected],
        detected_schemas=[_with_authors(schema, authors) for schema in evidence.detected_schemas],
    )


def _unexplained(evidence: Evidence) -> Iterator[tuple[_Change, datetime]]:
    """Yield the changes without an author that the log may explain, with the time of the last apply."""
    drifted: list[DetectedTable | DetectedSchema] = [*evidence.detected_schemas, *evidence.detected]
    for one in drifted:
        resource = evidence.state.resources.get(one.resource) if evidence.state else None
        applied_at = resource.deployed_at if resource else None
        for detail in one.drift:
            if applied_at and detail.finding.changed is None and detail.finding.kind in ACTIONS:
                yield (detail.finding.kind, one.name.key), applied_at


def _author(change: _Change, applied_at: datetime, events: Sequence[AuditEvent]) -> Attribution | None:
    """Return the author of the newest change of a kind; None where several principals made some."""
    kind, name = change
    found = [
        event
        for event in events
        if event.action.lower() == ACTIONS[kind].lower() and event.name == name and event.at > applied_at
    ]
    if not found or (kind not in _DELETIONS and len({event.who for event in found}) > 1):
        return None
    return Attribution(who=found[0].who, at=found[0].at, operation=found[0].action)


def _with_authors(drifted: _Drifted, authors: Mapping[_Change, Attribution]) -> _Drifted:
    return replace(drifted, details=tuple(_explained(drifted, authors)))


def _explained(
    drifted: DetectedTable | DetectedSchema, authors: Mapping[_Change, Attribution]
) -> Iterator[Detected]:
    for detail in drifted.details:
        author = authors.get((detail.finding.kind, drifted.name.key))
        if author is None or detail.finding.changed is not None:
            yield detail
        else:
            yield replace(detail, finding=replace(detail.finding, changed=author, last_written=None))
