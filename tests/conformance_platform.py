"""A platform for conformance runs: Unity Catalog in memory, with functions, histories, and a table for MERGE."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import sqlglot
from sqlglot import exp

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.models import CheckConstraint
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.grammar import parse
from tests.fakes.unity_catalog.statements import (
    AddColumns,
    AddConstraint,
    AlterColumns,
    AlterTable,
    ClusterBy,
    CommentOn,
    CreateTable,
    DropColumns,
    DropConstraint,
    RenameColumn,
    RenameTable,
    SetMask,
    SetProperties,
    SetTags,
    Statement,
    TableChange,
    UnsetProperties,
    UnsetTags,
)
from tests.fakes.unity_catalog.views import storage_path
from tests.servers.warehouse_sql import SmallTables

USER = "ann@example.com"
TARGET = "dev.scratch"

_FUNCTION = re.compile(r"(CREATE|DROP) FUNCTION (?:IF EXISTS )?(`\w+`\.`\w+`\.`\w+`)")
_SCHEMA = re.compile(r"DROP SCHEMA IF EXISTS `(\w+)`\.`(\w+)` RESTRICT")
_SMALL = re.compile(r"`[^`]*_merge`")

Commit = tuple[str, Mapping[str, str]]


@dataclass
class ConformancePlatform:
    """Runs the statements of a conformance run.

    Args:
        catalog: holds the tables.
        faults: called before each statement; one that raises refuses it.
        functions: the functions that there are.
        statements: everything that was sent.
    """

    catalog: FakeUnityCatalog = field(default_factory=lambda: FakeUnityCatalog([TARGET]))
    faults: list[Callable[[str], None]] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    statements: list[str] = field(default_factory=list)
    histories: dict[str, list[Commit]] = field(default_factory=dict)
    small: SmallTables = field(default_factory=SmallTables)

    def run(self, sql: str) -> Sequence[Row]:
        """Run one statement; see `SqlRunner.run`."""
        self.statements.append(sql)
        for fault in self.faults:
            fault(sql)
        if "information_schema" in sql and not sql.startswith("SELECT"):
            raise StatementError(
                "it is read-only", sql=sql, error_class="INSUFFICIENT_PERMISSIONS", sql_state="42501"
            )
        if found := _FUNCTION.match(sql):
            (self.functions.add if found[1] == "CREATE" else self.functions.discard)(found[2])
            return ()
        if found := _SCHEMA.match(sql):
            self.catalog.schemas.pop(f"{found[1]}.{found[2]}", None)
            return ()
        if _SMALL.search(sql):
            return () if sql.startswith("DROP") else self.small.run(sql)
        if sql.startswith("SELECT count"):
            query = sqlglot.parse_one(sql, dialect="databricks")
            assert isinstance(query, exp.Select)
            return [dict.fromkeys(query.named_selects, 0)]
        if sql.startswith("SELECT current_version()"):
            return [{"version": "2026.40"}]
        if sql.startswith("DESCRIBE HISTORY"):
            return self._history(sql)
        if sql.startswith("DESCRIBE DETAIL"):
            return [{"id": "5d3f0b0e"}]
        rows = self.catalog.run(sql)
        if not sql.startswith(("SELECT", "SHOW", "DESCRIBE")):
            self._note(parse(sql))
        return rows

    def leftovers(self) -> list[str]:
        """Return the scratch objects that are there, and the tables beside them."""
        schemas = [name for name in self.catalog.schemas if name != TARGET]
        return [*self.catalog.tables, *sorted(self.functions), *schemas]

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterator[Any]:
        """Return the tables of a schema as databricks-sdk lists them, without their columns."""
        for stored in self.catalog.tables.values():
            if (stored.name.catalog, stored.name.schema) == (catalog_name, schema_name):
                yield SimpleNamespace(
                    catalog_name=catalog_name,
                    schema_name=schema_name,
                    name=stored.name.table,
                    table_type=SimpleNamespace(value="EXTERNAL" if stored.state.location else "MANAGED"),
                    storage_location=storage_path(stored),
                    properties=None,
                    columns=None,
                    browse_only=None,
                )

    def _history(self, sql: str) -> Sequence[Row]:
        name = sql.split()[2].replace("`", "")
        commits = list(enumerate(self.histories[name]))
        limit = int(sql.rpartition(" ")[2])
        return [
            {
                "version": version,
                "timestamp": datetime(2026, 1, 1, tzinfo=timezone.utc),
                "userName": USER,
                "operation": operation,
                "operationParameters": parameters,
            }
            for version, (operation, parameters) in reversed(commits)
        ][:limit]

    def _note(self, statement: Statement) -> None:
        """Write down what Delta's log says of a statement."""
        match statement:
            case CreateTable(path):
                self.histories[".".join(path).lower()] = [("CREATE TABLE", {})]
            case AlterTable(path, RenameTable(name)):
                self.histories[".".join(name).lower()] = self.histories.pop(".".join(path).lower())
            case AlterTable(path, change):
                self.histories[".".join(path).lower()] += _commits(change)
            case CommentOn("TABLE", path):
                properties = {"properties": '{"comment":"x"}'}
                self.histories[".".join(path).lower()].append(("SET TBLPROPERTIES", properties))


def _commits(change: TableChange) -> list[Commit]:
    """Return the commits of a change; what Unity Catalog alone keeps makes none."""
    match change:
        case AddColumns(columns):
            return [("ADD COLUMNS", _columns(path for path, _ in columns))]
        case DropColumns(paths):
            return [("DROP COLUMNS", _columns(paths))]
        case RenameColumn(path, name):
            return [("RENAME COLUMN", {"oldColumnPath": ".".join(path), "newColumnPath": name})]
        case AlterColumns(changes) if not isinstance(changes[0][1], SetMask | SetTags | UnsetTags):
            return [("CHANGE COLUMNS", _columns(path for path, _ in changes))]
        case ClusterBy():
            return [("CLUSTER BY", {"newClusteringColumns": "id"})]
        case SetProperties(properties):
            return [("SET TBLPROPERTIES", {"properties": json.dumps(dict(properties))})]
        case UnsetProperties(keys):
            return [("UNSET TBLPROPERTIES", {"properties": json.dumps(keys)})]
        case AddConstraint(CheckConstraint(name)):
            return [("ADD CONSTRAINT", {"name": name})]
        case DropConstraint(name):
            return [("DROP CONSTRAINT", {"name": name})]
    return []


def _columns(paths: Any) -> Mapping[str, str]:
    return {"columns": json.dumps([".".join(path) for path in paths])}
