"""Tags of tables, schemas, functions, views and columns, only those that differ.

One statement sets and one unsets the tags of an object; functions take one tag per statement.

The engine sets the declared keys; the policy decides the ownership of all others. Keys and values compare exactly:
Unity Catalog distinguishes `Sales` from `sales` (Databricks documentation, "Apply tags to Unity Catalog securable
objects"). A dropped column loses all its tags first, unmanaged ones included: governed tags block the drop
(`INVALID_PARAMETER_VALUE.CANNOT_DROP_TAGGED_COLUMN`, github.com/databricks/dbt-databricks/issues/1323).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import Ownership
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    EntriesAction,
    EntryChange,
    OwnedContext,
    Requirement,
    Right,
    SharedAspect,
    desired_values,
    entry_keys,
    explain_entries,
    removed_entries,
)
from delta_engine.aspects.changed_models import with_column
from delta_engine.aspects.comparison import (
    ColumnPair,
    Comparison,
    Owned,
    OwnedComparison,
    OwnedState,
    bare_column,
)
from delta_engine.aspects.conversions import new_name
from delta_engine.aspects.facet import TEXTS, Facet
from delta_engine.backends.capabilities import Feature
from delta_engine.models import Column, Function, FunctionName, Part, Table, View, ViewColumn
from delta_engine.models.parts import NOTHING
from delta_engine.sql.functions import sql_set_function_tag, sql_unset_function_tag
from delta_engine.sql.governance import sql_set_tags, sql_unset_tags
from delta_engine.state.function_states import FunctionState
from delta_engine.state.states import TableState

Tags: TypeAlias = Mapping[str, str]
"""Values by key."""


class SetTableTags(EntriesAction):
    """Set tags, sorted by key."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.SET_TAGS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE


class UnsetTableTags(EntriesAction):
    """Remove tags, sorted by key."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.UNSET_TAGS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE


@dataclass(frozen=True, slots=True)
class SetColumnTags:
    """Set tags of one column, sorted by key."""

    phase: ClassVar[Phase] = Phase.SET_TAGS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    column: str
    entries: tuple[EntryChange, ...]

    def __post_init__(self) -> None:
        if not self.entries:
            raise ValueError(f"setting tags of column {self.column} needs at least one")


@dataclass(frozen=True, slots=True)
class UnsetColumnTags:
    """Unset tags of a column; `before_drop` marks a column that is dropped afterwards."""

    phase: ClassVar[Phase] = Phase.UNSET_TAGS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    column: str
    entries: tuple[EntryChange, ...]
    before_drop: bool = False

    def __post_init__(self) -> None:
        if not self.entries:
            raise ValueError(f"removing tags of column {self.column} needs at least one")


TableTags: TypeAlias = SetTableTags | UnsetTableTags
ColumnTags: TypeAlias = SetColumnTags | UnsetColumnTags


def _diff(comparison: OwnedComparison) -> Iterable[TableTags]:
    if not comparison.desired.tags and not comparison.observed.tags:
        return
    changes, unwanted = _changes(comparison), _unwanted(comparison)
    if changes:
        yield SetTableTags(changes)
    if unwanted:
        yield UnsetTableTags(unwanted)


def _differences(comparison: OwnedComparison) -> Iterable[TableTags]:
    yield from (SetTableTags((change,)) for change in _changes(comparison))
    yield from (UnsetTableTags((tag,)) for tag in _unwanted(comparison))


def _changes(comparison: OwnedComparison) -> tuple[EntryChange, ...]:
    return _changed_tags(comparison.desired.tags, comparison.observed.tags)


def _unwanted(comparison: OwnedComparison) -> tuple[EntryChange, ...]:
    ours = {key for model in comparison.ours for key in model.tags}
    return _unwanted_tags(comparison.desired.tags, comparison.observed.tags, ours, comparison.policy.tags)


def _render(actions: Sequence[TableTags], context: OwnedContext) -> Iterable[str]:
    for action in actions:
        if isinstance(context.name, FunctionName):
            yield from _one_by_one(action, context.name)
        else:
            yield _statement(action, context.securable)


def _one_by_one(action: TableTags, function: FunctionName) -> Iterator[str]:
    """Yield a statement per tag, which is how functions get them."""
    if isinstance(action, SetTableTags):
        values = desired_values(action.entries)
        yield from (sql_set_function_tag(function, key, value) for key, value in values.items())
    else:
        yield from (sql_unset_function_tag(function, key) for key in entry_keys(action.entries))


def _accept(model: Owned, observed: OwnedState, action: TableTags) -> Owned:
    return replace(model, tags=_with_observed(model.tags, observed.tags, action))


def _diff_columns(comparison: Comparison) -> Iterable[ColumnTags]:
    pairs = (*comparison.differing, *((column, bare_column(column)) for column in comparison.added))
    for name, changes in (*_column_changes(comparison, pairs), *_tags_of_new_columns(comparison)):
        yield SetColumnTags(name, changes)
    yield from (UnsetColumnTags(name, unwanted) for name, unwanted in _unwanted_of_columns(comparison))
    for column in comparison.dropped:
        if column.tags:
            yield UnsetColumnTags(column.name, removed_entries(column.tags.items()), before_drop=True)


def _column_differences(comparison: Comparison) -> Iterable[ColumnTags]:
    """Yield one action per tag of the shared columns. The drop of a column covers its tags."""
    converted = ((conversion.desired, conversion.observed) for conversion in comparison.converted)
    for name, changes in _column_changes(comparison, (*comparison.differing, *converted)):
        yield from (SetColumnTags(name, (change,)) for change in changes)
    for name, unwanted in _unwanted_of_columns(comparison):
        yield from (UnsetColumnTags(name, (tag,)) for tag in unwanted)


def _column_changes(
    comparison: Comparison, pairs: Iterable[ColumnPair]
) -> Iterable[tuple[str, tuple[EntryChange, ...]]]:
    tagged = [pair for pair in pairs if pair[0].tags]
    if not tagged or not _manages_tags(comparison.desired):
        return
    for desired, observed in tagged:
        changes = _changed_tags(desired.tags, observed.tags)
        if changes:
            yield observed.name, changes


def _tags_of_new_columns(comparison: Comparison) -> Iterable[tuple[str, tuple[EntryChange, ...]]]:
    """Yield the tags that the new columns of conversions lack, unmanaged tags of the former columns included."""
    for desired, present in _new_columns(comparison):
        if changes := _changed_tags(desired.tags, present.tags):
            yield present.name, changes


def _new_columns(comparison: Comparison) -> Iterator[ColumnPair]:
    """Yield the new columns of conversions, with all tags that they are to have, and as they are."""
    if not comparison.converted:
        return
    ours, may_unset = _ours(comparison), comparison.desired.is_about(Part.TAGS)
    for conversion in comparison.converted:
        declared, former = conversion.desired.tags, conversion.observed
        unwanted = _unwanted_tags(declared, former.tags, ours[former.key], comparison.policy.tags)
        gone = entry_keys(unwanted) if may_unset else []
        kept = {key: value for key, value in former.tags.items() if key not in gone}
        desired = replace(conversion.desired, tags={**kept, **declared})
        yield desired, conversion.added or replace(desired, name=new_name(former.name), tags={})


def _unwanted_of_columns(comparison: Comparison) -> Iterable[tuple[str, tuple[EntryChange, ...]]]:
    begun = (
        (desired, replace(new, name=desired.name)) for desired, new in _new_columns(comparison)
    )  # tags are unset after the swap
    tagged = [pair for pair in (*comparison.differing, *begun) if pair[1].tags]
    if not tagged or not _manages_tags(comparison.desired):
        return
    ours = _ours(comparison)
    for desired, observed in tagged:
        unwanted = _unwanted_tags(desired.tags, observed.tags, ours[observed.key], comparison.policy.tags)
        if unwanted:
            yield observed.name, unwanted


def _ours(comparison: Comparison) -> Mapping[str, set[str]]:
    """Return the keys of tags that applied and attempted models have, by column."""
    ours: dict[str, set[str]] = defaultdict(set)
    for model in comparison.ours:
        for column in model.columns:
            ours[column.key] |= column.tags.keys()
    return ours


def _manages_tags(model: Table | View) -> bool:
    return isinstance(model, View) or model.is_about(Part.TAGS)


def _render_columns(actions: Sequence[ColumnTags], context: OwnedContext) -> Iterable[str]:
    return [_statement(action, context.with_columns, action.column) for action in actions]


def _accept_column(model: Table, observed: TableState, action: ColumnTags) -> Table:
    observed_tags = {column.key: column.tags for column in observed.columns}.get(action.column.lower(), {})
    return with_column(
        model,
        action.column,
        lambda column: replace(column, tags=_with_observed(column.tags, observed_tags, action)),
    )


def _changed_tags(desired: Tags, observed: Tags) -> tuple[EntryChange, ...]:
    """Return the model's tags that are missing or have another value, sorted by key."""
    return tuple(
        EntryChange(key, value, observed.get(key))
        for key, value in sorted(desired.items())
        if observed.get(key) != value
    )


def _unwanted_tags(
    desired: Tags, observed: Tags, ours: Container[str], ownership: Ownership
) -> tuple[EntryChange, ...]:
    """Return the undeclared tags that the engine may unset, sorted by key."""
    return removed_entries(
        (key, value)
        for key, value in sorted(observed.items())
        if key not in desired and (ownership is Ownership.FULL or key in ours)
    )


def _statement(action: TableTags | ColumnTags, securable: str, column: str | None = None) -> str:
    if isinstance(action, (SetTableTags, SetColumnTags)):
        return sql_set_tags(securable, desired_values(action.entries), column)
    return sql_unset_tags(securable, entry_keys(action.entries), column)


def _explain(action: TableTags | ColumnTags) -> Iterator[Change]:
    of = "" if isinstance(action, (SetTableTags, UnsetTableTags)) else f"column {action.column} "
    return explain_entries(f"{of}tag", action.entries)


def _with_observed(tags: Tags, observed: Tags, action: TableTags | ColumnTags) -> dict[str, str]:
    """Return a model's tags with the observed side of those of an action."""
    taken = entry_keys(action.entries)
    kept = {key: value for key, value in tags.items() if key not in taken}
    return kept | {key: value for key, value in observed.items() if key in taken}


def _takes_apply_tag(statement: str) -> Requirement:
    demands = "`APPLY TAG`, and ASSIGN on a governed tag"
    return Requirement(statement=statement, right=Right.APPLY_TAG, demands=demands, source="SET TAG")


FACET: Facet[Owned | Column | ViewColumn, OwnedState | Column | ViewColumn, Tags] = Facet(
    key="tags",
    declared=lambda model: model.tags,
    observed=lambda state: state.tags,
    absent=NOTHING,
    form=TEXTS,
    meaning="[tags](#tags-owner-and-grants) of Unity Catalog",
    entry="tag",
    part=Part.TAGS,
    title="tags",
    feature=Feature.TAGS,
)

FUNCTION_FACET: Facet[Function, FunctionState, Tags] = replace(FACET, feature=Feature.FUNCTION_TAGS)

ASPECT: SharedAspect[TableTags] = Aspect(
    name="table tags",
    part=Part.TAGS,
    actions={SetTableTags: _takes_apply_tag("SET TAGS"), UnsetTableTags: _takes_apply_tag("UNSET TAGS")},
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.TABLE_TAG,
    is_in_history=False,
    completes_create=True,
)

COLUMN_ASPECT: Aspect[ColumnTags] = Aspect(
    name="column tags",
    part=None,
    actions={
        SetColumnTags: _takes_apply_tag("ALTER COLUMN … SET TAGS"),
        UnsetColumnTags: _takes_apply_tag("ALTER COLUMN … UNSET TAGS"),
    },
    diff=_diff_columns,
    differences=_column_differences,
    render=_render_columns,
    explain=_explain,
    accept=_accept_column,
    drift_kind=lambda _action: DriftKind.COLUMN_TAG,
    is_in_history=False,
    is_of_columns=True,
    completes_create=True,
)
