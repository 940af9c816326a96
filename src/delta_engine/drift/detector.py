"""Turns changes since the baseline into drift, with its authors. Only changed tables cost statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from delta_engine.actions.drift_policy import DELETIONS, DriftKind, DriftPolicy
from delta_engine.aspects import Difference, is_definition
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.renames import Renames
from delta_engine.drift.attribution import (
    attribution,
    by_commit,
    last_written,
    since,
    since_recreated,
)
from delta_engine.drift.commit_paths import renames
from delta_engine.drift.comparison import (
    accepted_key,
    drift_key,
    drift_of,
    is_known,
    is_unread,
    may_be_renamed,
    with_new_names,
)
from delta_engine.drift.drifted_resources import (
    NOT_DELTA,
    Acceptance,
    Attribution,
    ClassifiedDrift,
    ComparedResource,
    ComparedTable,
    classified,
    is_table,
)
from delta_engine.drift.renames import has_path
from delta_engine.drift.replacements import (
    is_created_again,
    needs_history,
    replacement,
)
from delta_engine.errors import RefusedError
from delta_engine.models import Column, QualifiedName, SecurableName, resource_key
from delta_engine.models.nested_types import Path, lower_path
from delta_engine.state.audits import Audit
from delta_engine.state.states import CatalogState
from delta_engine.state.table_queries import Commit, TableHistoryReader, TableVersion, TableVersionReader
from delta_engine.telemetry.visible import shown_moment

_NO_DELTA_TABLE: Final = "Make it a readable Delta table, or remove its model"

_MOST_CANDIDATES: Final = 50
"""How many undeclared tables a search for a renamed one asks for their ids."""


class DriftDetector:
    """Finds changes since the last apply.

    Args:
        is_thorough: whether to read the ids of tables also where only the record has no creation time. Where the
            catalog has none, they are read in any case, unless the read of the table has shown the recorded id.
    """

    def __init__(
        self,
        policy: DriftPolicy,
        *,
        versions: TableVersionReader | None = None,
        history: TableHistoryReader | None = None,
        is_thorough: bool = True,
    ) -> None:
        self._policy = policy
        self._versions = versions
        self._history = history
        self._is_thorough = is_thorough

    def detect(self, records: Iterable[ComparedResource], *, now: datetime) -> tuple[ComparedResource, ...]:
        """Return what has drifted, by kind and name.

        Half-done changes of a run are not drift. Entries of the policy expire at `now`, the time of the snapshot.
        """
        known = [resource for resource in records if is_known(resource) or is_unread(resource)]
        suspects = [resource for resource in known if self._is_suspect(resource)]
        versions = self._current_versions(suspects)
        commits = self._commits(suspects, versions)
        detected = (self._drifted(resource, versions, commits, now) for resource in suspects)
        return tuple(resource for resource in detected if resource.details)

    def new_names(
        self, missing: Iterable[ComparedResource], others: Iterable[QualifiedName]
    ) -> Mapping[str, QualifiedName]:
        """Return the present names of missing tables that were renamed, by resource key.

        Delta's id is the same under both names. It costs two statements per table of their schemas that they can be.

        Args:
            others: those that they can be now.
        """
        ids = {
            table.record.delta_table_id: name
            for table in missing
            for name in [table.name]
            if isinstance(name, QualifiedName)
        }
        ids.pop(None, None)
        schemas = {_schema_key(name) for name in ids.values()}
        candidates = [name for name in others if _schema_key(name) in schemas][:_MOST_CANDIDATES]
        if self._versions is None or not candidates or not self._is_thorough:
            return {}
        versions = self._versions.read_versions(candidates, with_id={name.key for name in candidates})
        present = {version.table_id: key for key, version in versions.items()}
        by_key = {name.key: name for name in candidates}
        return {
            resource_key(name): by_key[present[table_id]]
            for table_id, name in ids.items()
            if table_id in present
        }

    def unreadable(
        self, refusals: Iterable[RefusedError], *, now: datetime
    ) -> tuple[tuple[QualifiedName, ClassifiedDrift], ...]:
        """Return the tables that became another kind of object, or got columns that cannot be managed."""
        return tuple(
            (
                name,
                replace(
                    classified(self._policy, name, _refused(refusal), None, now),
                    way_out=refusal.way_out.removesuffix(".") or _NO_DELTA_TABLE,
                ),
            )
            for refusal in refusals
            if refusal.table is not None
            for name in [QualifiedName(*refusal.table.split("."))]
        )

    def unmanaged(
        self,
        observed: CatalogState,
        managed: Iterable[str],
        others: Mapping[SecurableName, Audit] = MappingProxyType({}),
        *,
        now: datetime,
    ) -> tuple[tuple[SecurableName, ClassifiedDrift], ...]:
        """Return the tables of managed schemas, and the functions, policies and views, that no model declares.

        Args:
            managed: what is declared or applied, by resource key.
            others: creation and last change of the observed functions, policies and views.
        """
        known_keys = set(managed)
        names = [name for name in observed.other_tables if resource_key(name) not in known_keys]
        not_delta = self._not_delta([name for name in names if name.key not in observed.audits])
        undeclared: list[tuple[SecurableName, str, Audit | None]] = [
            (name, NOT_DELTA if name.key in not_delta else "exists", observed.audits.get(name.key))
            for name in names
        ]
        undeclared += [
            (name, "exists", audit) for name, audit in others.items() if resource_key(name) not in known_keys
        ]
        return tuple(
            (name, classified(self._policy, name, difference, _created(audit), now))
            for name, actual, audit in undeclared
            for difference in [Difference(kind=DriftKind.UNMANAGED, change=Change(name.kind, actual))]
        )

    def _not_delta(self, names: Sequence[QualifiedName]) -> set[str]:
        """Return the tables without a history, by key: a listing without audits has any format."""
        if self._history is None or not names:
            return set()
        return {name.key for name in names} - self._history.read_commits(names).keys()

    def _is_suspect(self, resource: ComparedResource) -> bool:
        return _differs(resource) or self._may_be_replaced(resource)

    def _current_versions(self, suspects: Iterable[ComparedResource]) -> Mapping[str, TableVersion]:
        """Read the versions of tables that may have been replaced, by table key."""
        names = [
            table.declared.qualified_name
            for table in suspects
            if is_table(table) and self._may_be_replaced(table)
        ]
        if self._versions is None or not names:
            return MappingProxyType({})
        return self._versions.read_versions(names, with_id={name.key for name in names})

    def _commits(
        self, suspects: Iterable[ComparedResource], versions: Mapping[str, TableVersion]
    ) -> Mapping[str, tuple[Commit, ...]]:
        """Read the history of existing tables that differ, or that their version does not tell from others."""
        names = [
            table.declared.qualified_name
            for table in suspects
            if is_table(table)
            and table.observed.exists
            and (_differs(table) or needs_history(table, versions.get(table.name.key)))
        ]
        return self._history.read_commits(names) if self._history and names else MappingProxyType({})

    def _may_be_replaced(self, resource: ComparedResource) -> bool:
        if self._versions is None or not is_table(resource) or not resource.observed.exists:
            return False
        recorded, shown = resource.record, resource.observed.audit
        is_another = is_created_again(recorded, resource.observed)
        if recorded.delta_table_id is None:
            return bool(is_another)  # nothing else distinguishes it from another table
        if is_another is not None:
            return is_another
        is_unknown = shown.created_at is None and shown.table_id != recorded.delta_table_id
        return self._is_thorough or is_unknown

    def _drifted(
        self,
        resource: ComparedResource,
        versions: Mapping[str, TableVersion],
        histories: Mapping[str, tuple[Commit, ...]],
        now: datetime,
    ) -> ComparedResource:
        """Return a suspect with its drift, and with what its history tells; versions and histories are by table key."""
        replaced, commits = None, tuple[Commit, ...]()
        if is_table(resource):
            key = resource.name.key
            commits = histories.get(key, ())
            replaced = replacement(resource, versions.get(key), commits)
            resource, commits = _with_history(resource, commits, is_replaced=replaced is not None)
        record = resource.record
        written = last_written(resource.observed.audit, record.deployed_at)
        accepted = {accepted_key(drift): Acceptance(by=drift.by, at=drift.at) for drift in record.accepted}
        details = tuple(
            classified(
                self._policy,
                resource.name,
                difference,
                _author(resource, difference, commits),
                now,
                written=written,
                accepted=accepted.get(drift_key(difference)),
            )
            for difference in (*filter(None, [replaced]), *_differences(resource))
        )
        return replace(resource, details=details)


def _schema_key(name: QualifiedName) -> tuple[str, str]:
    return name.catalog.lower(), name.schema.lower()


def _differences(resource: ComparedResource) -> tuple[Difference, ...]:
    return drift_of(resource) if resource.observed.exists else (_deleted(resource),)


def _differs(resource: ComparedResource) -> bool:
    return bool(_differences(resource)) or may_be_renamed(resource)


def _with_history(
    table: ComparedTable, commits: tuple[Commit, ...], *, is_replaced: bool
) -> tuple[ComparedTable, tuple[Commit, ...]]:
    """Return a table under its present names, and the commits that may have changed it, which are all if replaced."""
    recorded = table.record.version
    applied = recorded.version if recorded else None
    news = since_recreated(commits) if is_replaced else since(commits, applied)
    is_whole = bool(commits) and commits[-1].version <= (0 if applied is None else applied + 1)
    moved = {old: new for old, new in renames(news).items() if has_path(table.observed.columns, new)}
    renamed = _of_baseline(moved, table.declared.columns)
    if renamed:
        table = with_new_names(table, Renames(renamed))
    return replace(table, is_history_whole=is_whole), news


def _of_baseline(moved: Mapping[Path, Path], columns: Sequence[Column]) -> Mapping[Path, Path]:
    """Return the renames inside a baseline, without those to the name of a column or field that is missing."""
    former = {lower_path(old) for old in moved}
    kept = {
        old: new
        for old, new in moved.items()
        if has_path(columns, old) and (lower_path(new) in former or not has_path(columns, new))
    }
    return kept if len(kept) == len(moved) else _of_baseline(kept, columns)


def _deleted(resource: ComparedResource) -> Difference:
    record = resource.record
    at, by = record.deployed_at, record.deployed_by
    expected = f"applied {shown_moment(at)} by {by}" if at else "applied"
    return Difference(kind=DELETIONS[record.kind], change=Change(record.kind, desired=expected))


def _refused(refusal: RefusedError) -> Difference:
    column = f"column {refusal.column}: " if refusal.column else ""
    change = Change("table", f"{column}{refusal.reason}", "a Delta table that can be managed")
    return Difference(kind=DriftKind.TABLE_UNREADABLE, change=change)


def _author(
    resource: ComparedResource, difference: Difference, commits: Sequence[Commit]
) -> Attribution | None:
    if difference.kind is DriftKind.TABLE_REPLACED and commits:
        return by_commit(commits[-1])  # the one that created it
    if is_definition(difference.action):
        return _replaced(resource)
    return attribution(difference, commits) if resource.observed.exists else None


def _replaced(resource: ComparedResource) -> Attribution | None:
    """Return the last principal to alter a definition; some platforms do not show when that was."""
    audit, record = resource.observed.audit, resource.record
    if audit.altered_at is None and audit.altered_by not in (None, record.deployed_by):
        return Attribution(who=audit.altered_by)
    return last_written(audit, record.deployed_at)


def _created(audit: Audit | None) -> Attribution | None:
    if audit is None or (audit.created_at is None and audit.created_by is None):
        return None
    return Attribution(who=audit.created_by, at=audit.created_at)
