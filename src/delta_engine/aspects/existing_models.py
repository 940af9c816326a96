"""Models that declare what exists, from the facets: importing one, and planning, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple
from typing import Any, Final, TypeVar

from delta_engine.aspects import KINDS, SCHEMA_FACETS, kind_of
from delta_engine.aspects.facet import Facet
from delta_engine.errors import SourceLocation
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    PolicyName,
    Schema,
    SchemaName,
    SecurableName,
    Table,
    View,
)
from delta_engine.state.policy_states import PolicyState, policy_of
from delta_engine.state.states import CatalogState, SchemaState, SecurableState

THE_CATALOG: Final = SourceLocation("the catalog")
"""The place that messages give for an imported model."""

State = TypeVar("State", bound=SecurableState | Column)


def as_plain_model(name: SecurableName, state: SecurableState) -> Any:
    """Return a model without columns that something existing matches. Owner and grants are left out, as for tables."""
    if isinstance(name, PolicyName) and isinstance(state, PolicyState):
        return policy_of(name, state, THE_CATALOG)
    kind = kind_of(name)
    names = zip(kind.named_by.values(), astuple(name), strict=True)
    return kind.model(**dict(names), **imported_arguments(kind.facets, name, state), declared_at=THE_CATALOG)


def as_schema_model(name: SchemaName, state: SchemaState) -> Schema | None:
    """Return a model that an existing schema matches, or None if it has no comment and no tags."""
    model: Schema = as_plain_model(name, state)
    return model if any(facet.is_declared(model) for facet in SCHEMA_FACETS) else None


def governed_models(governed: CatalogState) -> Iterator[Function | AbacPolicy | View]:
    """Yield the models of the functions, policies and views of a snapshot, each sorted by key."""
    for kind in KINDS:
        if kind.model in (Schema, Table):
            continue
        for key, state in sorted(governed.by_kind[kind.word].items()):
            if state.exists:
                yield as_plain_model(kind.named(key), state)


def imported_arguments(
    facets: Iterable[Facet[Any, State, Any]], name: SecurableName, state: State
) -> dict[str, Any]:
    """Return the arguments of the model that declares what exists."""
    return {
        facet.attribute: facet.imported_value(name, state)
        for facet in facets
        if facet.is_imported and facet.observed is not None
    }
