"""What the columns of a fake table hold: SQL over their first values, statement by statement.

UPDATE and a rewrite store what the principal that runs them sees: a mask or a filter of its own is stored for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import sqlglot
from sqlglot import exp

from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.text import quote_ident
from tests.fakes.unity_catalog import statements
from tests.fakes.unity_catalog.grammar import parse

NOTHING = "NULL"
"""The value of a column that no row has a value in."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a principal sees of the columns: SQL over the columns, and the condition on its rows."""

    values: Mapping[str, str]
    rows: str = "TRUE"


@dataclass(frozen=True, slots=True)
class StoredValues:
    """The values of the columns of one table, by key, as SQL over the first values of its columns."""

    columns: Mapping[str, str]

    @classmethod
    def first(cls, names: Iterable[str]) -> StoredValues:
        """Return the values of columns that hold their own."""
        return cls({name: quote_ident(name) for name in names})

    def after(self, sql: str, seen: Seen | None = None) -> StoredValues:
        """Return the values after a statement; with `seen`, as its principal sees them."""
        columns = dict(self.columns)
        match parse(sql):
            case statements.AlterTable(_, statements.AddColumns(added)):
                columns |= {column.key: NOTHING for path, column in added if len(path) == 1}
            case statements.AlterTable(_, statements.DropColumns(paths)):
                dropped = {path[0].lower() for path in paths if len(path) == 1}
                columns = {name: value for name, value in columns.items() if name not in dropped}
            case statements.AlterTable(_, statements.RenameColumn((former,), name)):
                columns[name.lower()] = columns.pop(former.lower())
            case statements.Update():
                columns |= self._stored(_assignments(sql), seen)
            case statements.RewriteTable():
                columns |= self._stored({name: quote_ident(name) for name in columns}, seen)
        return replace(self, columns=columns)

    def value_of(self, expression: str) -> str:
        """Return an expression over the columns as one over their first values."""
        return replaced(expression, self.columns)

    def _stored(self, assigned: Mapping[str, str], seen: Seen | None) -> Mapping[str, str]:
        if seen is None:
            return {name: self.value_of(value) for name, value in assigned.items()}
        stored = {name: self.value_of(replaced(value, seen.values)) for name, value in assigned.items()}
        if seen.rows == "TRUE":
            return stored
        rows = self.value_of(seen.rows)
        return {
            name: f"CASE WHEN {rows} THEN {value} ELSE {self.columns[name]} END"
            for name, value in stored.items()
        }


@lru_cache(maxsize=4096)
def origins(value: str) -> frozenset[str]:
    """Return the columns that a value is computed from."""
    return frozenset(column.name for column in _tree(value).find_all(exp.Column))


@lru_cache(maxsize=4096)
def is_bare(value: str) -> bool:
    """Whether a value is that of a column alone."""
    return isinstance(_tree(value).unnest(), exp.Column)


@lru_cache(maxsize=4096)
def cases(value: str) -> tuple[str, ...]:
    """Return what a value may be computed from: one alternative of each COALESCE, the first ones first."""
    tree = _tree(value)
    alternatives = tree.find(exp.Coalesce)
    if alternatives is None:
        return (value,)
    texts = (
        tree.transform(
            lambda node: inner.copy() if node == alternatives else node  # noqa: B023  # called at once
        ).sql(dialect=databricks_dialect())
        for inner in (alternatives.this, *alternatives.expressions)
    )
    return tuple(dict.fromkeys(case for text in texts for case in cases(text)))


def without(value: str, told: Iterable[str]) -> str:
    """Return a value with nothing in place of the parts that are told."""
    texts = {*told}
    tree = _tree(value).transform(
        lambda node: exp.Null() if node.sql(dialect=databricks_dialect()) in texts else node
    )
    return str(tree.sql(dialect=databricks_dialect()))


def replaced(expression: str, values: Mapping[str, str]) -> str:
    """Return an expression with values in place of columns, in a form in which equal values mostly are equal texts."""
    return _replaced(expression, tuple(sorted(values.items())))


@lru_cache(maxsize=4096)
def _replaced(expression: str, values: tuple[tuple[str, str], ...]) -> str:
    by_name = dict(values)

    def filled(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name.lower() in by_name:
            value = _tree(by_name[node.name.lower()]).copy()
            return exp.Paren(this=value) if isinstance(value, exp.Binary) else value
        return node

    tree = _tree(expression).copy().transform(filled).transform(_normal)
    return str(tree.sql(dialect=databricks_dialect()))


def _normal(node: exp.Expr) -> exp.Expr:
    """Return an expression without needless parentheses and casts, and COALESCE without what never counts."""
    if (inner := _wrapped(node)) is not None:
        return inner.transform(_normal)
    if isinstance(node, exp.Coalesce):
        flat = [*dict.fromkeys(_alternatives(node))]
        kept: list[exp.Expr] = [value for value in flat if not isinstance(value, exp.Null)] or [exp.Null()]
        return kept[0] if len(kept) == 1 else exp.Coalesce(this=kept[0], expressions=kept[1:])
    return node


def _wrapped(node: exp.Expr) -> exp.Expr | None:
    """Return the value of needless parentheses, or of a cast to STRING: all columns that are filled hold texts."""
    is_paren = isinstance(node, exp.Paren) and not isinstance(node.this, exp.Binary)
    is_cast = isinstance(node, exp.Cast) and node.to.this is exp.DataType.Type.TEXT
    inner: exp.Expr | None = node.this if is_paren or is_cast else None
    return inner


def _alternatives(node: exp.Expr) -> Iterable[exp.Expr]:
    if (inner := _wrapped(node)) is not None:
        yield from _alternatives(inner)
    elif isinstance(node, exp.Coalesce):
        for value in (node.this, *node.expressions):
            yield from _alternatives(value)
    else:
        yield node.transform(_normal)


def _assignments(sql: str) -> Mapping[str, str]:
    tree = sqlglot.parse_one(sql, dialect=databricks_dialect())
    assert isinstance(tree, exp.Update), "a MERGE is not followed"
    return {
        assignment.this.name.lower(): assignment.expression.sql(dialect=databricks_dialect())
        for assignment in tree.expressions
    }


@lru_cache(maxsize=4096)
def _tree(value: str) -> exp.Expr:
    return sqlglot.parse_one(value, dialect=databricks_dialect())
