"""The table comment. The empty string means no comment, and clears managed comments only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    Comparison,
    CreateClauses,
    RenderContext,
    Sign,
)
from delta_engine.aspects.facet import OPTIONAL_TEXT, TEXT, Facet
from delta_engine.aspects.rights import takes_modify
from delta_engine.models import Part, Schema, Table
from delta_engine.sql.tables import sql_set_table_comment
from delta_engine.state.states import SchemaState, TableState


@dataclass(frozen=True, slots=True)
class SetTableComment:
    """Set or clear the table's comment."""

    phase: ClassVar[Phase] = Phase.SET_TABLE_COMMENT
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    desired: str
    observed: str

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError("the table already has this comment")


def diff(comparison: Comparison) -> Iterable[SetTableComment]:
    """Yield an action if the comments differ."""
    desired, observed = comparison.desired.comment, comparison.observed.table_comment
    if desired != observed and (desired or comparison.may_remove(lambda model: model.comment)):
        yield SetTableComment(desired, observed)


def create(desired: Table, _context: RenderContext) -> CreateClauses:
    """Return the COMMENT clause."""
    return CreateClauses(comment=desired.comment)


def render(actions: Sequence[SetTableComment], context: RenderContext) -> Iterable[str]:
    """Yield COMMENT ON TABLE."""
    for action in actions:
        yield sql_set_table_comment(context.table, action.desired)


def explain(action: SetTableComment) -> Iterable[Change]:
    """Yield both comments."""
    yield Change(
        sign=Sign.CHANGED,
        subject="table comment",
        observed=repr(action.observed),
        desired=repr(action.desired),
    )


def accept(model: Table, _observed: TableState, action: SetTableComment) -> Table:
    """Return the model with the observed comment."""
    return replace(model, comment=action.observed)


FACET: Facet[Table, TableState, str] = Facet(
    key="comment",
    declared=lambda table: table.comment,
    absent="",
    form=TEXT,
    meaning="the table's comment; empty means none",
    observed=lambda table: table.table_comment,
    is_always_recorded=True,
    part=Part.COMMENTS,
    title="comments",
)

SCHEMA_FACET: Facet[Schema, SchemaState, str | None] = Facet(
    key="comment",
    declared=lambda schema: schema.comment,
    absent=None,
    form=OPTIONAL_TEXT,
    meaning="the schema's comment; empty clears it",
    default="unmanaged",
    observed=lambda schema: schema.comment,
    imported=lambda _name, schema: schema.comment or None,
)

ASPECT: Aspect[SetTableComment] = Aspect(
    name="table comment",
    part=Part.COMMENTS,
    actions={SetTableComment: takes_modify("COMMENT ON TABLE", "COMMENT ON")},
    diff=diff,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.TABLE_COMMENT,
    create=create,
)
