"""A schema's comment. None in the model means unmanaged; the empty string clears it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Comparison, SchemaAspect, SchemaContext, Sign
from delta_engine.aspects.rights import takes_manage
from delta_engine.models import Part, Schema
from delta_engine.sql.tables import sql_set_schema_comment
from delta_engine.state.states import SchemaState


@dataclass(frozen=True, slots=True)
class SetSchemaComment:
    """Set or clear the schema's comment."""

    phase: ClassVar[Phase] = Phase.SET_TABLE_COMMENT
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    desired: str
    observed: str

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError("the schema has this comment already")


def diff(comparison: Comparison[Schema, SchemaState]) -> Iterable[SetSchemaComment]:
    """Yield an action if the model has a comment and it differs."""
    desired, observed = comparison.desired.comment, comparison.observed.comment
    if desired is not None and desired != observed:
        yield SetSchemaComment(desired, observed)


def render(actions: Sequence[SetSchemaComment], context: SchemaContext) -> Iterable[str]:
    """Yield COMMENT ON SCHEMA."""
    for action in actions:
        yield sql_set_schema_comment(context.schema, action.desired)


def explain(action: SetSchemaComment) -> Iterable[Change]:
    """Yield both comments."""
    yield Change(
        sign=Sign.CHANGED,
        subject="schema comment",
        observed=repr(action.observed),
        desired=repr(action.desired),
    )


def accept(model: Schema, _observed: SchemaState, action: SetSchemaComment) -> Schema:
    """Return the model with the observed comment."""
    return replace(model, comment=action.observed)


ASPECT: SchemaAspect[SetSchemaComment] = Aspect(
    name="schema comment",
    part=Part.COMMENTS,
    actions={SetSchemaComment: takes_manage("COMMENT ON SCHEMA", "COMMENT ON")},
    diff=diff,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.SCHEMA_COMMENT,
)
