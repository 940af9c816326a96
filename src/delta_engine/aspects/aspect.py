"""What an aspect is: the shape of one room in this folder, and the words all rooms share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Generic

from delta_engine.actions import SomeAction
from delta_engine.capabilities import Capabilities
from delta_engine.drift_policy import DriftKind
from delta_engine.models import Column, Table
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A model beside the table it describes, with their columns paired by name.

    Args:
        desired: the model.
        observed: the table as it is.
        last_applied: the model that this engine applied last, if it ever did.
        shared: the columns of both sides, desired and observed.
        added: the model's columns that the table lacks.
        dropped: the table's columns that the model lacks.
    """

    desired: Table
    observed: TableState
    last_applied: Table | None
    shared: tuple[tuple[Column, Column], ...]
    added: tuple[Column, ...]
    dropped: tuple[Column, ...]

    @classmethod
    def of(cls, desired: Table, observed: TableState, last_applied: Table | None = None) -> Comparison:
        """Pair the columns of both sides, without regard to case, in the model's order."""
        by_key = {column.key: column for column in observed.columns}
        wanted = {column.key for column in desired.columns}
        return cls(
            desired=desired,
            observed=observed,
            last_applied=last_applied,
            shared=tuple((column, by_key[column.key]) for column in desired.columns if column.key in by_key),
            added=tuple(column for column in desired.columns if column.key not in by_key),
            dropped=tuple(column for column in observed.columns if column.key not in wanted),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClauses:
    """What an aspect contributes to CREATE TABLE."""

    columns: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    cluster_by: tuple[str, ...] = ()


def no_create_clauses(_desired: Table, _capabilities: Capabilities) -> CreateClauses:
    """Contribute nothing: for aspects whose part another aspect's clause already says."""
    return CreateClauses()


@dataclass(frozen=True, slots=True)
class RenderContext:
    """What statements need besides the actions.

    Args:
        table: the SQL that addresses the table.
        capabilities: what the platform can do.
    """

    table: str
    capabilities: Capabilities


class Sign(Enum):
    """How a change shows in a tree of changes."""

    ADDED = "+"
    CHANGED = "~"
    REMOVED = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line that explains an action to a person; None on a side means there is nothing."""

    sign: Sign
    subject: str
    observed: str | None = None
    desired: str | None = None


def with_column(model: Table, name: str, change: Callable[[Column], Column]) -> Table:
    """Return a model with one of its columns changed; the model as it is if it has no such column."""
    columns = (change(column) if column.key == name.lower() else column for column in model.columns)
    return replace(model, columns=tuple(columns))


def with_property(model: Table, key: str, value: str | None) -> Table:
    """Return a model with one of its properties changed; None takes it away, unless it is a default."""
    kept = {name: text for name, text in model.table_properties.items() if name != key}
    return replace(model, table_properties=kept if value is None else {**kept, key: value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect(Generic[SomeAction]):
    """One part of a table that can be declared, compared and changed.

    Args:
        name: the aspect's name.
        action_types: the types of its actions; no two aspects share one.
        diff: yields the actions that bring the observed side to the desired one; empty when equal.
        render: turns all actions of one type and table into statements, as few as the platform allows.
        explain: turns one action into lines for people.
        accept: returns a model with the observed side of what an action would change.
        drift_kind: what somebody did if an action would bring a table back to what was applied.
        create: the aspect's part of CREATE TABLE.
        differences: how the two sides differ, an action per thing that does; the diff, unless that puts several
            into one action, or has actions that only make others possible.
    """

    name: str
    action_types: tuple[type[SomeAction], ...]
    diff: Callable[[Comparison], Iterable[SomeAction]]
    render: Callable[[Sequence[SomeAction], RenderContext], Iterable[str]]
    explain: Callable[[SomeAction], Iterable[Change]]
    accept: Callable[[Table, TableState, SomeAction], Table]
    drift_kind: Callable[[SomeAction], DriftKind]
    create: Callable[[Table, Capabilities], CreateClauses] = no_create_clauses
    differences: Callable[[Comparison], Iterable[SomeAction]] | None = None
