"""What a house rule is: a class with options, which yields what breaks it.

A new rule is a class here or in a project, with a docstring that says what it demands, and its options as fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from delta_engine.config.lint import Severity
from delta_engine.errors import SourceLocation
from delta_engine.models import Column, Securable, Table, View
from delta_engine.models.functions import Parameter
from delta_engine.models.views import ViewColumn

Model = TypeVar("Model", bound=Securable)

AnyColumn = Column | ViewColumn | Parameter


@dataclass(frozen=True, slots=True)
class Finding:
    """What breaks a house rule.

    Args:
        model: what it is about.
        message: what is wrong, without a final period.
        fix: what to do about it.
        column: its name, if it is about one.
        location: the place of the declaration.
    """

    model: Securable
    message: str
    fix: str
    column: str | None = None
    location: SourceLocation | None = None


class HouseRule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A house rule with its options.

    Args:
        severity: error, warning or note.
        on: globs of the names that it judges; all by default.
    """

    is_recommended: ClassVar[bool] = False

    severity: Severity = Severity.WARNING
    on: tuple[str, ...] = ("*",)

    def check(self, models: Iterable[Securable]) -> Iterator[Finding]:
        """Yield what breaks the rule; `models` are those that it judges, of all kinds."""
        raise NotImplementedError(f"{type(self).__name__} has no check")


class RuleOfKind(HouseRule, Generic[Model]):
    """A house rule that judges each model of some kinds by itself."""

    kind: ClassVar[Any] = Table

    def check(self, models: Iterable[Securable]) -> Iterator[Finding]:
        """Yield what breaks the rule."""
        for model in models:
            if isinstance(model, self.kind):
                yield from self._judge(model)

    def _judge(self, model: Model) -> Iterator[Finding]:
        """Yield what is wrong with one model."""
        raise NotImplementedError(f"{type(self).__name__} judges nothing")


def finding(model: Securable, message: str, fix: str, column: AnyColumn | str | None = None) -> Finding:
    """Return a finding, located at its column if a table declares it."""
    name = column if isinstance(column, str) or column is None else column.name
    place = getattr(column, "declared_at", None) or model.declared_at
    return Finding(model, message, fix, name, place)


def refuse_other_patterns(patterns: Iterable[str]) -> None:
    """Raise a ValueError for a pattern that is not a regular expression."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as invalid:
            raise ValueError(f"{pattern!r} is not a regular expression: {invalid}") from None


def columns_of(model: Securable) -> tuple[Column | ViewColumn, ...]:
    """Return the declared columns of a table or a view."""
    return model.columns if isinstance(model, Table | View) else ()
