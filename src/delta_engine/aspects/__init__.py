"""Aspects: one module per part of a table, and the explicit lists of them.

A new aspect is one module here, its entries in these tuples, its fields in the model and the observed state, and its
golden cases. Nothing registers itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from delta_engine.actions import Action, AlignTable, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects import (
    check_constraints,
    clustering,
    column_comments,
    column_defaults,
    column_masks,
    column_order,
    column_renames,
    column_tags,
    column_types,
    columns,
    foreign_keys,
    generated_columns,
    grants,
    location,
    not_null_checks,
    nullability,
    owner,
    partitioning,
    primary_key,
    row_filters,
    table_comment,
    table_features,
    table_names,
    table_properties,
    table_tags,
)
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    Comparison,
    CreateClauses,
    RenderContext,
    bare_column,
)
from delta_engine.aspects.facet import Facet
from delta_engine.models import Column, Schema, Table
from delta_engine.state.states import SchemaState, TableState

ASPECTS: tuple[Aspect[Any], ...] = (
    table_names.ASPECT,
    columns.ASPECT,
    column_renames.ASPECT,
    not_null_checks.ASPECT,
    clustering.ASPECT,
    column_types.ASPECT,
    nullability.ASPECT,
    column_order.ASPECT,
    column_defaults.ASPECT,
    generated_columns.ASPECT,
    partitioning.ASPECT,
    location.ASPECT,
    column_comments.ASPECT,
    table_comment.ASPECT,
    table_features.ASPECT,
    table_properties.ASPECT,
    check_constraints.ASPECT,
    primary_key.ASPECT,
    foreign_keys.ASPECT,
    row_filters.ASPECT,
    column_masks.ASPECT,
    table_tags.ASPECT,
    column_tags.ASPECT,
    grants.ASPECT,
    owner.ASPECT,
)

TABLE_FACETS: tuple[Facet[Table, TableState, Any], ...] = (
    table_names.FACET,
    table_comment.FACET,
    table_properties.FACET,
    primary_key.FACET,
    foreign_keys.FACET,
    check_constraints.FACET,
    clustering.FACET,
    clustering.AUTOMATIC_FACET,
    partitioning.FACET,
    location.FACET,
    table_tags.FACET,
    row_filters.FACET,
    owner.FACET,
    grants.FACET,
)
"""What a model says of a table beside its columns, in the order in which model files have it."""

COLUMN_FACETS: tuple[Facet[Column, Column, Any], ...] = (
    nullability.FACET,
    column_comments.FACET,
    column_defaults.FACET,
    generated_columns.GENERATED_FACET,
    generated_columns.IDENTITY_FACET,
    column_tags.FACET,
    column_masks.FACET,
    column_renames.FACET,
    column_renames.FIELDS_FACET,
)
"""What a model says of a column beside its name and type, in the order in which model files have it."""

SCHEMA_FACETS: tuple[Facet[Schema, SchemaState, Any], ...] = (
    table_comment.SCHEMA_FACET,
    table_tags.FACET,
    owner.FACET,
    grants.FACET,
)
"""What a model says of a schema, in the order in which model files have it."""

_BEYOND_COLUMNS = tuple(aspect for aspect in ASPECTS if not aspect.is_of_columns)

_ASPECT_OF: dict[type[Action], Aspect[Any]] = {
    action_type: aspect for aspect in ASPECTS for action_type in aspect.action_types
}


def diff(comparison: Comparison) -> Iterator[Action]:
    """Yield every action that the table needs, aspect by aspect."""
    for aspect in _asked(comparison):
        yield from aspect.diff(comparison)


def after_create(desired: Table) -> Iterator[Action]:
    """Yield the actions that complete a new table after CREATE TABLE, aspect by aspect."""
    made = TableState(columns=tuple(map(bare_column, desired.columns)))
    comparison = Comparison.of(desired, made)
    for aspect in ASPECTS:
        if aspect.completes_create:
            yield from aspect.diff(comparison)


def beyond_columns(desired: Table) -> Iterator[Action]:
    """Yield what a new table has besides its columns, and besides what their definitions hold: tags and masks."""
    made = TableState(columns=tuple(replace(column, tags={}, mask=None) for column in desired.columns))
    yield from diff(Comparison.of(desired, made))


def _asked(comparison: Comparison) -> Sequence[Aspect[Any]]:
    """Return the aspects that may find a difference."""
    asked = _BEYOND_COLUMNS if comparison.has_equal_columns else ASPECTS
    if comparison.desired.manages is None:
        return asked
    return [aspect for aspect in asked if aspect.part is None or comparison.desired.is_about(aspect.part)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference between a table and its model.

    Args:
        kind: the kind of drift, if the model is what was applied last.
        action: the action that would remove the difference.
    """

    kind: DriftKind
    change: Change
    action: Action


def differences(comparison: Comparison) -> Iterator[Difference]:
    """Yield the differences of the two sides: the diff without the actions that only enable others."""
    for aspect in _asked(comparison):
        for action in (aspect.differences or aspect.diff)(comparison):
            for change in aspect.explain(action):
                yield Difference(kind=aspect.drift_kind(action), change=change, action=action)


def accept(model: Table, observed: TableState, accepted: Iterable[Difference]) -> Table:
    """Return a model that takes the observed side of some differences, and keeps its own in all others."""
    for difference in accepted:
        aspect = _ASPECT_OF[type(difference.action)]
        model = aspect.accept(model, observed, difference.action)
    return model


def render(align: AlignTable, context: RenderContext) -> Iterator[str]:
    """Yield the statements of an alignment, in execution order: one call per aspect and phase."""
    for together, actions in groupby(align.actions, key=_aspect_and_phase):
        yield from together[0].render(list(actions), context)


def _aspect_and_phase(action: Action) -> tuple[Aspect[Any], Phase]:
    return _ASPECT_OF[type(action)], action.phase


def explain(actions: Iterable[Action]) -> Iterator[Change]:
    """Yield what each action does, as lines of a report."""
    for action in actions:
        yield from _ASPECT_OF[type(action)].explain(action)


def create_clauses(desired: Table, context: RenderContext) -> CreateClauses:
    """Return what all aspects contribute to CREATE TABLE, in one piece."""
    parts = [aspect.create(desired, context) for aspect in ASPECTS]
    return CreateClauses(
        columns=tuple(column for part in parts for column in part.columns),
        constraints=tuple(constraint for part in parts for constraint in part.constraints),
        comment="".join(part.comment for part in parts),
        properties={key: value for part in parts for key, value in part.properties.items()},
        clauses=tuple(clause for part in parts for clause in part.clauses),
        cluster_by=tuple(column for part in parts for column in part.cluster_by),
    )
