"""Tags of columns: one statement per column that differs.

A dropped column loses all its tags first, unmanaged ones included: governed tags block the drop
(`INVALID_PARAMETER_VALUE.CANNOT_DROP_TAGGED_COLUMN`, github.com/databricks/dbt-databricks/issues/1323).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import assert_never

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext, with_column
from delta_engine.aspects.facet import TEXTS, Facet
from delta_engine.aspects.rights import takes_apply_tag
from delta_engine.aspects.tags import (
    TagChange,
    changed_tags,
    explain_set,
    explain_unset,
    unwanted_tags,
    with_observed,
)
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Column, Part, Table
from delta_engine.models.values import NOTHING
from delta_engine.sql.governance import sql_set_tags, sql_unset_tags
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True)
class SetColumnTags:
    """Set tags of one column, sorted by key."""

    phase: ClassVar[Phase] = Phase.SET_TAGS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    column: str
    tags: tuple[TagChange, ...]

    def __post_init__(self) -> None:
        if not self.tags:
            raise ValueError(f"setting tags of column {self.column} needs at least one")


@dataclass(frozen=True, slots=True)
class UnsetColumnTags:
    """Unset tags of a column; `before_drop` marks a column that is dropped afterwards."""

    phase: ClassVar[Phase] = Phase.UNSET_TAGS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    column: str
    tags: tuple[tuple[str, str], ...]
    before_drop: bool = False

    def __post_init__(self) -> None:
        if not self.tags:
            raise ValueError(f"taking tags of column {self.column} away needs at least one")


def diff(comparison: Comparison) -> Iterable[SetColumnTags | UnsetColumnTags]:
    """Yield one action per column for the tags to set, and one for the tags to unset."""
    for name, changes in _changes(comparison):
        yield SetColumnTags(name, changes)
    for name, unwanted in _unwanted(comparison):
        yield UnsetColumnTags(name, unwanted)
    for column in comparison.dropped:
        if column.tags:
            yield UnsetColumnTags(column.name, tuple(column.tags.items()), before_drop=True)


def differences(comparison: Comparison) -> Iterable[SetColumnTags | UnsetColumnTags]:
    """Yield one action per tag of the shared columns. The drop of a column covers its tags."""
    for name, changes in _changes(comparison):
        if name.lower() not in {column.key for column in comparison.added}:
            yield from (SetColumnTags(name, (change,)) for change in changes)
    for name, unwanted in _unwanted(comparison):
        yield from (UnsetColumnTags(name, (tag,)) for tag in unwanted)


def render(actions: Sequence[SetColumnTags | UnsetColumnTags], context: RenderContext) -> Iterable[str]:
    """Yield one SET TAGS or one UNSET TAGS per column."""
    table = f"TABLE {context.table}"
    for action in actions:
        match action:
            case SetColumnTags(column, changes):
                yield sql_set_tags(table, {change.key: change.desired for change in changes}, column)
            case UnsetColumnTags(column, unwanted):
                yield sql_unset_tags(table, [key for key, _ in unwanted], column)
            case other:
                assert_never(other)


def explain(action: SetColumnTags | UnsetColumnTags) -> Iterable[Change]:
    """Yield a line per tag."""
    match action:
        case SetColumnTags(column, changes):
            yield from explain_set(changes, f"column {column} ")
        case UnsetColumnTags(column, unwanted):
            yield from explain_unset(unwanted, f"column {column} ")
        case other:
            assert_never(other)


def accept(model: Table, observed: TableState, action: SetColumnTags | UnsetColumnTags) -> Table:
    """Return the model with the observed tags of the column."""
    match action:
        case SetColumnTags(name, changes):
            keys = [change.key for change in changes]
        case UnsetColumnTags(name, unwanted):
            keys = [key for key, _ in unwanted]
        case other:
            assert_never(other)
    found = {column.key: column.tags for column in observed.columns}.get(name.lower(), {})
    return with_column(
        model, name, lambda column: replace(column, tags=with_observed(column.tags, found, keys))
    )


def _changes(comparison: Comparison) -> Iterable[tuple[str, tuple[TagChange, ...]]]:
    if not comparison.desired.is_about(Part.TAGS):
        return
    tagged = [pair for pair in comparison.differing_or_new if pair[0].tags]
    for desired, observed in tagged:
        changes = changed_tags(desired.tags, observed.tags)
        if changes:
            yield observed.name, changes


def _unwanted(comparison: Comparison) -> Iterable[tuple[str, tuple[tuple[str, str], ...]]]:
    tagged = [pair for pair in comparison.differing if pair[1].tags]
    if not tagged or not comparison.desired.is_about(Part.TAGS):
        return
    ours: dict[str, set[str]] = defaultdict(set)
    for model in comparison.ours:
        for column in model.columns:
            ours[column.key] |= column.tags.keys()
    for desired, observed in tagged:
        unwanted = unwanted_tags(desired.tags, observed.tags, ours[observed.key], comparison.policy.tags)
        if unwanted:
            yield observed.name, unwanted


FACET: Facet[Column, Column, Mapping[str, str]] = Facet(
    key="tags",
    declared=lambda column: column.tags,
    absent=NOTHING,
    form=TEXTS,
    meaning="[tags](#tags-owner-and-grants) of Unity Catalog",
    entry="tag",
    observed=lambda column: column.tags,
    part=Part.TAGS,
    title="tags",
    feature=Feature.TAGS,
)

ASPECT: Aspect[SetColumnTags | UnsetColumnTags] = Aspect(
    name="column tags",
    part=None,
    actions={
        SetColumnTags: takes_apply_tag("ALTER COLUMN … SET TAGS"),
        UnsetColumnTags: takes_apply_tag("ALTER COLUMN … UNSET TAGS"),
    },
    diff=diff,
    differences=differences,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.COLUMN_TAG,
    is_of_columns=True,
    completes_create=True,
)
