"""Refuses combinations of parts that the platform refuses, also with unmanaged parts that the plan keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from delta_engine.actions import Action
from delta_engine.aspects.check_constraints import CheckAdd, CheckDrop
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.comparison import Renames
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.errors import InvalidModelError
from delta_engine.models import Table
from delta_engine.sql.constraints import sql_drop_constraint
from delta_engine.sql.governance import sql_drop_mask, sql_drop_row_filter
from delta_engine.sql.text import quote_ident
from delta_engine.state.states import TableState
from delta_engine.validation.refusals import model_refusal


def conflicts(model: Table, observed: TableState, actions: Sequence[Action]) -> Iterator[InvalidModelError]:
    """Yield each conflict of a CHECK with a row filter or a mask that a plan's actions would cause.

    Databricks docs: "COLUMN_MASKS_FEATURE_NOT_SUPPORTED error condition", "ROW_LEVEL_SECURITY_FEATURE_NOT_SUPPORTED
    error condition".
    """
    if not observed.checks and not any(isinstance(action, CheckAdd) for action in actions):
        return
    table = ".".join(map(quote_ident, str(model.qualified_name).split(".")))
    present = Renames.of(model, observed).applied_to(observed)
    checks, protections = _checks(present, actions), _protections(present, actions, table)
    for (check, is_new), (protection, drop) in product(checks.items(), protections.items()):
        if is_new or any(map(_protects, actions)):
            yield model_refusal(
                model,
                f"it would have check {check} and {protection}, and Databricks refuses the two together",
                "Remove the one that the model declares, or drop the other one first: "
                f"{drop if is_new else sql_drop_constraint(table, check)}.",
            )
            return


def _checks(observed: TableState, actions: Sequence[Action]) -> dict[str, bool]:
    """Return the names of the checks after the plan, and whether the plan adds them."""
    found = {check.name.lower(): False for check in observed.checks}
    for action in actions:
        if isinstance(action, CheckDrop):
            found.pop(action.observed.name.lower(), None)
    return found | {add.desired.name: True for add in actions if isinstance(add, CheckAdd)}


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
