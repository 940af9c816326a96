"""The statement that SHOW CREATE TABLE returns: the one place where SQL shows generated and identity columns.

It is parsed as Databricks' own dialect; what is not understood is refused, never skipped. Expressions are taken as they
stand in the statement: the parser has other words for many functions, and models are compared with what people wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, Identity, QualifiedName
from delta_engine.sql_dialect import databricks_dialect
from delta_engine.state.catalog_reader import readable_column
from delta_engine.types import parse_data_type

if TYPE_CHECKING:
    from sqlglot import Token, exp

_COLLATION = "utf8_binary"
"""The default, which every text has; any other is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a CREATE TABLE statement declares.

    Args:
        columns: the columns, in order.
        partitioned_by: the partition columns, in order.
        comment: the table's comment; empty for none.
    """

    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...]
    comment: str


def declaration(table: QualifiedName, statement: str) -> Declaration:
    """Return what a CREATE TABLE statement declares.

    Raises:
        CatalogReadError: the statement is not understood.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        create = sqlglot.parse_one(statement, dialect=databricks_dialect())
    except SqlglotError as error:
        raise _not_understood(table, statement) from error
    if not isinstance(create, exp.Create) or not isinstance(create.this, exp.Schema):
        raise _not_understood(table, statement)
    columns = [node for node in create.this.expressions if isinstance(node, exp.ColumnDef)]
    expressions = _expressions(statement)
    partitioning, comment = create.find(exp.PartitionedByProperty), create.find(exp.SchemaCommentProperty)
    return Declaration(
        columns=tuple(_column(table, node, expressions) for node in columns),
        partitioned_by=tuple(_names(partitioning.this.expressions)) if partitioning else (),
        comment=comment.this.name if comment else "",
    )


def _column(table: QualifiedName, node: exp.ColumnDef, expressions: Iterator[str]) -> Column:
    """Return a column; `expressions` are those of the columns that have one, from this one on."""
    from sqlglot import exp

    is_nullable, comment, default, generated, identity = True, "", None, None, None
    for constraint in node.constraints:
        match constraint.kind:
            case exp.NotNullColumnConstraint():
                is_nullable = bool(constraint.kind.args.get("allow_null"))
            case exp.CommentColumnConstraint(this=text):
                comment = text.name
            case exp.CollateColumnConstraint(this=collation) if collation.name.lower() == _COLLATION:
                pass
            case exp.DefaultColumnConstraint():
                default = _next(expressions, table, node)
            case exp.GeneratedAsIdentityColumnConstraint() as kind if kind.args.get("expression"):
                generated = _next(expressions, table, node)
            case exp.GeneratedAsIdentityColumnConstraint() as kind:
                identity = _identity(kind)
            case exp.ComputedColumnConstraint():
                generated = _next(expressions, table, node)
            case other:
                raise _not_understood(table, _text(other), node.name)
    if node.kind is None:
        raise _not_understood(table, _text(node), node.name)
    return readable_column(
        table,
        node.name,
        parse_data_type(_text(node.kind)),
        is_nullable=is_nullable,
        comment=comment,
        default=default,
        generated_as=generated,
        identity=identity,
    )


_GENERATED = ("GENERATED", "ALWAYS", "AS", "(")
_AFTER_DEFAULT = ("COMMENT", "COLLATE", "GENERATED", "MASK", "NOT")
"""What may stand after the default in a column's definition; no default goes on with one of these."""


def _expressions(statement: str) -> Iterator[str]:
    """Yield the expressions of DEFAULT and GENERATED ALWAYS AS as they stand in a statement, in order."""
    from sqlglot import tokenize

    tokens = tokenize(statement, dialect=databricks_dialect())
    words = [token.text.upper() if _is_bare(token, statement) else "" for token in tokens]
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
    found = next(expressions, None)
    if found is None:
        raise _not_understood(table, _text(node), node.name)
    return found


def _end(words: Sequence[str], first: int, ends: Sequence[str] = ()) -> int:
    """Return where an expression ends that begins at a place: at one of some words, or where a parenthesis closes."""
    depth = 0
    for place in range(first, len(words)):
        if depth == 0 and place > first and words[place] in (")", *ends):
            return place
        depth += {"(": 1, ")": -1}.get(words[place], 0)
    return len(words)


def _is_bare(token: Token, statement: str) -> bool:
    """Whether a token stands without quotes: a word or a sign, and no name or text."""
    return statement[token.start : token.end + 1] == token.text


def _identity(kind: exp.GeneratedAsIdentityColumnConstraint) -> Identity:
    start, increment = kind.args.get("start"), kind.args.get("increment")
    return Identity(
        start=1 if start is None else int(_text(start)),
        step=1 if increment is None else int(_text(increment)),
        always=bool(kind.this),
    )


def _text(node: exp.Expr) -> str:
    return node.sql(databricks_dialect())


def _names(nodes: Sequence[exp.Expression]) -> list[str]:
    return [node.name for node in nodes]


def _not_understood(table: QualifiedName, what: str, column: str | None = None) -> CatalogReadError:
    return CatalogReadError(
        f"what SHOW CREATE TABLE returns is not understood: {what}",
        table=str(table),
        column=column,
        way_out="Install databricks-sdk, or use a runtime that knows DESCRIBE TABLE … AS JSON.",
    )
