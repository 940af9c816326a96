"""House rules about names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Final

import msgspec

from delta_engine.models import Function, Schema, Securable, Table, View
from delta_engine.tools.lint.rule import (
    Finding,
    HouseRule,
    Model,
    RuleOfKind,
    columns_of,
    finding,
    pattern_problem,
)

SNAKE_CASE: Final = r"[a-z][a-z0-9]*(_[a-z0-9]+)*"

_WORDS: Final = """
all alter and any as asc between both by case cast check column constraint create cross current_date
current_time current_timestamp current_user delete desc distinct drop else end except exists false
fetch for foreign from full grant group having in inner insert intersect into is join lateral
leading left like limit minus natural not null offset on only or order outer primary qualify
references revoke right select some table then trailing true union unique unknown update user using
values when where with
"""

_RESERVED: Final = frozenset(_WORDS.split())
"""Words that SQL engines reserve (docs: "ANSI compliance", reserved keywords), so that queries have to quote them."""


class _Named(RuleOfKind[Model]):
    """Demands names of a form.

    Args:
        pattern: a regular expression that the whole name matches; snake_case by default.
        in_schemas: other patterns, by the name of the schema.
    """

    pattern: str = SNAKE_CASE
    in_schemas: dict[str, str] = msgspec.field(default_factory=dict)

    def option_problem(self) -> str:
        """Return which pattern is wrong."""
        return pattern_problem((self.pattern, *self.in_schemas.values()))

    def judge(self, model: Securable) -> Iterator[Finding]:
        """Yield a name of another form."""
        _, schema, *_ = names = str(model.qualified_name).split(".")
        pattern = {name.lower(): each for name, each in self.in_schemas.items()}.get(
            schema.lower(), self.pattern
        )
        if not re.fullmatch(pattern, names[-1]):
            yield finding(model, f"its name does not match {pattern}", "Rename it, with `renamed_from`.")


class TableNames(_Named[Table]):
    """Names of tables match a pattern, snake_case by default, or that of their schema."""

    is_recommended: ClassVar[bool] = True


class ViewNames(_Named[View]):
    """Names of views match a pattern, snake_case by default, or that of their schema."""

    kind: ClassVar[type[Any]] = View
    is_recommended: ClassVar[bool] = True


class FunctionNames(_Named[Function]):
    """Names of functions match a pattern, snake_case by default, or that of their schema."""

    kind: ClassVar[type[Any]] = Function
    is_recommended: ClassVar[bool] = True


class SchemaNames(_Named[Schema]):
    """Names of schemas match a pattern, snake_case by default."""

    kind: ClassVar[type[Any]] = Schema


class ColumnNames(HouseRule):
    """Names of columns match a pattern, snake_case by default.

    Args:
        pattern: a regular expression that the whole name matches.
    """

    is_recommended: ClassVar[bool] = True
    pattern: str = SNAKE_CASE

    def option_problem(self) -> str:
        """Return whether the pattern is wrong."""
        return pattern_problem([self.pattern])

    def check(self, models: Iterable[Securable]) -> Iterator[Finding]:
        """Yield names of another form."""
        matches = re.compile(self.pattern).fullmatch
        for model in models:
            for column in columns_of(model):
                if not matches(column.name):
                    message = f"its name does not match {self.pattern}"
                    yield finding(model, message, "Rename it, with `renamed_from`.", column)


class ReservedWords(HouseRule):
    """No table, view or column has the name of a reserved word of SQL, which queries have to quote."""

    is_recommended: ClassVar[bool] = True

    def check(self, models: Iterable[Securable]) -> Iterator[Finding]:
        """Yield reserved words."""
        for model in models:
            if (
                isinstance(model, Table | View)
                and str(model.qualified_name).lower().rpartition(".")[2] in _RESERVED
            ):
                yield finding(model, "its name is a reserved word of SQL", "Rename it, with `renamed_from`.")
            for column in columns_of(model):
                if column.key in _RESERVED:
                    message = "its name is a reserved word of SQL"
                    yield finding(model, message, "Rename it, with `renamed_from`.", column)


class MaximumColumns(RuleOfKind[Table]):
    """A table has at most so many columns.

    Args:
        maximum: of columns.
    """

    is_recommended: ClassVar[bool] = True
    maximum: Annotated[int, msgspec.Meta(ge=1)] = 200

    def judge(self, model: Table) -> Iterator[Finding]:
        """Yield a table with more columns."""
        if len(model.columns) > self.maximum:
            message = f"it has {len(model.columns)} columns, more than {self.maximum}"
            yield finding(model, message, "Split it, or put columns that belong together into a struct.")
