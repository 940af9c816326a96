"""Reads the queries of views: what no platform can take, what they read and return, and whether two say the same.

A query stays opaque text, which nothing here re-formats. sqlglot reads it for dependencies and warnings only.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from delta_engine.models.functions import FunctionName
from delta_engine.models.parts import QualifiedName, SchemaName
from delta_engine.models.repetitions import repeated
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.function_bodies import MAX_BODY_BYTES, qualified_calls, sql_tokens
from delta_engine.sql.string_literals import COMMENT, LITERAL, with_portable_literals
from delta_engine.sql.text import idents, quote_ident, sql_path

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.optimizer.scope import Scope

_CACHE_SIZE: Final = 4096
_PIECE: Final = re.compile(rf"{LITERAL}|`(?:[^`]|``)*`|(?P<comment>{COMMENT})|(?P<blank>\s+)|.", re.DOTALL)
_BOM: Final = "\ufeff"
_FIRST_WORDS: Final = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")
_NAME_PART: Final = r"(?:`(?:[^`]|``)+`|(?:\w|\$+\{[^}]*\})+)"
_NAMES: Final = re.compile(
    rf"{LITERAL}|{COMMENT}|(?P<name>(?<![\w.}}]){_NAME_PART}(?:\s*\.\s*{_NAME_PART}){{2,}})|`(?:[^`]|``)*`",
    re.DOTALL,
)
_PLAIN_NAME: Final = re.compile(r"(?:\w|\$+\{[^}]*\})+", re.ASCII)
_PLAIN_TABLE: Final = {"this", "db", "catalog", "alias", "joins", "laterals"}
"""The parts of a table in a query next to which a list of column names keeps its meaning."""
_THREE_PARTS: Final = "Write catalog.schema.name; ${catalog} is filled in."


@lru_cache(_CACHE_SIZE)
def submitted_query(query: str) -> str:
    """Return a query as statements submit it, which is what the record has of it; the result maps to itself.

    Literals are portable, so that tabs and line breaks inside of them are escaped: the platform shows a tab as four
    spaces and removes empty lines (github.com/databricks/terraform-provider-databricks/issues/3865). What stands before
    the first word and after the last one is lost on the way (measured, Spark 4.1.1).
    """
    text = with_portable_literals(query.replace("\r\n", "\n").replace("\r", "\n").lstrip(_BOM))
    pieces = list(_PIECE.finditer(text))
    while pieces and _is_outside(pieces[-1], ";"):
        pieces.pop()
    start = next((piece.start() for piece in pieces if not _is_outside(piece)), 0)
    return text[start : pieces[-1].end()] if pieces else ""


def is_same_query(query: str | None, other: str | None) -> bool:
    """Whether two queries differ in nothing but white space and comments at the ends; False for an unknown one."""
    return (
        query is not None and other is not None and (query == other or _spelling(query) == _spelling(other))
    )


@lru_cache(_CACHE_SIZE)
def query_problem(query: str) -> tuple[str, str] | None:
    """Return why no platform can make a view of a query, and the fix; None if nothing is certain to fail."""
    text = submitted_query(query)
    if not text:
        return "its query is empty", "Write the query, or name its file as query_file."
    if len(text.encode()) > MAX_BODY_BYTES:
        return f"its query is larger than {MAX_BODY_BYTES >> 20} MiB", "Put the data into a table."
    if "\0" in text:
        return "its query contains a NUL character", "Remove it."
    if "${" in text:
        fix = "Declare the variable, or remove it from the comment or the name; the engine escapes it in literals."
        return "its query contains ${, which Spark reads as a variable", fix
    return _token_problem(text) or _tree_problem(text)


def query_doubt(query: str) -> str | None:
    """Return why a query may be invalid; None if a parser reads it. The platform's own parser knows more."""
    tree = _parsed(submitted_query(query))
    if tree is None:
        return "sqlglot does not read its query, so the engine does not know what it reads"
    unnamed = [str(column.sql(databricks_dialect())) for column in tree.selects if not _is_named(column)]
    return f"its column {unnamed[0]} lacks a name: write AS and a name" if unnamed else None


def parsed_query(query: str) -> exp.Query | None:
    """Return the tree of a query, which nothing may change; None if sqlglot does not read it."""
    return _parsed(submitted_query(query))


@lru_cache(_CACHE_SIZE)
def read_relations(query: str) -> frozenset[QualifiedName] | None:
    """Return the tables and views that a query reads by whole names; None if sqlglot does not read the query."""
    tree = _parsed(submitted_query(query))
    if tree is None:
        return None
    return frozenset(_whole_name(table) for table in _relations(tree) if len(table.parts) == 3)


def read_functions(query: str) -> frozenset[FunctionName]:
    """Return the functions that a query calls by whole names."""
    calls = qualified_calls(sql_tokens(submitted_query(query)))
    return frozenset(FunctionName(*parts) for parts in calls if len(parts) == 3)


def named_columns(query: str) -> tuple[str, ...] | None:
    """Return the names of all columns that a query returns; None if its text does not name each."""
    tree = _parsed(submitted_query(query))
    columns = [] if tree is None else tree.selects
    is_sure = columns and all(_is_named(column) and not column.is_star for column in columns)
    return tuple(column.alias_or_name for column in columns) if is_sure else None


def scopes_of(query: str) -> list[Scope]:
    """Return the queries inside of a query, the inner ones first, and itself last; none if sqlglot does not read it."""
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    tree = parsed_query(query)
    try:
        return [] if tree is None else traverse_scope(tree)
    except (SqlglotError, RecursionError):
        return []


def returned_columns(query: str, relations: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    """Return the names of the columns that a query returns; None if they are unknown.

    Args:
        relations: the columns of known tables and views, by key.
    """
    columns = named_columns(query)
    if columns is not None:
        return columns
    tree = _qualified(query, relations)
    names = [] if tree is None else tree.named_selects
    return tuple(names) if names and "*" not in names else None


class Reads(NamedTuple):
    """What a query reads of tables and views.

    Args:
        columns: the columns that its text names, in lower case, by the key of the table or view.
        spread: the keys of those whose columns it returns by a star, whichever these are.
        counted: the keys of those of which only this number of columns fits: it names them by their position, or puts
            all of them next to those of another query (UNION).
        is_sure: False if a column may also be that of another table.
    """

    columns: Mapping[str, frozenset[str]]
    spread: frozenset[str]
    counted: frozenset[str]
    is_sure: bool


def read_columns(query: str, relations: Mapping[str, Sequence[str]]) -> Reads | None:
    """Return the columns that a query reads; None if sqlglot does not read the query.

    Args:
        relations: the columns of known tables and views, by key: without those of each that it reads, the result has
            every column that it may read.
    """
    text = submitted_query(query)
    tree = _parsed(text)
    if tree is None:
        return None
    tables = [*_relations(tree)]
    renamed = frozenset(_whole_name(table).key for table in tables if table.alias_column_names)
    possible, spread = _possible_columns(tree), frozenset(_spread(tree))
    counted = renamed | spread if _counts_columns(tree) else renamed
    is_known = not renamed and all(_whole_name(table).key in relations for table in tables)
    qualified = _qualified(text, relations) if is_known else None
    if qualified is None:
        return Reads(possible, spread, counted, is_sure=False)
    sure = _sure_columns(qualified)
    columns = {key: names & sure.get(key, frozenset()) for key, names in possible.items()}
    return Reads(columns, spread, counted, is_sure=True)


def retyped_columns(
    query: str, relations: Mapping[str, Sequence[str]], retyped: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Return the columns of a query whose types may change with those of columns that it reads, in lower case.

    A cast keeps its type. Where columns cannot be traced, all columns of the query may change.

    Args:
        relations: the columns of known tables and views, by key.
        retyped: the columns that get other types, in lower case, by the key of their table or view.
    """
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    tree = _parsed(submitted_query(query))
    tables = [] if tree is None else [*_relations(tree)]
    if tree is None or {_whole_name(table).key for table in tables}.isdisjoint(retyped):
        return frozenset()
    qualified = None if any(table.alias_column_names for table in tables) else _qualified(query, relations)
    if qualified is None or _is_untraceable(qualified):
        return frozenset(map(str.lower, tree.named_selects))
    outputs: dict[Scope, frozenset[str]] = {}
    by_alias: dict[str, frozenset[str]] = defaultdict(frozenset)
    for scope in traverse_scope(qualified):  # the inner ones first, and the whole query last
        for alias, source in scope.sources.items():
            if isinstance(source, exp.Table):
                by_alias[alias] |= retyped.get(_whole_name(source).key, frozenset())
            else:
                by_alias[alias] |= outputs[source]
        outputs[scope] = _retyped_outputs(scope, by_alias, outputs)
    return outputs[scope]


def _is_untraceable(tree: exp.Query) -> bool:
    from sqlglot import exp

    return tree.find(exp.UDTF) is not None or any(
        operation.args.get("by_name") for operation in tree.find_all(exp.SetOperation)
    )


def _retyped_outputs(
    scope: Scope, by_alias: Mapping[str, Set[str]], inner: Mapping[Scope, frozenset[str]]
) -> frozenset[str]:
    """Return the columns of a query, or of one inside of it, whose types may change."""
    from sqlglot import exp

    if scope.set_operation_scopes:
        sides = ((name in inner[side] for name, _ in _outputs(side)) for side in scope.set_operation_scopes)
        outputs = zip(_outputs(scope), *sides, strict=False)
        return frozenset(name for (name, _), *changes in outputs if any(changes))
    return frozenset(
        name
        for name, output in _outputs(scope)
        if any(
            column.name.lower() in by_alias.get(column.table, ())
            and not isinstance(column.find_ancestor(exp.Cast, exp.Select), exp.Cast)
            for column in output.find_all(exp.Column)
        )
    )


def _outputs(scope: Scope) -> Iterator[tuple[str, exp.Expr]]:
    from sqlglot import exp

    query = scope.expression
    if isinstance(query, exp.Query):
        yield from zip(map(str.lower, query.named_selects), query.selects, strict=True)


def without_names(query: str, relation: QualifiedName, columns: Sequence[str]) -> str | None:
    """Return a query that reads the columns of a table by their position, under other names; None if it cannot.

    It works before and after the table's columns get these names, as long as their number and order stay (measured).

    Args:
        columns: the names that all columns of the table get, in their order.
    """
    text, names = submitted_query(query), f"({idents(columns)})"
    insertions = [_column_names(table, names) for table in _plain_tables(text, relation)]
    if not insertions or None in insertions:
        return None
    for place, insertion in sorted(filter(None, insertions), reverse=True):
        text = text[:place] + insertion + text[place:]
    return text


def with_columns(query: str, relation: QualifiedName, columns: Sequence[str]) -> str | None:
    """Return a query that reads no other columns of a table than some, by their names; None if it cannot.

    Where it reads them by position, it still does. It works before and after the table gets more columns (measured).
    """
    text = submitted_query(query)
    tables = _plain_tables(text, relation)
    for table in sorted(tables, key=_start_of, reverse=True):
        start, end = _start_of(table), table.parts[-1].meta["end"] + 1
        name = "" if table.args.get("alias") else f" AS {quote_ident(table.name)}"
        text = f"{text[:start]}(SELECT {idents(columns)} FROM {text[start:end]}){name}{text[end:]}"
    return text if tables else None


def _plain_tables(text: str, relation: QualifiedName) -> Sequence[exp.Table]:
    """Return where a query reads a table; nowhere if another list of its columns would not be clear everywhere."""
    from sqlglot import exp

    tree = _parsed(text)
    if tree is None or any(column.args.get("db") for column in tree.find_all(exp.Column)):
        return ()
    tables = [table for table in _relations(tree) if _whole_name(table).key == relation.key]
    is_plain = all(
        _PLAIN_TABLE.issuperset(part for part, value in table.args.items() if value) for table in tables
    )
    return tables if is_plain else ()


def with_names(query: str, change: Callable[[str], str]) -> str:
    """Return a query with its whole names changed, but not what literals and comments say.

    Args:
        change: gets the parts of a name one by one, without quotes: the first one with a dot behind it, as the
            beginning of the name.
    """
    return _NAMES.sub(
        lambda piece: _changed_name(piece["name"], change) if piece["name"] else piece[0], query
    )


def _changed_name(name: str, change: Callable[[str], str]) -> str:
    places = itertools.count()

    def changed(part: re.Match[str]) -> str:
        is_quoted = part[0].startswith("`")
        text = part[0][1:-1].replace("``", "`") if is_quoted else part[0]
        other = change(text) if next(places) else change(f"{text}.").removesuffix(".")
        if other == text:
            return part[0]
        return quote_ident(other) if is_quoted or not _PLAIN_NAME.fullmatch(other) else other

    return re.sub(_NAME_PART, changed, name)


def listed_columns(query: str) -> Iterator[tuple[str, int]]:
    """Yield the tables and views to whose columns a query gives names, by key, with how many columns each must have."""
    tree = _parsed(submitted_query(query))
    for table in () if tree is None else _relations(tree):
        if names := table.alias_column_names:
            yield _whole_name(table).key, len(names)


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
    scopes = scopes_of(definition)
    if not scopes:
        raise ValueError("sqlglot does not read it")
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


def _is_outside(piece: re.Match[str], ends: str = "") -> bool:
    """Whether a piece is white space, a comment, or one of some characters."""
    return bool(piece["blank"] or piece["comment"]) or piece[0] in (ends or _BOM)


@lru_cache(_CACHE_SIZE)
def _spelling(query: str) -> str:
    """Return a query with one space, or one line break after a comment of a line, for each run of white space."""
    spelled: list[str] = []
    for piece in _PIECE.finditer(submitted_query(query)):
        if piece["comment"]:
            end = "\n" if piece[0].startswith("--") else ""
            spelled.append(" ".join(piece[0].split()) + end)
        elif not piece["blank"]:
            spelled.append(piece[0])
        elif not spelled[-1].endswith("\n"):
            spelled.append(" ")
    return "".join(spelled)


def _token_problem(text: str) -> tuple[str, str] | None:
    from sqlglot import TokenType

    tokens = sql_tokens(text)
    if not tokens:
        return "its query is not SQL: a string, a quoted name or a comment does not end", "Close it."
    first = tokens[0].text.upper()
    if first == "CREATE":
        return "its query begins with CREATE, which the engine writes", "Begin with SELECT or WITH."
    if first not in _FIRST_WORDS and tokens[0].token_type is not TokenType.L_PAREN:
        return f"its query is not a SELECT: it begins with {tokens[0].text}", "Begin with SELECT or WITH."
    if first == "WITH" and len(tokens) > 1 and tokens[1].text.upper() == "RECURSIVE":
        return (
            "its query is recursive, and the engine does not manage recursive views",
            "Create the view with your own job.",
        )
    depth = 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            return "its query is two statements: a semicolon separates them", "Write one SELECT."
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth < 0:
            break
    if depth:
        return "its query has an unmatched parenthesis", "Close or remove it."
    return None


def _tree_problem(text: str) -> tuple[str, str] | None:
    for parts in qualified_calls(sql_tokens(text)):
        if len(parts) == 2:
            return f"its query calls {'.'.join(parts)} without a catalog", _THREE_PARTS
    tree = _parsed(text)
    if tree is None:
        return None
    for table in _relations(tree):
        if len(table.parts) < 3:
            missing = "a catalog" if len(table.parts) == 2 else "catalog and schema"
            return (
                f"its query reads {'.'.join(part.name for part in table.parts)} without {missing}",
                _THREE_PARTS,
            )
    if names := repeated(column.alias_or_name for column in tree.selects if _is_named(column)):
        return f"its query returns column {names[0]!r} twice", "Rename one of them."
    return None


def _is_named(column: exp.Expr) -> bool:
    """Whether a column of a query has a name for certain; a star names those that it stands for."""
    from sqlglot import exp

    return isinstance(column, exp.Alias | exp.Aliases) or column.is_star or type(column) is exp.Column


@lru_cache(_CACHE_SIZE)
def _parsed(text: str) -> exp.Query | None:
    """Return the tree of a submitted query, which nothing may change."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(text, dialect=databricks_dialect())
    except (SqlglotError, RecursionError):
        return None
    return tree if isinstance(tree, exp.Query) else None


def _qualified(query: str, relations: Mapping[str, Sequence[str]]) -> exp.Query | None:
    """Return a tree in which each column names its table and stars are written out; None if that fails."""
    text = submitted_query(query)
    read = {name.key for name in read_relations(text) or ()}
    return _qualified_over(text, tuple((key, tuple(relations[key])) for key in sorted(read & {*relations})))


@lru_cache(_CACHE_SIZE)
def _qualified_over(text: str, relations: tuple[tuple[str, tuple[str, ...]], ...]) -> exp.Query | None:
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.schema import MappingSchema

    tree, dialect = _parsed(text), databricks_dialect()
    if tree is None:
        return None
    schema = MappingSchema(dialect=dialect)
    for key, columns in relations:
        if len(parts := key.split(".")) == 3:
            schema.add_table(sql_path(parts), dict.fromkeys(columns, "string"), dialect=dialect)
    try:
        qualified: exp.Query = qualify(tree.copy(), schema=schema, dialect=dialect, quote_identifiers=False)
    except (SqlglotError, RecursionError, ValueError):
        return None
    return qualified


def _relations(tree: exp.Query) -> Iterator[exp.Table]:
    """Yield the tables and views of a query, without the names of its own WITH clauses and those in hints."""
    from sqlglot import exp

    own = {query.alias_or_name.lower() for query in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        is_name = isinstance(table.this, exp.Identifier) and (table.db or table.name.lower() not in own)
        if is_name and table.find_ancestor(exp.Hint) is None:
            yield table


def _whole_name(table: exp.Table) -> QualifiedName:
    return QualifiedName(table.catalog, table.db, table.name)


def _spread(tree: exp.Query) -> Iterator[str]:
    """Yield the keys of tables whose columns a star returns, or puts next to those of another query."""
    from sqlglot import exp

    if not _counts_columns(tree) and not any(column.is_star for column in tree.selects):
        return
    for select in tree.find_all(exp.Select):
        for column in select.selects:
            if column.is_star:
                owner = column.table.lower() if isinstance(column, exp.Column) else ""
                for source in _sources(select):
                    if not source.alias_column_names and owner in ("", source.alias_or_name.lower()):
                        yield _whole_name(source).key


def _counts_columns(tree: exp.Query) -> bool:
    """Whether a query inside has to return a certain number of columns."""
    from sqlglot import exp

    is_compared = any(column.args.get("query") for column in tree.find_all(exp.In))
    return is_compared or tree.find(exp.SetOperation) is not None


def _sources(select: exp.Select) -> Iterator[exp.Table]:
    from sqlglot import exp

    clause = select.args.get("from_") or select.args.get("from")
    joined = [join.this for join in select.args.get("joins") or ()]
    for source in (*((clause.this,) if clause else ()), *joined):
        if isinstance(source, exp.Table) and source.db and isinstance(source.this, exp.Identifier):
            yield source


def _column_names(table: exp.Table, names: str) -> tuple[int, str] | None:
    """Return where a table in a query takes a list of column names, and the list; None if it takes none."""
    alias = table.args.get("alias")
    if alias is None:
        return table.parts[-1].meta["end"] + 1, f" AS {quote_ident(table.name)}{names}"
    return None if alias.this is None or alias.columns else (alias.this.meta["end"] + 1, names)


def _start_of(table: exp.Table) -> int:
    start: int = table.parts[0].meta["start"]
    return start


def _possible_columns(tree: exp.Query) -> Mapping[str, frozenset[str]]:
    from sqlglot import exp

    columns = [
        (column.table.lower(), column.name.lower())
        for column in tree.find_all(exp.Column)
        if not _is_output(column)
    ]
    using = {name.name.lower() for join in tree.find_all(exp.Join) for name in join.args.get("using") or ()}
    possible: dict[str, frozenset[str]] = {}
    for table in _relations(tree):
        owners = ("", table.alias_or_name.lower())
        has_names = not table.alias_column_names  # of its own, which say nothing of the table's
        names = (
            using | {name for owner, name in columns if owner in owners} if has_names else frozenset[str]()
        )
        key = _whole_name(table).key
        possible[key] = possible.get(key, frozenset()) | names
    return possible


def _is_output(column: exp.Column) -> bool:
    """Whether a column in ORDER BY is an alias of the query, which hides columns there (measured, Spark 4.1.1)."""
    from sqlglot import exp

    order = column.find_ancestor(exp.Order, exp.Select)
    select = order.parent if isinstance(order, exp.Order) and not column.table else None
    selects = select.selects if isinstance(select, exp.Select) else ()
    return any(output.alias.lower() == column.name.lower() for output in selects)


def _sure_columns(tree: exp.Query) -> Mapping[str, frozenset[str]]:
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    sure: dict[str, frozenset[str]] = {_whole_name(table).key: frozenset() for table in _relations(tree)}
    for scope in traverse_scope(tree):
        sources = {
            name: _whole_name(source).key
            for name, source in scope.sources.items()
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier)
        }
        for column in scope.columns:
            if column.table in sources:
                key = sources[column.table]
                sure[key] = sure[key] | {column.name.lower()}
    return sure
