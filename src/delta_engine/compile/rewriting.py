"""Completes a plan that rewrites a table with what the rewrite loses: dropped before, made again afterwards. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from delta_engine import aspects
from delta_engine.actions import Action, Phase
from delta_engine.actions.policy import Policy
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.delta_properties import is_settable
from delta_engine.aspects.partitioning import RewriteTable, rewritten
from delta_engine.aspects.table_features import EnableTableFeature
from delta_engine.models import Table
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import TableState

_DROPPED_BEFORE: Final = frozenset({Phase.DROP_FOREIGN_KEYS, Phase.DROP_PRIMARY_KEY, Phase.DROP_CHECKS})
_MADE_AGAIN: Final = frozenset(
    {Phase.CHANGE_NULLABILITY, Phase.ADD_CHECKS, Phase.ADD_PRIMARY_KEY, Phase.ADD_FOREIGN_KEYS}
)


def with_lost_parts(
    actions: tuple[Action, ...], model: Table, observed: TableState, record: Recorded | None, policy: Policy
) -> tuple[Action, ...]:
    """Return the actions of a table, completed if one of them rewrites it.

    Keys and checks are dropped first, so that making them again meets none: whether a rewrite keeps them differs
    between platforms.
    """
    rewrite = next((action for action in actions if isinstance(action, RewriteTable)), None)
    if rewrite is None or rewrite.problem:
        return actions
    whole = _with_enabled(rewrite, actions)
    others = (
        whole if action is rewrite else action
        for action in actions
        if action.phase not in _DROPPED_BEFORE | _MADE_AGAIN
    )
    after = aspects.diff(Comparison.of(model, rewritten(observed), record, policy))
    again = (action for action in after if action.phase in _MADE_AGAIN)
    return (*_drops(model, observed, policy), *others, *again)


def _with_enabled(rewrite: RewriteTable, actions: tuple[Action, ...]) -> RewriteTable:
    """Return a rewrite that keeps the properties which the same plan sets before it, such as column mapping."""
    enabled = {
        action.key: action.desired
        for action in actions
        if isinstance(action, EnableTableFeature) and action.is_needed and is_settable(action.key, {})
    }
    return replace(rewrite, properties=tuple(sorted({**dict(rewrite.properties), **enabled}.items())))


def _drops(model: Table, observed: TableState, policy: Policy) -> Iterator[Action]:
    """Yield the drops of all keys and checks, as if they were the engine's and not declared any more."""
    bare = replace(model, primary_key=None, foreign_keys=(), checks=())
    owned = replace(
        model,
        primary_key=observed.primary_key,
        foreign_keys=observed.foreign_keys,
        checks=observed.checks,
    )
    for action in aspects.diff(Comparison.of(bare, observed, Recorded.of(owned), policy)):
        if action.phase in _DROPPED_BEFORE:
            yield action
