"""What views read of tables, by their definitions as sqlglot parses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple

from delta_engine.models import QualifiedName, SchemaName
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.string_literals import with_portable_literals

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope


class LostRead(NamedTuple):
    """A part that a view reads and that will be gone.

    Args:
        table: the table's key.
        column: in lower case; None for the table itself.
        is_sure: False if the column may also be that of another table.
    """

    table: str
    column: str | None
    is_sure: bool = True


def lost_reads(
    definition: str, home: SchemaName, tables: Set[str], columns: Mapping[str, Set[str]]
) -> list[LostRead]:
    """Return what a view reads that will be gone, sorted.

    Args:
        definition: the query of the view.
        home: the schema of the view, in which it finds tables without one.
        tables: the keys of tables that will be gone.
        columns: the columns that will be gone, in lower case, by table key.

    Raises:
        ValueError: sqlglot cannot read the definition as a query.
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    try:
        tree = parse_one(with_portable_literals(definition), dialect=databricks_dialect())
        scopes = traverse_scope(tree) if isinstance(tree, exp.Query) else []
    except (SqlglotError, RecursionError) as error:
        raise ValueError("sqlglot does not read it") from error
    if not scopes:
        raise ValueError("it is no query")
    reads = {read for scope in scopes for read in _lost_in(scope, home, tables, columns)}
    return sorted(reads, key=lambda read: (read.table, read.column or "", not read.is_sure))


def _lost_in(
    scope: Scope, home: SchemaName, tables: Set[str], columns: Mapping[str, Set[str]]
) -> Iterator[LostRead]:
    from sqlglot import exp

    sources = {
        name.lower(): _key(source, home)
        for name, source in scope.sources.items()
        if isinstance(source, exp.Table)
    }
    yield from (LostRead(key, None) for key in sources.values() if key in tables)
    for column in scope.columns:
        name = column.name.lower()
        if column.table:
            key = sources.get(column.table.lower(), "")
            if name in columns.get(key, ()):
                yield LostRead(key, name)
            continue
        for key in sources.values():
            if name in columns.get(key, ()):
                yield LostRead(key, name, is_sure=len(scope.sources) == 1)


def _key(table: exp.Table, home: SchemaName) -> str:
    return QualifiedName(table.catalog or home.catalog, table.db or home.schema, table.name).key
