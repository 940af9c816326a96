"""Faults of a catalog: statements that it refuses, and rows that it shows otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from tests.fakes.unity_catalog import FakeUnityCatalog


class Faulty:
    """A runner in front of a catalog that refuses some statements, and changes the rows of others."""

    def __init__(self, catalog: FakeUnityCatalog) -> None:
        self.catalog = catalog
        self.refused: dict[str, StatementError] = {}
        self.changed: dict[str, Callable[[Sequence[Row]], Sequence[Row]]] = {}

    def run(self, sql: str) -> Sequence[Row]:
        for words, error in self.refused.items():
            if words in sql:
                raise error
        rows = self.catalog.run(sql)
        return next((change(rows) for words, change in self.changed.items() if words in sql), rows)
