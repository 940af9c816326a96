"""Column comments. The empty string means no comment; all of a table's are set in one statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import Hazard, Phase
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext, Sign
from delta_engine.sql import sql_set_column_comments


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
    hazards: ClassVar[tuple[Hazard, ...]] = ()
    comments: tuple[ColumnComment, ...]

    def __post_init__(self) -> None:
        if not self.comments:
            raise ValueError("setting column comments needs at least one")


def diff(comparison: Comparison) -> Iterable[SetColumnComments]:
    """Yield one action for all shared columns whose comment differs."""
    comments = tuple(
        ColumnComment(observed.name, desired.comment, observed.comment)
        for desired, observed in comparison.shared
        if desired.comment != observed.comment
    )
    if comments:
        yield SetColumnComments(comments)


def render(actions: Sequence[SetColumnComments], context: RenderContext) -> Iterable[str]:
    """Yield one ALTER COLUMN for all comments."""
    yield sql_set_column_comments(
        context.table,
        [(comment.name, comment.desired) for action in actions for comment in action.comments],
    )


def explain(action: SetColumnComments) -> Iterable[Change]:
    """Yield a line per comment."""
    for comment in action.comments:
        yield Change(
            sign=Sign.CHANGED,
            subject=f"column {comment.name} comment",
            observed=repr(comment.observed),
            desired=repr(comment.desired),
        )


ASPECT: Aspect[SetColumnComments] = Aspect(
    name="column comments",
    action_types=(SetColumnComments,),
    diff=diff,
    render=render,
    explain=explain,
)
