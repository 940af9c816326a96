"""Creates refusals of rules with the table, the column and the declaring line."""

from __future__ import annotations

from delta_engine.actions import AlignTable, CreateTable
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import Column, Table


def model_refusal(
    model: Table, reason: str, way_out: str, column: Column | str | None = None
) -> InvalidModelError:
    """Return the refusal of a model, located at `column`, which may be the name of an undeclared column."""
    name = column.name if isinstance(column, Column) else column
    named = (one for one in model.columns if name is not None and one.key == name.lower())
    found = column if isinstance(column, Column) else next(named, None)
    return InvalidModelError(
        reason,
        table=str(model.qualified_name),
        column=name,
        location=(found.declared_at if found else None) or model.declared_at,
        way_out=way_out,
    )


def plan_refusal(
    action: CreateTable | AlignTable, reason: str, way_out: str = "", column: str | None = None
) -> UnsafePlanError:
    """Return the refusal of an action; `column` may be the dotted path of a field."""
    return UnsafePlanError(
        reason, table=str(action.table), column=column, location=action.declared_at, way_out=way_out
    )
