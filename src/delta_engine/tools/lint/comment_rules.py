"""House rules about comments and owners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from delta_engine.actions.policy import matches_glob
from delta_engine.models import Function, Schema, Securable, Table, View
from delta_engine.tools.lint.rule import AnyColumn, Finding, RuleOfKind, columns_of, finding


class TableComments(RuleOfKind[Securable]):
    """Every table has a comment.

    Args:
        minimum_length: of the comment, in characters.
    """

    is_recommended: ClassVar[bool] = True
    minimum_length: int = 1

    def _judge(self, model: Securable) -> Iterator[Finding]:
        yield from self._of_comment(model, model.comment or "")

    def _of_comment(
        self, model: Securable, comment: str, column: AnyColumn | None = None
    ) -> Iterator[Finding]:
        if not comment.strip() and self.minimum_length:
            yield finding(model, "it has no comment", "Declare `comment`.", column)
        elif len(comment.strip()) < self.minimum_length:
            message = f"its comment has fewer than {self.minimum_length} characters"
            yield finding(model, message, "Describe what a new reader needs to know.", column)


class ViewComments(TableComments):
    """Every view has a comment."""

    kind: ClassVar[Any] = View


class SchemaComments(TableComments):
    """Every declared schema has a comment."""

    kind: ClassVar[Any] = Schema


class FunctionComments(TableComments):
    """Every function has a comment."""

    kind: ClassVar[Any] = Function
    is_recommended: ClassVar[bool] = False


class ColumnComments(TableComments):
    """Every column of a table has a comment, and every declared column of a view."""

    kind: ClassVar[Any] = Table | View
    is_recommended: ClassVar[bool] = False

    def _judge(self, model: Securable) -> Iterator[Finding]:
        for column in columns_of(model):
            yield from self._of_comment(model, column.comment, column)


class Owners(RuleOfKind[Table | View | Schema]):
    """Every table, view and schema has a declared owner.

    Args:
        allowed: globs of the principals that may own; all by default.
    """

    kind: ClassVar[Any] = Table | View | Schema
    allowed: tuple[str, ...] = ("*",)

    def _judge(self, model: Table | View | Schema) -> Iterator[Finding]:
        if not model.owner:
            yield finding(model, "it has no declared owner", "Declare `owner`, a group.")
        elif not any(matches_glob(model.owner, glob) for glob in self.allowed):
            fix = f"Use one of: {', '.join(self.allowed)}."
            yield finding(model, f"{model.owner!r} may not own it", fix)
