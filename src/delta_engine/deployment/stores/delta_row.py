"""One row of a small Delta table, replaced only if it still holds the values that were read.

A Delta commit is atomic: of two commits that change one row, exactly one wins, and the other gets a conflict. If the
loser read after the winner's commit, it gets zero affected rows instead, so the count is checked.

The first row is different. Two MERGEs that insert change no common row, and with row-level concurrency both may
succeed, whatever the table's isolation level (docs.databricks.com: "Row-level concurrency", its conflict matrix).
So a run reads its row back, also after a lost answer, and deletes it if it finds another one. Commits have an
order, so the later run always sees the earlier row: at most one keeps its row, and no reported row is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from delta_engine.backends.cancellation import StoppedError, pause
from delta_engine.backends.error_conditions import (
    Transience,
    is_conflict,
    is_forbidden,
    is_missing_table,
    may_have_run,
    transience,
)
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.deployment.errors import ConflictError, CorruptStateError, StoreError, UncertainWriteError
from delta_engine.errors import StatementError
from delta_engine.sql.governance import sql_grant
from delta_engine.sql.queries import sql_current_user
from delta_engine.sql.text import idents, quote_ident, sql_literal

Answer = TypeVar("Answer")

Value: TypeAlias = str | int | bool

KEY = "environment"

_ATTEMPTS = 3

_REREADS: Final = 5
_REREAD_SECONDS: Final = 1.0
"""The count and pause of re-reads of two rows: a run that finds itself second deletes its own."""

_REPEAT_SECONDS: Final = (1.0, 2.0, 4.0, 8.0)
"""The pauses before each repetition of a statement that prevents a second row."""

_QUOTED_NAME: Final = re.compile(r"`(?:[^`]|``)+`")

_SQL_TYPES: Mapping[type, str] = {str: "STRING", int: "BIGINT", bool: "BOOLEAN"}


class DeltaRow:
    """The row of one environment; `columns` has the Python types of its columns besides the key.

    `one_of_several` names which of several rows the user deletes, after a run was killed while it wrote the first.
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
        self._sql = _RowSql(table, environment)
        self._create_table = self._sql.create_table(columns, comment)
        self._one_of_several = one_of_several
        self._pause = pause

    @property
    def location(self) -> str:
        """The row's place, for messages."""
        return self._sql.location

    def read(self) -> Row | None:
        """Return the row; None if there is no row, or no table. Several rows raise `CorruptStateError`."""
        rows = self._rows()
        for _ in range(_REREADS):
            if len(rows) <= 1:
                return rows[0] if rows else None
            self._pause(_REREAD_SECONDS)
            rows = self._rows()
        raise CorruptStateError(
            f"there are {len(rows)} rows for one environment",
            where=self.location,
            way_out=f"{self._one_of_several} {self._sql.delete({})}",
        )

    def replace(self, values: Mapping[str, Value], expected: Mapping[str, Value] | None) -> None:
        """Write the row if it still holds the `expected` values (None: no row); see `StateStore.replace`."""
        if expected is None:
            self._write_first(values)
            return
        affected = self._write(self._sql.update(values, expected))
        if affected != 1:
            raise ConflictError(f"{self.location} is not what was read ({affected} rows were changed)")

    def _write_first(self, values: Mapping[str, Value]) -> None:
        """Insert the row, read it back whatever the answer, and delete it if it is not alone."""
        self._write(self._create_table)
        lost_race = ConflictError(f"another run wrote {self.location} at the same time")
        reason: StoreError = lost_race
        try:
            self._write(self._sql.insert(values), attempts=_ATTEMPTS)
        except UncertainWriteError as error:
            reason = error
        rows = self._repeated(self._rows)
        if not any(all(row[name] == value for name, value in values.items()) for row in rows):
            raise reason
        if len(rows) > 1:
            self._repeated(lambda: self._write(self._sql.delete(values)))
            raise lost_race

    def _repeated(self, step: Callable[[], Answer]) -> Answer:
        """Return the answer of an idempotent step, repeated after any failure, finally an `UncertainWriteError`."""
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
            return self._runner.run(self._sql.select())
        except StatementError as error:
            if is_missing_table(error):
                return ()
            reason = f"{self.location} cannot be read: {error.first_line}"
            raise _refusal(reason, error, self._sql.table, self._runner) from error

    def _write(self, sql: str, attempts: int = 1) -> int:
        """Run a statement; return the number of rows that it reports as changed.

        A new table needs several attempts: while another run creates it as well, Delta may not see it yet.
        """
        for left in reversed(range(attempts)):
            try:
                rows = self._runner.run(sql)
                break
            except StatementError as error:
                if not left or not (is_missing_table(error) or transience(error) is Transience.CONFLICT):
                    raise self._write_error(error) from error
        return int(str(rows[0]["num_affected_rows"])) if rows else 0

    def _write_error(self, error: StatementError) -> StoreError:
        message = f"{self.location}: {error.first_line}"
        if may_have_run(error):
            return UncertainWriteError(message)
        if is_conflict(error):
            return ConflictError(message)
        return _refusal(message, error, self._sql.table, self._runner)


@dataclass(frozen=True, slots=True)
class _RowSql:
    table: str
    environment: str

    @property
    def location(self) -> str:
        return f"the row {self.environment!r} of {self.table}"

    def create_table(self, columns: Mapping[str, type], comment: str) -> str:
        typed = ", ".join(f"{quote_ident(name)} {_SQL_TYPES[kind]}" for name, kind in columns.items())
        return (
            f"CREATE TABLE IF NOT EXISTS {self.table} ({quote_ident(KEY)} STRING, {typed}) "
            f"USING delta COMMENT {sql_literal(comment)}"
        )

    def select(self) -> str:
        return f"SELECT * FROM {self.table} WHERE {self._where({})}"

    def insert(self, values: Mapping[str, Value]) -> str:
        """Return a MERGE, which unlike INSERT adds nothing if there is a row."""
        names = idents((KEY, *values))
        literals = ", ".join(map(_literal, (self.environment, *values.values())))
        return (
            f"MERGE INTO {self.table} AS old USING (SELECT {_literal(self.environment)} AS key) AS new "
            f"ON old.{quote_ident(KEY)} = new.key AND {self._where({}, 'old.')} "
            f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({literals})"
        )

    def update(self, values: Mapping[str, Value], expected: Mapping[str, Value]) -> str:
        assignments = ", ".join(f"{quote_ident(name)} = {_literal(value)}" for name, value in values.items())
        return f"UPDATE {self.table} SET {assignments} WHERE {self._where(expected)}"

    def delete(self, values: Mapping[str, Value]) -> str:
        return f"DELETE FROM {self.table} WHERE {self._where(values)}"

    def _where(self, expected: Mapping[str, Value], prefix: str = "") -> str:
        conditions = {KEY: self.environment, **expected}
        return " AND ".join(
            f"{prefix}{quote_ident(name)} = {_literal(value)}" for name, value in conditions.items()
        )


def _literal(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return sql_literal(value)
    return str(value)


def _refusal(reason: str, error: StatementError, table: str, runner: SqlRunner) -> StoreError:
    """Return the error of a refused statement; for a missing right, with the GRANT statements."""
    names = _QUOTED_NAME.findall(table)
    reason = reason.removesuffix(".")
    may_pass = error.is_outcome_unknown or transience(error) is not None or isinstance(error, StoppedError)
    if may_pass or len(names) != 3:  # the table is addressed by path
        return StoreError(f"{reason}.")
    catalog, schema = names[0], ".".join(names[:2])
    if not is_forbidden(error):
        return StoreError(
            f"{reason}. Schema {schema} must exist, and the engine needs USE SCHEMA, CREATE TABLE, SELECT and "
            "MODIFY on it."
        )
    principal = _principal(runner)
    grants = (
        sql_grant(f"CATALOG {catalog}", ["USE CATALOG"], principal),
        sql_grant(f"SCHEMA {schema}", ["USE SCHEMA", "CREATE TABLE", "SELECT", "MODIFY"], principal),
    )
    return StoreError(f"{reason}. Ask the owner of the catalog or schema for:\n" + ";\n".join(grants) + ";")


def _principal(runner: SqlRunner) -> str:
    """Return the principal of this run; a placeholder if the platform does not name it."""
    try:
        rows = runner.run(sql_current_user())
    except StatementError:
        rows = ()
    return next((str(value) for row in rows for value in row.values()), "<principal>")
