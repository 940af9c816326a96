"""An append-only Delta table for histories, created when missing; one INSERT is one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Final, TypeAlias

from delta_engine.backends.error_conditions import is_conflict, is_missing_table
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import StatementError
from delta_engine.models.types import AtomicType
from delta_engine.sql.columns import sql_column_definition
from delta_engine.sql.tables import sql_create_table
from delta_engine.sql.text import quote_ident, sql_literal

_ROWS_AT_ONCE: Final = 500  # one commit each, which takes seconds on Databricks at any size

_ATTEMPTS: Final = 5
"""The attempts to insert: when several writers create the table at once, one may fail before the table exists."""

Value: TypeAlias = str | int | float | bool | datetime | None


class HistoryTable:
    """Appends rows to the table that the SQL `table` addresses (`Addressing.table`); its schema must exist."""

    def __init__(
        self, runner: SqlRunner, table: str, *, columns: Mapping[str, tuple[str, str]], comment: str
    ) -> None:
        self._runner = runner
        self._table = table
        self._columns = columns
        self._comment = comment

    def append(self, rows: Sequence[Mapping[str, Value]]) -> None:
        """Append rows, up to 500 per statement; missing columns are null, a missing table is created."""
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            self._insert(rows[start : start + _ROWS_AT_ONCE])

    def _insert(self, rows: Sequence[Mapping[str, Value]]) -> None:
        names = ", ".join(map(quote_ident, self._columns))
        values = ",\n".join(
            f"({', '.join(_literal(row.get(name)) for name in self._columns)})" for row in rows
        )
        # BY NAME: with a column list, Spark resolves the columns before a table by path, and fails.
        sql = f"INSERT INTO {self._table} BY NAME\nSELECT * FROM VALUES\n{values}\nAS found ({names})"
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._runner.run(sql)
            except StatementError as error:
                if attempt == _ATTEMPTS or not is_missing_table(error):
                    raise
                self._create()
            else:
                return

    def _create(self) -> None:
        """Create the table, unless another writer has just created it."""
        columns = [
            sql_column_definition((name,), AtomicType(type_name), comment=comment)
            for name, (type_name, comment) in self._columns.items()
        ]
        try:
            self._runner.run(
                sql_create_table(self._table, columns=columns, comment=self._comment, properties={})
            )
        except StatementError as error:
            if not is_conflict(error):
                raise


def _literal(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case datetime():
            # The explicit zone overrides the session's zone.
            moment = value.astimezone(timezone.utc).replace(tzinfo=None)
            return f"TIMESTAMP '{moment.isoformat(sep=' ', timespec='microseconds')} UTC'"
        case str():
            return sql_literal(value)
        case float():
            return f"{value}D"
    return str(value).lower()
