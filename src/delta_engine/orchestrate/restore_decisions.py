"""RESTORE in the undo of a run: the tables that need it, and those that it would harm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from delta_engine.aspects.protection import HISTORY_HIDDEN, is_protected
from delta_engine.aspects.restores import RestoreTable
from delta_engine.aspects.storage import RETURNS_FOR_DAYS
from delta_engine.models import Table
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import TableState
from delta_engine.state.table_queries import Commit
from delta_engine.telemetry.context import utc_now
from delta_engine.validation.costs import KEPT_BY_DEFAULT, KEPT_FILES

_INTERVAL: Final = re.compile(r"(?:interval\s+)?(\d{1,5})\s+(week|day|hour|minute)s?", re.IGNORECASE)
_ONLY_RESTORE: Final = "only RESTORE brings its values back"


def restore_of(after: Recorded[Table], before: Table) -> RestoreTable | None:
    """Return how a table is restored to its version before a run; None if statements undo the run.

    Args:
        after: the record that the run left.
        before: what was declared before it.
    """
    if after.change is None or after.change.version is None:
        return None
    left, former = _left(after, before), after.change.version
    # a killed run records the former version
    is_known = not after.attempts and (after.delta_version or 0) > former
    return RestoreTable(
        version=former,
        until=after.delta_version if is_known else None,
        filled=tuple(sorted(_filled(left, before))),
        is_rewritten=left.partitioned_by != before.partitioned_by,
    )


def is_made_managed(after: Recorded[Table], before: Table) -> bool:
    """Whether a run made a managed table of an external one; see `restore_of`."""
    return before.location is not None and _left(after, before).location is None


def why_not_returned(after: Recorded[Table]) -> str:
    """Return why UNSET MANAGED cannot return a table to its former location; empty if it can."""
    change = after.change
    made = "the run made it a managed table"
    if change is None or change.at + timedelta(days=RETURNS_FOR_DAYS) < utc_now():
        return f"{made}, and UNSET MANAGED takes that back only within {RETURNS_FOR_DAYS} days"
    if change.needs_restore:
        return f"{made}, and only RESTORE brings its values back, which is not safe across that"
    return ""


def _left(after: Recorded[Table], before: Table) -> Table:
    """Return the table as a run left it, as far as its record tells."""
    kept = after.attempts[-1] if after.attempts else after.applied
    return kept.model if kept is not None else before


def why_hidden(declared: Table, observed: TableState) -> str:
    """Return why a row filter or a mask forbids RESTORE; empty if neither side has one."""
    if is_protected(declared):
        return f"{_ONLY_RESTORE}, which would show what a row filter or a mask hides, until it is set again"
    return f"{_ONLY_RESTORE}, and {HISTORY_HIDDEN}" if is_protected(observed) else ""


def why_not_restored(
    after: Recorded[Table],
    restore: RestoreTable,
    declared: Table,
    observed: TableState,
    commits: Sequence[Commit] | None,
) -> str:
    """Return why a table must not be restored; empty if it may.

    Args:
        after: the record that the run left.
        declared: the table as it was.
        observed: the table as it is.
        commits: its history, newest first; None if it could not be read.
    """
    if why := why_hidden(declared, observed):
        return why
    assert after.change is not None
    kept = kept_for(observed.table_properties.get(KEPT_FILES, KEPT_BY_DEFAULT))
    if kept is None or after.change.at + kept < utc_now():
        return f"{_ONLY_RESTORE}, and its files of then are kept no longer ({KEPT_FILES})"
    if not commits or min(commit.version for commit in commits) > restore.version + 1:
        return f"{_ONLY_RESTORE}, and its history since the run cannot be read"
    others = list(restore.lost(commits))
    if not others:
        return ""
    first = others[-1]
    who = f" by {first.who}" if first.who else ""
    return (
        f"{_ONLY_RESTORE}, which would take back what others did since, from version {first.version} on: "
        f"{first.operation}{who}"
    )


def _filled(after: Table, before: Table) -> Iterator[str]:
    """Yield the columns that a run added or tightened: those that it may have given values in place."""
    columns_before = {column.key: column for column in before.columns}
    for column in after.columns:
        former = columns_before.get(column.key)
        if former is None or (former.is_nullable and not column.is_nullable):
            yield column.name


def kept_for(text: str) -> timedelta | None:
    """Return how long Delta keeps the files of former versions; None if the table's setting is not understood."""
    match = _INTERVAL.fullmatch(text.strip())
    return timedelta(**{f"{match[2].lower()}s": int(match[1])}) if match else None
