"""Defaults of columns, which apply to new rows only. One of the baseline that no model ever named is unmanaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    ColumnValueAction,
    CreateClauses,
    RenderContext,
    takes_modify,
)
from delta_engine.aspects.changed_models import with_column
from delta_engine.aspects.comparison import Comparison, changed_defaults
from delta_engine.aspects.delta_properties import COLUMN_DEFAULTS
from delta_engine.aspects.facet import OPTIONAL_TEXT, SCALAR_SCHEMA, Facet, Place
from delta_engine.models import Column, Part, Table
from delta_engine.sql.columns import sql_drop_defaults, sql_set_defaults
from delta_engine.sql.expressions import is_same_expression
from delta_engine.state.states import TableState


class SetColumnDefault(ColumnValueAction[str, str | None]):
    """Set or replace the default of a column."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.CHANGE_DEFAULTS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE

    def is_no_op(self) -> bool:
        """Whether the expressions are the same."""
        return self.observed is not None and is_same_expression(self.desired, self.observed)


@dataclass(frozen=True, slots=True)
class DropColumnDefault:
    """Drop the default of a column."""

    phase: ClassVar[Phase] = Phase.CHANGE_DEFAULTS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    name: str
    observed: str


_Action: TypeAlias = SetColumnDefault | DropColumnDefault


def _diff(comparison: Comparison) -> Iterator[_Action]:
    for desired, observed in changed_defaults(comparison):
        if desired.default is not None:
            yield SetColumnDefault(observed.name, desired.default, observed.default)
        elif observed.default is not None and comparison.clears(
            partial(_names, key=desired.key), desired.key
        ):
            yield DropColumnDefault(observed.name, observed.default)


def _differences(comparison: Comparison) -> Iterator[_Action]:
    """Yield the differences of the shared columns. The drop of a column covers its default."""
    added = {column.key for column in comparison.added}
    yield from (action for action in _diff(comparison) if action.name.lower() not in added)


def _create(desired: Table, _context: RenderContext) -> CreateClauses:
    """Return the table feature that defaults need. The column definitions contain the defaults."""
    has_defaults = any(column.default is not None for column in desired.columns)
    return CreateClauses(properties={COLUMN_DEFAULTS: "supported"} if has_defaults else {})


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    values = [(action.name, action.desired) for action in actions if isinstance(action, SetColumnDefault)]
    dropped = [action.name for action in actions if isinstance(action, DropColumnDefault)]
    for together in context.together([values]):
        yield sql_set_defaults(context.table, together)
    for names in context.together([dropped]):
        yield sql_drop_defaults(context.table, names)


def _explain(action: _Action) -> Iterable[Change]:
    desired = action.desired if isinstance(action, SetColumnDefault) else None
    yield Change(f"column {action.name} default", action.observed, desired)


def _accept(model: Table, _observed: TableState, action: _Action) -> Table:
    return with_column(model, action.name, lambda column: replace(column, default=action.observed))


def _names(model: Table, key: str) -> bool:
    return any(column.key == key and column.default is not None for column in model.columns)


def _read(place: Place, expression: object) -> str:
    if expression is None:
        raise place.error(
            "default is null", 'Write "NULL" in quotes for the SQL expression, or remove the key.'
        )
    return place.text(expression)


FACET: Facet[Column, Column, str | None] = Facet(
    key="default",
    declared=lambda model: model.default,
    observed=lambda state: state.default,
    absent=None,
    form=replace(OPTIONAL_TEXT, written_type=Any, read=_read, schema=SCALAR_SCHEMA),
    meaning="the SQL expression for rows without a value, such as `\"NULL\"` in quotes or `DATE'2024-01-01'`",
    part=Part.COLUMNS,
    title="defaults",
)

ASPECT: Aspect[_Action] = Aspect(
    name="column defaults",
    part=Part.COLUMNS,
    actions={
        SetColumnDefault: takes_modify("ALTER COLUMN … SET DEFAULT"),
        DropColumnDefault: takes_modify("ALTER COLUMN … DROP DEFAULT"),
    },
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.COLUMN_DEFAULT,
    is_of_columns=True,
    create=_create,
)
