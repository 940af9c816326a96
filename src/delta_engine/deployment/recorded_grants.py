"""Grants that runs applied or attempted: a reader that is told of them looks whether they are still there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from delta_engine.deployment.document import DeploymentState
from delta_engine.models import Schema, Table
from delta_engine.models.parts import Grants, joined_grants
from delta_engine.state.catalog_reader import former_name

_Declared = TypeVar("_Declared", Table, Schema)


def with_recorded_grants(models: Iterable[_Declared], state: DeploymentState | None) -> tuple[_Declared, ...]:
    """Return models for a reader, which name the recorded grants of their table or schema beside their own.

    Without them, a grant that a model names no longer may look revoked: see `CatalogReader.snapshot`.
    """
    recorded = {} if state is None else _recorded(state)
    return tuple(_with_grants(model, recorded) for model in models) if recorded else tuple(models)


def _recorded(state: DeploymentState) -> dict[str, Grants]:
    """Return the grants by the key of their table or schema, where there are any."""
    found: dict[str, Grants] = {}
    for resource_key, resource in state.resources.items():
        key = resource_key.partition(".")[2]
        metadata = resource.metadata
        definitions = (metadata.definition, metadata.schema_definition)
        for one in (*definitions, *metadata.attempted, *metadata.attempted_schemas):
            if one is not None and one.grants:
                found[key] = joined_grants(found.get(key, {}), one.grants)
    return found


def _with_grants(model: _Declared, recorded: dict[str, Grants]) -> _Declared:
    for key in _keys(model):
        if key in recorded:
            model = replace(model, grants=joined_grants(model.grants, recorded[key]))
    return model


def _keys(model: Table | Schema) -> Iterator[str]:
    """Yield the names under which a table or schema may be recorded."""
    yield model.key
    former = former_name(model) if isinstance(model, Table) else None
    if former is not None:
        yield former.key
