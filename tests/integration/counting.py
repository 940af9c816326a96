"""A runner that runs statements for real and remembers them."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.backends.spark_sql_runner import SparkSqlRunner
from delta_engine.backends.sql_runner import Row

READS = ("SHOW ", "SELECT ", "DESCRIBE ")


class CountingSqlRunner(SparkSqlRunner):
    """Remembers every statement, in order."""

    statements: list[str]

    def run(self, sql: str) -> Sequence[Row]:
        """Run and remember one statement."""
        self.__dict__.setdefault("statements", []).append(sql)
        return super().run(sql)

    @property
    def changes(self) -> list[str]:
        """The statements that change something."""
        return [sql for sql in self.__dict__.get("statements", []) if not sql.startswith(READS)]
