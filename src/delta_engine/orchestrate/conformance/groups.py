"""Groups of scratch tables: models, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from delta_engine.backends.capabilities import Feature
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.models.types import AtomicType
from delta_engine.orchestrate.conformance.place import Place
from delta_engine.state.states import TableState

ID: Final = Column("id", AtomicType("bigint"), is_nullable=False)


def as_observed(state: TableState) -> TableState:
    """Return a state as it is."""
    return state


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a group is to be.

    Args:
        tables: the models.
        removed: the tables of the step before that are not declared any more.
        seen: what the planner is shown of a table's state.
    """

    tables: tuple[Table, ...]
    removed: tuple[QualifiedName, ...] = ()
    seen: Callable[[TableState], TableState] = as_observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Scratch tables that belong together.

    Args:
        name: the group.
        features: the features that it needs.
        steps: what it is to be, one step after the other.
        functions: the names of the scratch functions that it needs.
        lacks: what the run has not been given that the group needs; empty for nothing.
    """

    name: str
    features: tuple[Feature, ...]
    steps: tuple[Step, ...]
    functions: tuple[str, ...] = ()
    lacks: str = ""


def table(place: Place, name: str, *columns: Column, **declared: Any) -> Table:
    """Return the model of a scratch table; with one column, unless others are named."""
    return Table(place.catalog, place.schema, place.table(name).table, columns or (ID,), **declared)


def group(name: str, features: tuple[Feature, ...], *tables: Table, **settings: Any) -> Group:
    """Return a group of one table that changes from step to step."""
    steps = tuple(Step(tables=(one,)) for one in tables)
    return Group(name=name, features=features, steps=steps, **settings)
