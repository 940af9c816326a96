"""Column comments. The empty string means no comment; all of a table's are set in one statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext, Sign
from delta_engine.drift_policy import DriftKind
from delta_engine.models import Part, Table
from delta_engine.sql import sql_set_column_comments
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ColumnComment:
    """The comment of one column, both sides."""

    name: str
    desired: str
    observed: str

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"column {self.name} already has this comment")


@dataclass(frozen=True, slots=True)
class SetColumnComments:
    """Set or clear the comments of existing columns. New columns bring theirs along."""

    phase: ClassVar[Phase] = Phase.SET_COLUMN_COMMENTS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    comments: tuple[ColumnComment, ...]

    def __post_init__(self) -> None:
        if not self.comments:
            raise ValueError("setting column comments needs at least one")


def diff(comparison: Comparison) -> Iterable[SetColumnComments]:
    """Yield one action for all shared columns whose comment differs."""
    comments = tuple(_differing(comparison))
    if comments:
        yield SetColumnComments(comments)


def differences(comparison: Comparison) -> Iterable[SetColumnComments]:
    """Yield one action per shared column whose comment differs."""
    for comment in _differing(comparison):
        yield SetColumnComments((comment,))


def render(actions: Sequence[SetColumnComments], context: RenderContext) -> Iterable[str]:
    """Yield one ALTER COLUMN for all comments; for a streaming table one each."""
    comments = [(comment.name, comment.desired) for action in actions for comment in action.comments]
    for together in [[comment] for comment in comments] if context.is_streaming else [comments]:
        yield sql_set_column_comments(context.table, together)


def explain(action: SetColumnComments) -> Iterable[Change]:
    """Yield a line per comment."""
    for comment in action.comments:
        yield Change(
            sign=Sign.CHANGED,
            subject=f"column {comment.name} comment",
            observed=repr(comment.observed),
            desired=repr(comment.desired),
        )


def accept(model: Table, _observed: TableState, action: SetColumnComments) -> Table:
    """Return the model with the comments as they are."""
    observed = {comment.name.lower(): comment.observed for comment in action.comments}
    columns = (
        replace(column, comment=observed[column.key]) if column.key in observed else column
        for column in model.columns
    )
    return replace(model, columns=tuple(columns))


def _differing(comparison: Comparison) -> Iterable[ColumnComment]:
    for desired, observed in comparison.shared:
        if desired.comment != observed.comment:
            yield ColumnComment(observed.name, desired.comment, observed.comment)


ASPECT: Aspect[SetColumnComments] = Aspect(
    name="column comments",
    part=Part.COMMENTS,
    action_types=(SetColumnComments,),
    diff=diff,
    differences=differences,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.COLUMN_COMMENT,
)
