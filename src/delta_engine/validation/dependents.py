"""Refuses changes that unmanaged parts block; plans and rules cover managed parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import product
from typing import NamedTuple

from delta_engine.actions import Action
from delta_engine.aspects.backfill_actions import DropFormerColumn
from delta_engine.aspects.check_constraints import CheckAdd, CheckDrop
from delta_engine.aspects.clustering import ChangeClustering, is_inside
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldDrop
from delta_engine.aspects.conversions import old_name
from delta_engine.aspects.delta_properties import CHANGE_FEED, CHANGE_FEED_COLUMNS, has_change_feed
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.renames import pending_renames
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, Part, Table
from delta_engine.models.nested_types import Path
from delta_engine.sql.constraints import sql_drop_constraint
from delta_engine.sql.expressions import reads
from delta_engine.sql.governance import sql_drop_mask, sql_drop_row_filter
from delta_engine.sql.tables import sql_alter_clustering, sql_cluster_automatically
from delta_engine.sql.text import sql_name
from delta_engine.state.states import TableState
from delta_engine.validation.rules import model_refusal, table_refusal


class _ColumnChange(Enum):
    """What a plan does to a column, in the order of the refusals."""

    DROPPED = "dropped"
    RENAMED = "renamed"
    RETYPED = "given another type"
    LOOSENED = "made nullable"


class _Dependent(NamedTuple):
    part: Part
    text: str
    depends_on: Callable[[Path], bool]
    drop: str
    refuses: tuple[_ColumnChange, ...] = (_ColumnChange.DROPPED,)


def blocked_columns(
    model: Table, observed: TableState, actions: Sequence[Action]
) -> Iterator[InvalidModelError]:
    """Yield the planned changes of columns that unmanaged dependents block.

    `unsupported_relations` refuses renames under keys, filters and masks. Rules refuse type changes under foreign keys
    and under generated columns.
    """
    if model.manages is None:
        return
    dependents = [
        dependent for dependent in _dependents(model, observed) if not model.is_about(dependent.part)
    ]
    changes, order = [change for action in actions for change in _changes(action)], list(_ColumnChange)
    for path, change in sorted(changes, key=lambda change: order.index(change[1])):
        for dependent in dependents:
            if change in dependent.refuses and dependent.depends_on(path):
                yield table_refusal(
                    model,
                    f"it would be {change.value}, which the platform refuses because of {dependent.text}, and the "
                    f"model does not manage {dependent.part.value}",
                    f"Keep the column as it is, add {dependent.part.value} to manages and declare what stays, or ask "
                    f"its owner to drop the dependent first: {dependent.drop}.",
                    ".".join(path),
                )


def conflicts(model: Table, observed: TableState, actions: Sequence[Action]) -> Iterator[InvalidModelError]:
    """Yield each conflict of a CHECK with a row filter or a mask that a plan's actions would cause.

    Databricks docs: "COLUMN_MASKS_FEATURE_NOT_SUPPORTED error condition", "ROW_LEVEL_SECURITY_FEATURE_NOT_SUPPORTED
    error condition".
    """
    if not observed.checks and not any(isinstance(action, CheckAdd) for action in actions):
        return
    table = sql_name(model.qualified_name)
    present = pending_renames(model, observed).applied_to(observed)
    checks, protections = _checks(present, actions), _protections(present, actions, table)
    for (check, is_new), (protection, drop) in product(checks.items(), protections.items()):
        if is_new or any(map(_protects, actions)):
            yield model_refusal(
                model,
                f"it would have check {check} and {protection}, and Databricks refuses the two together",
                "Remove the part that the model declares, or drop the other part first: "
                f"{drop if is_new else sql_drop_constraint(table, check)}.",
            )
            return


def chosen_columns(
    model: Table, observed: TableState, actions: Sequence[Action]
) -> Iterator[InvalidModelError]:
    """Yield the planned drops of columns by which `CLUSTER BY AUTO` has chosen to cluster a table.

    Delta refuses them (DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN), after most of the plan has run.
    """
    if not observed.clusters_automatically or any(isinstance(action, ChangeClustering) for action in actions):
        return
    is_chosen = _clustering(pending_renames(model, observed).applied_to(observed))
    table = sql_name(observed.former_name or model.qualified_name)
    for path, change in (change for action in actions for change in _changes(action)):
        if change is _ColumnChange.DROPPED and is_chosen(path):
            yield table_refusal(
                model,
                "it would be dropped, which the platform refuses: automatic clustering has chosen it",
                f"Keep it, or switch automatic clustering off first: {sql_alter_clustering(table, ())}. "
                f"Switch it on again after the sync: {sql_cluster_automatically(table)}.",
                ".".join(path),
            )


def feed_columns(
    model: Table, observed: TableState, actions: Sequence[Action]
) -> Iterator[InvalidModelError]:
    """Yield the columns that a plan gives a name of the change data feed, which the table has.

    Delta refuses them (RESERVED_CDC_COLUMNS_ON_WRITE), whether or not the plan switches the feed off later.
    """
    if not has_change_feed(observed.table_properties):
        return
    for action in actions:
        match action:
            case ColumnAdd(Column(name=name)) | ColumnRename(_, name, ()) if (
                name.lower() in CHANGE_FEED_COLUMNS
            ):
                yield model_refusal(
                    model,
                    "the change data feed of the table has a column of this name",
                    f"Rename the column, or first switch the feed off in a separate sync: {CHANGE_FEED}: false.",
                    name,
                )


def _changes(action: Action) -> Iterator[tuple[Path, _ColumnChange]]:
    """Yield the place that an action changes, by its observed name, and the change."""
    match action:
        case ColumnDrop(column):
            yield (column.name,), _ColumnChange.DROPPED
        case FieldDrop(path):
            yield path, _ColumnChange.DROPPED
        case DropFormerColumn(column):
            yield (old_name(column),), _ColumnChange.DROPPED
        case ColumnRename(name, _, inside):
            yield (*inside, name), _ColumnChange.RENAMED
        case ColumnTypeChange(name, path=path):
            yield (name, *path), _ColumnChange.RETYPED
        case ColumnNullabilityChange(name, True, ()):
            yield (name,), _ColumnChange.LOOSENED


def _dependents(model: Table, observed: TableState) -> Iterator[_Dependent]:
    table = sql_name(observed.former_name or model.qualified_name)
    key = observed.primary_key
    if key is not None:
        refuses: tuple[_ColumnChange, ...] = (_ColumnChange.DROPPED, _ColumnChange.LOOSENED)
        drop = sql_drop_constraint(table, key.name or "")
        yield _Dependent(Part.CONSTRAINTS, f"primary key {key.name}", _names(key.columns), drop, refuses)
    for foreign in observed.foreign_keys:
        drop = sql_drop_constraint(table, foreign.name or "")
        yield _Dependent(Part.CONSTRAINTS, f"foreign key {foreign.name}", _names(foreign.columns), drop)
    for check in observed.checks:
        reads_it, drop = partial(reads, check.expression), sql_drop_constraint(table, check.name)
        refuses = (_ColumnChange.DROPPED, _ColumnChange.RENAMED, _ColumnChange.RETYPED)
        yield _Dependent(Part.CONSTRAINTS, f"check {check.name}", reads_it, drop, refuses)
    if observed.cluster_by and not observed.clusters_automatically:
        columns = _clustering(observed)
        text, drop = f"the clustering by ({', '.join(observed.cluster_by)})", sql_alter_clustering(table, ())
        yield _Dependent(Part.CLUSTERING, text, columns, drop)
    if observed.row_filter is not None:
        columns = _names(observed.row_filter.columns)
        yield _Dependent(Part.ROW_FILTERS, "the row filter", columns, sql_drop_row_filter(table))
    for column in observed.columns:
        if column.mask is not None:
            columns, drop = _names(column.mask.using_columns), sql_drop_mask(table, column.name)
            yield _Dependent(Part.ROW_FILTERS, f"the mask of {column.name}", columns, drop)


def _clustering(observed: TableState) -> Callable[[Path], bool]:
    return lambda path: any(is_inside(name, path) for name in observed.cluster_by)


def _names(columns: Iterable[str]) -> Callable[[Path], bool]:
    names = {name.lower() for name in columns}
    return lambda path: len(path) == 1 and path[0].lower() in names


def _checks(observed: TableState, actions: Sequence[Action]) -> dict[str, bool]:
    """Return the names of the checks after the plan, and whether the plan adds them."""
    checks = {check.name.lower(): False for check in observed.checks}
    for action in actions:
        if isinstance(action, CheckDrop):
            checks.pop(action.observed.name.lower(), None)
    return checks | {add.desired.name: True for add in actions if isinstance(add, CheckAdd)}


def _protections(observed: TableState, actions: Sequence[Action], table: str) -> dict[str, str]:
    """Return the row filter and the masks after the plan, as text, with the statements that drop them."""
    is_filtered = observed.row_filter is not None
    masked = {column.key: column.name for column in observed.columns if column.mask is not None}
    for action in actions:
        match action:
            case SetRowFilter() | DropRowFilter():
                is_filtered = isinstance(action, SetRowFilter)
            case SetColumnMask(column):
                masked[column.lower()] = column
            case ColumnAdd(column) if column.mask is not None:
                masked[column.key] = column.name
            case DropColumnMask(column):
                masked.pop(column.lower(), None)
            case ColumnDrop(column):
                masked.pop(column.key, None)
    filters = {"a row filter": sql_drop_row_filter(table)} if is_filtered else {}
    return filters | {f"a mask on {name}": sql_drop_mask(table, name) for name in masked.values()}


def _protects(action: Action) -> bool:
    match action:
        case SetRowFilter() | SetColumnMask():
            return True
        case ColumnAdd(column):
            return column.mask is not None
    return False
