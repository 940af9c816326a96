"""Queries of views and bodies of functions in scripts: models need whole names, and queries no list of columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from delta_engine.models.functions import FunctionLanguage
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.function_bodies import sql_tokens
from delta_engine.sql.functions import submitted_text
from delta_engine.sql.text import idents, sql_path
from delta_engine.sql.view_queries import named_columns, submitted_query
from delta_engine.tools.importers.reading import NotReadError

if TYPE_CHECKING:
    from delta_engine.tools.importers.catalog import Catalog


_BEFORE_A_QUERY: Final = frozenset({"", "(", "UNION", "ALL", "DISTINCT", "EXCEPT", "MINUS", "INTERSECT"})
"""What stands before `TABLE t`, which sqlglot does not read, for `SELECT * FROM t`."""


def view_query(query: str, columns: Sequence[str], catalog: Catalog) -> str:
    """Return a query with whole names of tables, views and functions, and with the names of CREATE VIEW's columns.

    Raises:
        NotReadError: sqlglot does not read it, it reads files, or there is no schema for a name without one.
    """
    from sqlglot.errors import SqlglotError

    try:
        text = _with_whole_names(_selected(submitted_query(query)), catalog)
    except (SqlglotError, RecursionError):
        raise NotReadError(
            "sqlglot does not read its query", "Declare the view in a model, with its query."
        ) from None
    names = named_columns(text)
    if not columns or (names and [name.lower() for name in names] == [name.lower() for name in columns]):
        return text
    return f"SELECT * FROM (\n{text}\n) AS named_columns({idents(columns)})"


def function_body(body: str, catalog: Catalog) -> str:
    """Return the expression or query of a function with whole names; as it is, if sqlglot does not read it.

    Raises:
        NotReadError: there is no schema for a name without one.
    """
    from sqlglot.errors import SqlglotError

    try:
        text = _selected(f"SELECT ({submitted_text(FunctionLanguage.SQL, body)})")
        return _with_whole_names(text, catalog).removeprefix("SELECT (").removesuffix(")")
    except (SqlglotError, RecursionError):
        return body


def _with_whole_names(text: str, catalog: Catalog) -> str:
    from sqlglot import exp, parse_one

    tree = parse_one(text, dialect=databricks_dialect())
    own = {query.alias_or_name.lower() for query in tree.find_all(exp.CTE)}
    places = []
    for table in tree.find_all(exp.Table):
        is_name = isinstance(table.this, exp.Identifier) and (table.db or table.name.lower() not in own)
        is_hint = table.find_ancestor(exp.Hint) is not None
        if is_name and "/" in table.name:
            raise NotReadError(f"its query reads files: {table.name}", "Declare a table of them first.")
        if is_name and not is_hint and len(table.parts) < 3 and "start" in table.parts[0].meta:
            whole = catalog.whole_name([part.name for part in table.parts])
            places.append((table.parts[0].meta["start"], whole[: 3 - len(table.parts)]))
    unknown = {call.name.lower() for call in tree.find_all(exp.Anonymous)}
    places += _short_calls(text, unknown, catalog)
    for start, missing in sorted(places, reverse=True):
        prefix = ".".join(part if part.isidentifier() else sql_path([part]) for part in missing)
        text = f"{text[:start]}{prefix}.{text[start:]}"
    return text


def _selected(text: str) -> str:
    """Return a query with `SELECT * FROM t` for each `TABLE t`, but not for one that is an argument of a function."""
    from sqlglot import TokenType

    names = (TokenType.VAR, TokenType.IDENTIFIER)
    tokens = [None, None, *sql_tokens(text)]
    for called, before, word, name in reversed([*zip(*(tokens[start:] for start in range(4)), strict=False)]):
        first = before.text.upper() if before else ""
        is_argument = first == "(" and called is not None and called.token_type in names
        is_start = first in _BEFORE_A_QUERY and not is_argument
        if is_start and word and word.token_type is TokenType.TABLE and name and name.token_type in names:
            text = f"{text[: word.start]}SELECT * FROM{text[word.end + 1 :]}"
    return text


def _short_calls(
    text: str, unknown: Collection[str], catalog: Catalog
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield where a query calls a function without its catalog, and the parts that the name lacks."""
    tokens = [None, None, None, *sql_tokens(text)]
    for before, schema, dot, name, opening in zip(*(tokens[start:] for start in range(5)), strict=False):
        if not (name and opening and opening.text == "("):
            continue
        if not (dot and dot.text == "."):
            if name.text.lower() in unknown and catalog.has("function", [name.text]):
                yield name.start, catalog.whole_name([name.text])[:2]
        elif schema and schema.end + 1 == dot.start and dot.end + 1 == name.start:
            has_catalog = before is not None and before.text == "."
            if schema.text.isidentifier() and not has_catalog:
                yield schema.start, catalog.whole_name(["", ""])[:1]
