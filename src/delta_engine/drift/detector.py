"""Turns changes since the baseline into drift, with its authors. Only changed tables cost statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from delta_engine.actions.drift_policy import DriftKind, DriftPolicy
from delta_engine.aspects import Difference
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.comparison import SecurableState
from delta_engine.aspects.renames import Renames
from delta_engine.deployment.document import SchemaResource, TableResource
from delta_engine.deployment.resources import is_half_done, recorded_version
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
    deviations,
    drift_key,
    explained,
    may_be_renamed,
    with_new_names,
)
from delta_engine.drift.drifted_resources import (
    NOT_DELTA,
    Acceptance,
    Attribution,
    ClassifiedDrift,
    ComparedResource,
    Drifted,
    DriftedResource,
    classified,
)
from delta_engine.drift.renames import has_path
from delta_engine.drift.replacements import (
    is_created_again,
    is_replaced_by_run,
    needs_history,
    replacement,
)
from delta_engine.errors import RefusedError
from delta_engine.models import Column, QualifiedName, Schema, SchemaName
from delta_engine.models.nested_types import Path, lower_path
from delta_engine.state.states import Audit, CatalogState, SchemaState
from delta_engine.state.table_queries import Commit, TableHistoryReader, TableVersion, TableVersionReader
from delta_engine.telemetry.visible import shown_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suspect:
    """A table or schema that may have drifted: it differs, or may have been replaced."""

    compared: ComparedResource
    found: tuple[Difference, ...]
    version: TableVersion | None = None
    commits: tuple[Commit, ...] = ()
    is_history_whole: bool = False

    @property
    def name(self) -> QualifiedName | SchemaName:
        return self.compared.name

    @property
    def observed(self) -> SecurableState:
        return self.compared.observed

    @property
    def applied_version(self) -> TableVersion | None:
        resource = self.compared.resource
        return recorded_version(resource.metadata) if isinstance(resource, TableResource) else None


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

    def detect(self, records: Iterable[ComparedResource], *, now: datetime) -> tuple[DriftedResource, ...]:
        """Return the drifted schemas, then the drifted tables, each sorted by name.

        Half-done changes of a run are not drift. Entries of the policy expire at `now`, the time of the snapshot.
        """
        suspects = [
            suspect
            for suspect in map(_suspect, filter(_is_known, records))
            if suspect.found or may_be_renamed(suspect.compared) or self._may_be_replaced(suspect)
        ]
        return tuple(
            self._drifted(suspect, now) for suspect in self._with_evidence(suspects) if suspect.found
        )

    def new_names(
        self, missing: Iterable[ComparedResource], others: Iterable[QualifiedName]
    ) -> Mapping[str, QualifiedName]:
        """Return the present names of missing tables that were renamed, by their recorded keys.

        Delta's id is the same under both names. It costs two statements per undeclared table of their schemas.

        Args:
            others: the undeclared tables of the models' schemas.
        """
        ids = {
            found.resource.metadata.delta_table_id: name
            for found in missing
            for name in [found.name]
            if isinstance(found.resource, TableResource) and isinstance(name, QualifiedName)
        }
        ids.pop(None, None)
        schemas = {_schema_key(name) for name in ids.values()}
        candidates = [name for name in others if _schema_key(name) in schemas][:_MOST_CANDIDATES]
        if self._versions is None or not candidates or not self._is_thorough:
            return {}
        versions = self._versions.read_versions(candidates, with_id={name.key for name in candidates})
        present = {version.table_id: key for key, version in versions.items()}
        by_key = {name.key: name for name in candidates}
        return {name.key: by_key[present[known]] for known, name in ids.items() if known in present}

    def unreadable(
        self, refusals: Iterable[RefusedError], *, now: datetime
    ) -> tuple[tuple[QualifiedName, ClassifiedDrift], ...]:
        """Return the tables that became another kind of object, or got columns that cannot be managed."""
        return tuple(
            (
                name,
                replace(
                    classified(self._policy, name, _refused(refusal), None, now), way_out=refusal.way_out
                ),
            )
            for refusal in refusals
            for name in [QualifiedName(*str(refusal.table).split("."))]
        )

    def unmanaged(
        self, observed: CatalogState, managed: Iterable[str], *, now: datetime
    ) -> tuple[tuple[QualifiedName, ClassifiedDrift], ...]:
        """Return the tables of managed schemas whose keys are not in `managed`, the declared and applied ones."""
        known = set(managed)
        found = [name for name in observed.other_tables if name.key not in known]
        others = self._not_delta([name for name in found if name.key not in observed.audits])
        return tuple(
            (name, classified(self._policy, name, difference, _created(observed.audits.get(name.key)), now))
            for name in found
            for actual in [NOT_DELTA if name.key in others else "exists"]
            for difference in [Difference(kind=DriftKind.UNMANAGED, change=Change("table", actual))]
        )

    def _not_delta(self, names: Sequence[QualifiedName]) -> set[str]:
        """Return the tables without a history, by key: a listing without audits has any format."""
        if self._history is None or not names:
            return set()
        return {name.key for name in names} - self._history.read_commits(names).keys()

    def _with_evidence(self, suspects: Sequence[_Suspect]) -> list[_Suspect]:
        present = [suspect for suspect in suspects if suspect.observed.exists]
        versions = self._current_versions([suspect for suspect in present if self._may_be_replaced(suspect)])
        changed = _table_names(
            suspect
            for suspect in present
            if suspect.found
            or may_be_renamed(suspect.compared)
            or (self._may_be_replaced(suspect) and _needs_history(suspect, versions))
        )
        commits = self._history.read_commits(changed) if self._history and changed else {}
        return [
            _with_history(suspect, versions.get(suspect.name.key), commits.get(suspect.name.key, ()))
            for suspect in suspects
        ]

    def _current_versions(self, suspects: Sequence[_Suspect]) -> Mapping[str, TableVersion]:
        names = _table_names(suspects)
        if self._versions is None or not names:
            return MappingProxyType({})
        return self._versions.read_versions(names, with_id={name.key for name in names})

    def _may_be_replaced(self, suspect: _Suspect) -> bool:
        resource, observed = suspect.compared.resource, suspect.observed
        if self._versions is None or isinstance(resource, SchemaResource) or not observed.exists:
            return False
        if isinstance(observed, SchemaState):
            return False
        is_another = is_created_again(resource.metadata, observed)
        if resource.metadata.delta_table_id is None:
            return bool(is_another)  # nothing else distinguishes it from another table
        if is_another is not None:
            return is_another
        shown = observed.audit
        is_unknown = shown.created_at is None and shown.table_id != resource.metadata.delta_table_id
        return self._is_thorough or is_unknown

    def _drifted(self, suspect: _Suspect, now: datetime) -> DriftedResource:
        resource = suspect.compared.resource
        written = last_written(suspect.observed.audit, resource.deployed_at)
        accepted = {
            accepted_key(drift): Acceptance(by=drift.by, at=drift.at) for drift in resource.metadata.accepted
        }
        return Drifted(
            recorded=suspect.compared.recorded,
            model_name=suspect.compared.model_name,
            observed=suspect.observed,
            version=suspect.version,
            is_history_whole=suspect.is_history_whole,
            explained=explained(suspect.compared) if suspect.observed.exists else (),
            details=tuple(
                classified(
                    self._policy,
                    suspect.name,
                    difference,
                    _author(suspect, difference),
                    now,
                    written=written,
                    accepted=accepted.get(drift_key(difference)),
                )
                for difference in suspect.found
            ),
        )


def _schema_key(name: QualifiedName) -> tuple[str, str]:
    return name.catalog.lower(), name.schema.lower()


def _is_known(one: ComparedResource) -> bool:
    """Whether it is known what runs of the engine did to it."""
    return not is_half_done(one.resource) or bool(one.recorded.attempted)


def _suspect(one: ComparedResource) -> _Suspect:
    return _Suspect(compared=one, found=deviations(one) if one.observed.exists else (_deleted(one),))


def _table_names(suspects: Iterable[_Suspect]) -> list[QualifiedName]:
    return [one.name for one in suspects if isinstance(one.name, QualifiedName)]


def _needs_history(suspect: _Suspect, versions: Mapping[str, TableVersion]) -> bool:
    resource, observed = suspect.compared.resource, suspect.observed
    if isinstance(resource, SchemaResource) or isinstance(observed, SchemaState) or _is_rewritten(suspect):
        return False
    return needs_history(resource.metadata, observed, versions.get(suspect.name.key))


def _replacement(
    suspect: _Suspect, version: TableVersion | None, commits: Sequence[Commit]
) -> Difference | None:
    resource, observed = suspect.compared.resource, suspect.observed
    if isinstance(resource, SchemaResource) or isinstance(observed, SchemaState) or _is_rewritten(suspect):
        return None
    return replacement(resource.metadata, observed, version, commits)


def _is_rewritten(suspect: _Suspect) -> bool:
    """Whether a run of the engine that did not finish has replaced or moved the table."""
    recorded, observed = suspect.compared.recorded, suspect.observed
    if isinstance(recorded.declared, Schema) or isinstance(observed, SchemaState):
        return False
    attempted = [model for model in recorded.attempted if not isinstance(model, Schema)]
    return is_replaced_by_run(observed, attempted, recorded.declared)


def _with_history(suspect: _Suspect, version: TableVersion | None, commits: tuple[Commit, ...]) -> _Suspect:
    """Return the suspect with its history: all commits of a replaced table count, renames shift the baseline."""
    declared, known = suspect.compared.recorded.declared, suspect.applied_version
    if isinstance(declared, Schema) or isinstance(suspect.observed, SchemaState):
        return suspect
    replaced = _replacement(suspect, version, commits)
    known_id, known_version = (known.table_id, known.version) if known else (None, None)
    news = since_recreated(commits) if replaced else since(commits, known_version)
    since_when = -1 if known_version is None else known_version
    is_whole = bool(commits) and commits[-1].version <= since_when + 1
    if version is None and commits:
        version = TableVersion(table_id=known_id, version=commits[0].version)
    moved = {old: new for old, new in renames(news).items() if has_path(suspect.observed.columns, new)}
    renamed = _of_baseline(moved, declared.columns)
    compared, found = suspect.compared, suspect.found
    if renamed:
        compared = with_new_names(compared, Renames(renamed))
        found = deviations(compared)
    if replaced is not None:
        found = (replaced, *found)
    return replace(
        suspect, compared=compared, found=found, version=version, commits=news, is_history_whole=is_whole
    )


def _of_baseline(found: Mapping[Path, Path], columns: Sequence[Column]) -> Mapping[Path, Path]:
    """Return the renames inside a baseline, without those to the name of a column or field that is missing."""
    former = {lower_path(old) for old in found}
    kept = {
        old: new
        for old, new in found.items()
        if has_path(columns, old) and (lower_path(new) in former or not has_path(columns, new))
    }
    return kept if len(kept) == len(found) else _of_baseline(kept, columns)


def _deleted(one: ComparedResource) -> Difference:
    resource = one.resource
    is_schema = isinstance(resource, SchemaResource)
    kind = DriftKind.SCHEMA_DELETED if is_schema else DriftKind.TABLE_DELETED
    at, by = resource.deployed_at, resource.deployed_by
    expected = f"applied {shown_moment(at)} by {by}" if at else "applied"
    return Difference(kind=kind, change=Change(resource.type.value, desired=expected))


def _refused(refusal: RefusedError) -> Difference:
    column = f"column {refusal.column}: " if refusal.column else ""
    change = Change("table", f"{column}{refusal.reason}", "a Delta table that can be managed")
    return Difference(kind=DriftKind.TABLE_UNREADABLE, change=change)


def _author(suspect: _Suspect, difference: Difference) -> Attribution | None:
    if difference.kind is DriftKind.TABLE_REPLACED and suspect.commits:
        return by_commit(suspect.commits[-1])  # the one that created it
    if not suspect.observed.exists:
        return None
    return attribution(difference, suspect.commits)


def _created(audit: Audit | None) -> Attribution | None:
    if audit is None or (audit.created_at is None and audit.created_by is None):
        return None
    return Attribution(who=audit.created_by, at=audit.created_at)
