"""A case of an edit: a file, the change of its first table, and the parts of the text that are replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from delta_engine.models import Column, PrimaryKey, Table

Change = Callable[[Table], Table]


def with_columns(*columns: Column) -> Change:
    return lambda model: replace(model, columns=columns)


def column(which: str, /, **changes: Any) -> Change:
    """Return a change of one column's fields."""

    def change(model: Table) -> Table:
        def changed(found: Column) -> Column:
            return replace(found, **changes)

        return replace(model, columns=tuple(changed(c) if c.name == which else c for c in model.columns))

    return change


def inserted(place: int, *new: Column) -> Change:
    return lambda model: replace(model, columns=(*model.columns[:place], *new, *model.columns[place:]))


def ordered(*names: str) -> Change:
    return lambda model: replace(
        model, columns=tuple(c for name in names for c in model.columns if c.name == name)
    )


def with_(**changes: Any) -> Change:
    return lambda model: replace(model, **changes)


def keyed(*columns: str, name: str | None = None, rely: bool = False) -> Change:
    return with_(primary_key=PrimaryKey(columns, name, rely))


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    change: Change | None
    replaced: Sequence[tuple[str, str]]
    renames: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RefusedCase:
    name: str
    text: str
    change: Change | None
    reason: str


def renamed(found: Column, name: str) -> Column:
    return Column(name, found.data_type, found.is_nullable, found.comment)
