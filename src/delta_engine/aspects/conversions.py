"""Columns that get values from `using`: those of another type, in a separate column first, and those filled in place.

A conversion leaves its progress in the table, in columns under reserved names, so that any run can continue it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Final

from delta_engine.models import Column, Part, Table
from delta_engine.models.types import is_same_type
from delta_engine.state.states import TableState

NEW_PREFIX: Final = "delta_engine_new_"
"""The prefix of the column that gets the new values; reserved for it."""

OLD_PREFIX: Final = "delta_engine_old_"
"""The prefix of the former column after the swap; reserved for it."""


class ConversionStage(Enum):
    """How far the conversion of a column came."""

    NOT_BEGUN = "not begun"
    FILLING = "filling"  # the new column stands next to the old column, which readers see
    SWAPPING = (
        "swapping"  # the former column has its reserved name, and the new one does not have its own yet
    )
    SWAPPED = "swapped"  # readers see the new column; the former one is still there


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a conversion; `new` and `old` are the columns under reserved names, as far as they are there."""

    stage: ConversionStage = ConversionStage.NOT_BEGUN
    new: Column | None = None
    old: Column | None = None


NO_PROGRESS: Final[Mapping[str, Progress]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A column that gets another type, with values from its model's `using`, next to the old column.

    Args:
        observed: the column as readers know it; the new one after the swap.
    """

    desired: Column
    observed: Column
    progress: Progress = Progress()

    @property
    def is_pending(self) -> bool:
        """Whether readers still see the former column."""
        return self.progress.stage is not ConversionStage.SWAPPED

    @property
    def is_abandoned(self) -> bool:
        """Whether the model has the former type again, before the swap."""
        return self.is_pending and is_same_type(self.desired.data_type, self.observed.data_type)

    @property
    def is_due(self) -> bool:
        """Whether readers see the former column, and are to see the new one."""
        return self.is_pending and not self.is_abandoned

    @property
    def added(self) -> Column | None:
        """The column for the new values, if an earlier run has added it with its type."""
        new = self.progress.new
        is_fit = new is not None and is_same_type(new.data_type, self.desired.data_type)
        return new if is_fit else None


def new_name(column: str) -> str:
    """Return the reserved name of the column that gets the new values."""
    return NEW_PREFIX + column


def old_name(column: str) -> str:
    """Return the reserved name of the former column."""
    return OLD_PREFIX + column


def is_reserved_name(name: str) -> bool:
    """Whether a name is reserved for conversions."""
    return name.lower().startswith((NEW_PREFIX, OLD_PREFIX))


def is_reserved(column: Column) -> bool:
    """Whether a column has a reserved name."""
    return is_reserved_name(column.name)


def set_aside(observed: TableState, model: Table | None = None) -> tuple[TableState, Mapping[str, Progress]]:
    """Return a table as its readers know it, and the progress of its conversions by column key.

    Reserved columns that fit no conversion stay in the table, as do those of a conversion that was interrupted if the
    model has the column no more: they are dropped under these names.
    """
    there = {column.key: column for column in observed.columns}
    declared = _declared(model) if model is not None and model.is_about(Part.COLUMNS) else None
    progress: dict[str, Progress] = {}
    hidden: set[str] = set()
    former: dict[str, str] = {}
    for column in filter(is_reserved, observed.columns):
        key = column.key.removeprefix(NEW_PREFIX).removeprefix(OLD_PREFIX)
        new, old = there.get(new_name(key)), there.get(old_name(key))
        if declared is not None and key not in declared:
            continue
        match (key in there, new, old):
            case (True, Column(), None):
                progress[key] = Progress(stage=ConversionStage.FILLING, new=new)
                hidden.add(new_name(key))
            case (False, Column(), Column()):
                progress[key] = Progress(stage=ConversionStage.SWAPPING, new=new, old=old)
                hidden.add(new_name(key))
                former[old_name(key)] = column.name[len(OLD_PREFIX) :]
            case (True, None, Column()):
                progress[key] = Progress(stage=ConversionStage.SWAPPED, old=old)
                hidden.add(old_name(key))
    if not progress:
        return observed, NO_PROGRESS
    columns = tuple(
        replace(column, name=former[column.key]) if column.key in former else column
        for column in observed.columns
        if column.key not in hidden
    )
    return replace(observed, columns=columns), progress


def _declared(model: Table) -> set[str]:
    """Return the keys of a model's columns, and of their former names."""
    former = {name.lower() for column in model.columns for name in column.renamed_from}
    return former | {column.key for column in model.columns}


def conversions_of(
    desired: Table, observed: TableState, progress: Mapping[str, Progress]
) -> Iterator[Conversion]:
    """Yield the columns whose type changes and whose model says how, and those that an earlier run has begun."""
    there = {column.key: column for column in observed.columns}
    for column in desired.columns:
        present, begun = there.get(column.key), progress.get(column.key)
        if present is None or (begun is None and column.using is None):
            continue
        if begun is not None or not is_same_type(column.data_type, present.data_type):
            converted = replace(column, comment=column.comment or present.comment)
            yield Conversion(desired=converted, observed=present, progress=begun or Progress())


def filled_columns(
    declared: Table | None,
    attempted: Sequence[Table],
    added: Iterable[Column],
    differing: Iterable[tuple[Column, Column]],
) -> Iterator[Column]:
    """Yield the columns to fill in place: new and tightened ones with `using`, and those of an unfinished run.

    Args:
        declared: the model that was applied last; None without one.
        attempted: the models of later runs that did not finish.
        differing: pairs of desired and observed columns.
    """
    yield from (column for column in added if column.using is not None)
    applied = {column.key for column in declared.columns} if declared else None
    computed = {column.key for model in attempted for column in model.columns if column.using}
    for column, present in differing:
        if column.using is None or not is_same_type(column.data_type, present.data_type):
            continue
        is_new = bool(attempted) and applied is not None and column.key not in applied
        is_new = is_new or (applied is None and column.key in computed)
        if is_new or (present.is_nullable and not column.is_nullable):
            yield column
