"""Column comments, set in one statement. Empty means none, and keeps a comment that the baseline has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, takes_modify
from delta_engine.aspects.changed_models import with_part
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import TEXT, Facet
from delta_engine.models import Column, Part, Table
from delta_engine.models.nested_types import Path, apart, type_at
from delta_engine.models.types import StructType
from delta_engine.sql.columns import sql_set_column_comments
from delta_engine.state.states import TableState


class ColumnComment(NamedTuple):
    """Both sides of a column or field comment; `path` leads into the column and is empty for the column."""

    name: str
    desired: str
    observed: str
    path: Path = ()

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
        refuse_no_op(self.comments)


def refuse_no_op(comments: Sequence[ColumnComment]) -> None:
    """Raise ValueError if there is no comment, or if one has equal sides."""
    if not comments:
        raise ValueError("setting column comments needs at least one")
    for comment in comments:
        if comment.desired == comment.observed:
            raise ValueError(f"column {'.'.join(comment.place)} already has this comment")


def _diff(comparison: Comparison) -> Iterable[SetColumnComments]:
    comments = tuple(_differing(comparison))
    if comments:
        yield SetColumnComments(comments)


def _differences(comparison: Comparison) -> Iterable[SetColumnComments]:
    yield from (SetColumnComments((comment,)) for comment in _differing(comparison))


def _render(actions: Sequence[SetColumnComments], context: RenderContext) -> Iterable[str]:
    texts = {comment.place: comment.desired for action in actions for comment in action.comments}
    for together in context.together(apart(texts)):
        yield sql_set_column_comments(context.table, [(place, texts[place]) for place in together])


def _explain(action: SetColumnComments) -> Iterable[Change]:
    for comment in action.comments:
        subject = f"column {'.'.join(comment.place)} comment"
        yield Change(subject, repr(comment.observed), repr(comment.desired), place=comment.place)


def _accept(model: Table, _observed: TableState, action: SetColumnComments) -> Table:
    for comment in action.comments:
        model = with_part(model, comment.name, comment.path, partial(replace, comment=comment.observed))
    return model


def _differing(comparison: Comparison) -> Iterator[ColumnComment]:
    for comment in _both_sides(comparison):
        if comment.desired != comment.observed and (comment.desired or _may_clear(comparison, comment.place)):
            yield comment


def _both_sides(comparison: Comparison) -> Iterator[ColumnComment]:
    """Yield the comments of differing columns and fields, and of converted columns, equal ones included."""
    for column, present in comparison.differing:
        yield ColumnComment(present.name, column.comment, present.comment)
    for pair in comparison.fields:
        if pair.desired and pair.observed:
            yield ColumnComment(pair.path[0], pair.desired.comment, pair.observed.comment, pair.path[1:])
    converted = comparison.converted
    declared = {column.key: column.comment for column in comparison.desired.columns} if converted else {}
    for conversion in converted:
        new = conversion.desired
        yield ColumnComment(new.name, declared[new.key], new.comment)


def _may_clear(comparison: Comparison, place: Path) -> bool:
    """Whether the engine may clear a comment; not a later one of a field that the baseline lacks."""
    names, baseline = partial(_names, place=place), comparison.baseline
    if comparison.may_remove(names):
        return True
    columns = baseline.columns if baseline else ()
    column = next((column for column in columns if column.key == place[0].lower()), None)
    is_known = column is not None and type_at(column.data_type, place[1:]) is not None
    return is_known and comparison.clears(names, place[0].lower())


def _names(model: Table, place: Path) -> bool:
    column = next((column for column in model.columns if column.key == place[0].lower()), None)
    if column is None or len(place) == 1:
        return column is not None and bool(column.comment)
    inside = type_at(column.data_type, place[1:-1])
    fields = inside.fields if isinstance(inside, StructType) else ()
    return any(field.name.lower() == place[-1].lower() and field.comment for field in fields)


FACET: Facet[Column, Column, str] = Facet(
    key="comment",
    declared=lambda model: model.comment,
    observed=lambda state: state.comment,
    absent="",
    form=TEXT,
    meaning="the column's comment; empty means none",
    is_always_recorded=True,
    part=Part.COMMENTS,
    title="comments",
)

ASPECT: Aspect[SetColumnComments] = Aspect(
    name="column comments",
    part=Part.COMMENTS,
    actions={SetColumnComments: takes_modify("ALTER COLUMN … COMMENT")},
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.COLUMN_COMMENT,
    is_of_columns=True,
)
