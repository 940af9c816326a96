"""RESTORE: the way back from a run whose statements have no opposites. Only an undo plans it.

It brings back rows, columns, partitions, checks, properties and Delta's id (measured on 4.3.1), in one commit. Keys,
tags, rights, filters and masks are the catalog's, and no version of a table has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from delta_engine.actions import Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, takes_modify
from delta_engine.aspects.conversions import is_reserved_name
from delta_engine.sql.tables import sql_restore
from delta_engine.state.table_queries import Commit

RESTORE: Final = "RESTORE"
REPLACES: Final = ("CREATE OR REPLACE TABLE", "REPLACE TABLE")
"""How the operations of replaced tables start."""

UPDATE: Final = "UPDATE"
MERGE: Final = "MERGE"
"""The operations of fills."""

_EQUALITY: Final = re.compile("(?<![<>])=")
"""An equality; the ranges of fills have `>=` and `<`."""

_QUOTES: Final = str.maketrans(dict.fromkeys('`"\\'))

RENAME: Final = "RENAME COLUMN"
"""The operation of renamed columns and fields."""

COLUMN_CHANGES: Final = (
    *("ADD COLUMNS", RENAME, "DROP COLUMNS", "REPLACE COLUMNS", "UPDATE SCHEMA"),
    *("CREATE", "REPLACE TABLE", RESTORE),
)
"""How the operations start after which a table may have other columns."""

_UPKEEP: Final = frozenset({"OPTIMIZE", "REORG", "VACUUM START", "VACUUM END"})
"""Operations that change neither rows nor definitions (Delta documentation, "Operation metrics")."""

DEFINITIONS: Final = frozenset(
    {
        "ADD COLUMNS", "ADD CONSTRAINT", "CHANGE COLUMN", "CHANGE COLUMNS", "CLUSTER BY", "DROP COLUMNS",
        "DROP CONSTRAINT", "RENAME COLUMN", "REPLACE COLUMNS", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES",
        "UPDATE COLUMN METADATA", "UPDATE SCHEMA", "UPGRADE PROTOCOL",
    }
)  # fmt: skip
"""Operations that change definitions alone. One that is not known here counts as a change of rows."""


@dataclass(frozen=True, slots=True)
class RestoreTable:
    """Bring a table back to a version.

    Args:
        version: from before the run that is undone.
        until: the version that the run left: later commits are not the run's. None for a run that did not finish.
        filled: the columns that the run may have given values in place.
        is_rewritten: whether the run has replaced the table by its own rows.
    """

    phase: ClassVar[Phase] = Phase.RESTORE_TABLE
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.LOCKS, Hazard.BREAKS_READERS)
    version: int
    until: int | None = None
    filled: tuple[str, ...] = ()
    is_rewritten: bool = False

    def lost(self, commits: Sequence[Commit]) -> Iterator[Commit]:
        """Yield the commits since the version that have rows or definitions of others: RESTORE would take them back."""
        for commit in commits:
            is_later = self.until is not None and commit.version > self.until
            is_ours = (
                commit.operation in {RESTORE, *DEFINITIONS}
                or self._is_fill(commit)
                or (self.is_rewritten and commit.operation.startswith(REPLACES))
            )
            if commit.version <= self.version or commit.operation in _UPKEEP or self.is_done_by(commit):
                continue
            if is_later or not is_ours:
                yield commit

    def lost_rows(self, commits: Sequence[Commit]) -> Iterator[Commit]:
        """Yield those that have rows. A plan was checked for definitions, and keys may be properties of the table."""
        yield from (commit for commit in self.lost(commits) if commit.operation not in DEFINITIONS)

    def is_done_by(self, commit: Commit) -> bool:
        """Whether a commit has restored this version."""
        return commit.operation == RESTORE and commit.parameters.get("version") == str(self.version)

    def is_done_below(self, commits: Sequence[Commit]) -> bool:
        """Whether a run has restored this version, and was killed, and others came after it; newest commit first."""
        restores = [commit for commit in commits if commit.operation == RESTORE]
        return bool(restores) and self.is_done_by(restores[0]) and restores[0] is not commits[0]

    def _is_fill(self, commit: Commit) -> bool:
        """Whether a commit gave rows the values of a `using`: its condition names the column."""
        names_filled = any(names_column(commit.parameters, name) for name in self.filled)
        is_possible = may_be_fill(commit.operation, commit.parameters)
        return is_possible and (names_filled or _names_reserved(str(commit.parameters).lower()))


def may_change_values(commit: Commit) -> bool:
    """Whether a commit may have changed values of existing rows, rather than added or deleted rows."""
    is_append = "Append" in (commit.parameters.get("mode"), commit.parameters.get("outputMode"))
    return not is_append and commit.operation not in {*_UPKEEP, *DEFINITIONS, "DELETE"}


def may_be_fill(operation: str, parameters: object) -> bool:
    """Whether a commit may have filled columns. A MERGE that compares keys or adds rows is one of others."""
    if operation == MERGE and isinstance(parameters, Mapping):
        adds_none = str(parameters.get("notMatchedPredicates", "[]")) == "[]"
        return adds_none and not _EQUALITY.search(str(parameters.get("predicate", "=")))
    return operation == UPDATE


def names_column(parameters: object, name: str) -> bool:
    """Whether the parameters of a commit name a column, as SQL in JSON: quotes and backslashes may be escaped."""
    return unquoted(name) in unquoted(str(parameters))


def unquoted(text: str) -> str:
    """Return a text in lower case, without quotes, backticks and backslashes."""
    return text.translate(_QUOTES).lower()


def _names_reserved(condition: str) -> bool:
    return any(is_reserved_name(word) for word in condition.replace("`", " ").replace("(", " ").split())


def _render(actions: Sequence[RestoreTable], context: RenderContext) -> Iterable[str]:
    for action in actions:
        yield sql_restore(context.table, action.version)


def _explain(action: RestoreTable) -> Iterable[Change]:
    yield Change("rows and columns", "as the run left them", f"as in version {action.version}")


ASPECT: Aspect[RestoreTable] = Aspect(
    name="restores",
    part=None,
    actions={RestoreTable: takes_modify("RESTORE TABLE", "RESTORE")},
    diff=lambda _comparison: (),
    render=_render,
    explain=_explain,
    drift_kind=lambda _action: DriftKind.TABLE_REPLACED,
)
