"""What an aspect is: the shape of one room in this folder, and the words all rooms share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Generic

from delta_engine.actions import SomeAction
from delta_engine.addressing import Addressing
from delta_engine.capabilities import Capabilities
from delta_engine.drift_policy import DriftKind
from delta_engine.models import Column, Part, PrimaryKey, QualifiedName, Table
from delta_engine.policy import NO_POLICY, Policy
from delta_engine.state.states import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A model beside the table it describes, with their columns paired by name.

    Columns that a plan renames have their new names on every side, but for keys and checks: those are
    dropped before a rename, and added after it.

    Args:
        desired: the model.
        observed: the table as it is.
        last_applied: the model that this engine applied last, if it ever did.
        policy: whose the things are that the model does not name.
        shared: the columns of both sides, desired and observed.
        added: the model's columns that the table lacks.
        dropped: the table's columns that the model lacks.
        renamed: the columns that get another name: the names so far, and as the model has them.
    """

    desired: Table
    observed: TableState
    last_applied: Table | None
    policy: Policy
    shared: tuple[tuple[Column, Column], ...]
    added: tuple[Column, ...]
    dropped: tuple[Column, ...]
    renamed: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls,
        desired: Table,
        observed: TableState,
        last_applied: Table | None = None,
        policy: Policy = NO_POLICY,
    ) -> Comparison:
        """Pair the columns of both sides, without regard to case, in the model's order."""
        renamed = _renamed(desired, observed)
        if renamed:
            names = {former.lower(): name for former, name in renamed}
            observed = _state_with_renames(observed, names)
            last_applied = last_applied and with_renames(last_applied, names)
        by_key = {column.key: column for column in observed.columns}
        wanted = {column.key for column in desired.columns}
        owns_columns = desired.is_about(Part.COLUMNS)
        return cls(
            desired=desired,
            observed=observed,
            last_applied=last_applied,
            policy=policy,
            shared=tuple((column, by_key[column.key]) for column in desired.columns if column.key in by_key),
            added=tuple(column for column in desired.columns if owns_columns and column.key not in by_key),
            dropped=tuple(column for column in observed.columns if owns_columns and column.key not in wanted),
            renamed=renamed,
        )

    @property
    def with_new_columns(self) -> tuple[tuple[Column, Column], ...]:
        """The shared columns, and those to add beside what adding them leaves: nothing but name, type and comment."""
        return (*self.shared, *((column, bare_column(column)) for column in self.added))


def bare_column(column: Column) -> Column:
    """Return a column as ADD COLUMNS leaves it, without what other statements have to add."""
    return Column(column.name, column.data_type, column.is_nullable, column.comment)


def with_renames(model: Table, renames: Mapping[str, str]) -> Table:
    """Return a model with columns renamed, wherever it names them.

    Args:
        model: the model.
        renames: new names by old ones; what the model does not have is left out.
    """
    if not renames:
        return model
    new_names = {old.lower(): new for old, new in renames.items()}
    key = model.primary_key
    return replace(
        model,
        columns=_with_new_names(model.columns, new_names),
        primary_key=PrimaryKey(_new_names(key.columns, new_names), key.name, key.rely) if key else None,
        foreign_keys=tuple(
            replace(foreign_key, columns=_new_names(foreign_key.columns, new_names))
            for foreign_key in model.foreign_keys
        ),
        cluster_by=_new_names(model.cluster_by, new_names),
        partitioned_by=_new_names(model.partitioned_by, new_names),
    )


def _renamed(desired: Table, observed: TableState) -> tuple[tuple[str, str], ...]:
    """Return the former and new names of columns whose rename is not done yet."""
    present = {column.key: column.name for column in observed.columns}
    wanted = {column.key for column in desired.columns}
    return tuple(
        (present[former], column.name)
        for column in desired.columns
        for former in [(column.renamed_from or "").lower()]
        if former in present and column.key not in present and former not in wanted
    )


def _state_with_renames(observed: TableState, new_names: Mapping[str, str]) -> TableState:
    return replace(
        observed,
        columns=_with_new_names(observed.columns, new_names),
        cluster_by=_new_names(observed.cluster_by, new_names),
        partitioned_by=_new_names(observed.partitioned_by, new_names),
    )


def _with_new_names(columns: Iterable[Column], new_names: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(replace(column, name=new_names.get(column.key, column.name)) for column in columns)


def _new_names(names: Iterable[str], new_names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(new_names.get(name.lower(), name) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClauses:
    """What an aspect contributes to CREATE TABLE."""

    columns: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    clauses: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderContext:
    """What statements need besides the actions.

    Args:
        name: the table.
        addressing: how SQL addresses it, and others.
        capabilities: what the platform can do.
        is_streaming: whether it is a streaming table, which takes one column in a statement.
    """

    name: QualifiedName
    addressing: Addressing
    capabilities: Capabilities
    is_streaming: bool = False

    @property
    def table(self) -> str:
        """The SQL that addresses the table."""
        return self.addressing.table(self.name)


def no_create_clauses(_desired: Table, _context: RenderContext) -> CreateClauses:
    """Contribute nothing: for aspects whose part another aspect's clause already says."""
    return CreateClauses()


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
        part: which part of a table it belongs to, for models that are about some parts only.
        action_types: the types of its actions; no two aspects share one.
        diff: yields the actions that bring the observed side to the desired one; empty when equal.
        render: turns all actions of one type and table into statements, as few as the platform allows.
        explain: turns one action into lines for people.
        accept: returns a model with the observed side of what an action would change.
        drift_kind: what somebody did if an action would bring a table back to what was applied.
        create: the aspect's part of CREATE TABLE.
        completes_create: whether its part of a new table takes statements after CREATE TABLE: its diff against a
            table that has nothing of it.
        differences: how the two sides differ, an action per thing that does; the diff, unless that puts several
            into one action, or has actions that only make others possible.
    """

    name: str
    part: Part
    action_types: tuple[type[SomeAction], ...]
    diff: Callable[[Comparison], Iterable[SomeAction]]
    render: Callable[[Sequence[SomeAction], RenderContext], Iterable[str]]
    explain: Callable[[SomeAction], Iterable[Change]]
    accept: Callable[[Table, TableState, SomeAction], Table]
    drift_kind: Callable[[SomeAction], DriftKind]
    create: Callable[[Table, RenderContext], CreateClauses] = no_create_clauses
    completes_create: bool = False
    differences: Callable[[Comparison], Iterable[SomeAction]] | None = None
