"""The statement that SHOW CREATE TABLE returns: the one place where SQL shows generated and identity columns.

It is parsed as Databricks' own dialect; what is not understood is refused, never skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_engine.errors import CatalogReadError
from delta_engine.models import Column, Identity, QualifiedName
from delta_engine.state.catalog_reader import readable_column
from delta_engine.types import parse_data_type

if TYPE_CHECKING:
    from sqlglot import exp

_DIALECT = "databricks"
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
        create = sqlglot.parse_one(statement, dialect=_DIALECT)
    except SqlglotError as error:
        raise _not_understood(table, statement) from error
    if not isinstance(create, exp.Create) or not isinstance(create.this, exp.Schema):
        raise _not_understood(table, statement)
    columns = [node for node in create.this.expressions if isinstance(node, exp.ColumnDef)]
    partitioning, comment = create.find(exp.PartitionedByProperty), create.find(exp.SchemaCommentProperty)
    return Declaration(
        columns=tuple(_column(table, node) for node in columns),
        partitioned_by=tuple(_names(partitioning.this.expressions)) if partitioning else (),
        comment=comment.this.name if comment else "",
    )


def _column(table: QualifiedName, node: exp.ColumnDef) -> Column:
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
            case exp.DefaultColumnConstraint(this=value):
                default = value.sql(_DIALECT)
            case exp.GeneratedAsIdentityColumnConstraint() as kind if kind.args.get("expression"):
                generated = kind.expression.sql(_DIALECT)
            case exp.GeneratedAsIdentityColumnConstraint() as kind:
                identity = _identity(kind)
            case exp.ComputedColumnConstraint(this=value):
                generated = value.unnest().sql(_DIALECT)
            case other:
                raise _not_understood(table, other.sql(_DIALECT), node.name)
    if node.kind is None:
        raise _not_understood(table, node.sql(_DIALECT), node.name)
    return readable_column(
        table,
        node.name,
        parse_data_type(node.kind.sql(_DIALECT)),
        is_nullable=is_nullable,
        comment=comment,
        default=default,
        generated_as=generated,
        identity=identity,
    )


def _identity(kind: exp.GeneratedAsIdentityColumnConstraint) -> Identity:
    start, increment = kind.args.get("start"), kind.args.get("increment")
    return Identity(
        start=1 if start is None else int(start.sql(_DIALECT)),
        step=1 if increment is None else int(increment.sql(_DIALECT)),
        always=bool(kind.this),
    )


def _names(nodes: Sequence[exp.Expression]) -> list[str]:
    return [node.name for node in nodes]


def _not_understood(table: QualifiedName, what: str, column: str | None = None) -> CatalogReadError:
    return CatalogReadError(
        f"what SHOW CREATE TABLE returns is not understood: {what}",
        table=str(table),
        column=column,
        way_out="Install databricks-sdk, or use a runtime that knows DESCRIBE TABLE … AS JSON.",
    )
