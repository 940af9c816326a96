"""The logs of the fake catalog's tables: what each statement committed, and who ran it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from delta_engine.aspects.delta_properties import is_catalog_managed
from delta_engine.backends.sql_runner import Row
from delta_engine.models import CheckConstraint
from delta_engine.state.audits import NO_AUDIT, Audit
from delta_engine.state.states import TableState
from tests.fakes.unity_catalog import statements
from tests.fakes.unity_catalog.refusals import Refusal
from tests.fakes.unity_catalog.statements import Path

_CREATIONS = ("CREATE TABLE", "CREATE OR REPLACE TABLE")
"""How the operations start that give a table another creation time."""

_START = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Commit:
    """A version of a table: `operation` and `parameters` as Delta's log words them."""

    at: datetime
    user: str
    operation: str
    parameters: Mapping[str, str]


class Histories:
    """The commits of every table by its name in lower case. Each commit is a minute after the one before."""

    def __init__(self) -> None:
        self._tables: dict[str, tuple[Commit, ...]] = {}
        self._minutes = 0
        self._ids: dict[str, str] = {}
        self._created: Counter[str] = Counter()
        self._states: dict[str, dict[int, TableState]] = {}

    def note(self, statement: statements.Statement, user: str, state: TableState | None) -> None:
        """Write down what a statement committed, and the table that it left."""
        match statement:
            case statements.CreateTable(path):
                self._tables[_key(path)] = ()
                self._created[_key(path)] += 1
                again = self._created[_key(path)]
                self._ids[_key(path)] = f"id {again} of {_key(path)}" if again > 1 else f"id of {_key(path)}"
            case statements.RewriteTable(path) if state and is_catalog_managed(state.table_properties):
                pass  # a catalog-managed table keeps its id (delta-io/delta 7f55e7602e)
            case statements.RewriteTable(path):
                self._created[_key(path)] += 1
                self._ids[_key(path)] = f"id {self._created[_key(path)]} of {_key(path)}"
            case statements.DropTable(path):
                self._tables.pop(_key(path), None)
            case statements.AlterTable(path, statements.RenameTable(name)):
                self._tables[_key(name)] = self._tables.pop(_key(path), ())
                self._ids[_key(name)] = self._ids.pop(_key(path), "")
                self._states[_key(name)] = self._states.pop(_key(path), {})
        for operation, parameters in _commits(statement):
            self._minutes += 1
            commit = Commit(_START + timedelta(minutes=self._minutes), user, operation, parameters)
            self._add(_key(statement.name), commit, state)

    def write(self, key: str, operation: str, user: str, state: TableState) -> None:
        """Write down a commit of rows."""
        self._minutes += 1
        self._add(key, Commit(_START + timedelta(minutes=self._minutes), user, operation, {}), state)

    def state_at(self, key: str, version: int) -> TableState:
        """Return a former version of a table."""
        state = self._states.get(key, {}).get(version)
        if state is None:
            raise Refusal("DELTA_CANNOT_RESTORE_TABLE_VERSION", f"{key} has no version {version}")
        return state

    def _add(self, key: str, commit: Commit, state: TableState | None) -> None:
        self._tables[key] = (*self._tables.get(key, ()), commit)
        if state is not None:
            self._states.setdefault(key, {})[len(self._tables[key]) - 1] = state

    def rows(self, key: str, limit: int) -> list[Row]:
        """Return the rows of DESCRIBE HISTORY, the latest first."""
        if key not in self._tables:
            raise Refusal("TABLE_OR_VIEW_NOT_FOUND", f"there is no table {key}")
        rows: list[Row] = [
            {
                "version": version,
                "timestamp": commit.at,
                "userName": commit.user,
                "operation": commit.operation,
                "operationParameters": commit.parameters,
            }
            for version, commit in enumerate(self._tables[key])
        ]
        return rows[::-1][:limit]

    def id_of(self, key: str) -> str:
        """Return Delta's id of a table: another one of that name has another id."""
        return self._ids.get(key, f"id of {key}")

    def audit(self, key: str) -> Audit:
        """Return who created a table and who altered it last, as the views show it."""
        commits = self._tables.get(key)
        if not commits:
            return NO_AUDIT
        first = next(
            commit
            for commit in reversed(commits)
            if commit.operation.startswith(_CREATIONS) or commit is commits[0]
        )
        created = Audit(created_at=first.at, created_by=first.user)
        if first is commits[-1]:
            return created
        return replace(created, altered_at=commits[-1].at, altered_by=commits[-1].user)


def _key(path: Path) -> str:
    return ".".join(path).lower()


def _commits(statement: statements.Statement) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the commits of a statement; parts that Unity Catalog alone keeps make none."""
    match statement:
        case statements.CreateTable():
            yield "CREATE TABLE", {}
        case statements.AlterTable(_, change):
            yield from _commits_of(change)
        case statements.RewriteTable():
            yield "CREATE OR REPLACE TABLE AS SELECT", {}
        case statements.Restore(_, version):
            yield "RESTORE", {"version": str(version)}
        case statements.CommentOn("TABLE"):
            yield "SET TBLPROPERTIES", {"properties": '{"comment":"x"}'}


def _commits_of(change: statements.TableChange) -> Iterator[tuple[str, Mapping[str, str]]]:
    match change:
        case statements.AddColumns(columns):
            yield "ADD COLUMNS", _columns(path for path, _ in columns)
        case statements.DropColumns(paths):
            yield "DROP COLUMNS", _columns(paths)
        case statements.RenameColumn(path, name):
            new = (*path[:-1], name)
            yield "RENAME COLUMN", {"oldColumnPath": _quoted(path), "newColumnPath": _quoted(new)}
        case statements.AlterColumns(changes) if not isinstance(
            changes[0][1], statements.SetMask | statements.SetTags | statements.UnsetTags
        ):
            is_move = isinstance(changes[0][1], statements.MoveColumn)
            yield (
                "CHANGE COLUMNS",
                _columns(path for path, _ in changes) | ({"position": "FIRST"} if is_move else {}),
            )
        case statements.SetManaged():
            yield "SET MANAGED", {}
        case statements.UnsetManaged():
            yield "UNSET MANAGED", {}
        case statements.ClusterBy():
            yield "CLUSTER BY", {"newClusteringColumns": "id"}
        case statements.SetProperties(properties):
            yield "SET TBLPROPERTIES", {"properties": json.dumps(dict(properties))}
        case statements.UnsetProperties(keys):
            yield "UNSET TBLPROPERTIES", {"properties": json.dumps(keys)}
        case statements.AddConstraint(CheckConstraint(name)):
            yield "ADD CONSTRAINT", {"name": name}
        case statements.DropConstraint(name):
            yield "DROP CONSTRAINT", {"name": name}


def _columns(paths: Iterable[Path]) -> dict[str, str]:
    return {"columns": json.dumps(list(map(_quoted, paths)))}


def _quoted(path: Path) -> str:
    return ".".join(f"`{step}`" if "." in step else step for step in path)
