"""The interface of the modules in this folder, and the types that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import compress
from operator import attrgetter, ne
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

from delta_engine.actions import SomeAction
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import NO_POLICY, Ownership, Policy
from delta_engine.aspects.renames import NO_RENAMES, Renames, declares_renames, with_all_renames
from delta_engine.aspects.rights import Requirement
from delta_engine.backends.addressing import Addressing
from delta_engine.backends.capabilities import Capabilities, ColumnsPerStatement
from delta_engine.models import Column, Part, QualifiedName, Schema, SchemaName, Table
from delta_engine.models.nested_types import FieldPair, TypePair, type_differences
from delta_engine.models.types import DataType
from delta_engine.sql.tables import sql_schema
from delta_engine.state.states import SchemaState, TableState

_T = TypeVar("_T")

Securable: TypeAlias = Table | Schema
"""A model of either kind."""

SecurableState: TypeAlias = TableState | SchemaState
"""What exists, of either kind."""

Model_co = DefaultTypeVar("Model_co", bound=Securable, covariant=True, default=Table)
State_co = DefaultTypeVar("State_co", bound=SecurableState, covariant=True, default=TableState)
SomeModel = TypeVar("SomeModel", bound=Securable)
SomeState = TypeVar("SomeState", bound=SecurableState)

ColumnPair: TypeAlias = tuple[Column, Column]
"""A column on both sides, desired and observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Generic[Model_co, State_co]):
    """A model and the table or schema that it describes, with columns paired by name.

    Renamed columns and fields have their new names on every side. Keys and checks keep the old names, because a plan
    drops them before the rename and adds them after it.

    Args:
        last_applied: the model that this engine applied last, if any.
        attempted: the models of later runs that did not finish. Parts of them may exist.
        differing: the shared columns with any difference.
        fields: the differing fields inside shared columns. Each path starts with the column.
        types: the differing types of shared columns and inside them. Each path starts with the column.
    """

    desired: Model_co
    observed: State_co
    last_applied: Model_co | None
    attempted: tuple[Model_co, ...]
    policy: Policy
    differing: tuple[ColumnPair, ...] = ()
    added: tuple[Column, ...] = ()
    dropped: tuple[Column, ...] = ()
    renames: Renames = NO_RENAMES
    fields: tuple[FieldPair, ...] = ()
    types: tuple[TypePair, ...] = ()

    @classmethod
    def of(
        cls,
        desired: SomeModel,
        observed: SomeState,
        last_applied: SomeModel | None = None,
        policy: Policy = NO_POLICY,
        attempted: Sequence[SomeModel] = (),
    ) -> Comparison[SomeModel, SomeState]:
        """Pair the columns of both sides in model order, ignoring case. Schemas have no columns."""
        plain = Comparison(
            desired=desired,
            observed=observed,
            last_applied=last_applied,
            attempted=tuple(attempted),
            policy=policy,
        )
        if isinstance(desired, Schema) or isinstance(observed, SchemaState):
            return plain
        pairs = _paired(desired.columns, observed.columns)
        return (
            _with_columns(plain, pairs) if any(pairs) else plain
        )  # without a pair, nothing is renamed either

    @property
    def ours(self) -> tuple[Model_co, ...]:
        """The applied and attempted models. The engine may remove their parts."""
        return (*((self.last_applied,) if self.last_applied else ()), *self.attempted)

    def may_remove(self, names: Callable[[Model_co], object]) -> bool:
        """Whether the engine may remove an undeclared part: its own, or any under full ownership."""
        return self.policy.definitions is Ownership.FULL or self.is_ours(names)

    def is_ours(self, names: Callable[[Model_co], object]) -> bool:
        """Whether an applied or attempted model names a part."""
        return any(map(names, self.ours))

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """The renamed columns as pairs of present name and model name."""
        return self.renames.columns

    @property
    def shared(self) -> tuple[ColumnPair, ...]:
        """The columns of both sides, whether they differ or not."""
        if isinstance(self.desired, Schema) or isinstance(self.observed, SchemaState):
            return ()
        there = {column.key: column for column in self.observed.columns}
        return tuple((column, there[column.key]) for column in self.desired.columns if column.key in there)

    @property
    def has_equal_columns(self) -> bool:
        """Whether no column differs. A rename is a difference."""
        return not (self.differing or self.added or self.dropped)

    def drops_any(self, columns: Iterable[str]) -> bool:
        """Whether the plan drops one of the columns."""
        dropped = {column.key for column in self.dropped}
        return any(name.lower() in dropped for name in columns)

    @property
    def differing_or_new(self) -> tuple[ColumnPair, ...]:
        """The shared columns that differ, and the added ones paired with the result of ADD COLUMNS."""
        return (*self.differing, *((column, bare_column(column)) for column in self.added))


def _with_columns(plain: Comparison[Any, Any], pairs: _Paired) -> Comparison[Any, Any]:
    desired, renames = plain.desired, NO_RENAMES
    if declares_renames(desired):
        renames = Renames.of(desired, plain.observed)
        plain = replace(
            plain,
            observed=renames.applied_to(plain.observed),
            last_applied=plain.last_applied and with_all_renames(plain.last_applied, desired, renames),
            attempted=tuple(with_all_renames(model, desired, renames) for model in plain.attempted),
        )
        pairs = _paired(desired.columns, plain.observed.columns)
    is_about_columns = desired.is_about(Part.COLUMNS)
    found = tuple(_inside(pairs.differing))
    return replace(
        plain,
        differing=pairs.differing,
        added=pairs.added if is_about_columns else (),
        dropped=tuple(
            column for column in pairs.dropped if is_about_columns and column.key not in renames.contested
        ),
        renames=renames,
        fields=tuple(
            pair
            for pair in found
            if isinstance(pair, FieldPair) and (is_about_columns or (pair.desired and pair.observed))
        ),
        types=tuple(pair for pair in found if isinstance(pair, TypePair) and is_about_columns),
    )


AnyComparison: TypeAlias = Comparison[Securable, SecurableState]
"""A comparison of either kind, for aspects that tables and schemas share."""


def bare_column(column: Column) -> Column:
    """Return a column as ADD COLUMNS creates it, without the parts that other statements add."""
    return Column(column.name, column.data_type, column.is_nullable, column.comment)


_NAME = attrgetter("name")


class _Paired(NamedTuple):
    differing: tuple[ColumnPair, ...] = ()
    added: tuple[Column, ...] = ()
    dropped: tuple[Column, ...] = ()


def _paired(desired: tuple[Column, ...], observed: tuple[Column, ...]) -> _Paired:
    if desired == observed:  # most tables, most of the time
        return _Paired()
    if [*map(_NAME, desired)] == [*map(_NAME, observed)]:  # most others: nothing to look up
        return _Paired(tuple(compress(zip(desired, observed, strict=True), map(ne, desired, observed))))
    there = {column.key: column for column in observed}
    wanted = [(column.key, column) for column in desired]
    known = dict(wanted)
    shared = ((column, there[key]) for key, column in wanted if key in there)
    return _Paired(
        tuple(pair for pair in shared if pair[0] != pair[1]),
        tuple(column for key, column in wanted if key not in there),
        tuple(column for key, column in there.items() if key not in known),
    )


def _inside(pairs: Iterable[ColumnPair]) -> Iterator[FieldPair | TypePair]:
    for desired, observed in pairs:
        if desired.data_type is observed.data_type:  # most columns: a text is parsed once
            continue
        for pair in type_differences(observed.data_type, desired.data_type):
            yield replace(pair, path=(observed.name, *pair.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateClauses:
    """The contribution of an aspect to CREATE TABLE."""

    columns: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    comment: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    clauses: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderContext:
    """The inputs of statements besides the actions; a streaming table takes one column per statement."""

    name: QualifiedName
    addressing: Addressing
    capabilities: Capabilities
    is_streaming: bool = False

    @property
    def table(self) -> str:
        """The SQL that addresses the table."""
        return self.addressing.table(self.name)

    def together(self, groups: Iterable[Sequence[_T]]) -> Iterator[Sequence[_T]]:
        """Yield the changes of each ALTER COLUMN, merging columns where the platform allows."""
        takes_one = self.is_streaming or self.capabilities.columns_per_statement is ColumnsPerStatement.ONE
        for group in groups:
            if takes_one:
                yield from ([one] for one in group)
            elif group:
                yield group

    @property
    def securable(self) -> str:
        """The SQL that names the table in statements about tags, grants and owners."""
        return f"TABLE {self.table}"


@dataclass(frozen=True, slots=True)
class SchemaContext:
    """The inputs of statements about a schema besides the actions."""

    name: SchemaName

    @property
    def schema(self) -> str:
        """The SQL that addresses the schema."""
        return sql_schema(self.name.catalog, self.name.schema)

    @property
    def securable(self) -> str:
        """The SQL that names the schema in statements about tags, grants and owners."""
        return f"SCHEMA {self.schema}"


AnyContext: TypeAlias = RenderContext | SchemaContext
"""A context of either kind, for aspects that tables and schemas share."""


def no_create_clauses(_desired: Table, _context: RenderContext) -> CreateClauses:
    """Contribute nothing: the clause of another aspect covers this one."""
    return CreateClauses()


def no_statements(_actions: Sequence[object], _context: object) -> Iterable[str]:
    """Render nothing: a rule always refuses these actions."""
    return ()


def unchanged(model: SomeModel, _observed: object, _action: object) -> SomeModel:
    """Return the model unchanged: it does not declare the difference."""
    return model


class Sign(Enum):
    """The sign of a change in a tree of changes."""

    ADDED = "+"
    CHANGED = "~"
    REMOVED = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line that explains an action. None marks an absent side."""

    sign: Sign
    subject: str
    observed: str | None = None
    desired: str | None = None


def with_column(model: Table, name: str, change: Callable[[Column], Column]) -> Table:
    """Return a model with one column changed; the model itself if it lacks the column."""
    columns = (change(column) if column.key == name.lower() else column for column in model.columns)
    return replace(model, columns=tuple(columns))


def with_type(model: Table, name: str, change: Callable[[DataType], DataType]) -> Table:
    """Return a model with the type of one column changed."""
    return with_column(model, name, lambda column: replace(column, data_type=change(column.data_type)))


def with_property(model: Table, key: str, value: str | None) -> Table:
    """Return a model with one property changed. None removes it unless it is a default."""
    kept = {name: text for name, text in model.table_properties.items() if name != key}
    return replace(model, table_properties=kept if value is None else {**kept, key: value})


_Model = DefaultTypeVar("_Model", bound=Securable, default=Table)
_State = DefaultTypeVar("_State", bound=SecurableState, default=TableState)
_Context = DefaultTypeVar("_Context", bound=AnyContext, default=RenderContext)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect(Generic[SomeAction, _Model, _State, _Context]):
    """One part of a table or schema that can be declared, compared and changed.

    Args:
        part: the part that a model has to manage; None for an aspect that asks the model itself.
        actions: its action types with the right that their statements need; None for an action that a rule refuses.
        render: turns all actions of one phase into statements, as few as the platform allows.
        accept: returns a model with the observed side of an action.
        drift_kind: the kind of drift that an action would revert.
        is_of_columns: whether it reads columns only. It is skipped for tables whose columns all equal the model's.
        completes_create: whether a new table needs its statements after CREATE TABLE.
        differences: yields one action per difference. It defaults to the diff. An aspect sets it if its diff combines
            differences or has actions that only enable others.
    """

    name: str
    part: Part | None
    actions: Mapping[type[SomeAction], Requirement | None]
    diff: Callable[[Comparison[_Model, _State]], Iterable[SomeAction]]
    render: Callable[[Sequence[SomeAction], _Context], Iterable[str]] = no_statements
    explain: Callable[[SomeAction], Iterable[Change]]
    accept: Callable[[_Model, _State, SomeAction], _Model] = unchanged
    drift_kind: Callable[[SomeAction], DriftKind]
    is_of_columns: bool = False
    create: Callable[[Table, RenderContext], CreateClauses] = no_create_clauses
    completes_create: bool = False
    differences: Callable[[Comparison[_Model, _State]], Iterable[SomeAction]] | None = None

    @property
    def action_types(self) -> tuple[type[SomeAction], ...]:
        """The types of its actions."""
        return tuple(self.actions)


SharedAspect: TypeAlias = Aspect[SomeAction, Securable, SecurableState, AnyContext]
"""An aspect that tables and schemas share."""

SchemaAspect: TypeAlias = Aspect[SomeAction, Schema, SchemaState, SchemaContext]
"""An aspect of schemas alone."""
