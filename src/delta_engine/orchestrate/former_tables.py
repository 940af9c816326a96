"""The tables that an undo brings back: what they were, which need RESTORE, and which it would harm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from delta_engine.aspects.protection import HISTORY_HIDDEN, is_protected
from delta_engine.aspects.restores import RestoreTable
from delta_engine.aspects.storage import RETURNS_FOR_DAYS
from delta_engine.drift.baselines import without_gone_parts
from delta_engine.drift.commit_paths import renames
from delta_engine.drift.renames import with_former_names
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.models.nested_types import Path, field_names, lower_path
from delta_engine.ownership.recorded import LastChange, Recorded
from delta_engine.state.states import TableState
from delta_engine.state.table_queries import Commit
from delta_engine.telemetry.context import utc_now
from delta_engine.validation.costs import KEPT_BY_DEFAULT, KEPT_FILES

_INTERVAL: Final = re.compile(r"(?:interval\s+)?(\d{1,5})\s+(week|day|hour|minute)s?", re.IGNORECASE)
_ONLY_RESTORE: Final = "only RESTORE brings its values back"
_DROPS_OF_KEYS: Final = frozenset({"DROP CONSTRAINT", "UNSET TBLPROPERTIES"})
"""The operations of what an undo drops before RESTORE: keys and checks, where they are in Delta's log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerTable:
    """A table and what it was before a run.

    Args:
        name: its present name.
        before: its record before the run.
        after: the record that the run left.
        change: what the run recorded of itself with the table.
        model: as it was declared. It names the present names of what the run renamed.
        baseline: the same with the unmanaged parts of then.
        begun_at: the version from before an undo that did not finish; None if there was none.
        commits: its history, newest first; None if it was not read.
    """

    name: QualifiedName
    before: Recorded[Table]
    after: Recorded[Table]
    change: LastChange
    model: Table
    baseline: Table
    begun_at: int | None = None
    commits: Sequence[Commit] | None = None

    @property
    def restore(self) -> RestoreTable | None:
        """RESTORE, if no statement brings back what the run took away, and none has done so."""
        return None if self.is_restored else self._restore

    @property
    def is_restored(self) -> bool:
        """Whether an undo that did not finish has restored it; RESTORE would take back what came after that."""
        return self._restore is not None and self._restore.is_done_below(self.commits or ())

    @property
    def is_returned(self) -> bool:
        """Whether the run made it a managed table."""
        return self.model.location is not None and self._left.location is None

    @property
    def needs_history(self) -> bool:
        """Whether it is to be restored, or columns or fields may have been renamed."""
        declared = self.after.declared
        if self.restore is not None or declared is None:
            return True
        return _names(declared.columns) != _names(self.model.columns)

    def with_commits(self, commits: Sequence[Commit] | None) -> FormerTable:
        """Return it with its history, which shows renames."""
        since = self.before.delta_version
        if commits is None or since is None:
            return replace(self, commits=commits)
        renamed = renames([commit for commit in commits if commit.version > since])
        return replace(
            self,
            commits=commits,
            model=with_former_names(self.model, renamed),
            baseline=with_former_names(self.baseline, renamed),
        )

    def without_gone_parts(self, observed: TableState) -> FormerTable:
        """Return it without the unmanaged parts that others removed: the run did not remove them."""
        return replace(self, baseline=without_gone_parts(self.baseline, self.after, observed))

    def problem(self, observed: TableState) -> str:
        """Return why it cannot be brought back; empty if it can."""
        if not observed.exists:
            return "it does not exist any more"
        if self.is_returned and observed.location is None and (why := self._why_not_returned()):
            return why
        if self.restore is not None:
            return self._why_hidden(observed) or self._why_not_restored(self.restore, observed)
        if self.change.needs_restore and not self.is_restored:
            unknown = f"{_ONLY_RESTORE}, and its version from before the run is not known"
            return self._why_hidden(observed) or unknown
        declared, present = _names(self.model.columns), _names(observed.columns)
        if self.commits is None and declared - present and present - declared:
            why = HISTORY_HIDDEN if is_protected(observed) else "its history cannot be read"
            return f"{why}, and the run may have renamed columns"
        return ""

    @property
    def _left(self) -> Table:
        """The table as the run left it, as far as its record tells."""
        kept = self.after.attempts[-1] if self.after.attempts else self.after.applied
        return kept.model if kept is not None else self.model

    @property
    def _restore(self) -> RestoreTable | None:
        """RESTORE to the version from before the run. A run records that only if no statement can undo it."""
        former = self.change.version
        if former is None:
            return None
        # an engine before 0.3.0 recorded the former version of a killed run
        is_known = not self.after.attempts and (self.after.delta_version or 0) > former
        return RestoreTable(
            version=former,
            until=self.after.delta_version if is_known else None,
            filled=tuple(sorted(_filled(self._left, self.model))),
            is_rewritten=self._left.partitioned_by != self.model.partitioned_by,
        )

    def _why_not_returned(self) -> str:
        """Return why UNSET MANAGED cannot return it to its former location; empty if it can."""
        made = "the run made it a managed table"
        if self.change.at + timedelta(days=RETURNS_FOR_DAYS) < utc_now():
            return f"{made}, and UNSET MANAGED takes that back only within {RETURNS_FOR_DAYS} days"
        if self.change.needs_restore:
            return f"{made}, and {_ONLY_RESTORE}, which is not safe across that"
        return ""

    def _why_hidden(self, observed: TableState) -> str:
        """Return why a row filter or a mask forbids RESTORE; empty if neither side has one."""
        if is_protected(self.baseline):
            return (
                f"{_ONLY_RESTORE}, which would show what a row filter or a mask hides, until it is set again"
            )
        return f"{_ONLY_RESTORE}, and {HISTORY_HIDDEN}" if is_protected(observed) else ""

    def _why_not_restored(self, restore: RestoreTable, observed: TableState) -> str:
        """Return why its files or its history forbid RESTORE; empty if they do not."""
        kept = kept_for(observed.table_properties.get(KEPT_FILES, KEPT_BY_DEFAULT))
        if kept is None or self.change.at + kept < utc_now():
            return f"{_ONLY_RESTORE}, and the files of that time are no longer kept ({KEPT_FILES})"
        commits = [commit for commit in self.commits or () if not self._is_of_undo(restore, commit)]
        if not commits or min(commit.version for commit in commits) > restore.version + 1:
            return f"{_ONLY_RESTORE}, and its history since the run cannot be read"
        others = list(restore.lost(commits))
        if not others:
            return ""
        first = others[-1]
        who = f" by {first.who}" if first.who else ""
        return (
            f"{_ONLY_RESTORE}, which would take back later changes by others, from version {first.version} on: "
            f"{first.operation}{who}"
        )

    def _is_of_undo(self, restore: RestoreTable, commit: Commit) -> bool:
        """Whether a killed undo of a finished run has made a commit: before RESTORE, it drops keys and checks."""
        if restore.until is None or self.begun_at is None:
            return False
        return commit.version > self.begun_at and commit.operation in _DROPS_OF_KEYS


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


def _names(columns: Sequence[Column]) -> set[Path]:
    """Return the paths of columns and of all fields inside them, in lower case."""
    fields = (
        (column.name, *path, name) for column in columns for path, name in field_names(column.data_type)
    )
    return {(column.key,) for column in columns} | set(map(lower_path, fields))
