"""The interface of the aspects, the rights of their statements, and the types that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from operator import eq
from typing import Any, Final, Generic, TypeAlias, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

from delta_engine.actions import SAFE, Action, Hazard, Name_co, SomeAction
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.comparison import Comparison, Owned, OwnedState
from delta_engine.aspects.facet import Facet
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities, ColumnsPerStatement
from delta_engine.models import (
    FunctionName,
    Part,
    QualifiedName,
    Schema,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    ViewName,
)
from delta_engine.models.nested_types import Path
from delta_engine.models.parts import ALL_PRIVILEGES
from delta_engine.models.types import DataType
from delta_engine.sql.tables import BINARY_COLLATION
from delta_engine.sql.text import sql_path
from delta_engine.state.states import SchemaState, SecurableState, TableState

_T = TypeVar("_T")
_Desired = TypeVar("_Desired")
_Observed = TypeVar("_Observed")
_Model = DefaultTypeVar("_Model", bound=Securable, default=Table)
_State = DefaultTypeVar("_State", bound=SecurableState, default=TableState)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClauses:
    """The contribution of an aspect to CREATE TABLE."""

    columns: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    clauses: tuple[str, ...] = ()
    cluster_by: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderContext(Generic[Name_co]):
    """The inputs of statements besides the actions; a streaming table takes one column per statement."""

    name: Name_co
    addressing: Addressing
    capabilities: Capabilities
    is_streaming: bool = False

    @property
    def table(self: RenderContext) -> str:
        """The SQL that addresses the table."""
        return self.addressing.table(self.name)

    @property
    def securable(self: OwnedContext) -> str:
        """The SQL that names the securable in statements about comments, tags, grants and owners."""
        name = self.name
        address = self.addressing.table(name) if isinstance(name, QualifiedName) else sql_path(name.parts)
        return f"{name.kind.upper()} {address}"

    @property
    def with_columns(self: OwnedContext) -> str:
        """The SQL that names a table or view in statements about its columns: those about views take TABLE."""
        return f"TABLE {sql_path(self.name.parts)}" if isinstance(self.name, ViewName) else self.securable

    @property
    def collation(self) -> tuple[str, ...]:
        """The clause of a new or replaced table against its schema's default collation, where the platform has one."""
        return (BINARY_COLLATION,) if self.capabilities.takes_default_collation else ()

    def together(self, groups: Iterable[Sequence[_T]]) -> Iterator[Sequence[_T]]:
        """Yield the changes of each ALTER COLUMN, merging columns where the platform allows."""
        takes_one = self.is_streaming or self.capabilities.columns_per_statement is ColumnsPerStatement.ONE
        for group in groups:
            if takes_one:
                yield from ([change] for change in group)
            elif group:
                yield group


AnyContext: TypeAlias = RenderContext[SecurableName]
"""A context of any kind."""

OwnedContext: TypeAlias = RenderContext[QualifiedName | SchemaName | FunctionName | ViewName]
"""A context of a securable with tags, an owner and grants."""


class Sign(Enum):
    """The sign of a change in a tree of changes."""

    ADDED = "+"
    CHANGED = "~"
    REMOVED = "-"


@dataclass(frozen=True, slots=True)
class Change:
    """One line that explains an action. None marks an absent side.

    Args:
        place: the column, or the path of the field inside it, with which the subject begins; empty for other subjects.
        types: the types with which the sides begin; None for a side without one.
        is_rename: whether the sides are two names of the same thing.
        note: what a reader of the plan has to know besides; drift does not show it.
    """

    subject: str
    observed: str | None = None
    desired: str | None = None
    place: Path = field(default=(), compare=False)
    types: tuple[DataType | None, DataType | None] = field(default=(None, None), compare=False)
    is_rename: bool = field(default=False, compare=False)
    note: str = field(default="", compare=False)

    @property
    def sign(self) -> Sign:
        """The sign that the absent side gives."""
        if self.observed is None:
            return Sign.ADDED
        return Sign.REMOVED if self.desired is None else Sign.CHANGED


@dataclass(frozen=True, slots=True)
class EntryChange:
    """One tag or property, both sides. None marks a side without it."""

    key: str
    desired: str | None
    observed: str | None

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"{self.key} already has this value")


def explain_entries(what: str, entries: Iterable[EntryChange]) -> Iterator[Change]:
    """Yield a line per tag or property."""
    for entry in entries:
        observed, desired = (
            None if value is None else repr(value) for value in (entry.observed, entry.desired)
        )
        yield Change(f"{what} {entry.key}", observed, desired)


def entry_keys(entries: Iterable[EntryChange]) -> list[str]:
    """Return the keys of entries."""
    return [entry.key for entry in entries]


def desired_values(entries: Iterable[EntryChange]) -> dict[str, str]:
    """Return the desired values of entries that are not removed, by key."""
    return {entry.key: entry.desired for entry in entries if entry.desired is not None}


def removed_entries(values: Iterable[tuple[str, str]]) -> tuple[EntryChange, ...]:
    """Return the removals of entries, in the order of their keys and values."""
    return tuple(EntryChange(key, None, value) for key, value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect(Generic[SomeAction, _Model, _State]):
    """One part of a securable that can be declared, compared and changed.

    Args:
        part: the part that a model has to manage; None for an aspect that asks the model itself.
        actions: its action types with the right that their statements need; None for an action that a rule refuses.
        render: turns all actions of one phase into statements, as few as the platform allows. The default is for
            actions that a rule always refuses.
        accept: returns a model with the observed side of an action. By default, the model does not declare it.
        drift_kind: the kind of drift that an action would revert.
        is_in_history: whether Delta's history has it, so that RESTORE brings it back.
        is_of_columns: whether it reads columns only. It is skipped for tables whose columns all equal the model's.
        create: its contribution to CREATE TABLE. By default, the clause of another aspect covers it.
        definition: the fields of a model that its action replaces as a whole.
        completes_create: whether a new table needs its statements after CREATE TABLE.
        differences: yields one action per difference. It defaults to the diff. An aspect sets it if its diff combines
            differences or has actions that only enable others.
    """

    name: str
    part: Part | None
    actions: Mapping[type[SomeAction], Requirement | None]
    diff: Callable[[Comparison[_Model, _State]], Iterable[SomeAction]]
    render: Callable[[Sequence[SomeAction], RenderContext[Any]], Iterable[str]] = lambda _actions, _context: ()
    explain: Callable[[SomeAction], Iterable[Change]]
    accept: Callable[[_Model, _State, SomeAction], _Model] = lambda model, _observed, _action: model
    drift_kind: Callable[[SomeAction], DriftKind]
    is_in_history: bool = True
    is_of_columns: bool = False
    create: Callable[[Table, RenderContext], CreateClauses] = lambda _desired, _context: CreateClauses()
    completes_create: bool = False
    definition: tuple[str, ...] = ()
    differences: Callable[[Comparison[_Model, _State]], Iterable[SomeAction]] | None = None


SharedAspect: TypeAlias = "Aspect[SomeAction, Owned, OwnedState]"
"""An aspect that tables, schemas, functions and views share."""

SchemaAspect: TypeAlias = Aspect[SomeAction, Schema, SchemaState]
"""An aspect of schemas alone."""


@dataclass(frozen=True, slots=True)
class EntriesAction(Action):
    """An action on entries of a mapping, such as tags, at least one, sorted by key."""

    entries: tuple[EntryChange, ...]

    def __post_init__(self) -> None:
        if not self.entries:
            raise ValueError(f"{type(self).__name__} needs at least one entry")


@dataclass(frozen=True, slots=True)
class ConstraintAdd(Generic[_Desired, _Observed]):
    """An action that adds a constraint; `replaced` is the former one of that name."""

    desired: _Desired
    replaced: _Observed | None = None


@dataclass(frozen=True, slots=True)
class ConstraintDrop(Generic[_Observed]):
    """An action that drops a constraint.

    Args:
        is_remade: whether the plan adds it again.
        is_ours: whether the engine added it, or the model declares it.
    """

    observed: _Observed
    is_remade: bool = False
    is_ours: bool = True

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Readers may rely on the constraint, unless the plan adds it again."""
        return SAFE if self.is_remade else (Hazard.BREAKS_READERS,)


@dataclass(frozen=True, slots=True)
class ValueAction(Action, Generic[_Desired, _Observed]):
    """An action that gives a value of the catalog the model's value; each kind has its class, phase and hazards."""

    desired: _Desired
    observed: _Observed

    def __post_init__(self) -> None:
        if self.is_no_op():
            raise ValueError(f"{type(self).__name__}: the value is {self.desired} already")

    def is_no_op(self) -> bool:
        """Whether the catalog has the value already."""
        return self.desired == self.observed


@dataclass(frozen=True, slots=True)
class ColumnValueAction(Action, Generic[_Desired, _Observed]):
    """An action that gives a value of a column in the catalog the model's value."""

    name: str
    desired: _Desired
    observed: _Observed

    def __post_init__(self) -> None:
        if self.is_no_op():
            raise ValueError(f"{type(self).__name__}: the value of {self.name} is {self.desired} already")

    def is_no_op(self) -> bool:
        """Whether the catalog has the value already."""
        return self.desired == self.observed


SomeValueAction = TypeVar("SomeValueAction", bound=ValueAction[Any, Any])


def value_aspect(
    action: type[SomeValueAction],
    facet: Facet[_Model, _State, Any],
    requirement: Requirement | None,
    *,
    name: str,
    is_same: Callable[[Any, Any], bool] = eq,
    diff: Callable[[Comparison[_Model, _State]], Iterable[SomeValueAction]] | None = None,
    statement: Callable[[str, Any], str] | None = None,
    described: Callable[[Any], str | None] = repr,
    drift_kind: DriftKind,
    is_in_history: bool = True,
    create: Callable[[Table], CreateClauses] = lambda _desired: CreateClauses(),
    completes_create: bool = False,
) -> Aspect[SomeValueAction, _Model, _State]:
    """Return the aspect of one value of a securable, with one action, made from the desired and observed values.

    Args:
        diff: the default leaves the value of a model without one unmanaged.
        statement: returns the statement for the SQL that names the securable, and the desired value; None if a rule
            refuses the action.
        described: returns the text of a value for reports.
    """

    def changed(comparison: Comparison[_Model, _State]) -> Iterable[SomeValueAction]:
        assert facet.observed is not None
        desired, observed = facet.declared(comparison.desired), facet.observed(comparison.observed)
        if desired is not None and not is_same(desired, observed):
            yield action(desired, observed)

    def accepted(model: Any, observed: Any, _action: SomeValueAction) -> Any:
        assert facet.observed is not None
        return replace(model, **{facet.attribute: facet.observed(observed)})

    def render(actions: Sequence[SomeValueAction], context: OwnedContext) -> Iterable[str]:
        return [statement(context.securable, action.desired) for action in actions] if statement else ()

    return Aspect(
        name=name,
        part=facet.part,
        actions={action: requirement},
        diff=diff or changed,
        render=render,
        explain=lambda action: [Change(name, described(action.observed), described(action.desired))],
        accept=accepted,
        drift_kind=lambda _action: drift_kind,
        is_in_history=is_in_history,
        create=lambda desired, _context: create(desired),
        completes_create=completes_create,
    )


class Right(Enum):
    """Privileges on an object or its parents. Any one suffices, as does ownership; the first is the one to request."""

    SELECT = ("SELECT", ALL_PRIVILEGES)
    MODIFY = ("MODIFY", ALL_PRIVILEGES)
    APPLY_TAG = ("APPLY TAG", ALL_PRIVILEGES)
    MANAGE = ("MANAGE",)
    USE_CATALOG = ("USE CATALOG", ALL_PRIVILEGES)
    USE_SCHEMA = ("USE SCHEMA", ALL_PRIVILEGES)
    CREATE_SCHEMA = ("CREATE SCHEMA", ALL_PRIVILEGES)
    CREATE_TABLE = ("CREATE TABLE", ALL_PRIVILEGES)
    CREATE_FUNCTION = ("CREATE FUNCTION", ALL_PRIVILEGES)
    EXECUTE = ("EXECUTE", ALL_PRIVILEGES)

    @property
    def privilege(self) -> str:
        """The privilege to request."""
        privilege: str = self.value[0]
        return privilege


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A kind of statement and the right that it needs, from docs.databricks.com; docs/statements.md lists them.

    Args:
        demands: the words of the page `source`.
        owners_above: whether owning a parent suffices.
        of_schemas: the requirement on a schema, if a shared aspect needs another right there.
    """

    statement: str
    right: Right
    demands: str
    source: str
    owners_above: bool = False
    of_schemas: Requirement | None = None


ALTER_TABLE: Final = "ALTER TABLE"
WITH_FUNCTION: Final = "ownership or `MANAGE`, and `EXECUTE` on the function"


def takes_modify(statement: str, source: str = ALTER_TABLE) -> Requirement:
    """Return the requirement of a statement that needs MODIFY."""
    return Requirement(statement=statement, right=Right.MODIFY, demands="`MODIFY`", source=source)


def takes_ownership(statement: str) -> Requirement:
    """Return the requirement of "all other operations" on the page on ALTER TABLE."""
    return takes_manage(statement, ALTER_TABLE, "ownership; `MANAGE` may transfer it")


def takes_manage(statement: str, source: str, demands: str = "ownership or `MANAGE`") -> Requirement:
    """Return the requirement of a statement that needs ownership or MANAGE."""
    return Requirement(statement=statement, right=Right.MANAGE, demands=demands, source=source)
