"""One row of a small Delta table that is replaced only if it is still what was read.

A Delta commit is atomic, and of two that change one row exactly one wins. The loser gets a conflict, or, if it read
after the winner's commit, no error at all but zero affected rows: the count is what tells.

The first row is different. Two MERGEs that insert change no common row, and with row-level concurrency both may
succeed, whatever the table's isolation level (docs.databricks.com: "Row-level concurrency", its conflict matrix). So
the row is read back: a run counts it as written only if it is alone. A run that finds another row beside its own
deletes its own. Commits have an order, so the run that commits later always sees the earlier row: at most one run
keeps its row, and none loses a row that it was told is written. The row is read back also when the MERGE's answer
is lost: its row may be the second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn, TypeAlias, TypeVar

from delta_engine.backends.cancellation import StoppedError, pause
from delta_engine.backends.error_conditions import (
    Transience,
    is_conflict,
    is_forbidden,
    is_missing_table,
    transience,
)
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.errors import ConflictError, CorruptStateError, StoreError, UncertainWriteError
from delta_engine.errors import StatementError
from delta_engine.sql import quote_ident, sql_current_user, sql_grant, sql_literal

Answer = TypeVar("Answer")

Value: TypeAlias = str | int | float | bool

KEY = "environment"

_ATTEMPTS = 3

_LOOKS: Final = 5
_LOOK_SECONDS: Final = 1.0
"""How often, and after how long, to look again at two rows: a run that finds itself second deletes its own."""

_REPEAT_SECONDS: Final = (1.0, 2.0, 4.0, 8.0)
"""The pauses before each repetition of a statement without which a second row could stay."""

_QUOTED_NAME: Final = re.compile(r"`(?:[^`]|``)+`")

_SQL_TYPES: Mapping[type, str] = {str: "STRING", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}


class DeltaRow:
    """The row of one environment.

    Args:
        runner: runs the statements.
        table: the SQL that addresses the table.
        environment: the row's key.
        columns: the columns besides the key, with their Python types.
        comment: what the table is, for people who find it in the catalog.
        one_of_several: which of several rows to delete by hand, after a run that was killed as it wrote the first.
        pause: waits for so many seconds.
    """

    def __init__(
        self,
        runner: SqlRunner,
        table: str,
        environment: str,
        columns: Mapping[str, type],
        comment: str,
        *,
        one_of_several: str,
        pause: Callable[[float], object] = pause,
    ) -> None:
        self._runner = runner
        self._table = table
        self._environment = environment
        self._columns = columns
        self._comment = comment
        self._one_of_several = one_of_several
        self._pause = pause

    @property
    def location(self) -> str:
        """Where the row is, for messages."""
        return f"the row {self._environment!r} of {self._table}"

    def read(self) -> Row | None:
        """Return the row; None if there is none, or no such table.

        Raises:
            StoreError: it cannot be read.
            CorruptStateError: there are several, and that does not pass.
        """
        rows = self._rows()
        for _ in range(_LOOKS):
            if len(rows) <= 1:
                return rows[0] if rows else None
            self._pause(_LOOK_SECONDS)
            rows = self._rows()
        raise CorruptStateError(
            f"there are {len(rows)} rows for one environment",
            where=self.location,
            way_out=f"{self._one_of_several} DELETE FROM {self._table} WHERE {self._where({})}",
        )

    def replace(self, values: Mapping[str, Value], expected: Mapping[str, Value] | None) -> None:
        """Write the row.

        Args:
            values: all columns besides the key.
            expected: what the row must still say; None: there must be no row.

        Raises:
            ConflictError: it says something else, or another run was faster.
            UncertainWriteError: there was no answer, or a first row could not be read back.
            StoreError: it was not written.
        """
        if expected is None:
            self._write_first(values)
            return
        affected = self._write(self._update(values, expected))
        if affected != 1:
            raise ConflictError(f"{self.location} is not what was read ({affected} rows were changed)")

    def _write_first(self, values: Mapping[str, Value]) -> None:
        """Insert the row, and read it back whatever the answer was; take it back if it is not the only one."""
        self._create_table()
        reason: StoreError = ConflictError(f"another run wrote {self.location} at the same time")
        try:
            self._write(self._insert(values), attempts=_ATTEMPTS)
        except UncertainWriteError as error:
            reason = error
        rows = self._repeated(self._rows)
        if not any(all(row[name] == value for name, value in values.items()) for row in rows):
            raise reason
        if len(rows) > 1:
            delete = f"DELETE FROM {self._table} WHERE {self._where(values)}"
            self._repeated(lambda: self._write(delete))
            raise ConflictError(f"another run wrote {self.location} at the same time")

    def _repeated(self, step: Callable[[], Answer]) -> Answer:
        """Return the answer of a step that may run twice; repeat it after any failure.

        Raises:
            UncertainWriteError: it failed each time.
        """
        for seconds in _REPEAT_SECONDS:
            with suppress(StoreError):
                return step()
            self._pause(seconds)
        try:
            return step()
        except StoreError as error:
            raise UncertainWriteError(str(error)) from error

    def _rows(self) -> Sequence[Row]:
        try:
            return self._runner.run(f"SELECT * FROM {self._table} WHERE {self._where({})}")
        except StatementError as error:
            if is_missing_table(error):
                return ()
            raise self._refused(f"{self.location} cannot be read: {error.first_line}", error) from error

    def _create_table(self) -> None:
        columns = ", ".join(f"{quote_ident(name)} {_SQL_TYPES[kind]}" for name, kind in self._columns.items())
        self._write(
            f"CREATE TABLE IF NOT EXISTS {self._table} ({quote_ident(KEY)} STRING, {columns}) "
            f"USING delta COMMENT {sql_literal(self._comment)}"
        )

    def _insert(self, values: Mapping[str, Value]) -> str:
        """Return a MERGE: unlike INSERT it adds nothing where there is a row."""
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
            attempts: how often; more for a table that was just made, because while another run makes it as well, Delta
                may not see it yet.
        """
        for left in reversed(range(attempts)):
            try:
                rows = self._runner.run(sql)
                break
            except StatementError as error:
                if not left or not (is_missing_table(error) or transience(error) is Transience.CONFLICT):
                    self._raise(error)
        return int(str(rows[0]["num_affected_rows"])) if rows else 0

    def _raise(self, error: StatementError) -> NoReturn:
        message = f"{self.location}: {error.first_line}"
        if error.is_outcome_unknown or transience(error) is Transience.UNAVAILABLE:
            raise UncertainWriteError(message) from error
        if is_conflict(error):
            raise ConflictError(message) from error
        raise self._refused(message, error) from error

    def _refused(self, message: str, error: StatementError) -> StoreError:
        """Return the error of a refusal, with the way out: for a missing right, the GRANT statements.

        An error that may pass, or that says nothing about the table, has no such way out.
        """
        names = _QUOTED_NAME.findall(self._table)
        reason = message.removesuffix(".")
        is_refusal = not (
            error.is_outcome_unknown or transience(error) is not None or isinstance(error, StoppedError)
        )
        if not is_refusal or len(names) != 3:  # a table by path
            return StoreError(f"{reason}.")
        catalog, schema = names[0], ".".join(names[:2])
        if not is_forbidden(error):
            return StoreError(
                f"{reason}. Schema {schema} must exist, and the engine needs USE SCHEMA, CREATE TABLE, SELECT and "
                "MODIFY on it."
            )
        principal = self._principal()
        grants = (
            sql_grant(f"CATALOG {catalog}", ["USE CATALOG"], principal),
            sql_grant(f"SCHEMA {schema}", ["USE SCHEMA", "CREATE TABLE", "SELECT", "MODIFY"], principal),
        )
        return StoreError(
            f"{reason}. Ask the owner of the catalog or schema for:\n" + ";\n".join(grants) + ";"
        )

    def _principal(self) -> str:
        """Return whom the platform knows this run as; a placeholder if it does not say."""
        try:
            rows = self._runner.run(sql_current_user())
        except StatementError:
            rows = ()
        return next((str(value) for row in rows for value in row.values()), "<principal>")


def _literal(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return sql_literal(value)
        case float():
            return f"CAST({value!r} AS DOUBLE)"
    return str(value)
