"""What holds columns as they are and is not the model's to change: the platform refuses what the model wants of them.

Where a model manages what holds a column as well, the plan takes it out of the way, or a rule says what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from delta_engine.actions import Action
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnDrop, FieldDrop
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.errors import InvalidModelError
from delta_engine.models import Part, Table
from delta_engine.models.nested_types import Path
from delta_engine.sql import (
    quote_ident,
    sql_alter_clustering,
    sql_drop_constraint,
    sql_drop_mask,
    sql_drop_row_filter,
)
from delta_engine.sql.expressions import reads
from delta_engine.state.states import TableState

DROPPED, RENAMED, RETYPED, LOOSENED = "dropped", "renamed", "given another type", "made nullable"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holder:
    """Something that holds columns.

    Args:
        part: the part of a table that it belongs to.
        text: what it is, for people.
        holds: whether it holds a place in the table.
        refuses: what cannot be done to such a place.
        way_out: the statement that takes it away.
    """

    part: Part
    text: str
    holds: Callable[[Path], bool]
    refuses: tuple[str, ...]
    way_out: str


def held_columns(
    model: Table, observed: TableState, actions: Sequence[Action]
) -> Iterator[InvalidModelError]:
    """Yield what is planned for columns, and held up by what the model does not manage.

    The rest of it is refused elsewhere: renames under keys, filters and masks (`manageability`), types under foreign
    keys (a rule), whatever generated columns read (a rule).

    Args:
        model: the model.
        observed: the table as it is.
        actions: what the plan does to it.
    """
    if model.manages is None:
        return
    holders = [one for one in _holders(model, observed) if not model.is_about(one.part)]
    for action in actions:
        for path, change in _changes(action):
            for holder in holders:
                if change in holder.refuses and holder.holds(path):
                    yield InvalidModelError(
                        f"it would be {change}, which the platform refuses because of {holder.text}, and the model "
                        f"does not manage {holder.part.value}",
                        table=str(model.qualified_name),
                        column=".".join(path),
                        location=model.declared_at,
                        way_out=f"Leave the column as it is, or add {holder.part.value} to manages and declare what "
                        f"shall stay, or have its owner take that away first: {holder.way_out}.",
                    )


def _changes(action: Action) -> Iterator[tuple[Path, str]]:
    """Yield the place that an action changes, by its name so far, and what becomes of it."""
    match action:
        case ColumnDrop(column):
            yield (column.name,), DROPPED
        case FieldDrop(path):
            yield path, DROPPED
        case ColumnRename(name, _, inside):
            yield (*inside, name), RENAMED
        case ColumnTypeChange(name, path=path):
            yield (name, *path), RETYPED
        case ColumnNullabilityChange(name, True, ()):
            yield (name,), LOOSENED


def _holders(model: Table, observed: TableState) -> Iterator[_Holder]:
    table = ".".join(map(quote_ident, str(observed.former_name or model.qualified_name).split(".")))
    yield from _constraints(table, observed)
    if observed.cluster_by:
        yield _Holder(
            part=Part.CLUSTERING,
            text=f"the clustering by ({', '.join(observed.cluster_by)})",
            holds=_names(path.split(".")[0] for path in observed.cluster_by),
            refuses=(DROPPED,),
            way_out=sql_alter_clustering(table, ()),
        )
    if observed.row_filter is not None:
        yield _Holder(
            part=Part.ROW_FILTERS,
            text="the row filter",
            holds=_names(observed.row_filter.columns),
            refuses=(DROPPED,),
            way_out=sql_drop_row_filter(table),
        )
    for column in observed.columns:
        if column.mask is not None:
            yield _Holder(
                part=Part.ROW_FILTERS,
                text=f"the mask of {column.name}",
                holds=_names(column.mask.using_columns),
                refuses=(DROPPED,),
                way_out=sql_drop_mask(table, column.name),
            )


def _constraints(table: str, observed: TableState) -> Iterator[_Holder]:
    key = observed.primary_key
    if key is not None:
        yield _Holder(
            part=Part.CONSTRAINTS,
            text=f"primary key {key.name}",
            holds=_names(key.columns),
            refuses=(DROPPED, LOOSENED),
            way_out=sql_drop_constraint(table, key.name or ""),
        )
    for foreign_key in observed.foreign_keys:
        yield _Holder(
            part=Part.CONSTRAINTS,
            text=f"foreign key {foreign_key.name}",
            holds=_names(foreign_key.columns),
            refuses=(DROPPED,),
            way_out=sql_drop_constraint(table, foreign_key.name or ""),
        )
    for check in observed.checks:
        yield _Holder(
            part=Part.CONSTRAINTS,
            text=f"check {check.name}",
            holds=partial(reads, check.expression),
            refuses=(DROPPED, RENAMED, RETYPED),
            way_out=sql_drop_constraint(table, check.name),
        )


def _names(columns: Iterable[str]) -> Callable[[Path], bool]:
    names = {name.lower() for name in columns}
    return lambda path: len(path) == 1 and path[0].lower() in names
