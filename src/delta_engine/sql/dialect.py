"""The SQL dialect with which expressions and statements are parsed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from sqlglot import Dialect


@cache
def databricks_dialect() -> type[Dialect]:
    """Return sqlglot's Databricks dialect, without array constructors.

    The original reads `list[0]` and `array[0]` as array constructors and loses the qualifier of `payload.list[0]`. In
    Spark, brackets never construct an array.
    """
    from sqlglot import exp
    from sqlglot.dialects.databricks import Databricks

    class SparkSql(Databricks):
        class Parser(Databricks.Parser):  # type: ignore[misc, valid-type]  # a variable, to type checkers
            ARRAY_CONSTRUCTORS: ClassVar[dict[str, type[exp.Expression]]] = {}

    return SparkSql
