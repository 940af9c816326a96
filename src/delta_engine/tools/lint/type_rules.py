"""House rules about types."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Final, Literal

import msgspec

from delta_engine.models import Securable, Table
from delta_engine.models.types import DataType, parts
from delta_engine.sql.text import shown_type
from delta_engine.tools.lint.rule import Finding, HouseRule, RuleOfKind, finding, refuse_other_patterns

_MONEY: Final = r"(.*_)?(amount|balance|cost|discount|fee|margin|price|revenue|salary|tax|total)(_.*)?"
_BINARY_FRACTIONS: Final = frozenset({"float", "double"})


class MoneyTypes(RuleOfKind[Table]):
    """Columns with names of money are no `float` or `double`, which cannot hold 0.10.

    Args:
        names: a regular expression of the names of money.
    """

    is_recommended: ClassVar[bool] = True
    names: str = _MONEY

    def __post_init__(self) -> None:
        refuse_other_patterns([self.names])

    def _judge(self, model: Table) -> Iterator[Finding]:
        is_money = re.compile(self.names, re.IGNORECASE).fullmatch
        for column in model.columns:
            if shown_type(column.data_type) in _BINARY_FRACTIONS and is_money(column.name):
                message = f"it holds money as {shown_type(column.data_type)}, which rounds"
                yield finding(model, message, "Declare `decimal(18, 2)` or another decimal.", column)


class TimestampTypes(RuleOfKind[Table]):
    """Points in time have one type: `timestamp`, or `timestamp_ntz`, which has no time zone.

    Args:
        use: the type.
    """

    is_recommended: ClassVar[bool] = True
    use: Literal["timestamp", "timestamp_ntz"] = "timestamp"

    def _judge(self, model: Table) -> Iterator[Finding]:
        other = "timestamp_ntz" if self.use == "timestamp" else "timestamp"
        for column in model.columns:
            if other in _names(column.data_type):
                yield finding(model, f"it has the type {other}", f"Declare `{self.use}`.", column)


class ForbiddenTypes(RuleOfKind[Table]):
    """No column has one of the named types, also inside of structs, arrays and maps.

    Args:
        types: the names of types, such as `float`, each with the reason.
    """

    types: dict[str, str] = msgspec.field(default_factory=dict)

    def _judge(self, model: Table) -> Iterator[Finding]:
        for column in model.columns:
            for name in sorted(_names(column.data_type) & {each.lower() for each in self.types}):
                reason = next(why for each, why in self.types.items() if each.lower() == name)
                yield finding(
                    model, f"the type {name} is not allowed: {reason}", "Declare another type.", column
                )


class SameTypes(HouseRule):
    """Columns with the same name have the same type in all tables.

    Args:
        except_columns: names that may have several types.
    """

    except_columns: tuple[str, ...] = ()

    def check(self, models: Iterable[Securable]) -> Iterator[Finding]:
        """Yield the columns whose type is not the most frequent one of their name."""
        excepted = {name.lower() for name in self.except_columns}
        tables = (model for model in models if isinstance(model, Table))
        columns = [(table, column) for table in tables for column in table.columns]
        types: Mapping[str, Counter[DataType]] = defaultdict(Counter)
        for _, column in columns:
            types[column.key][column.data_type] += 1
        for table, column in columns:
            counts = types[column.key]
            usual = min(counts, key=lambda each: (-counts[each], shown_type(each)))
            if column.data_type != usual and column.key not in excepted:
                own, text = shown_type(column.data_type), shown_type(usual)
                message = f"it has the type {own}, and {text} in {counts[usual]} tables"
                yield finding(table, message, f"Declare `{text}`, or exclude the name.", column)


def _names(data_type: DataType) -> set[str]:
    """Return the names of a type and of those inside it, without lengths and parameters."""
    return {re.split(r"[<(]", shown_type(each), maxsplit=1)[0].strip().lower() for each in parts(data_type)}
