"""The actions that give existing rows their values: those of conversions, in the order of their phases, and fills."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeAlias, TypeVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.aspects.conversions import ConversionStage, new_name, old_name
from delta_engine.models import Column
from delta_engine.models.types import DataType
from delta_engine.sql.backfills import (
    Assignment,
    given_values,
    missing_values,
    new_values,
    sql_converted,
    sql_ranges,
)
from delta_engine.sql.expressions import with_column_renamed
from delta_engine.sql.text import quote_ident

_Fill = TypeVar("_Fill")


@dataclass(frozen=True, slots=True)
class ExpandColumn:
    """Add the column that gets the new values, after the former one.

    Args:
        present: the column of an earlier run under that name; one of another type is dropped first.
    """

    phase: ClassVar[Phase] = Phase.EXPAND_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    desired: Column
    observed: Column
    present: Column | None = None


@dataclass(frozen=True, slots=True)
class FillRanges:
    """Ranges of a column that no fill changes; each is filled in a separate commit."""

    column: str
    data_type: DataType
    bounds: tuple[str, ...]

    @property
    def conditions(self) -> list[str]:
        """The conditions of the ranges, in order."""
        return sql_ranges(self.column, self.data_type, self.bounds)


@dataclass(frozen=True, slots=True)
class FillColumn:
    """Compute values for existing rows.

    Args:
        is_converted: whether they go into the new column of a conversion.
        is_deterministic: whether they are the same each time; if not, only rows without a value get one.
        ranges: the ranges by which all fills of the table run; None for all rows at once.
    """

    phase: ClassVar[Phase] = Phase.FILL_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA,)
    name: str
    data_type: DataType
    using: str
    is_converted: bool = False
    is_deterministic: bool = True
    ranges: FillRanges | None = None

    @property
    def target(self) -> str:
        """The column that gets the values."""
        return new_name(self.name) if self.is_converted else self.name

    @property
    def assignment(self) -> Assignment:
        """The assignment of the values."""
        value = sql_converted(self.using, self.data_type)
        if not self.is_deterministic:
            return given_values(self.target, value)
        return (new_values if self.is_converted else missing_values)(self.target, value)


@dataclass(frozen=True, slots=True)
class _Verification(Generic[_Fill]):
    """Verifies that fills lost no value and no row; `untouched` are the columns that they do not assign."""

    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.SCANS_DATA,)
    fills: tuple[_Fill, ...]
    untouched: tuple[tuple[str, DataType], ...]


class VerifyRows(_Verification[FillColumn]):
    """Verify the rows after the fill of columns."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.VERIFY_ROWS


@dataclass(frozen=True, slots=True)
class SwapColumn:
    """Give the new column the name of the former one, which gets a reserved name; `is_begun` if it has that already."""

    phase: ClassVar[Phase] = Phase.SWAP_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    desired: Column
    observed: Column
    is_begun: bool = False


@dataclass(frozen=True, slots=True)
class FillSwappedColumn:
    """Fill the rows that writers added between the fill and the swap, from the former column.

    Args:
        is_deterministic: as for `FillColumn`.
    """

    phase: ClassVar[Phase] = Phase.FILL_SWAPPED_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.REWRITES_DATA,)
    name: str
    data_type: DataType
    using: str
    is_deterministic: bool = True

    @property
    def target(self) -> str:
        """The column that gets the values."""
        return self.name

    @property
    def source(self) -> str:
        """The expression over the former column."""
        return with_column_renamed(self.using, self.name, quote_ident(old_name(self.name)))

    @property
    def value(self) -> str:
        """The SQL of the value, from the former column."""
        return sql_converted(self.source, self.data_type)

    @property
    def assignment(self) -> Assignment:
        """The assignment of the values."""
        return (missing_values if self.is_deterministic else given_values)(self.name, self.value)


class VerifySwappedRows(_Verification[FillSwappedColumn]):
    """Verify the rows after the fill that follows the swap."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.VERIFY_SWAPPED_ROWS


@dataclass(frozen=True, slots=True)
class DropFormerColumn:
    """Drop the former column of a conversion; `tags` are those that it has, which are unset right before.

    Governed tags block the drop, and until then policies on them mask the former values.
    """

    phase: ClassVar[Phase] = Phase.DROP_FORMER_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.LOSES_DATA,)
    name: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AbandonConversion:
    """Undo a conversion that its model no longer declares, before its swap: readers see the former column again.

    Args:
        tags: the keys of the tags that the new column has, which are unset right before its drop.
    """

    phase: ClassVar[Phase] = Phase.EXPAND_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    observed: Column
    stage: ConversionStage
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockedFill:
    """Values that cannot be computed. A rule refuses them."""

    phase: ClassVar[Phase] = Phase.EXPAND_COLUMNS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    name: str
    reason: str
    way_out: str


BackfillAction: TypeAlias = (
    ExpandColumn
    | FillColumn
    | VerifyRows
    | SwapColumn
    | FillSwappedColumn
    | VerifySwappedRows
    | DropFormerColumn
    | AbandonConversion
    | BlockedFill
)


def converted_columns(action: object) -> frozenset[str]:
    """Return the keys of the columns whose conversion an action is a step of; empty for all other actions.

    A verification that also covers columns without a conversion is a step of none.
    """
    match action:
        case ExpandColumn() | SwapColumn():
            return frozenset({action.desired.key})
        case FillColumn():
            return frozenset({action.name.lower()} if action.is_converted else ())
        case FillSwappedColumn() | DropFormerColumn():
            return frozenset({action.name.lower()})
        case VerifyRows(fills=fills) | VerifySwappedRows(fills=fills):
            columns = [converted_columns(fill) for fill in fills]
            return frozenset().union(*columns) if all(columns) else frozenset()
    return frozenset()


def targets(fills: Iterable[FillColumn | FillSwappedColumn], *, are_deterministic: bool) -> list[str]:
    """Return the columns that get values in one statement."""
    return [fill.target for fill in fills if fill.is_deterministic is are_deterministic]
