"""House rules about names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final

import msgspec

from delta_engine.models import Function, Schema, Securable, Table, View
from delta_engine.tools.lint.rule import Finding, RuleOfKind, columns_of, finding, refuse_other_patterns

SNAKE_CASE: Final = r"[a-z][a-z0-9]*(_[a-z0-9]+)*"

_RENAME: Final = "Rename it, with `renamed_from`."

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


class _Named(RuleOfKind[Securable]):
    """Demands names of a form.

    Args:
        pattern: a regular expression that the whole name matches; snake_case by default.
    """

    pattern: str = SNAKE_CASE

    def __post_init__(self) -> None:
        refuse_other_patterns([self.pattern])


class TableNames(_Named):
    """Names of tables match a pattern, snake_case by default, or that of their schema.

    Args:
        in_schemas: other patterns, by the name of the schema.
    """

    is_recommended: ClassVar[bool] = True
    in_schemas: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_other_patterns((self.pattern, *self.in_schemas.values()))

    def _judge(self, model: Securable) -> Iterator[Finding]:
        _, schema, *_ = names = str(model.qualified_name).split(".")
        patterns = {name.lower(): pattern for name, pattern in self.in_schemas.items()}
        pattern = patterns.get(schema.lower(), self.pattern)
        if not re.fullmatch(pattern, names[-1]):
            yield finding(model, f"its name does not match {pattern}", _RENAME)


class ViewNames(TableNames):
    """Names of views match a pattern, snake_case by default, or that of their schema."""

    kind: ClassVar[Any] = View


class FunctionNames(TableNames):
    """Names of functions match a pattern, snake_case by default, or that of their schema."""

    kind: ClassVar[Any] = Function


class SchemaNames(TableNames):
    """Names of schemas match a pattern, snake_case by default."""

    kind: ClassVar[Any] = Schema
    is_recommended: ClassVar[bool] = False


class ColumnNames(_Named):
    """Names of columns match a pattern, snake_case by default."""

    kind: ClassVar[Any] = Table | View
    is_recommended: ClassVar[bool] = True

    def _judge(self, model: Securable) -> Iterator[Finding]:
        for column in columns_of(model):
            if not re.fullmatch(self.pattern, column.name):
                yield finding(model, f"its name does not match {self.pattern}", _RENAME, column)


class ReservedWords(RuleOfKind[Table | View]):
    """No table, view or column has the name of a reserved word of SQL, which queries have to quote."""

    kind: ClassVar[Any] = Table | View
    is_recommended: ClassVar[bool] = True

    def _judge(self, model: Table | View) -> Iterator[Finding]:
        name = str(model.qualified_name).lower().rpartition(".")[2]
        for key, column in ((name, None), *((column.key, column) for column in model.columns)):
            if key in _RESERVED:
                yield finding(model, "its name is a reserved word of SQL", _RENAME, column)


class MaximumColumns(RuleOfKind[Table]):
    """A table has at most so many columns.

    Args:
        maximum: of columns.
    """

    is_recommended: ClassVar[bool] = True
    maximum: Annotated[int, msgspec.Meta(ge=1)] = 200

    def _judge(self, model: Table) -> Iterator[Finding]:
        if len(model.columns) > self.maximum:
            message = f"it has {len(model.columns)} columns, more than {self.maximum}"
            yield finding(model, message, "Split it, or put columns that belong together into a struct.")
