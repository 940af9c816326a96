"""Whether another table has the name of an applied one. Pure.

Another table has another Delta id. A catalog-managed table keeps its id when it is replaced (delta-io/delta
7f55e7602e): there its history tells, or its creation time where the history does not. The creation time also decides
for a table whose row filter or masks hide its history, and where no id was recorded for that reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects import Difference
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.comparison import RecordedModels
from delta_engine.aspects.delta_properties import is_catalog_managed
from delta_engine.aspects.partitioning import is_rewritten
from delta_engine.aspects.protection import is_protected
from delta_engine.aspects.restores import REPLACES, RESTORE
from delta_engine.aspects.storage import is_moved
from delta_engine.drift.attribution import since
from delta_engine.drift.drifted_resources import ComparedTable
from delta_engine.models import Table
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import TableState
from delta_engine.state.table_queries import Commit, TableVersion
from delta_engine.telemetry.visible import shown_moment

_REPLACEMENTS: Final = (*REPLACES, "CLONE")
"""How the operations start that replace an existing table."""


def is_created_again(recorded: Recorded[Table], observed: TableState) -> bool | None:
    """Whether a table has another creation time than its record; None if one of the two is unknown."""
    before, present = recorded.created_at, observed.audit.created_at
    return None if before is None or present is None else before != present


def is_replaced_by_run(observed: TableState, record: RecordedModels[Table]) -> bool:
    """Whether an unfinished run has rewritten or moved a table: another table, but not that of another principal."""
    models = record.attempted, record.declared
    return is_rewritten(observed, *models) or is_moved(observed, *models)


def needs_history(table: ComparedTable, version: TableVersion | None) -> bool:
    """Whether the history of a table that may be another one tells more than its present version."""
    recorded, observed = table.record, table.observed
    if is_replaced_by_run(observed, table):
        return False
    if _has_another_id(recorded, version):
        return True
    return is_catalog_managed(observed.table_properties) and not _is_unchanged(recorded, version)


def replacement(
    table: ComparedTable, version: TableVersion | None, commits: Sequence[Commit]
) -> Difference | None:
    """Return the drift of a table that was replaced since the record; None if it is the recorded one.

    Args:
        version: the present one; None if it was not read.
        commits: the latest ones, newest first; empty if they were not read.
    """
    recorded, observed = table.record, table.observed
    if is_replaced_by_run(observed, table):
        return None
    if version is not None and _has_another_id(recorded, version):
        return _replaced(f"id {recorded.delta_table_id}", f"id {version.table_id}")
    if _is_unchanged(recorded, version):
        return None
    applied = recorded.version
    if applied is not None and (commit := _replacing(commits, applied.version)):
        return _replaced(f"version {applied.version}", f"replaced by version {commit.version}")
    is_told = applied is not None and _reach(commits, applied.version)
    is_hidden = version is None and is_protected(observed)
    has_no_id = recorded.delta_table_id is None or is_hidden or is_catalog_managed(observed.table_properties)
    if is_told or not has_no_id or not is_created_again(recorded, observed):
        return None
    moments = (shown_moment(at) for at in (recorded.created_at, observed.audit.created_at) if at is not None)
    return _replaced(*(f"created {moment}" for moment in moments))


def _has_another_id(recorded: Recorded[Table], version: TableVersion | None) -> bool:
    ids = (recorded.delta_table_id, version.table_id if version else None)
    return None not in ids and ids[0] != ids[1]


def _is_unchanged(recorded: Recorded[Table], version: TableVersion | None) -> bool:
    return version is not None and version == recorded.version


def _replacing(commits: Sequence[Commit], applied: int) -> Commit | None:
    """Return the latest commit that replaced the table since a version, unless a RESTORE took it back."""
    news = takewhile(lambda commit: not _takes_back(commit, applied), since(commits, applied))
    return next((commit for commit in news if commit.operation.startswith(_REPLACEMENTS)), None)


def _takes_back(commit: Commit, applied: int) -> bool:
    """Whether a commit restores a version that the table had before all that came since a version."""
    version = commit.parameters.get("version", "")
    return commit.operation.startswith(RESTORE) and version.isdecimal() and int(version) <= applied


def _reach(commits: Sequence[Commit], applied: int) -> bool:
    """Whether commits, newest first, are all that a table has had since a version."""
    return bool(commits) and commits[0].version >= applied and commits[-1].version <= applied + 1


def _replaced(expected: str, actual: str) -> Difference:
    change = Change("table", observed=actual, desired=expected)
    return Difference(kind=DriftKind.TABLE_REPLACED, change=change)
