"""Models that declare what exists, from the facets: importing one, and planning, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

from delta_engine.aspects import FUNCTION_FACETS, SCHEMA_FACETS, VIEW_FACETS
from delta_engine.aspects.facet import Facet
from delta_engine.errors import SourceLocation
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    FunctionName,
    PolicyName,
    Schema,
    SchemaMode,
    SchemaName,
    SecurableName,
    View,
    ViewName,
)
from delta_engine.state.function_states import FunctionState
from delta_engine.state.policy_states import PolicyState
from delta_engine.state.states import CatalogState, SchemaState, TableState
from delta_engine.state.view_states import ViewState

THE_CATALOG: Final = SourceLocation("the catalog")
"""The place that messages give for an imported model."""

State = TypeVar("State", TableState, SchemaState, FunctionState, ViewState, Column)


def as_schema_model(name: SchemaName, state: SchemaState) -> Schema | None:
    """Return a model that an existing schema matches, or None if it has no comment and no tags.

    Owner and grants are left out, as for tables.
    """
    arguments = imported_arguments(SCHEMA_FACETS, name, state)
    model = Schema(name.catalog, name.schema, **arguments, declared_at=THE_CATALOG)
    return model if any(facet.is_declared(model) for facet in SCHEMA_FACETS) else None


def as_function_model(name: FunctionName, state: FunctionState) -> Function:
    """Return a model that an existing function matches. Owner and grants are left out, as for tables."""
    arguments = imported_arguments(FUNCTION_FACETS, name, state)
    return Function(name.catalog, name.schema, name.function, declared_at=THE_CATALOG, **arguments)


def as_policy_model(name: PolicyName, state: PolicyState) -> AbacPolicy:
    """Return a model that an existing policy matches."""
    assert state.protection is not None
    return AbacPolicy(
        name.policy,
        name.scope,
        state.protection,
        state.to,
        excepted=state.excepted,
        match=state.match,
        when=state.when,
        comment=state.comment,
        declared_at=THE_CATALOG,
    )


def as_view_model(name: ViewName, state: ViewState) -> View:
    """Return a model that an existing view matches. Owner and grants are left out, as for tables.

    A view that evolves has the comments of the columns that it reads.
    """
    arguments = imported_arguments(VIEW_FACETS, name, state)
    if state.schema_mode is SchemaMode.EVOLUTION:
        arguments["columns"] = [replace(column, comment="") for column in arguments["columns"]]
    return View(name.catalog, name.schema, name.view, declared_at=THE_CATALOG, **arguments)


def governed_models(governed: CatalogState) -> Iterator[Function | AbacPolicy | View]:
    """Yield the models of the functions, policies and views of a snapshot, each sorted by key."""
    for key, function in sorted(governed.functions.items()):
        yield as_function_model(FunctionName(*key.split(".")), function)
    for key, policy in sorted(governed.policies.items()):
        yield as_policy_model(PolicyName.of_key(key), policy)
    for key, view in sorted(governed.views.items()):
        if view.exists:
            yield as_view_model(ViewName(*key.split(".")), view)


def imported_arguments(
    facets: Iterable[Facet[Any, State, Any]], name: SecurableName, state: State
) -> dict[str, Any]:
    """Return the arguments of the model that declares what exists."""
    return {
        facet.attribute: facet.imported_value(name, state)
        for facet in facets
        if facet.is_imported and facet.observed is not None
    }
