"""House rules about comments and owners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from delta_engine.models import Function, Schema, Securable, Table, View
from delta_engine.tools.lint.rule import AnyColumn, Finding, HouseRule, Model, RuleOfKind, columns_of, finding


class _Commented(RuleOfKind[Model]):
    """Demands a comment.

    Args:
        minimum_length: of the comment, in characters.
    """

    minimum_length: int = 1

    def judge(self, model: Securable) -> Iterator[Finding]:
        """Yield a missing or short comment."""
        yield from _without_comment(model, model.comment or "", self.minimum_length)


class TableComments(_Commented[Table]):
    """Every table has a comment."""

    is_recommended: ClassVar[bool] = True


class ViewComments(_Commented[View]):
    """Every view has a comment."""

    kind: ClassVar[type[Any]] = View
    is_recommended: ClassVar[bool] = True


class SchemaComments(_Commented[Schema]):
    """Every declared schema has a comment."""

    kind: ClassVar[type[Any]] = Schema
    is_recommended: ClassVar[bool] = True


class FunctionComments(_Commented[Function]):
    """Every function has a comment."""

    kind: ClassVar[type[Any]] = Function


class ColumnComments(HouseRule):
    """Every column of a table has a comment, and every declared column of a view.

    Args:
        minimum_length: of the comment, in characters.
    """

    minimum_length: int = 1

    def check(self, models: Iterable[Securable]) -> Iterator[Finding]:
        """Yield missing and short comments."""
        for model in models:
            for column in columns_of(model):
                yield from _without_comment(model, column.comment, self.minimum_length, column)


class Owners(HouseRule):
    """Every table, view and schema has a declared owner.

    Args:
        allowed: globs of the principals that may own; all by default.
    """

    allowed: tuple[str, ...] = ("*",)

    def check(self, models: Iterable[Securable]) -> Iterator[Finding]:
        """Yield what has no owner, or another one."""
        for model in models:
            if not isinstance(model, Table | View | Schema):
                continue
            if not model.owner:
                yield finding(model, "it has no declared owner", "Declare `owner`, a group.")
            elif not any(fnmatchcase(model.owner, glob) for glob in self.allowed):
                message = f"{model.owner!r} may not own it"
                yield finding(model, message, f"Declare one of {', '.join(self.allowed)}.")


def _without_comment(
    model: Securable, comment: str, minimum_length: int, column: AnyColumn | None = None
) -> Iterator[Finding]:
    if not comment.strip() and minimum_length:
        yield finding(model, "it has no comment", "Declare `comment`.", column)
    elif len(comment.strip()) < minimum_length:
        message = f"its comment has less than {minimum_length} characters"
        yield finding(model, message, "Say what a stranger needs to know.", column)
