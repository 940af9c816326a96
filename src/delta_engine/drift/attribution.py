"""The authors of drift, from the commits of a table's history, and from the audit log where commits say nothing.

A commit names its changes in its operation and parameters (Delta documentation, "History schema").
tests/integration/test_drift_authors.py pins the forms of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Final

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects import KINDS, Difference
from delta_engine.aspects.delta_properties import COLUMN_MAPPING_MODE
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.primary_key import PrimaryKeyAdd
from delta_engine.backends.stored_keys import PROPERTY_PREFIX as KEY_PROPERTY_PREFIX
from delta_engine.drift.commit_paths import columns, parsed, path_after, path_before, recreates, renamed
from delta_engine.drift.drifted_resources import Attribution, Finding
from delta_engine.drift.observation import DriftFacts
from delta_engine.errors import StatementError
from delta_engine.models import PrimaryKey
from delta_engine.models.constraints import build_not_null_check_name
from delta_engine.models.nested_types import Path
from delta_engine.state.audits import Audit
from delta_engine.state.table_queries import AuditEvent, AuditLogReader, Commit

_LENGTH: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of CHAR and VARCHAR with their lengths in the metadata of a column."""

_MERGED: Final = (DriftKind.COLUMN_ADDED, DriftKind.COLUMN_TYPE)
"""What a write that merges schemas can do."""

_OVERWRITTEN: Final = (
    *_MERGED,
    DriftKind.COLUMN_DROPPED,
    DriftKind.COLUMN_NULLABILITY,
    DriftKind.COLUMN_COMMENT,
    DriftKind.COLUMN_DEFAULT,
    DriftKind.COLUMN_GENERATION,
    DriftKind.COLUMN_ORDER,
    DriftKind.PARTITIONING,
)
"""What a write that overwrites the schema can do."""


def attribution(difference: Difference, commits: Sequence[Commit]) -> Attribution | None:
    """Return the author of drift; None if no commit (newest first) since the apply explains it.

    That is the commit since which the changed part has its present value. A commit that may have changed it counts if
    no commit names it.
    """
    traces, author, value, possible = _traces(difference), None, object(), None
    for place, commit in enumerate(commits):
        later, earlier = commits[:place], commits[place + 1 :]
        touched = next(
            (values for trace, values in _touched(commit, later, earlier) if trace in traces), None
        )
        if touched is not None:
            if author is not None and touched != (value,):
                break
            author, value = commit, touched[0]
        elif author is None and possible is None and _may_have_made(difference, commit):
            possible = commit
        if _recreates(commit, difference):
            author = author or possible or commit
            break
    responsible = author or possible
    return by_commit(responsible) if responsible is not None else None


def last_written(audit: Audit, applied_at: datetime | None) -> Attribution | None:
    """Return the last principal to write, not always the author of drift; None if that was the apply."""
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
        if recreates(commit):
            return tuple(commits[: place + 1])
    return tuple(commits)


def is_understood(commit: Commit) -> bool:
    """Whether this module knows the form of a commit's changes."""
    return recreates(commit) or any(True for _ in _touched(commit, (), ()))


def _traces(difference: Difference) -> set[str]:
    """Return the names of the changed part in `_touched`."""
    traces = {difference.change.subject}
    match difference:
        case Difference(action=ColumnNullabilityChange(name, path=())):  # a CHECK may stand for NOT NULL
            traces.add(f"check {build_not_null_check_name(name)}")
        case Difference(action=PrimaryKeyAdd(name, replaced=PrimaryKey(name=former))):
            traces |= {f"primary key {name}", f"primary key {former}"}
    return {trace.lower() for trace in traces}


def _may_have_made(difference: Difference, commit: Commit) -> bool:
    if commit.operation == "ADD COLUMNS":  # a dropped column that is added again has another place
        return difference.kind is DriftKind.COLUMN_ORDER
    merges, overwrites = (
        commit.parameters.get(key) == "true" for key in ("canMergeSchema", "canOverwriteSchema")
    )
    return (merges and difference.kind in _MERGED) or (overwrites and difference.kind in _OVERWRITTEN)


def _recreates(commit: Commit, difference: Difference) -> bool:
    is_of_columns = commit.operation == "REPLACE COLUMNS" and difference.change.subject.startswith("column ")
    return recreates(commit) or is_of_columns


_Touched = tuple[str, tuple[object]]
"""What a commit changed, in lower case, and its value; a value that the commit does not tell equals no other."""


def _touched(commit: Commit, later: Sequence[Commit], earlier: Sequence[Commit]) -> Iterable[_Touched]:
    parameters = commit.parameters
    match commit.operation:
        case "ADD COLUMNS" | "DROP COLUMNS" | "CHANGE COLUMN" | "CHANGE COLUMNS":
            return _touched_columns(commit, later, earlier)
        case "RENAME COLUMN":
            return _untold(name for path in renamed(commit) for name in _names(path, later, earlier))
        case "SET TBLPROPERTIES" | "UNSET TBLPROPERTIES":
            values = _properties(parameters.get("properties", ""))
            return ((field, (value,)) for key, value in values for field in _fields_of_property(key))
        case "REMOVE COLUMN MAPPING":
            return _untold(_fields_of_property(COLUMN_MAPPING_MODE))
        case "DROP FEATURE":
            return _untold(_fields_of_property(f"delta.feature.{parameters.get('featureName', '')}"))
        case "ADD CONSTRAINT" | "DROP CONSTRAINT" as operation:
            name = parameters.get("name", "").lower()
            value = parameters.get("expr", object()) if operation == "ADD CONSTRAINT" else None
            return ((f"{what} {name}", (value,)) for what in ("check", "primary key", "foreign key"))
        case "CLUSTER BY":
            return [("clustering", (parameters.get("newClusteringColumns", object()),))]
    return ()


def _untold(fields: Iterable[str]) -> Iterator[_Touched]:
    """Yield fields whose values a commit does not tell."""
    yield from ((field, (object(),)) for field in fields)


def _touched_columns(
    commit: Commit, later: Sequence[Commit], earlier: Sequence[Commit]
) -> Iterator[_Touched]:
    if "position" in commit.parameters and all(len(path) == 1 for path, _ in columns(commit)):
        yield from _untold(["column order"])
    for path, definition in columns(commit):
        for name in _names(path, later, earlier):
            if not commit.operation.startswith("CHANGE"):
                yield from _untold([name])
            if commit.operation != "DROP COLUMNS":
                yield from _facets(name, definition)


def _names(path: Path, later: Sequence[Commit], earlier: Sequence[Commit]) -> set[str]:
    """Return the names of a column or field at the last apply and now."""
    paths = {path_before(path, earlier), path_after(path, later)}
    return {f"column {'.'.join(place)}".lower() for place in paths if place}


def _facets(name: str, definition: Mapping[str, object]) -> Iterator[_Touched]:
    """Yield what a definition says of a column or field."""
    metadata = definition.get("metadata")
    details = metadata if isinstance(metadata, dict) else {}
    yield f"{name} type", ((definition["type"], details.get(_LENGTH)) if "type" in definition else object(),)
    yield f"{name} nullability", (definition.get("nullable", object()),)
    for facet, key in (("comment", "comment"), ("default", "CURRENT_DEFAULT")):
        yield f"{name} {facet}", (details.get(key) if metadata is details else object(),)


def _properties(text: str) -> Iterable[tuple[str, object]]:
    """Return the properties of SET, which logs them with their values, or of UNSET, which logs a list of keys."""
    match parsed(text):
        case dict(properties):
            return properties.items()
        case list(keys):
            return ((str(key), None) for key in keys)
    return ()


def _fields_of_property(key: str) -> Iterator[str]:
    """Yield the fields of a property. Delta logs the table's comment as a property."""
    if key == "comment":
        yield "table comment"
    if key.startswith(KEY_PROPERTY_PREFIX):
        name = key.removeprefix(KEY_PROPERTY_PREFIX).lower()
        yield from (f"primary key {name}", f"foreign key {name}")
    yield from (f"property {key}".lower(), f"table feature {key}".lower())


_LONGEST_LOOK: Final = timedelta(days=30)
_MOST_NAMES: Final = 200

_DELETIONS: Final = MappingProxyType(
    {
        DriftKind.TABLE_DELETED: "deleteTable",
        DriftKind.SCHEMA_DELETED: "deleteSchema",
        DriftKind.FUNCTION_DELETED: "deleteFunction",
        DriftKind.VIEW_DELETED: "deleteTable",
    }
)
_OF_SHARED_PARTS: Final = MappingProxyType(
    {
        DriftKind.GRANT: "updatePermissions",
        DriftKind.GRANT_ADDED: "updatePermissions",
        DriftKind.TABLE_TAG: "UpdateTagSecurableAssignments",
        DriftKind.COLUMN_TAG: "UpdateTagSubentityAssignments",
    }
)
ACTIONS: Final[Mapping[DriftKind, str]] = MappingProxyType(
    {
        **_DELETIONS,
        **{
            kind.drift_kinds.get(shared, shared): action
            for kind in KINDS
            for shared, action in _OF_SHARED_PARTS.items()
        },
    }
)
"""The audited event of each kind of drift. Not `updateTables`: a write to a table may cause that event, too."""

_DriftKey = tuple[DriftKind, str]
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
        note = f"The audit log, which records deletions, grants and tags, cannot be read: {error.first_line}"
        return replace(facts, notes=(*facts.notes, note))
    authors = {change: _author(change, applied_at, events) for change, applied_at in unexplained.items()}
    return replace(
        facts,
        drifted=[
            resource.with_findings(partial(_with_author, name=resource.name.key, authors=authors))
            for resource in facts.drifted
        ],
    )


def _unexplained(facts: DriftFacts) -> Iterator[tuple[_DriftKey, datetime]]:
    for resource in facts.drifted:
        applied_at = resource.record.deployed_at
        for detail in resource.drift:
            if applied_at and detail.finding.changed is None and detail.finding.kind in ACTIONS:
                yield (detail.finding.kind, resource.name.key), applied_at


def _author(change: _DriftKey, applied_at: datetime, events: Sequence[AuditEvent]) -> Attribution | None:
    """Return the author of the newest change of a kind; None if several principals made some."""
    kind, name = change
    candidates = [
        event
        for event in events
        if event.action.lower() == ACTIONS[kind].lower() and event.name == name and event.at > applied_at
    ]
    if not candidates or (kind not in _DELETIONS and len({event.who for event in candidates}) > 1):
        return None
    return Attribution(who=candidates[0].who, at=candidates[0].at, operation=candidates[0].action)


def _with_author(finding: Finding, name: str, authors: Mapping[_DriftKey, Attribution | None]) -> Finding:
    author = authors.get((finding.kind, name))
    if finding.changed is not None or author is None:
        return finding
    return replace(finding, changed=author, last_written=None)
