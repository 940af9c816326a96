"""Views of `information_schema` that lag: a read shows some parts of tables as they were some seconds before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias, TypeVar

from delta_engine.errors import CatalogReadError, raise_all
from delta_engine.models import Column, ColumnMask, Reference, RowFilter
from delta_engine.state.states import ABSENT, CatalogState, TableState
from tests.fakes.unity_catalog.spelling import as_read
from tests.fakes.unity_catalog.stored import Stored

Tables: TypeAlias = Mapping[str, Stored]

_Show: TypeAlias = Callable[[TableState, TableState], TableState]
"""Returns a table with what a view has of an earlier state."""


class Lag(NamedTuple):
    """A view that shows every table as it was so many seconds before."""

    view: str
    seconds: float


class Past:
    """The tables at all times."""

    def __init__(self) -> None:
        self._moments: list[tuple[float, Tables]] = [(0.0, {})]

    def note(self, now: float, tables: Tables) -> None:
        """Note the tables after a statement."""
        self._moments.append((now, dict(tables)))

    def at(self, moment: float) -> Tables:
        """Return the tables at a moment."""
        return next(tables for noted, tables in reversed(self._moments) if noted <= moment or noted == 0.0)


def shown(
    state: CatalogState,
    lags: Iterable[Lag],
    past: Past,
    now: float,
    *,
    directly: bool,
    is_listed: bool,
) -> CatalogState:
    """Return what a read shows; read `directly`, the tables tell of themselves what they can.

    A listing names neither filter nor masks.

    CatalogReadError if the views contradict the tables, as the reader refuses it.
    """
    tables, refusals = dict(state.tables), []
    if is_listed and not directly:
        tables = {key: replace(table, described=None) for key, table in tables.items()}
    for lag in lags:
        earlier = past.at(now - lag.seconds)
        for key, table in tables.items():
            if table.exists:
                former = _read(key, earlier) if key in earlier else ABSENT
                try:
                    tables[key] = _shown(lag.view, key, table, former, directly=directly)
                except CatalogReadError as refusal:
                    refusals.append(refusal)
    raise_all(refusals)
    return replace(state, tables=tables)


def _read(key: str, tables: Tables) -> TableState:
    references = tuple(
        Reference(table=table.name, name=str(foreign_key.name))
        for table in tables.values()
        for foreign_key in table.state.foreign_keys
        if foreign_key.references == key
    )
    return as_read(tables[key].with_state(referenced_by=references))


def _shown(view: str, key: str, table: TableState, former: TableState, *, directly: bool) -> TableState:
    if view in _ALWAYS:
        return _ALWAYS[view](table, former)
    if view == "row_filters":
        described = None if table.described is None else table.row_filter
        return replace(table, row_filter=_either(former.row_filter, described))
    if view == "column_masks":
        return _with_masks(table, former)
    if directly:
        return table
    if view == "table_constraints":
        return replace(table, primary_key=former.primary_key, foreign_keys=former.foreign_keys)
    if view == "tables":
        return replace(table, table_comment=former.table_comment) if former.exists else ABSENT
    if [*map(_listed, table.columns)] != [*map(_listed, former.columns)]:
        raise CatalogReadError("information_schema shows other columns", table=key)
    return table


def _listed(column: Column) -> tuple[object, ...]:
    return column.name, column.data_type, column.is_nullable, column.comment


_Protection = TypeVar("_Protection", RowFilter, ColumnMask)


def _either(in_view: _Protection | None, described: _Protection | None) -> _Protection | None:
    """Return a row filter or mask as the reader does: a description shows what the view lacks."""
    return described or in_view


def _with_masks(table: TableState, former: TableState) -> TableState:
    masks = {column.key: column.mask for column in former.columns}

    def masked(column: Column) -> Column:
        described = None if table.described is None else column.mask
        return replace(column, mask=_either(masks.get(column.key), described))

    return _with_columns(table, masked)


def _with_column_tags(table: TableState, former: TableState) -> TableState:
    tags = {column.key: column.tags for column in former.columns}
    return _with_columns(table, lambda column: replace(column, tags=tags.get(column.key, {})))


def _with_columns(table: TableState, change: Callable[[Column], Column]) -> TableState:
    columns = tuple(map(change, table.columns))
    return table if columns == table.columns else replace(table, columns=columns)


_ALWAYS: Final[Mapping[str, _Show]] = {
    "table_tags": lambda table, former: replace(table, tags=former.tags),
    "column_tags": _with_column_tags,
    "table_privileges": lambda table, former: replace(table, grants=former.grants),
    "referential_constraints": lambda table, former: replace(table, referenced_by=former.referenced_by),
}
"""The views that no description replaces."""

VIEWS: Final = (*_ALWAYS, "column_masks", "row_filters", "table_constraints", "tables", "columns")
"""The views that lag in stories."""
