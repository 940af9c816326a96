"""One row of a small Delta table that is replaced only if it is still what was read.

A Delta commit is atomic, and of two that change one row exactly one wins. The loser gets a conflict, or, if it read
after the winner's commit, no error at all but zero affected rows: the count is what tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, TypeAlias

from delta_engine.deployment.errors import ConflictError, CorruptStateError, StoreError, UncertainWriteError
from delta_engine.error_conditions import Transience, is_conflict, is_missing_table, transience
from delta_engine.errors import StatementError
from delta_engine.sql import quote_ident, sql_literal
from delta_engine.sql_runner import Row, SqlRunner

Value: TypeAlias = str | int | float | bool

KEY = "environment"

_ATTEMPTS = 3

_SQL_TYPES: Mapping[type, str] = {str: "STRING", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}


class DeltaRow:
    """The row of one environment.

    Args:
        runner: runs the statements.
        table: the SQL that addresses the table.
        environment: the row's key.
        columns: the columns besides the key, with their Python types.
        comment: what the table is, for people who find it in the catalog.
    """

    def __init__(
        self,
        runner: SqlRunner,
        table: str,
        environment: str,
        columns: Mapping[str, type],
        comment: str,
    ) -> None:
        self._runner = runner
        self._table = table
        self._environment = environment
        self._columns = columns
        self._comment = comment

    @property
    def location(self) -> str:
        """Where the row is, for messages."""
        return f"the row {self._environment!r} of {self._table}"

    def read(self) -> Row | None:
        """Return the row; None if there is none, or no such table.

        Raises:
            StoreError: it cannot be read.
            CorruptStateError: there are several.
        """
        sql = f"SELECT * FROM {self._table} WHERE {self._where({})}"
        try:
            rows = self._runner.run(sql)
        except StatementError as error:
            if is_missing_table(error):
                return None
            raise StoreError(f"{self.location} cannot be read: {error.first_line}") from error
        if len(rows) > 1:
            raise CorruptStateError(
                f"there are {len(rows)} rows for one environment",
                where=self.location,
                way_out="Delete all but the one of the highest serial.",
            )
        return rows[0] if rows else None

    def replace(self, values: Mapping[str, Value], expected: Mapping[str, Value] | None) -> None:
        """Write the row.

        Args:
            values: all columns besides the key.
            expected: what the row must still say; None: there must be no row.

        Raises:
            ConflictError: it says something else, or somebody was faster.
            UncertainWriteError: there was no answer.
            StoreError: it was not written.
        """
        if expected is None:
            self._create_table()
            affected = self._write(self._insert(values), attempts=_ATTEMPTS)
        else:
            affected = self._write(self._update(values, expected))
        if affected != 1:
            raise ConflictError(f"{self.location} is not what was read ({affected} rows were changed)")

    def _create_table(self) -> None:
        columns = ", ".join(f"{quote_ident(name)} {_SQL_TYPES[kind]}" for name, kind in self._columns.items())
        self._write(
            f"CREATE TABLE IF NOT EXISTS {self._table} ({quote_ident(KEY)} STRING, {columns}) "
            f"USING delta COMMENT {sql_literal(self._comment)}"
        )

    def _insert(self, values: Mapping[str, Value]) -> str:
        """Return a MERGE: unlike INSERT it reads, so that of two at once one meets a conflict."""
        names = ", ".join(map(quote_ident, (KEY, *values)))
        literals = ", ".join(map(_literal, (self._environment, *values.values())))
        return (
            f"MERGE INTO {self._table} AS old USING (SELECT {_literal(self._environment)} AS key) AS new "
            f"ON old.{quote_ident(KEY)} = new.key AND {self._where({}, 'old.')} "
            f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({literals})"
        )

    def _update(self, values: Mapping[str, Value], expected: Mapping[str, Value]) -> str:
        assignments = ", ".join(f"{quote_ident(name)} = {_literal(value)}" for name, value in values.items())
        return f"UPDATE {self._table} SET {assignments} WHERE {self._where(expected)}"

    def _where(self, expected: Mapping[str, Value], prefix: str = "") -> str:
        conditions = {KEY: self._environment, **expected}
        return " AND ".join(
            f"{prefix}{quote_ident(name)} = {_literal(value)}" for name, value in conditions.items()
        )

    def _write(self, sql: str, attempts: int = 1) -> int:
        """Run a statement; return how many rows it says it changed.

        Args:
            sql: the statement.
            attempts: how often, while the table is not there; more for one that was just made, for while somebody else
                makes it as well, Delta may not see it yet.
        """
        for left in reversed(range(attempts)):
            try:
                rows = self._runner.run(sql)
                break
            except StatementError as error:
                if not left or not is_missing_table(error):
                    self._raise(error)
        return int(str(rows[0]["num_affected_rows"])) if rows else 0

    def _raise(self, error: StatementError) -> NoReturn:
        message = f"{self.location}: {error.first_line}"
        if error.is_outcome_unknown or transience(error) is Transience.UNAVAILABLE:
            raise UncertainWriteError(message) from error
        if is_conflict(error):
            raise ConflictError(message) from error
        raise StoreError(
            f"{message}. The schema must exist, and whoever runs this needs USE SCHEMA, CREATE TABLE, SELECT and "
            "MODIFY on it."
        ) from error


def _literal(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return sql_literal(value)
        case float():
            return f"CAST({value!r} AS DOUBLE)"
    return str(value)
