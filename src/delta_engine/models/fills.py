"""How existing rows get their values: what `using` and `fill_by` declare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from delta_engine.models.parts import set_fields, to_flag, to_names, to_text


@dataclass(frozen=True, slots=True)
class Using:
    """How to compute the values of existing rows.

    Args:
        expression: the SQL expression, over the columns of one row as they are before the change.
        deterministic: False allows another value each time, as of `uuid()`; only rows without a value get one.
    """

    expression: str
    deterministic: bool = True

    def __post_init__(self) -> None:
        set_fields(
            self,
            expression=to_text(self.expression, "expression"),
            deterministic=to_flag(self.deterministic, "deterministic"),
        )


@dataclass(frozen=True, slots=True, init=False)
class FillBy:
    """The ranges by which a very large table gets its values, each in a separate commit.

    Args:
        column: the column that the ranges are about.
        bounds: where a range ends and the next one begins, ascending, as texts.
    """

    column: str
    bounds: tuple[str, ...]

    def __init__(self, column: str, bounds: Iterable[str]) -> None:
        set_fields(self, column=to_text(column, "column"), bounds=to_names("bounds", bounds))
