"""Which columns of a fake table hold values of which others, statement by statement: what a reader could see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import sqlglot
from sqlglot import exp

from delta_engine.aspects.conversions import is_reserved_name
from tests.fakes.unity_catalog import statements
from tests.fakes.unity_catalog.grammar import parse
from tests.fakes.unity_catalog.stored import Stored

Held = Mapping[str, frozenset[str]]
"""By column in lower case: the columns, by their first names, whose values it may hold."""


class Exposure:
    """Follows values through one table. A new column holds nothing until an UPDATE fills it."""

    def __init__(self, stored: Stored) -> None:
        self.held: Held = {column.key: frozenset({column.key}) for column in stored.state.columns}
        self._versions: list[Held] = []

    def note(self, sql: str, version: int) -> None:
        """Follow a statement; `version` is that of the table after it."""
        held = dict(self.held)
        match parse(sql):
            case statements.AlterTable(_, statements.AddColumns(columns)):
                held |= {column.key: frozenset() for path, column in columns if len(path) == 1}
            case statements.AlterTable(_, statements.DropColumns(paths)):
                held = {
                    name: columns_read for name, columns_read in held.items() if (name,) not in _lower(paths)
                }
            case statements.AlterTable(_, statements.RenameColumn((former,), name)):
                held[name.lower()] = held.pop(former.lower())
            case statements.Update():
                for column, read in _assignments(sql):
                    own = () if is_reserved_name(column) else (column,)
                    held[column] = held[column].union(own, *(held[column_read] for column_read in read))
            case statements.Restore(_, restored):
                held = dict(self._versions[restored])
        self.held = held
        self._versions += [held] * (version + 1 - len(self._versions))

    def bare(self, stored: Stored, column: str) -> list[str]:
        """Return the columns without a mask that may hold values of a column, by its first name."""
        return [
            existing.key
            for existing in stored.state.columns
            if existing.mask is None and column in self.held[existing.key]
        ]


def _lower(paths: Iterable[statements.Path]) -> list[tuple[str, ...]]:
    return [tuple(map(str.lower, path)) for path in paths]


def _assignments(sql: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the columns that an UPDATE assigns, each with the columns that their values and conditions read."""
    tree = sqlglot.parse_one(sql, dialect="databricks")
    assert isinstance(tree, exp.Update)
    for assignment in tree.expressions:
        read = {column.name.lower() for column in assignment.expression.find_all(exp.Column)}
        yield assignment.this.name.lower(), read
