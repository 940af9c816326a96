"""Databricks' SQL as the parser knows it, but for what it takes for something else. Nothing is parsed at import."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from sqlglot import Dialect


@cache
def databricks_dialect() -> type[Dialect]:
    """Return the dialect.

    The parser's own makes an array of `list[0]` and `array[0]`, and loses what stands before `payload.list[0]`: in
    Spark these are columns and fields, for brackets never make an array.
    """
    from sqlglot import exp
    from sqlglot.dialects.databricks import Databricks

    class SparkSql(Databricks):
        class Parser(Databricks.Parser):  # type: ignore[misc, valid-type]  # a variable, to type checkers
            ARRAY_CONSTRUCTORS: ClassVar[dict[str, type[exp.Expression]]] = {}

    return SparkSql
