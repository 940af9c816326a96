"""Column comments, set in one statement. The empty string means none, and clears only comments that a model named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    Comparison,
    RenderContext,
    Sign,
    with_column,
    with_type,
)
from delta_engine.aspects.facet import TEXT, Facet
from delta_engine.aspects.rights import takes_modify
from delta_engine.models import Column, Part, Table
from delta_engine.models.nested_types import Path, apart, type_at, with_field_at
from delta_engine.models.types import StructType
from delta_engine.sql.columns import sql_set_column_comments
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class ColumnComment:
    """Both sides of a column or field comment; `path` leads into the column and is empty for the column."""

    name: str
    desired: str
    observed: str
    path: Path = ()

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"column {'.'.join(self.place)} already has this comment")

    @property
    def place(self) -> Path:
        """The path, starting with the column."""
        return (self.name, *self.path)


@dataclass(frozen=True, slots=True)
class SetColumnComments:
    """Set or clear the comments of existing columns and fields. CREATE and ADD COLUMNS set those of new ones."""

    phase: ClassVar[Phase] = Phase.SET_COLUMN_COMMENTS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    comments: tuple[ColumnComment, ...]

    def __post_init__(self) -> None:
        if not self.comments:
            raise ValueError("setting column comments needs at least one")


def diff(comparison: Comparison) -> Iterable[SetColumnComments]:
    """Yield one action for all shared columns and fields whose comment differs."""
    comments = tuple(_differing(comparison))
    if comments:
        yield SetColumnComments(comments)


def differences(comparison: Comparison) -> Iterable[SetColumnComments]:
    """Yield one action per shared column or field whose comment differs."""
    for comment in _differing(comparison):
        yield SetColumnComments((comment,))


def render(actions: Sequence[SetColumnComments], context: RenderContext) -> Iterable[str]:
    """Yield one ALTER COLUMN for all comments that can share one."""
    texts = {comment.place: comment.desired for action in actions for comment in action.comments}
    for together in context.together(apart(texts)):
        yield sql_set_column_comments(context.table, [(place, texts[place]) for place in together])


def explain(action: SetColumnComments) -> Iterable[Change]:
    """Yield a line per comment."""
    for comment in action.comments:
        yield Change(
            sign=Sign.CHANGED,
            subject=f"column {'.'.join(comment.place)} comment",
            observed=repr(comment.observed),
            desired=repr(comment.desired),
        )


def accept(model: Table, _observed: TableState, action: SetColumnComments) -> Table:
    """Return the model with the observed comments."""
    for comment in action.comments:
        model = _with_comment(model, comment, comment.observed)
    return model


def _with_comment(model: Table, comment: ColumnComment, text: str) -> Table:
    if not comment.path:
        return with_column(model, comment.name, lambda column: replace(column, comment=text))
    return with_type(
        model,
        comment.name,
        lambda whole: with_field_at(whole, comment.path, lambda field: replace(field, comment=text)),
    )


def _differing(comparison: Comparison) -> Sequence[ColumnComment]:
    return [
        comment
        for comment in _different(comparison)
        if comment.desired or comparison.may_remove(partial(_names, place=comment.place))
    ]


def _names(model: Table, place: Path) -> bool:
    column = next((one for one in model.columns if one.key == place[0].lower()), None)
    if column is None or len(place) == 1:
        return column is not None and bool(column.comment)
    inside = type_at(column.data_type, place[1:-1])
    fields = inside.fields if isinstance(inside, StructType) else ()
    return any(field.name.lower() == place[-1].lower() and field.comment for field in fields)


def _different(comparison: Comparison) -> Sequence[ColumnComment]:
    columns = [
        ColumnComment(observed.name, desired.comment, observed.comment)
        for desired, observed in comparison.differing
        if desired.comment != observed.comment
    ]
    fields = [
        ColumnComment(pair.path[0], pair.desired.comment, pair.observed.comment, pair.path[1:])
        for pair in comparison.fields
        if pair.desired and pair.observed and pair.desired.comment != pair.observed.comment
    ]
    return [*columns, *fields]


FACET: Facet[Column, Column, str] = Facet(
    key="comment",
    declared=lambda column: column.comment,
    absent="",
    form=TEXT,
    meaning="the column's comment; empty means none",
    observed=lambda column: column.comment,
    is_always_recorded=True,
    part=Part.COMMENTS,
    title="comments",
)

ASPECT: Aspect[SetColumnComments] = Aspect(
    name="column comments",
    part=Part.COMMENTS,
    actions={SetColumnComments: takes_modify("ALTER COLUMN … COMMENT")},
    diff=diff,
    differences=differences,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.COLUMN_COMMENT,
    is_of_columns=True,
)
