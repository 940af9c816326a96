"""The detector: the deployment state against the catalog state, table by table, and who did it.

Statements are spent on changed tables alone: a clean run costs nothing beyond its snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from delta_engine.actions.drift_policy import DriftKind, DriftPolicy
from delta_engine.actions.policy import NO_POLICY, Policy, as_applied
from delta_engine.deployment.definitions import as_table
from delta_engine.deployment.document import DeploymentState, Resource
from delta_engine.deployment.left_alone import others_of
from delta_engine.deployment.resources import table_key
from delta_engine.deployment.synchronizer import is_half_done
from delta_engine.drift.attribution import (
    attribution,
    by_commit,
    last_written,
    renames,
    since,
    since_made_anew,
)
from delta_engine.drift.comparison import Applied, Deviation, deviations
from delta_engine.drift.drift_report import NOT_DELTA, Attribution
from delta_engine.drift.judgement import Detected, judged
from delta_engine.drift.schemas import DetectedSchema, detect_schemas
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName
from delta_engine.state.states import Audit, CatalogState, TableState
from delta_engine.state.table_queries import Commit, TableHistoryReader, TableVersion, TableVersionReader


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedTable:
    """A table that is not as it was applied.

    Args:
        name: the table.
        applied: what was applied.
        observed: the table as it is; absent for a deleted one.
        version: where the table stands, if that was asked.
        is_history_whole: whether every commit since the apply was looked at: renames are known then.
        field_renames: what commits renamed inside columns, new paths by old ones, dotted and in lower case.
        details: what is different.
    """

    name: QualifiedName
    applied: Applied
    observed: TableState
    version: TableVersion | None
    is_history_whole: bool
    field_renames: Mapping[str, str] = field(default_factory=dict)
    details: tuple[Detected, ...]

    @property
    def resource(self) -> str:
        """The table's key in the deployment state."""
        return table_key(self.name)

    @property
    def drift(self) -> tuple[Detected, ...]:
        """What the policy does not ignore."""
        return tuple(detail for detail in self.details if detail.ignored_by is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suspect:
    """A table that needs a second look."""

    name: QualifiedName
    resource: Resource
    applied: Applied
    observed: TableState
    is_different: bool
    version: TableVersion | None = None
    commits: tuple[Commit, ...] = ()
    is_history_whole: bool = False


class DriftDetector:
    """Finds what changed since it was applied.

    Args:
        policy: how bad things are, and what is ignored.
        plan_policy: whose the tags and privileges are that nobody applied.
        versions: asks for the ids of tables that may have been replaced.
        history: asks who did it; nobody is asked without it.
        is_thorough: whether to ask for ids also where nobody knows when a table was created.
    """

    def __init__(
        self,
        policy: DriftPolicy,
        *,
        plan_policy: Policy = NO_POLICY,
        versions: TableVersionReader | None = None,
        history: TableHistoryReader | None = None,
        is_thorough: bool = True,
    ) -> None:
        self._policy = policy
        self._held = as_applied(plan_policy)
        self._versions = versions
        self._history = history
        self._is_thorough = is_thorough

    def detect(
        self, state: DeploymentState, observed: CatalogState, *, now: datetime
    ) -> tuple[DetectedTable, ...]:
        """Return the tables that are not as they were applied, sorted by name.

        Args:
            state: what was applied. What a run left half done is nobody's drift.
            observed: a snapshot; tables that it does not cover are left out.
            now: when it was taken; entries of the policy expire.
        """
        suspects = [
            suspect
            for suspect in _applied_tables(state, observed, self._held)
            if suspect.is_different or self._may_be_replaced(suspect)
        ]
        suspects = self._looked_at_again(suspects)
        found = (self._detected(suspect, now) for suspect in suspects)
        return tuple(table for table in found if table.details)

    def unreadable(
        self, refusals: Iterable[RefusedError], *, now: datetime
    ) -> tuple[tuple[QualifiedName, Detected], ...]:
        """Return the tables that became something else, or got columns that nobody can manage.

        Args:
            refusals: why they could not be read.
            now: when that was.
        """
        return tuple(
            (name, judged(self._policy, name, _refused(refusal), None, now))
            for refusal in refusals
            for name in [QualifiedName(*str(refusal.table).split("."))]
        )

    def unmanaged(
        self, observed: CatalogState, managed: Iterable[str], *, now: datetime
    ) -> tuple[tuple[QualifiedName, Detected], ...]:
        """Return the tables of managed schemas that nobody declared.

        Args:
            observed: a snapshot.
            managed: the keys (`QualifiedName.key`) of tables that somebody declared or applied.
            now: when it was taken.
        """
        known = set(managed)
        found = [name for name in observed.other_tables if name.key not in known]
        others = self._not_delta([name for name in found if name.key not in observed.audits])
        return tuple(
            (name, judged(self._policy, name, deviation, _created(observed.audits.get(name.key)), now))
            for name in found
            for deviation in [_unmanaged(NOT_DELTA if name.key in others else "exists")]
        )

    def _not_delta(self, names: Sequence[QualifiedName]) -> set[str]:
        """Return those of some tables that have no history, by key: a listing without audits has any format."""
        if self._history is None or not names:
            return set()
        return {name.key for name in names} - self._history.read_commits(names).keys()

    def schemas(
        self, state: DeploymentState, observed: CatalogState, *, now: datetime
    ) -> tuple[DetectedSchema, ...]:
        """Return the schemas that are not as they were applied; see `detect_schemas`."""
        return detect_schemas(self._policy, state, observed, held=self._held, now=now)

    def _looked_at_again(self, suspects: Sequence[_Suspect]) -> list[_Suspect]:
        """Ask for ids and for histories, each at once for all tables that need it."""
        present = [suspect for suspect in suspects if suspect.observed.exists]
        versions = self._current_versions([suspect for suspect in present if self._may_be_replaced(suspect)])
        changed = [one for one in present if one.is_different or _is_replaced(one, versions)]
        commits = (
            self._history.read_commits([one.name for one in changed]) if self._history and changed else {}
        )
        return [
            _with_history(suspect, versions.get(suspect.name.key), commits.get(suspect.name.key, ()))
            for suspect in suspects
        ]

    def _current_versions(self, suspects: Sequence[_Suspect]) -> Mapping[str, TableVersion]:
        if self._versions is None or not suspects:
            return MappingProxyType({})
        names = [suspect.name for suspect in suspects]
        return self._versions.read_versions(names, with_id={name.key for name in names})

    def _may_be_replaced(self, suspect: _Suspect) -> bool:
        """Whether the table's id has to be asked for: it was created at another time, or nobody knows when."""
        metadata = suspect.resource.metadata
        if self._versions is None or metadata.delta_table_id is None or not suspect.observed.exists:
            return False
        if metadata.created_at is None or suspect.observed.audit.created_at is None:
            return self._is_thorough
        return metadata.created_at != suspect.observed.audit.created_at

    def _detected(self, suspect: _Suspect, now: datetime) -> DetectedTable:
        return DetectedTable(
            name=suspect.name,
            applied=suspect.applied,
            observed=suspect.observed,
            version=suspect.version,
            is_history_whole=suspect.is_history_whole,
            field_renames={_plain(old): _plain(new) for old, new in renames(suspect.commits).items()},
            details=tuple(
                judged(
                    self._policy,
                    suspect.name,
                    deviation,
                    _author(suspect, deviation),
                    now,
                    written=last_written(suspect.observed.audit, suspect.resource.deployed_at),
                )
                for deviation in _deviations(suspect)
            ),
        )


def _applied_tables(state: DeploymentState, observed: CatalogState, held: Policy) -> Iterator[_Suspect]:
    """Yield the applied tables that the snapshot covers."""
    for _, resource in sorted(state.resources.items()):
        definition = resource.metadata.definition
        attempted = tuple(map(as_table, resource.metadata.attempted))
        if definition is None or (is_half_done(resource) and not attempted):
            continue  # nothing to compare with, or nobody knows what runs did
        name = QualifiedName(definition.catalog, definition.schema, definition.name)
        if name.key not in observed.tables:
            continue
        table = observed.table(name)
        applied = Applied(
            table=as_table(definition),
            with_others=others_of(resource.metadata),
            column_order=resource.metadata.column_order,
            renames={},
            attempted=attempted,
            policy=held,
        )
        is_different = not table.exists or bool(deviations(applied, table))
        yield _Suspect(
            name=name, resource=resource, applied=applied, observed=table, is_different=is_different
        )


def _is_replaced(suspect: _Suspect, versions: Mapping[str, TableVersion]) -> bool:
    version = versions.get(suspect.name.key)
    recorded = suspect.resource.metadata.delta_table_id
    return version is not None and version.table_id is not None and version.table_id != recorded


def _with_history(suspect: _Suspect, version: TableVersion | None, commits: tuple[Commit, ...]) -> _Suspect:
    """Add what was learned: a new table's history is all news, and renames change what to compare with."""
    is_replaced = version is not None and _is_replaced(suspect, {suspect.name.key: version})
    recorded = suspect.resource.metadata.delta_version
    news = since_made_anew(commits) if is_replaced else since(commits, recorded)
    is_whole = recorded is not None and bool(commits) and commits[-1].version <= recorded + 1
    if version is None and commits:
        version = TableVersion(table_id=suspect.resource.metadata.delta_table_id, version=commits[0].version)
    columns = {column.key for column in suspect.applied.table.columns}
    present = {column.key for column in suspect.observed.columns}
    renamed = {
        old: new
        for old, new in renames(news).items()
        if old.lower() in columns and old.lower() not in present and new.lower() in present
    }
    return replace(
        suspect,
        version=version,
        commits=news,
        is_history_whole=is_whole,
        applied=replace(suspect.applied, renames=renamed),
    )


def _plain(path: str) -> str:
    """Return a path as Delta logs it without the backticks around odd names."""
    return path.replace("`", "").lower()


def _deviations(suspect: _Suspect) -> tuple[Deviation, ...]:
    if not suspect.observed.exists:
        return (
            Deviation(kind=DriftKind.TABLE_DELETED, field="table", expected=_deployed(suspect), actual=None),
        )
    found = _without_lag(suspect, deviations(suspect.applied, suspect.observed))
    key = suspect.name.key
    if suspect.version is None or not _is_replaced(suspect, {key: suspect.version}):
        return found
    replaced = Deviation(
        kind=DriftKind.TABLE_REPLACED,
        field="table",
        expected=f"id {suspect.resource.metadata.delta_table_id}",
        actual=f"id {suspect.version.table_id}",
    )
    return (replaced, *found)


def _without_lag(suspect: _Suspect, found: tuple[Deviation, ...]) -> tuple[Deviation, ...]:
    """Leave out what the catalog showed wrongly right after our own apply, and still does."""
    lag = {(one.field, one.expected, one.actual) for one in suspect.resource.metadata.lag}
    return tuple(one for one in found if (one.field, one.expected, one.actual) not in lag)


def _unmanaged(actual: str) -> Deviation:
    return Deviation(kind=DriftKind.UNMANAGED, field="table", expected=None, actual=actual)


def _refused(refusal: RefusedError) -> Deviation:
    column = f"column {refusal.column}: " if refusal.column else ""
    return Deviation(
        kind=DriftKind.TABLE_UNREADABLE,
        field="table",
        expected="a Delta table that can be managed",
        actual=f"{column}{refusal.reason}",
    )


def _deployed(suspect: _Suspect) -> str:
    at, by = suspect.resource.deployed_at, suspect.resource.deployed_by
    return f"applied {at:%Y-%m-%d %H:%M:%S} by {by}" if at else "applied"


def _author(suspect: _Suspect, deviation: Deviation) -> Attribution | None:
    if deviation.kind is DriftKind.TABLE_REPLACED and suspect.commits:
        return by_commit(suspect.commits[-1])  # the one that made it
    if not suspect.observed.exists:
        return None
    return attribution(deviation, suspect.commits)


def _created(audit: Audit | None) -> Attribution | None:
    if audit is None or (audit.created_at is None and audit.created_by is None):
        return None
    return Attribution(who=audit.created_by, at=audit.created_at, operation="CREATE TABLE")
