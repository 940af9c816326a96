"""The authors of deviations, from the commits of a table's history, and from the audit log where commits say nothing.

A commit names its changes in its operation and parameters (Delta documentation, "History schema").
tests/integration/test_drift.py pins the forms of the parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.backends.stored_keys import PROPERTY_PREFIX as KEY_PROPERTY_PREFIX
from delta_engine.drift.drifted_resources import (
    Attribution,
    Deviation,
    DriftedResource,
    DriftFacts,
)
from delta_engine.errors import StatementError
from delta_engine.models.constraints import build_not_null_check_name
from delta_engine.state.states import Audit
from delta_engine.state.table_queries import AuditEvent, AuditLogReader, Commit

_COME_WITH_DATA = (DriftKind.COLUMN_ADDED, DriftKind.COLUMN_TYPE)
"""What a write that merges schemas can do."""

_COLUMN_FIELDS = (" type", " nullability", " comment", " default")

_RECREATIONS = ("CREATE", "REPLACE", "CLONE", "RESTORE")


def attribution(deviation: Deviation, commits: Sequence[Commit]) -> Attribution | None:
    """Return the author of a deviation; None if no commit (newest first) since the apply explains it."""
    traces = {deviation.field.lower()}
    match deviation.difference:
        case aspects.Difference(
            action=ColumnNullabilityChange(name, path=())
        ):  # a CHECK may stand for NOT NULL
            traces.add(f"constraint {build_not_null_check_name(name)}")
    may_have: Commit | None = None
    for commit in commits:
        if not traces.isdisjoint(_touched(commit)):
            return by_commit(commit)
        may_change = (commit.parameters.get(key) for key in ("canMergeSchema", "canOverwriteSchema"))
        if deviation.kind in _COME_WITH_DATA and "true" in may_change:
            may_have = may_have or commit
        if _recreates(commit):
            return by_commit(may_have or commit)
    return by_commit(may_have) if may_have is not None else None


def last_written(audit: Audit, applied_at: datetime | None) -> Attribution | None:
    """Return the last principal to write, not always the author of a deviation; None if that was the apply."""
    if audit.altered_at is None or (applied_at is not None and audit.altered_at <= applied_at):
        return None
    return Attribution(who=audit.altered_by, at=audit.altered_at)


def by_commit(commit: Commit) -> Attribution:
    """Return the author that a commit names."""
    return Attribution(
        who=commit.who,
        at=commit.at,
        operation=commit.operation,
        version=commit.version,
        job=commit.job,
        notebook=commit.notebook,
    )


def since(commits: Sequence[Commit], version: int | None) -> tuple[Commit, ...]:
    """Return the commits after a version, newest first; all of them if the version is unknown."""
    return tuple(commit for commit in commits if version is None or commit.version > version)


def since_recreated(commits: Sequence[Commit]) -> tuple[Commit, ...]:
    """Return the commits since the table was recreated, newest first; all if none did that."""
    for place, commit in enumerate(commits):
        if _recreates(commit):
            return tuple(commits[: place + 1])
    return tuple(commits)


def renames(commits: Sequence[Commit]) -> dict[str, str]:
    """Return the columns that commits (newest first) renamed, new names by old ones, with chains resolved."""
    found: dict[str, str] = {}
    for commit in reversed(commits):
        if commit.operation != "RENAME COLUMN":
            continue
        old, new = (_name(commit.parameters.get(key, "")) for key in ("oldColumnPath", "newColumnPath"))
        first = next((name for name, latest in found.items() if latest.lower() == old.lower()), old)
        found[first] = new
    return {old: new for old, new in found.items() if old.lower() != new.lower()}


def is_understood(commit: Commit) -> bool:
    """Whether this module knows the form of a commit's changes."""
    return _recreates(commit) or any(True for _ in _touched(commit))


def _recreates(commit: Commit) -> bool:
    return commit.operation.startswith(_RECREATIONS)


def _touched(commit: Commit) -> Iterator[str]:
    parameters = commit.parameters
    match commit.operation:
        case "ADD COLUMNS" | "DROP COLUMNS" | "CHANGE COLUMN" | "CHANGE COLUMNS":
            yield "column order"
            for name in _column_names(parameters):
                yield from (f"column {name}{suffix}".lower() for suffix in ("", *_COLUMN_FIELDS))
        case "RENAME COLUMN":
            yield f"column {_name(parameters.get('oldColumnPath', ''))}".lower()
        case "SET TBLPROPERTIES" | "UNSET TBLPROPERTIES":
            for key in _keys(parameters.get("properties", "")):
                yield from _fields_of_property(key)
        case "ADD CONSTRAINT" | "DROP CONSTRAINT":
            name = parameters.get("name", "").lower()
            yield from ("primary key", f"primary key {name}", f"check {name}", f"constraint {name}")
        case "CLUSTER BY":
            yield "clustering"


def _column_names(parameters: Mapping[str, str]) -> Iterator[str]:
    """Yield the columns of ADD, DROP, CHANGE: names, structs, or structs within `{"column": …}`."""
    found = _json(parameters.get("columns", "[]"))
    for entry in [*(found if isinstance(found, list) else []), _json(parameters.get("column", "null"))]:
        match entry:
            case {"column": {"name": str(name)}} | {"name": str(name)} | str(name):
                yield _name(name)


def _fields_of_property(key: str) -> Iterator[str]:
    """Yield the fields of a property. Delta logs the table's comment as a property."""
    if key == "comment":
        yield "table comment"
    if key.startswith(KEY_PROPERTY_PREFIX):
        name = key.removeprefix(KEY_PROPERTY_PREFIX).lower()
        yield from ("primary key", f"primary key {name}", f"foreign key {name}")
    yield from (f"property {key}".lower(), f"table feature {key}".lower())


def _keys(text: str) -> Sequence[str]:
    """Return the keys of properties: SET logs them with their values, UNSET as a list."""
    found = _json(text)
    return [str(key) for key in found] if isinstance(found, (dict, list)) else []


def _name(path: str) -> str:
    if len(path) > 1 and path.startswith("`") and path.endswith("`"):
        return path[1:-1].replace("``", "`")
    return path


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


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
"""The audited event of each kind of drift. Not `updateTables`: a write to a table may cause that event, too."""

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
    return replace(facts, drifted=[_with_authors(one, found) for one in facts.drifted])


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


def _with_authors(drifted: DriftedResource, authors: Mapping[_Change, Attribution | None]) -> DriftedResource:
    details = tuple(
        replace(one, finding=replace(one.finding, changed=author, last_written=None))
        if one.finding.changed is None and author is not None
        else one
        for one in drifted.details
        for author in [authors.get((one.finding.kind, drifted.name.key))]
    )
    return replace(drifted, details=details)
