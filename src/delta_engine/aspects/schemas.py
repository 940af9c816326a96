"""Schemas: comment, tags, grants and owner. All but the comment is compared and said as for tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

from delta_engine.actions import SAFE, Action, AlignSchema, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.aspects import Difference, grants, owner, table_tags
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext, Sign
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities
from delta_engine.models import QualifiedName, Schema, Table
from delta_engine.sql import sql_schema, sql_set_schema_comment
from delta_engine.state.states import SchemaState, TableState

SHARED: tuple[Aspect[Any], ...] = (table_tags.ASPECT, grants.ASPECT, owner.ASPECT)
"""The aspects that schemas share with tables."""

_KINDS = {
    DriftKind.TABLE_TAG: DriftKind.SCHEMA_TAG,
    DriftKind.GRANT: DriftKind.SCHEMA_GRANT,
    DriftKind.GRANT_ADDED: DriftKind.SCHEMA_GRANT_ADDED,
    DriftKind.OWNER: DriftKind.SCHEMA_OWNER,
}
"""What the shared aspects call a schema's drift."""

_TAKING_RIGHTS = (grants.RevokePrivileges, owner.ChangeOwner)

_ASPECT_OF = {action_type: aspect for aspect in SHARED for action_type in aspect.action_types}


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


def diff(
    desired: Schema,
    observed: SchemaState,
    last_applied: Schema | None,
    policy: Policy,
    attempted: Sequence[Schema] = (),
) -> Iterator[Action]:
    """Yield the actions that bring a schema to its model; a comment that it does not name is left alone."""
    comment = _comment(desired, observed)
    if comment is not None:
        yield comment
    comparison = _comparison(desired, observed, last_applied, policy, attempted)
    for aspect in SHARED:
        yield from aspect.diff(comparison)


def differences(
    desired: Schema,
    observed: SchemaState,
    last_applied: Schema | None = None,
    policy: Policy = NO_POLICY,
) -> Iterator[Difference]:
    """Yield how a schema differs from its model, one by one; the policy says whose is what nobody names."""
    comment = _comment(desired, observed)
    if comment is not None:
        yield from _described(DriftKind.SCHEMA_COMMENT, comment)
    comparison = _comparison(desired, observed, last_applied, policy, ())
    for aspect in SHARED:
        for action in (aspect.differences or aspect.diff)(comparison):
            yield from _described(_KINDS[aspect.drift_kind(action)], action)


def accept(model: Schema, observed: SchemaState, accepted: Iterable[Difference]) -> Schema:
    """Return a model that takes the observed side of some differences, and keeps its own in all others."""
    for difference in accepted:
        action = difference.action
        if isinstance(action, SetSchemaComment):
            model = replace(model, comment=action.observed)
        else:
            taken = _ASPECT_OF[type(action)].accept(_as_table(model), _as_state(observed), action)
            model = replace(model, tags=taken.tags, owner=taken.owner, grants=taken.grants)
    return model


def after_create(desired: Schema, policy: Policy) -> Iterator[Action]:
    """Yield what a new schema still needs after CREATE SCHEMA, which says its comment."""
    yield from diff(desired, SchemaState(comment=desired.comment or ""), None, policy)


def before_tables(align: AlignSchema) -> AlignSchema | None:
    """Return what is done before any table; None for nothing."""
    return _with_actions(align, [one for one in align.actions if not isinstance(one, _TAKING_RIGHTS)])


def after_tables(align: AlignSchema) -> AlignSchema | None:
    """Return what is done after all tables: whoever runs it may lose the right to change them. None for nothing."""
    return _with_actions(align, [one for one in align.actions if isinstance(one, _TAKING_RIGHTS)])


def render(
    align: AlignSchema, addressing: Addressing, capabilities: Capabilities
) -> Iterator[tuple[Sequence[Action], str]]:
    """Yield the statements of an alignment, in execution order, each after the actions that it carries out."""
    name = QualifiedName(align.catalog_name, align.schema_name, "")
    context = RenderContext(name, addressing, capabilities, is_schema=True)
    for action_type, found in groupby(align.actions, key=type):
        actions = tuple(found)
        for sql in _rendered(action_type, actions, context):
            yield actions, sql


def _rendered(action_type: type[Action], actions: Sequence[Action], context: RenderContext) -> Iterable[str]:
    if action_type is not SetSchemaComment:
        return _ASPECT_OF[action_type].render(actions, context)
    address = sql_schema(context.name.catalog, context.name.schema)
    comments = (action.desired for action in actions if isinstance(action, SetSchemaComment))
    return (sql_set_schema_comment(address, comment) for comment in comments)


def explain(actions: Iterable[Action]) -> Iterator[tuple[Action, Change]]:
    """Yield each action with its lines for people."""
    for action in actions:
        if isinstance(action, SetSchemaComment):
            change = Change(
                sign=Sign.CHANGED,
                subject="schema comment",
                observed=repr(action.observed),
                desired=repr(action.desired),
            )
            yield action, change
        else:
            for line in _ASPECT_OF[type(action)].explain(action):
                yield action, line


def _described(kind: DriftKind, action: Action) -> Iterator[Difference]:
    for _, change in explain([action]):
        yield Difference(kind=kind, change=change, action=action)


def _comment(desired: Schema, observed: SchemaState) -> SetSchemaComment | None:
    if desired.comment is None or desired.comment == observed.comment:
        return None
    return SetSchemaComment(desired.comment, observed.comment)


def _comparison(
    desired: Schema,
    observed: SchemaState,
    last_applied: Schema | None,
    policy: Policy,
    attempted: Sequence[Schema],
) -> Comparison:
    """Pair what schemas have in common with tables."""
    applied = _as_table(last_applied) if last_applied else None
    return Comparison.of(
        _as_table(desired), _as_state(observed), applied, policy, tuple(map(_as_table, attempted))
    )


def _as_state(observed: SchemaState) -> TableState:
    return TableState(tags=observed.tags, owner=observed.owner, grants=observed.grants)


def _with_actions(align: AlignSchema, actions: Sequence[Action]) -> AlignSchema | None:
    return replace(align, actions=tuple(actions)) if actions else None


def _as_table(schema: Schema) -> Table:
    """Return a table that says what a schema says, of what both have."""
    return Table(
        schema.catalog_name,
        schema.schema_name,
        "",
        (),
        tags=schema.tags,
        owner=schema.owner,
        grants=schema.grants,
    )
