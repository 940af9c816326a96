"""Finds columns that a query names and that nothing has that it reads.

A parser knows less than the platform, so whatever it may misread counts as present. What is reported is missing for
sure, if the given columns of tables and views are all that these have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from delta_engine.sql.view_queries import listed_columns, parsed_query, scopes_of

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

_PLAIN_SOURCE: Final = {"this", "db", "catalog", "alias"}
"""The parts of a table in FROM with which it has its own columns: another version or a sample may have others."""
_NO_COLUMNS: Final = re.compile(
    r"_.*|current_.*|session_.*|local.*|grouping__id|user|all"
    r"|year|quarter|month|week|day|dayofyear|hour|minute|second|(milli|micro|nano)second"
)
"""Names that may stand where columns stand: metadata of files, functions without parentheses, units of time."""


class MissingColumn(NamedTuple):
    """A column that a query names and nothing has that it reads.

    Args:
        name: as the query spells it.
        relations: the keys of the tables and views in whose place it is named.
        line: its line in the query.
        present: the names that the query may mean.
    """

    name: str
    relations: tuple[str, ...]
    line: int
    present: frozenset[str]


def missing_columns(query: str, relations: Mapping[str, Sequence[str]]) -> list[MissingColumn]:
    """Return the columns that a query names and nothing has that it reads.

    Args:
        relations: all columns of known tables and views, by key.
    """
    from sqlglot import exp

    tree = parsed_query(query)
    if tree is None or "|>" in query or tree.find(exp.Lateral, exp.Pivot, exp.MatchRecognize):
        return []
    missing = [column for scope in scopes_of(query) for column in _missing_in(scope, relations, query)]
    return [*{(column.name.lower(), column.relations): column for column in reversed(missing)}.values()][::-1]


def is_failing(query: str, relations: Mapping[str, Sequence[str]]) -> bool:
    """Whether a query surely fails: it names a column that nothing has, or another number of them than a table has."""
    is_misfit = any(number != len(relations.get(key, range(number))) for key, number in listed_columns(query))
    return is_misfit or bool(missing_columns(query, relations))


def _missing_in(scope: Scope, relations: Mapping[str, Sequence[str]], query: str) -> Iterator[MissingColumn]:
    from sqlglot import exp

    select = scope.expression
    sources = {name.lower(): source for name, source in _visible(scope)}
    columns = {name: _columns(source, relations) for name, source in sources.items()}
    present = {name: names for name, names in columns.items() if names is not None}
    if not isinstance(select, exp.Select) or len(present) < len(columns):
        return
    everything = frozenset[str]().union(*present.values())
    aliases = {selected.alias.lower() for selected in select.selects if selected.alias}
    for column in scope.columns:
        owner = column.table.lower()
        if column.find_ancestor(exp.Select) is not select or _is_doubtful(column):
            continue
        if owner and (owner not in present or owner in everything):  # may be a field of a struct
            continue
        names = present[owner] if owner else everything | aliases
        if column.name.lower() not in names:
            owners = [sources[owner]] if owner else [*sources.values()]
            keys = tuple(_key(source) for source in owners if isinstance(source, exp.Table))
            yield MissingColumn(column.name, keys, _line(column.name, query), names)


def _visible(scope: Scope) -> Iterator[tuple[str, exp.Table | Scope]]:
    """Yield what columns of a query may belong to: outer sources first, which inner ones of their names hide."""
    if scope.parent is not None:
        yield from _visible(scope.parent)
    for name, (_, source) in scope.selected_sources.items():
        yield name, source


def _columns(source: exp.Table | Scope, relations: Mapping[str, Sequence[str]]) -> frozenset[str] | None:
    """Return the columns that a source may have, in lower case; None if they are unknown."""
    from sqlglot import exp

    if not isinstance(source, exp.Table):
        return _returned(source, relations)
    is_plain = {part for part, value in source.args.items() if value} <= _PLAIN_SOURCE
    columns = relations.get(_key(source)) if is_plain and not source.alias_column_names else None
    return None if columns is None else frozenset(map(str.lower, columns))


def _returned(source: Scope, relations: Mapping[str, Sequence[str]]) -> frozenset[str] | None:
    """Return the columns that a query inside may return; a star may leave some of its columns out."""
    from sqlglot import exp

    query = source.expression
    is_named = isinstance(query.parent, exp.CTE | exp.Subquery) and query.parent.alias_column_names
    if not isinstance(query, exp.Select) or is_named:
        return None
    names = set[str]()
    for selected in query.selects:
        if selected.is_star:
            for _, inner in source.selected_sources.values():
                columns = _columns(inner, relations)
                if columns is None:
                    return None
                names |= columns
        elif isinstance(selected, exp.Alias | exp.Column):
            names.add(selected.alias_or_name.lower())
        else:
            return None
    return frozenset(names)


def _key(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts).lower()


def _is_doubtful(column: exp.Column) -> bool:
    """Whether a name may be something else than a column of a source."""
    from sqlglot import exp

    is_inside = column.find_ancestor(exp.Hint, exp.Lambda, exp.Kwarg, exp.PropertyEQ) is not None
    return is_inside or bool(column.args.get("db")) or _NO_COLUMNS.fullmatch(column.name.lower()) is not None


def _line(name: str, query: str) -> int:
    """Return the first line of a query that has a name."""
    place = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", query, re.IGNORECASE)
    return query.count("\n", 0, place.start() if place else 0) + 1
