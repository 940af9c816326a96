"""Definitions that one statement replaces as a whole: those of functions, policies and the queries of views.

Their texts are opaque: platforms may show them in other words. So a text is pending if the model's differs from that of
the model that was applied last, and it was changed outside the engine if the observed one differs from what the last
apply left. Without a record, the observed text is compared with the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from operator import eq
from typing import Any, Protocol, TypeVar

from delta_engine.actions import Action
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Requirement
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.facet import Facet
from delta_engine.models import AbacPolicy, Function, View
from delta_engine.state.function_states import FunctionState
from delta_engine.state.policy_states import PolicyState
from delta_engine.state.view_states import ViewState

_Model = TypeVar("_Model", Function, AbacPolicy, View)
_State = TypeVar("_State", FunctionState, PolicyState, ViewState)


class DefinitionAction(Action, Protocol):
    """An action that replaces a definition; `parts` are the keys of the facets that differ."""

    @property
    def desired(self) -> Any:
        """The model."""

    @property
    def observed(self) -> Any:
        """The state."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The keys of the facets that differ."""


_Action = TypeVar("_Action", bound=DefinitionAction)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionPart:
    """A part of a definition.

    Args:
        drift_kind: the kind of drift when it is changed outside the engine.
        is_same: whether two values say the same.
        described: the text of a value for reports; None for an absent one.
        is_managed: whether a model's value says anything of the part.
        may_be_hidden: whether the platform may hide an observed value, which is None then.
    """

    facet: Facet[Any, Any, Any]
    drift_kind: DriftKind
    is_same: Callable[[Any, Any], bool] = eq
    described: Callable[[Any], str | None]
    is_managed: Callable[[Any], bool] = lambda _value: True
    may_be_hidden: bool = False

    def of_model(self, model: object) -> Any:
        """Return the value that a statement submits of a model."""
        return (self.facet.recorded or self.facet.declared)(model)

    def of_state(self, state: object) -> Any:
        """Return the observed value."""
        assert self.facet.observed is not None
        return self.facet.observed(state)

    def differs(self, comparison: Comparison[Any, Any]) -> bool:
        """Whether the part is pending, or was changed outside the engine.

        A hidden observed one never was changed, but an unfinished run may have replaced it.
        """
        desired, observed = self.of_model(comparison.desired), self.of_state(comparison.observed)
        if not self.is_managed(desired) or self.is_same(desired, observed):
            return False
        is_hidden = self.may_be_hidden and observed is None and comparison.observed.exists
        if comparison.declared is None or comparison.baseline is None:
            return not is_hidden
        applied = (comparison.declared, *(comparison.attempted if is_hidden else ()))
        if not all(self.is_same(desired, self.of_model(model)) for model in applied):
            return True
        return not is_hidden and not self.is_same(self.of_model(comparison.baseline), observed)


def shown_text(text: str | None) -> str | None:
    """Return a text on one line; None for an empty one."""
    return (text if text.isprintable() else repr(text)) if text else None


def definition_aspect(
    action: Callable[[_Model, _State, tuple[str, ...]], _Action],
    parts: Iterable[DefinitionPart],
    actions: Mapping[type[_Action], Requirement],
    *,
    name: str,
    statements: Callable[[_Action], Iterable[str]],
) -> Aspect[_Action, _Model, _State]:
    """Return the aspect of a whole definition.

    Args:
        action: makes the only action, from both sides and the keys of the facets that differ.
        statements: spells the replacement, and sets again what it may lose.
    """
    by_key: Mapping[str, DefinitionPart] = {part.facet.key: part for part in parts}

    def differing(comparison: Comparison[_Model, _State]) -> tuple[str, ...]:
        return tuple(key for key, part in by_key.items() if part.differs(comparison))

    def diff(comparison: Comparison[_Model, _State]) -> Iterator[_Action]:
        if keys := differing(comparison):
            yield action(comparison.desired, comparison.observed, keys)

    def differences(comparison: Comparison[_Model, _State]) -> Iterator[_Action]:
        yield from (action(comparison.desired, comparison.observed, (key,)) for key in differing(comparison))

    def explain(replaced: _Action) -> Iterator[Change]:
        for part in map(by_key.__getitem__, replaced.parts):
            observed, desired = part.of_state(replaced.observed), part.of_model(replaced.desired)
            yield Change(part.facet.key, part.described(observed), part.described(desired))

    def accept(model: _Model, observed: _State, accepted: _Action) -> _Model:
        attributes = (by_key[key].facet.attribute for key in accepted.parts)
        return replace(model, **{attribute: getattr(observed, attribute) for attribute in attributes})

    return Aspect(
        name=name,
        part=None,
        actions=actions,
        diff=diff,
        differences=differences,
        render=lambda actions, _context: chain.from_iterable(map(statements, actions)),
        explain=explain,
        accept=accept,
        drift_kind=lambda replaced: by_key[replaced.parts[0]].drift_kind,
        is_in_history=False,
        definition=tuple(part.facet.attribute for part in by_key.values()),
    )
