"""A model and the securable that it describes, with columns paired by name and pending renames applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

from delta_engine.actions.policy import NO_POLICY, Ownership, Policy
from delta_engine.aspects.conversions import (
    NO_PROGRESS,
    Conversion,
    Progress,
    conversions_of,
    filled_columns,
    is_reserved,
    set_aside,
)
from delta_engine.aspects.renames import (
    NO_RENAMES,
    Renames,
    declared_renames,
    declares_renames,
    with_all_renames,
)
from delta_engine.models import Column, Function, Part, Schema, Securable, Table, View, ViewColumn
from delta_engine.models.nested_types import (
    FieldPair,
    Path,
    TypePair,
    type_differences,
    within_structs,
)
from delta_engine.sql.expressions import is_same_expression
from delta_engine.sql.view_queries import is_same_query, named_columns
from delta_engine.state.function_states import FunctionState
from delta_engine.state.states import SchemaState, SecurableState, TableState
from delta_engine.state.view_states import ViewState

Owned: TypeAlias = Table | Schema | Function | View
"""A model with tags, an owner and grants; policies have none of them."""

OwnedState: TypeAlias = TableState | SchemaState | FunctionState | ViewState
"""What exists of a securable with tags, an owner and grants."""

Model_co = DefaultTypeVar("Model_co", bound=Securable, covariant=True, default=Table)
State_co = DefaultTypeVar("State_co", bound=SecurableState, covariant=True, default=TableState)
AnyColumn = TypeVar("AnyColumn", Column, ViewColumn)
_Model = TypeVar("_Model", bound=Securable)
_State = TypeVar("_State", bound=SecurableState)


class RecordedModels(Protocol[Model_co]):
    """The models of a record: applied, with unmanaged parts, and attempted."""

    @property
    def declared(self) -> Model_co | None:
        """The model that was applied last."""

    @property
    def baseline(self) -> Model_co | None:
        """The securable as the last apply left it."""

    @property
    def attempted(self) -> tuple[Model_co, ...]:
        """The models of later runs that did not finish."""


ColumnPair: TypeAlias = tuple[Column, Column]
"""A column on both sides, desired and observed."""

_USING = attrgetter("using")


@dataclass(slots=True, kw_only=True)  # making frozen ones takes a tenth of planning
class Comparison(Generic[Model_co, State_co]):
    """A model and the securable that it describes, with columns paired by name.

    Renamed columns and fields have their new names on every side. Keys and checks keep the old names, because a plan
    drops them before the rename and adds them after it.

    Args:
        declared: the model that was applied last, as recorded; None without one.
        baseline: the securable as that apply left it.
        attempted: the models of later runs that did not finish. Parts of them may exist.
        differing: the shared columns with any difference.
        fields: the differing fields inside shared columns. Each path starts with the column.
        types: the differing types of shared columns and inside them. Each path starts with the column.
        conversions: columns whose type changes through `using`. While one is pending, its column is in no other field,
            unless it is abandoned.
        filled: columns whose rows without a value get one from `using`.
    """

    desired: Model_co
    observed: State_co
    policy: Policy
    declared: Model_co | None = None
    baseline: Model_co | None = None
    attempted: tuple[Model_co, ...] = ()
    differing: tuple[ColumnPair, ...] = ()
    added: tuple[Column, ...] = ()
    dropped: tuple[Column, ...] = ()
    renames: Renames = NO_RENAMES
    fields: tuple[FieldPair, ...] = ()
    types: tuple[TypePair, ...] = ()
    conversions: tuple[Conversion, ...] = ()
    filled: tuple[Column, ...] = ()

    @classmethod
    def of(
        cls,
        desired: _Model,
        observed: _State,
        record: RecordedModels[_Model] | None = None,
        policy: Policy = NO_POLICY,
    ) -> Comparison[_Model, _State]:
        """Pair the columns of both sides in model order, ignoring case. Only tables and views have columns."""
        plain = Comparison(
            desired=desired,
            observed=observed,
            policy=policy,
            declared=record.declared if record is not None else None,
            baseline=record.baseline if record is not None else None,
            attempted=record.attempted if record is not None else (),
        )
        if isinstance(desired, View):
            return _with_documented_columns(plain)
        if desired.columns == observed.columns:  # most tables, most of the time
            return plain
        pairs = _paired(desired.columns, observed.columns)  # type: ignore[arg-type]  # of tables
        return _with_columns(plain, pairs) if any(pairs) else plain  # without a pair, nothing is renamed

    @property
    def ours(self) -> tuple[Model_co, ...]:
        """The applied and attempted models. The engine may remove their parts."""
        return (*((self.declared,) if self.declared else ()), *self.attempted)

    def may_remove(self, names: Callable[[Model_co], object]) -> bool:
        """Whether the engine may remove an undeclared part: its own, or any under full ownership."""
        return self.policy.definitions is Ownership.FULL or self.is_ours(names)

    def is_ours(self, names: Callable[[Model_co], object]) -> bool:
        """Whether an applied or attempted model names a part."""
        return any(map(names, self.ours))

    def clears(self, names: Callable[[Model_co], object], column: str | None = None) -> bool:
        """Whether the engine may clear a value that the model leaves empty.

        In addition to what `may_remove` allows, that is a value that the baseline lacks: it was set later. The
        baseline of a model of some parts of a table does not know the others.

        Args:
            column: the key of the column that has the value; None for a value of the table.
        """
        if self.may_remove(names):
            return True
        if self.baseline is None or names(self.baseline):
            return False
        if isinstance(self.baseline, Table) and self.baseline.manages is not None:
            return False
        return column is None or any(column == known_column.key for known_column in self.baseline.columns)

    @property
    def shared(self) -> tuple[ColumnPair, ...]:
        """The columns of both sides, whether they differ or not."""
        there: Mapping[str, Any] = {column.key: column for column in self.observed.columns}
        desired: Iterable[Any] = self.desired.columns
        return tuple((column, there[column.key]) for column in desired if column.key in there)

    @property
    def has_equal_columns(self) -> bool:
        """Whether no column differs. A rename is a difference."""
        return not (self.differing or self.added or self.dropped or self.conversions)

    @property
    def has_equal_structure(self) -> bool:
        """Whether no column or field is new, dropped, renamed or of another type."""
        changed = self.added or self.dropped or self.renames or self.fields or self.types or self.conversions
        return not changed

    @property
    def converted(self) -> tuple[Conversion, ...]:
        """The pending conversions: other parts treat the column as a new one in the place of the former one."""
        if not self.conversions:
            return ()
        return tuple(conversion for conversion in self.conversions if conversion.is_due)

    def drops_any(self, columns: Iterable[str]) -> bool:
        """Whether the plan drops one of the columns."""
        dropped = {column.key for column in self.dropped}
        return any(name.lower() in dropped for name in columns)

    @property
    def differing_or_new(self) -> tuple[ColumnPair, ...]:
        """The shared columns that differ, and the new ones paired with the result of ADD COLUMNS."""
        if self.has_equal_structure:
            return self.differing
        converted = (
            (conversion.desired, replace(bare_column(conversion.desired), is_nullable=True))
            for conversion in self.converted
        )
        return (*self.differing, *((column, bare_column(column)) for column in self.added), *converted)


AnyComparison: TypeAlias = Comparison[Securable, SecurableState]
"""A comparison of any kind."""

OwnedComparison: TypeAlias = Comparison[Owned, OwnedState]
"""A comparison for aspects that tables, schemas and functions share."""


def bare_column(column: AnyColumn) -> AnyColumn:
    """Return a column as ADD COLUMNS or the query of a view makes it, without the parts that statements add."""
    if isinstance(column, ViewColumn):
        return ViewColumn(column.name)
    return Column(column.name, column.data_type, column.is_nullable, column.comment)


def changed_defaults(comparison: Comparison) -> Iterator[ColumnPair]:
    """Yield the columns whose defaults differ by more than spelling."""
    for desired, observed in comparison.differing_or_new:
        default, other = desired.default, observed.default
        if default != other and (default is None or other is None or not is_same_expression(default, other)):
            yield desired, observed


def lost_places(comparison: Comparison) -> Iterator[Path]:
    """Yield the dropped and renamed paths, by present names: expressions can no longer read them."""
    yield from ((former,) for former in comparison.renames.columns)
    yield from ((column.name,) for column in comparison.dropped)
    renamed = [(*new[:-1], old[-1]) for old, new in comparison.renames.fields.items()]
    dropped = [pair.path for pair in comparison.fields if pair.desired is None]
    yield from _with_dots(comparison, [*renamed, *dropped])


def retyped_places(comparison: Comparison) -> Iterator[Path]:
    """Yield the paths whose type changes, by present names."""
    yield from ((conversion.observed.name,) for conversion in comparison.converted)
    yield from _with_dots(comparison, [pair.path for pair in comparison.types])


def _with_dots(comparison: Comparison, places: Sequence[Path]) -> Iterator[Path]:
    """Yield paths by present names, as far as SQL has a dotted notation."""
    if not places:
        return
    former = comparison.renames.former_names
    types = {column.key: column.data_type for _, column in comparison.shared}
    for name, *inside in places:
        yield (former.get(name.lower(), name), *within_structs(types[name.lower()], tuple(inside)))


class _Paired(NamedTuple):
    differing: tuple[ColumnPair, ...] = ()
    added: tuple[Column, ...] = ()
    dropped: tuple[Column, ...] = ()


def _paired(desired: tuple[Column, ...], observed: tuple[Column, ...]) -> _Paired:
    if len(desired) == len(observed):
        differing = []
        for column, other in zip(desired, observed, strict=True):
            if column == other:  # without `!=`, which takes longer
                continue
            differing.append((column, other))
        if all(column.name == other.name for column, other in differing):  # most tables: nothing to look up
            return _Paired(tuple(differing))
    there = {column.key: column for column in observed}
    keyed = [(column.key, column) for column in desired]
    declared = dict(keyed)
    shared = ((column, there[key]) for key, column in keyed if key in there)
    return _Paired(
        tuple(pair for pair in shared if pair[0] != pair[1]),
        tuple(column for key, column in keyed if key not in there),
        tuple(column for key, column in there.items() if key not in declared),
    )


def _with_documented_columns(plain: Comparison[Any, Any]) -> Comparison[Any, Any]:
    """Pair the columns that a view has and keeps with what its model documents of them, which may be nothing.

    The comments of a view that stops evolving are those of what its former query read, and count as none.
    """
    documented = {column.key: column for column in plain.desired.columns}
    kept = _kept_columns(plain) | documented.keys()
    stays = plain.desired.evolves or plain.desired.schema_mode is None
    ends_evolution = plain.observed.evolves and not stays
    pairs = (
        (
            documented.pop(column.key, bare_column(column)),
            replace(column, comment="") if ends_evolution else column,
        )
        for column in plain.observed.columns
        if column.key in kept
    )
    differing = tuple(pair for pair in pairs if pair[0] != pair[1])
    return replace(plain, differing=differing, added=tuple(documented.values()))


def _kept_columns(plain: Comparison[Any, Any]) -> Set[str]:
    """Return the columns of a view that are certain to stay when it gets its declared query.

    A query that the platform hides is the one that was applied last.
    """
    desired, observed = plain.desired, plain.observed
    hidden = (plain.declared or desired).query
    is_same = is_same_query(desired.query, hidden if observed.query is None else observed.query)
    if is_same and not (desired.evolves or observed.evolves):
        return {column.key for column in observed.columns}
    return {name.lower() for name in named_columns(desired.query) or ()}


def _with_columns(plain: Comparison[Any, Any], pairs: _Paired) -> Comparison[Any, Any]:
    desired, renames = plain.desired, NO_RENAMES
    contested: set[str] = set()  # a rename would have to drop them
    progress: Mapping[str, Progress] = NO_PROGRESS
    if any(map(is_reserved, pairs.dropped)):
        observed, progress = set_aside(plain.observed, desired)
        plain = replace(plain, observed=observed)
        pairs = _paired(desired.columns, observed.columns)
    if declares_renames(desired):
        renames, both_exist = declared_renames(desired, plain.observed)
        contested = {former[0].lower() for former, _ in both_exist if len(former) == 1}
        new_keys = {former.lower(): name.lower() for former, name in renames.columns.items()}
        progress = {new_keys.get(key, key): begun for key, begun in progress.items()}
        plain = replace(
            plain,
            observed=renames.applied_to(plain.observed),
            declared=plain.declared and with_all_renames(plain.declared, desired),
            baseline=plain.baseline and with_all_renames(plain.baseline, desired),
            attempted=tuple(with_all_renames(model, desired) for model in plain.attempted),
        )
        pairs = _paired(desired.columns, plain.observed.columns)
    is_about_columns = desired.is_about(Part.COLUMNS)
    conversions: tuple[Conversion, ...] = ()
    filled: tuple[Column, ...] = ()
    if progress or (is_about_columns and any(map(_USING, desired.columns))):
        conversions = tuple(conversions_of(desired, plain.observed, progress))
        going_on = (conversion for conversion in conversions if not conversion.is_abandoned)
        begun = {conversion.desired.key for conversion in going_on}  # filled from their former columns
        in_place = tuple(pair for pair in pairs.differing if pair[0].key not in begun)
        filled = tuple(filled_columns(plain.declared, plain.attempted, pairs.added, in_place))
        converted = {conversion.observed.key for conversion in conversions if conversion.is_due}
        pairs = pairs._replace(
            differing=tuple(pair for pair in pairs.differing if pair[0].key not in converted)
        )
    inner_pairs = tuple(_inside(pairs.differing))
    return replace(
        plain,
        differing=pairs.differing,
        added=pairs.added if is_about_columns else (),
        dropped=tuple(column for column in pairs.dropped if is_about_columns and column.key not in contested),
        renames=renames,
        fields=tuple(
            pair
            for pair in inner_pairs
            if isinstance(pair, FieldPair) and (is_about_columns or (pair.desired and pair.observed))
        ),
        types=tuple(pair for pair in inner_pairs if isinstance(pair, TypePair) and is_about_columns),
        conversions=conversions,
        filled=filled,
    )


def _inside(pairs: Iterable[ColumnPair]) -> Iterator[FieldPair | TypePair]:
    for desired, observed in pairs:
        if desired.data_type is observed.data_type:  # most columns: a text is parsed once
            continue
        for pair in type_differences(observed.data_type, desired.data_type):
            yield replace(pair, path=(observed.name, *pair.path))
