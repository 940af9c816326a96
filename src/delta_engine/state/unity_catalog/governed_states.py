"""The states of declared functions and policies, and of the others in their schemas and scopes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models.functions import Function, FunctionName
from delta_engine.models.policies import AbacPolicy, PolicyName, PolicyScope
from delta_engine.state.failed_reads import not_managed
from delta_engine.state.function_states import FunctionState
from delta_engine.state.policy_states import EVERY_POLICY, PolicyState
from delta_engine.state.unity_catalog.governance import GovernanceReader, ViewQuery
from delta_engine.state.unity_catalog.information_schema import grants
from delta_engine.state.unity_catalog.routines import ROUTINE_PRIVILEGES, by_routine
from delta_engine.state.unity_catalog.show_grants import GrantedName, expected_grants, granted_rows
from delta_engine.state.unmanaged import Unmanaged

State = TypeVar("State", FunctionState, PolicyState)


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernedStates(Generic[State]):
    """The functions, or the policies, of one catalog.

    Args:
        states: by key; with each declared one, unless it is unreadable.
        others: those that the engine does not manage, by key.
        refusals: why declared ones are unreadable; without models, why any is.
    """

    states: Mapping[str, State]
    others: Mapping[str, Unmanaged] = field(default_factory=dict)
    refusals: Sequence[CatalogReadError] = ()

    @classmethod
    def of(
        cls, kind: type[State], models: Iterable[Function | AbacPolicy], answers: Mapping[str, object]
    ) -> GovernedStates[State]:
        """Divide the answers about functions or policies, by key; without an answer, a declared one is missing."""
        declared = {model.key: model for model in models}
        absent = {key: kind(exists=False) for key in declared if key not in answers}
        return GovernedStates(
            states=absent | {key: answer for key, answer in answers.items() if isinstance(answer, kind)},
            others={key: answer for key, answer in answers.items() if isinstance(answer, Unmanaged)},
            refusals=tuple(_refusals(declared, answers)),
        )


def ask_functions(
    reader: GovernanceReader,
    pool: Executor,
    query: ViewQuery,
    place: tuple[str, Collection[str]],
    models: Sequence[Function] = (),
) -> Callable[[], GovernedStates[FunctionState]]:
    """Ask for the functions of schemas; return what waits for the answers.

    Args:
        query: queries the views of the catalog.
        place: the catalog and those of its schemas that exist, in lower case.
        models: the declared functions of the catalog.
    """
    catalog, schemas = place
    if not schemas:
        return lambda: GovernedStates.of(FunctionState, models, {})
    listed = reader.functions(pool, query, catalog, schemas)
    privileges = pool.submit(query, ROUTINE_PRIVILEGES, schemas)

    def collected() -> GovernedStates[FunctionState]:
        functions = GovernedStates.of(FunctionState, models, listed())
        existing = [FunctionName(*key.split(".")) for key, state in functions.states.items() if state.exists]
        rows = by_routine(ROUTINE_PRIVILEGES, privileges.result())
        shown: dict[GrantedName, Sequence[Row]] = {name: rows.get(name.parts[1:], ()) for name in existing}
        granted, of_grants = granted_rows(shown, expected_grants(models), reader.runner, pool)
        states = {key: replace(functions.states[key], grants=grants(granted[key])) for key in granted}
        return replace(
            functions, states={**functions.states, **states}, refusals=(*of_grants, *functions.refusals)
        )

    return collected


def ask_policies(
    reader: GovernanceReader,
    pool: Executor,
    scopes: Mapping[PolicyScope, Sequence[PolicyName]],
    models: Sequence[AbacPolicy] = (),
) -> Callable[[], GovernedStates[PolicyState]]:
    """Ask for the policies on existing scopes; return what waits for the answers.

    Args:
        scopes: as `GovernanceReader.policies` takes them.
    """
    listed = reader.policies(pool, scopes)
    return lambda: GovernedStates.of(PolicyState, models, listed())


def scopes_of(
    models: Iterable[AbacPolicy], exists: Callable[[PolicyScope], bool]
) -> Mapping[PolicyScope, Sequence[PolicyName]]:
    """Return the existing scopes of policies and what these are in, each with those declared on it."""
    scopes: dict[PolicyScope, list[PolicyName]] = {}
    for model in models:
        scope = PolicyScope(model.scope.kind, model.scope.key)
        above = () if model.name == EVERY_POLICY else scope.above
        for securable in filter(exists, (*above, scope)):
            scopes.setdefault(securable, [])
        if scope in scopes:
            scopes[scope].append(model.qualified_name)
    return scopes


def _refusals(
    declared: Mapping[str, Function | AbacPolicy], answers: Mapping[str, object]
) -> Iterator[CatalogReadError]:
    """Yield why declared functions or policies cannot be read, or are others under their names; or why any cannot."""
    if not declared:
        yield from (answer for answer in answers.values() if isinstance(answer, CatalogReadError))
    for key, model in declared.items():
        match answers.get(key):
            case CatalogReadError() as refusal:
                yield refusal
            case Unmanaged() as other:
                yield not_managed(model.qualified_name, other)
