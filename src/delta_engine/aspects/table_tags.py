"""Tags of a table or schema: one statement sets and one unsets, only tags that differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import assert_never

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    AnyComparison,
    AnyContext,
    Aspect,
    Change,
    Securable,
    SecurableState,
    SharedAspect,
)
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
from delta_engine.models import Part, Schema, Table
from delta_engine.models.values import NOTHING
from delta_engine.sql.governance import sql_set_tags, sql_unset_tags
from delta_engine.state.states import SchemaState, TableState


@dataclass(frozen=True, slots=True)
class SetTableTags:
    """Set tags, sorted by key."""

    phase: ClassVar[Phase] = Phase.SET_TAGS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    tags: tuple[TagChange, ...]

    def __post_init__(self) -> None:
        if not self.tags:
            raise ValueError("setting tags needs at least one")


@dataclass(frozen=True, slots=True)
class UnsetTableTags:
    """Remove tags, as (key, observed value) pairs sorted by key."""

    phase: ClassVar[Phase] = Phase.UNSET_TAGS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    tags: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        if not self.tags:
            raise ValueError("removing tags needs at least one")


def diff(comparison: AnyComparison) -> Iterable[SetTableTags | UnsetTableTags]:
    """Yield one action for all tags to set, and one for all to unset."""
    changes, unwanted = _changes(comparison), _unwanted(comparison)
    if changes:
        yield SetTableTags(changes)
    if unwanted:
        yield UnsetTableTags(unwanted)


def differences(comparison: AnyComparison) -> Iterable[SetTableTags | UnsetTableTags]:
    """Yield one action per tag."""
    for change in _changes(comparison):
        yield SetTableTags((change,))
    for tag in _unwanted(comparison):
        yield UnsetTableTags((tag,))


def render(actions: Sequence[SetTableTags | UnsetTableTags], context: AnyContext) -> Iterable[str]:
    """Yield one SET TAGS or one UNSET TAGS."""
    for action in actions:
        match action:
            case SetTableTags(changes):
                tags = {change.key: change.desired for change in changes}
                yield sql_set_tags(context.securable, tags)
            case UnsetTableTags(unwanted):
                yield sql_unset_tags(context.securable, [key for key, _ in unwanted])
            case other:
                assert_never(other)


def explain(action: SetTableTags | UnsetTableTags) -> Iterable[Change]:
    """Yield a line per tag."""
    match action:
        case SetTableTags(changes):
            yield from explain_set(changes)
        case UnsetTableTags(unwanted):
            yield from explain_unset(unwanted)
        case other:
            assert_never(other)


def accept(model: Securable, observed: SecurableState, action: SetTableTags | UnsetTableTags) -> Securable:
    """Return the model with the observed tags."""
    match action:
        case SetTableTags(changes):
            keys = [change.key for change in changes]
        case UnsetTableTags(unwanted):
            keys = [key for key, _ in unwanted]
        case other:
            assert_never(other)
    return replace(model, tags=with_observed(model.tags, observed.tags, keys))


def _changes(comparison: AnyComparison) -> tuple[TagChange, ...]:
    return changed_tags(comparison.desired.tags, comparison.observed.tags)


def _unwanted(comparison: AnyComparison) -> tuple[tuple[str, str], ...]:
    if not comparison.observed.tags:
        return ()
    return unwanted_tags(
        comparison.desired.tags,
        comparison.observed.tags,
        {key for model in comparison.ours for key in model.tags},
        comparison.policy.tags,
    )


FACET: Facet[Table | Schema, TableState | SchemaState, Mapping[str, str]] = Facet(
    key="tags",
    declared=lambda model: model.tags,
    absent=NOTHING,
    form=TEXTS,
    meaning="[tags](#tags-owner-and-grants) of Unity Catalog",
    entry="tag",
    observed=lambda state: state.tags,
    part=Part.TAGS,
    title="tags",
    feature=Feature.TAGS,
)

ASPECT: SharedAspect[SetTableTags | UnsetTableTags] = Aspect(
    name="table tags",
    part=Part.TAGS,
    actions={SetTableTags: takes_apply_tag("SET TAGS"), UnsetTableTags: takes_apply_tag("UNSET TAGS")},
    diff=diff,
    differences=differences,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.TABLE_TAG,
    completes_create=True,
)
