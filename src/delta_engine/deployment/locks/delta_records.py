"""The record of a lock as a row of a Delta table. It is updated, never deleted."""

from __future__ import annotations

from collections.abc import Mapping

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.deployment.databricks.delta_row import DeltaRow, Value
from delta_engine.deployment.lock_record import LockRecord, decode_lock_record, encode_lock_record

LOCKS = "deployment_locks"

_COLUMNS: Mapping[str, type] = {
    "who": str,
    "host": str,
    "operation": str,
    "since": str,
    "released": bool,
    "fence": int,
    "beat": int,
    "record": str,
}
_COMMENT = (
    "Delta Engine: who works on each environment. Changed by the engine alone; "
    "see `delta-engine -e ENV state unlock`."
)

_SEVERAL = "Make sure that no run works on the environment, and free the lock:"


class DeltaLockRecords:
    """Keeps the record of one environment's lock. The columns are for people; the engine reads `record`.

    Args:
        runner: runs SQL.
        table: the SQL that addresses the table of locks.
        environment: the environment's name.
    """

    def __init__(self, runner: SqlRunner, table: str, environment: str) -> None:
        self._row = DeltaRow(runner, table, environment, _COLUMNS, _COMMENT, one_of_several=_SEVERAL)

    @property
    def location(self) -> str:
        """Where the record is."""
        return self._row.location

    def read(self) -> tuple[LockRecord, str] | None:
        """Return the record and its JSON, by which it is compared."""
        row = self._row.read()
        if row is None:
            return None
        found = str(row["record"])
        return decode_lock_record(found.encode(), where=self.location, token=found), found

    def replace(self, record: LockRecord, expected: str | None) -> str:
        """Write a record if the one that is there is the expected one, to the letter; return its JSON."""
        token = encode_lock_record(record).decode()
        values: dict[str, Value] = {
            "who": record.holder.who,
            "host": record.holder.host,
            "operation": record.holder.operation,
            "since": record.holder.since.isoformat(timespec="seconds"),
            "released": record.released,
            "fence": record.fence,
            "beat": record.beat,
            "record": token,
        }
        self._row.replace(values, None if expected is None else {"record": expected})
        return token
