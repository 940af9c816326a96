"""Who may do what: only owners change tables, reference them, and create or drop them in their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from delta_engine.models import ForeignKey, QualifiedName
from delta_engine.state.states import SchemaState
from tests.fakes.unity_catalog.refusals import require
from tests.fakes.unity_catalog.statements import (
    AddConstraint,
    AlterTable,
    CommentOn,
    CreateTable,
    DropTable,
    Grant,
    Revoke,
    Statement,
)
from tests.fakes.unity_catalog.stored import Stored

ERROR_CLASS = "INSUFFICIENT_PERMISSIONS"


def check_rights(
    statement: Statement, user: str, tables: Mapping[str, Stored], schemas: Mapping[str, SchemaState]
) -> None:
    """Refuse a statement about tables that are not the user's, or in a schema that is not."""
    for name in _tables(statement):
        schema = schemas.get(f"{name.catalog}.{name.schema}".lower())
        require(schema is None or schema.owner == user, ERROR_CLASS, f"the schema of {name} is not yours")
        table = tables.get(name.key)
        require(table is None or table.state.owner == user, ERROR_CLASS, f"{name} is not yours")


def _tables(statement: Statement) -> Iterator[QualifiedName]:
    """Yield the tables that a statement changes or references."""
    match statement:
        case CreateTable(path) | AlterTable(path) | DropTable(path):
            yield QualifiedName(*path)
        case Grant("TABLE", path) | Revoke("TABLE", path) | CommentOn("TABLE", path):
            yield QualifiedName(*path)
    for key in _foreign_keys(statement):
        yield QualifiedName(*statement.name).resolve(key.references)


def _foreign_keys(statement: Statement) -> tuple[ForeignKey, ...]:
    match statement:
        case CreateTable(_, state):
            return state.foreign_keys
        case AlterTable(_, AddConstraint(ForeignKey() as key)):
            return (key,)
    return ()
