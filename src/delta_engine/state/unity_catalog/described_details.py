"""Describes tables and views in SQL, one by one: without databricks-sdk, and right after a change.

One statement per table if the platform supports `DESCRIBE TABLE EXTENDED … AS JSON` (Databricks Runtime 16.2 and later,
serverless, SQL warehouses), otherwise two. Tables with generated or identity columns, which the JSON lacks, also need
SHOW CREATE TABLE. No runtime has JSON for foreign tables, and some have no JSON for streaming tables
(github.com/databricks/dbt-databricks, issues 1115 and 1128).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from delta_engine.backends import error_conditions
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Column, Identity, QualifiedName, ViewName
from delta_engine.models.type_text import parse_data_type
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.queries import (
    sql_at_location,
    sql_describe_as_json,
    sql_show_create_table,
    sql_show_table_properties,
)
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.state.failed_reads import FailedReads, unknown_form
from delta_engine.state.interpretation import readable_column
from delta_engine.state.states import TableState
from delta_engine.state.unity_catalog.details import (
    Answer,
    Answers,
    DetailsQuery,
    TableDetails,
    has_old_protocol,
    has_undescribed_columns,
    parse_description,
    with_properties,
)
from delta_engine.state.view_descriptions import ViewAnswer, ask_view

if TYPE_CHECKING:
    from sqlglot import Token, exp


class DescribedDetailsReader:
    """Describes tables and views in SQL."""

    is_in_bulk: ClassVar = False

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner
        self._knows_json = True
        self.failed_reads = FailedReads()

    def queries(
        self, tables: Sequence[QualifiedName], views: Sequence[ViewName] = ()
    ) -> Sequence[DetailsQuery]:
        """Return one query per table and view; see `DetailsReader.queries`."""
        return [
            *(partial(self._ask, table) for table in tables),
            *(partial(self._ask_view, view) for view in views),
        ]

    def answer(self, table: QualifiedName) -> Answer:
        """Describe one table; StatementError if the platform describes none."""
        try:
            details = self._described(table, CatalogAddressing().table(table))
        except CatalogReadError as refusal:
            return refusal
        except StatementError as error:
            if error_conditions.is_unregistered_table(error):
                return None
            return self.failed_reads.refusal(table, error)
        except ValueError as error:
            return unknown_form(table, error)
        self.failed_reads.note_read()
        return details

    def at_location(self, table: QualifiedName, location: str) -> TableState | None:
        """Return the Delta table at a location; see `LocationReader.at_location`."""
        try:
            state = self._described(table, sql_at_location(location)).state
        except StatementError as error:
            if not error_conditions.is_missing_table(error):
                raise
            return None
        return TableState(
            columns=tuple(replace(column, mask=None) for column in state.columns),
            table_comment=state.table_comment,
            table_properties=state.table_properties,
            checks=state.checks,
            cluster_by=state.cluster_by,
            clusters_automatically=state.clusters_automatically,
            partitioned_by=state.partitioned_by,
            location=location,
        )

    def view_answer(self, view: ViewName) -> ViewAnswer:
        """Describe one view; StatementError if the platform describes none."""
        return ask_view(self._runner, view) if self._knows_json else None

    def _ask(self, table: QualifiedName) -> Answers:
        return Answers(tables={table.key: self.answer(table)})

    def _ask_view(self, view: ViewName) -> Answers:
        return Answers(views={view.key: self.view_answer(view)})

    def _described(self, table: QualifiedName, address: str) -> TableDetails:
        if not self._knows_json:
            return self._shown(table, address)
        try:
            document = self._first(sql_describe_as_json, table, address)
        except StatementError as error:
            if not error_conditions.is_unsupported(error):
                raise
            self._knows_json = error_conditions.is_unsupported_for_its_kind(error)
            return self._shown(table, address)
        details = parse_description(table, document)
        if has_undescribed_columns(details.state) or has_old_protocol(details.state):
            columns = self._with_computed_columns(table, address, details.state.columns)
            return replace(details, state=replace(details.state, columns=columns))
        return details

    def _with_computed_columns(
        self, table: QualifiedName, address: str, columns: Sequence[Column]
    ) -> tuple[Column, ...]:
        statement = self._first(sql_show_create_table, table, address)
        declared = declaration(table, statement, knows_policies=True)
        computed = {column.key: column for column in declared.columns}
        if computed.keys() != {column.key for column in columns}:
            raise CatalogReadError(
                "its columns changed while it was read", table=str(table), way_out="Run the command again."
            )
        pairs = [(column, computed[column.key]) for column in columns]
        return tuple(
            replace(column, generated_as=other.generated_as, identity=other.identity)
            for column, other in pairs
        )

    def _shown(self, table: QualifiedName, address: str) -> TableDetails:
        """Read a table without JSON; the views have its owner and location."""
        rows = self._runner.run(sql_show_table_properties(address))
        declared = declaration(table, self._first(sql_show_create_table, table, address))
        properties = {str(row["key"]): str(row["value"]) for row in rows}
        return TableDetails(state=with_properties(declared, properties))

    def _first(self, statement: Callable[[str], str], table: QualifiedName, address: str) -> str:
        rows: Sequence[Row] = self._runner.run(statement(address))
        for row in rows:
            for value in row.values():
                return str(value)
        raise CatalogReadError(
            "the platform returned an empty description", table=str(table), way_out="Run the command again."
        )


_COLLATION = "utf8_binary"
"""The default: the engine does not manage strings with another one."""


def declaration(table: QualifiedName, statement: str, *, knows_policies: bool = False) -> TableState:
    """Parse a CREATE TABLE statement, the only SQL source of generated and identity columns.

    The parser uses Databricks' dialect and refuses unknown syntax. Expressions keep their original text
    with portable literals, because the parser renames many functions.

    Args:
        knows_policies: whether another source has masks and row filter, which are refused otherwise.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    statement = with_portable_literals(statement)
    try:
        statement = _without_unknown_clauses(statement, knows_policies=knows_policies)
        create = sqlglot.parse_one(statement, dialect=databricks_dialect())
    except SqlglotError as error:
        raise _unsupported(table, statement) from error
    if not isinstance(create, exp.Create) or not isinstance(create.this, exp.Schema):
        raise _unsupported(table, statement)
    columns = [node for node in create.this.expressions if isinstance(node, exp.ColumnDef)]
    expressions = _expressions(statement)
    partitioning, comment = create.find(exp.PartitionedByProperty), create.find(exp.SchemaCommentProperty)
    return TableState(
        columns=tuple(_column(table, node, expressions) for node in columns),
        partitioned_by=tuple(node.name for node in partitioning.this.expressions) if partitioning else (),
        table_comment=comment.this.name if comment else "",
    )


def _column(table: QualifiedName, node: exp.ColumnDef, expressions: Iterator[str]) -> Column:
    """Return a column; `expressions` yields the expressions of this and the following columns that have one."""
    from sqlglot import exp

    is_nullable, comment, default, generated, identity, collated = True, "", None, None, None, ""
    for constraint in node.constraints:
        match constraint.kind:
            case exp.NotNullColumnConstraint():
                is_nullable = bool(constraint.kind.args.get("allow_null"))
            case exp.CommentColumnConstraint(this=text):
                comment = text.name
            case exp.CollateColumnConstraint(this=collation):
                collated = "" if collation.name.lower() == _COLLATION else f" collate {collation.name}"
            case exp.DefaultColumnConstraint():
                default = _next(expressions, table, node)
            case exp.GeneratedAsIdentityColumnConstraint() as kind if kind.args.get("expression"):
                generated = _next(expressions, table, node)
            case exp.GeneratedAsIdentityColumnConstraint() as kind:
                identity = _identity(kind)
            case exp.ComputedColumnConstraint():
                generated = _next(expressions, table, node)
            case other:
                raise _unsupported(table, _text(other), node.name)
    if node.kind is None:
        raise _unsupported(table, _text(node), node.name)
    return readable_column(
        table,
        node.name,
        parse_data_type(_type_text(node.kind) + collated),
        is_nullable=is_nullable,
        comment=comment,
        default=default,
        generated_as=generated,
        identity=identity,
    )


_GENERATED = ("GENERATED", "ALWAYS", "AS", "(")
_AFTER_DEFAULT = ("COMMENT", "COLLATE", "GENERATED", "NOT")
"""Words after the default of a column; no default continues with one of them. Masks are removed or refused earlier."""

_DEPTHS = {"(": 1, ")": -1}
_IN_COLUMNS = 1
"""The nesting of parentheses at which columns are defined."""


def _without_unknown_clauses(statement: str, *, knows_policies: bool) -> str:
    """Return a statement without default collation, masks and row filter, which the parser does not know."""
    tokens, words = _tokens(statement)
    kept, place, start, depth = [], 0, 0, 0
    while place < len(words):
        end = _end_of_clause(words, place, depth, knows_policies=knows_policies)
        if end > place:
            kept.append(statement[start : tokens[place].start])
            start = tokens[end - 1].end + 1
        else:
            depth += _DEPTHS.get(words[place], 0)
        place = max(end, place + 1)
    return "".join(kept) + statement[start:]


def _end_of_clause(words: Sequence[str], place: int, depth: int, *, knows_policies: bool) -> int:
    """Return the end of an unknown clause that begins at a place; the place itself if none does."""
    match words[place : place + 3]:
        case ["DEFAULT", "COLLATION", *_]:
            return place + 3
        case ["WITH", "ROW", "FILTER"] if knows_policies:
            name_ends = _end_of_name(words, place + 3)
            return _end_of_parentheses(words, name_ends + 1)  # ON (…)
        case ["MASK", after, *_] if (
            knows_policies
            and depth == _IN_COLUMNS
            and after != "("  # the function
            and words[place - 1] not in ("(", ",", "<")  # a name
        ):
            name_ends = _end_of_name(words, place + 1)
            has_columns = tuple(words[name_ends : name_ends + 2]) == ("USING", "COLUMNS")
            return _end_of_parentheses(words, name_ends + 2) if has_columns else name_ends
    return place


def _end_of_name(words: Sequence[str], first: int) -> int:
    end = first + 1
    while end < len(words) and words[end] == ".":
        end += 2
    return end


def _end_of_parentheses(words: Sequence[str], opening: int) -> int:
    depth = 0
    for place in range(opening, len(words)):
        depth += _DEPTHS.get(words[place], 0)
        if depth == 0:
            return place + 1
    return len(words)


def _tokens(statement: str) -> tuple[Sequence[Token], Sequence[str]]:
    """Return a statement's tokens, and their words and signs in upper case; empty for names and texts."""
    from sqlglot import tokenize

    tokens = tokenize(statement, dialect=databricks_dialect())
    return tokens, [
        token.text.upper() if statement[token.start : token.end + 1] == token.text else "" for token in tokens
    ]


def _expressions(statement: str) -> Iterator[str]:
    """Yield the original text of the expressions of DEFAULT and GENERATED ALWAYS AS, in order."""
    tokens, words = _tokens(statement)
    for place, word in enumerate(words):
        if tuple(words[place : place + len(_GENERATED)]) == _GENERATED:
            first = place + len(_GENERATED)
            last = _end(words, first)
        elif word == "DEFAULT" and words[place - 1] not in ("(", ",", "<", "BY"):
            first = place + 1
            last = _end(words, first, (",", *_AFTER_DEFAULT))
        else:
            continue
        yield statement[tokens[first].start : tokens[last - 1].end + 1]


def _next(expressions: Iterator[str], table: QualifiedName, node: exp.ColumnDef) -> str:
    expression = next(expressions, None)
    if expression is None:
        raise _unsupported(table, _text(node), node.name)
    return expression


def _end(words: Sequence[str], first: int, ends: Sequence[str] = ()) -> int:
    """Return the end of an expression: at one of some words, or at a closing parenthesis."""
    depth = 0
    for place in range(first, len(words)):
        if depth == 0 and place > first and words[place] in (")", *ends):
            return place
        depth += _DEPTHS.get(words[place], 0)
    return len(words)


def _identity(kind: exp.GeneratedAsIdentityColumnConstraint) -> Identity:
    start, increment = kind.args.get("start"), kind.args.get("increment")
    return Identity(
        start=1 if start is None else int(_text(start)),
        step=1 if increment is None else int(_text(increment)),
        always=bool(kind.this),
    )


def _type_text(node: exp.Expr) -> str:
    """Return a type as text; `time` for a type with TIME inside, which the parser would spell as TIMESTAMP."""
    from sqlglot import exp

    is_time = any(part.this is exp.DataType.Type.TIME for part in node.find_all(exp.DataType))
    return "time" if is_time else _text(node)


def _text(node: exp.Expr) -> str:
    return node.sql(databricks_dialect())


def _unsupported(table: QualifiedName, what: str, column: str | None = None) -> CatalogReadError:
    return CatalogReadError(
        f"the engine does not understand its SHOW CREATE TABLE: {what}",
        table=str(table),
        column=column,
        way_out="Install databricks-sdk, or use a runtime that supports DESCRIBE TABLE … AS JSON.",
    )
