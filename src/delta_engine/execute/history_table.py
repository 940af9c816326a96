"""A Delta table to which rows are only ever added, made where it is missing: what histories are kept in.

An INSERT is one commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Final, TypeAlias

from delta_engine.backends.error_conditions import is_conflict, is_missing_table
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import StatementError
from delta_engine.models.types import AtomicType
from delta_engine.sql import quote_ident, sql_column_definition, sql_create_table, sql_literal

_ROWS_AT_ONCE: Final = 500  # one commit each: seconds on Databricks, whatever is in it

_ATTEMPTS: Final = 5
"""Of several that make the table at once, one may be told that it is being made before it is there."""

Value: TypeAlias = str | int | float | bool | datetime | None


class HistoryTable:
    """Adds rows.

    Args:
        runner: runs the statements.
        table: the SQL that addresses the table (`Addressing.table`); its schema must exist.
        columns: type and comment by name.
        comment: the table's.
    """

    def __init__(
        self, runner: SqlRunner, table: str, *, columns: Mapping[str, tuple[str, str]], comment: str
    ) -> None:
        self._runner = runner
        self._table = table
        self._columns = columns
        self._comment = comment

    def append(self, rows: Sequence[Mapping[str, Value]]) -> None:
        """Add rows: one statement for up to 500, and the table is made only where it is missing.

        Args:
            rows: values by column; those that a row does not name are null.

        Raises:
            StatementError: the platform refused a statement.
        """
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            self._insert(rows[start : start + _ROWS_AT_ONCE])

    def _insert(self, rows: Sequence[Mapping[str, Value]]) -> None:
        """Write rows, all or none, into a table that is made if need be."""
        names = ", ".join(map(quote_ident, self._columns))
        values = ",\n".join(
            f"({', '.join(_literal(row.get(name)) for name in self._columns)})" for row in rows
        )
        # BY NAME, because with a list of columns Spark looks for these before it looks for a table by path, and says
        # that they cannot be resolved.
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
        """Create the table, unless somebody has just done so."""
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
            # With its zone, because without one the session's counts.
            moment = value.astimezone(timezone.utc).replace(tzinfo=None)
            return f"TIMESTAMP '{moment.isoformat(sep=' ', timespec='microseconds')} UTC'"
        case str():
            return sql_literal(value)
        case float():
            return f"{value}D"
    return str(value).lower()
