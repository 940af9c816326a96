"""What runs a fake workspace's statements: Unity Catalog in memory, and SQLite for the engine's own small tables."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

import sqlglot
from sqlglot import exp

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from tests.fakes.spark_strings import as_spark_reads
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.workspace import Answer, answer_of

USER = "ci@example.com"

_NAME_OR_LITERAL = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'", re.DOTALL)
_SMALL_TABLES = re.compile(r"`(deployment_heads|deployment_locks)`")


def refusing(
    words: str, message: str = "ask ann", error_class: str | None = "INSUFFICIENT_PERMISSIONS"
) -> Callable[[str], None]:
    """Return a fault that refuses every statement with some words in it."""

    def refuse(sql: str) -> None:
        if words in sql:
            raise StatementError(message, sql=sql, error_class=error_class)

    return refuse


class WarehouseSql:
    """Runs statements as a warehouse would.

    Args:
        catalog: holds the tables.

    Attributes:
        faults: called before each statement; one that raises refuses it.
    """

    def __init__(self, catalog: FakeUnityCatalog) -> None:
        self.catalog = catalog
        self.small_tables = SmallTables()
        self.statements: list[str] = []
        self.faults: list[Callable[[str], None]] = []
        self.clock_skew_seconds = 0.0

    def __call__(self, sql: str) -> Answer:
        self.statements.append(sql)
        for fault in self.faults:
            fault(sql)
        if _SMALL_TABLES.search(sql):
            return answer_of(self.small_tables.run(sql))
        if sql.startswith("SELECT unix_micros(current_timestamp())"):
            return answer_of([{"micros": int((time.time() + self.clock_skew_seconds) * 1_000_000)}])
        return answer_of(self.catalog.run(sql))


class SmallTables:
    """The tables of heads and locks, as far as the engine writes them: Delta's counts of changed rows included.

    Args:
        merges_at_once: whether each MERGE runs as if all began before the first was committed, and none conflicts.
    """

    def __init__(self, *, merges_at_once: bool = False) -> None:
        self._merges_at_once = merges_at_once
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.row_factory = sqlite3.Row
        self._guard = threading.Lock()

    def run(self, sql: str) -> Sequence[Row]:
        shape, texts = (sql, ()) if sql.startswith("MERGE") else _shape_and_texts(sql)
        with self._guard:
            try:
                return self._run(_parsed(shape), shape, texts)
            except sqlite3.OperationalError as error:
                raise StatementError(str(error), sql=sql, error_class="TABLE_OR_VIEW_NOT_FOUND") from error

    def _run(self, statement: exp.Expression, shape: str, texts: Sequence[str]) -> Sequence[Row]:
        table = statement.find(exp.Table)
        assert table is not None
        match statement:
            case exp.Create(this=exp.Schema(expressions=columns)):
                names = ", ".join(f'"{column.name}"' for column in columns)
                self._database.execute(f'CREATE TABLE IF NOT EXISTS "{table.name}" ({names})')
                return ()
            case exp.Select():
                rows = self._database.execute(_sqlite(shape), texts).fetchall()
                return [dict(row) for row in rows]
            case exp.Update() | exp.Delete():
                changed = self._database.execute(_sqlite(shape), texts).rowcount
                return [{"num_affected_rows": changed}]
            case exp.Merge():
                return [{"num_affected_rows": self._merged(table, statement)}]
        raise AssertionError(f"not known: {statement}")

    def _merged(self, table: exp.Table, merge: exp.Merge) -> int:
        """Insert a row unless one of that key is there."""
        insert = merge.find(exp.Insert)
        assert insert is not None
        names = [column.name for column in insert.this.expressions]
        values = insert.expression.expressions
        row = exp.select(*values).sql("sqlite")
        quoted = ", ".join(f'"{name}"' for name in names)
        key = values[names.index("environment")].sql("sqlite")
        is_missing = f'NOT EXISTS (SELECT 1 FROM "{table.name}" WHERE "environment" = {key})'
        return self._database.execute(
            f'INSERT INTO "{table.name}" ({quoted}) {row} WHERE {"TRUE" if self._merges_at_once else is_missing}'
        ).rowcount


def _shape_and_texts(sql: str) -> tuple[str, Sequence[str]]:
    """Return a statement with `?` in place of its string literals, and their texts: each shape is parsed once."""
    texts: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        if match[0].startswith("`"):
            return match[0]
        has_escapes = "\\" in match[0]
        texts.append(as_spark_reads(match[0])[0][0] if has_escapes else match[0][1:-1])
        return "?"

    return _NAME_OR_LITERAL.sub(replaced, sql), texts


@lru_cache(maxsize=1024)
def _parsed(sql: str) -> exp.Expression:
    """Return a statement with tables without catalog and schema, as SQLite has them."""
    statement = sqlglot.parse_one(sql, dialect="databricks")
    assert isinstance(statement, exp.Expression)
    for table in statement.find_all(exp.Table):
        table.set("db", None)
        table.set("catalog", None)
    return statement


@lru_cache(maxsize=1024)
def _sqlite(sql: str) -> str:
    return _parsed(sql).sql("sqlite")
