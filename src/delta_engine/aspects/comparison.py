"""A model and the table or schema that it describes, with columns paired by name and pending renames applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import attrgetter, ne
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

from delta_engine.actions.policy import NO_POLICY, Ownership, Policy
from delta_engine.models import Column, Part, PrimaryKey, Schema, Table
from delta_engine.models.nested_types import (
    FieldPair,
    FieldRename,
    Path,
    TypePair,
    field_renames,
    type_differences,
    with_field_renamed,
    within_structs,
)
from delta_engine.models.record import Record
from delta_engine.sql.expressions import is_same_expression
from delta_engine.state.states import SchemaState, TableState

Securable: TypeAlias = Table | Schema
"""A model of either kind."""

SecurableState: TypeAlias = TableState | SchemaState
"""What exists, of either kind."""

Model_co = DefaultTypeVar("Model_co", bound=Securable, covariant=True, default=Table)
State_co = DefaultTypeVar("State_co", bound=SecurableState, covariant=True, default=TableState)
_Model = TypeVar("_Model", bound=Securable)
_State = TypeVar("_State", bound=SecurableState)

ColumnPair: TypeAlias = tuple[Column, Column]
"""A column on both sides, desired and observed."""

_NAME, _FORMER_NAME, _FORMER_FIELD_NAMES = map(attrgetter, ("name", "renamed_from", "renamed_fields"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Renames:
    """The declared renames that are pending.

    Args:
        columns: pairs of present name and model name.
        fields: the fields inside columns. Their paths start with the column's new name.
        clashes: pairs of former and new names that both exist: a rename would lose the data of one.
    """

    columns: tuple[tuple[str, str], ...] = ()
    fields: tuple[FieldRename, ...] = ()
    clashes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, desired: Table, observed: TableState) -> Renames:
        """Find the former names that a table still has; none for a model that does not manage columns."""
        if not desired.is_about(Part.COLUMNS) or not declares_renames(desired):
            return NO_RENAMES
        present = {column.key: column for column in observed.columns}
        wanted = {column.key for column in desired.columns}
        found = [
            (present[column.renamed_from.lower()].name, column)
            for column in desired.columns
            if column.renamed_from
            and column.renamed_from.lower() in present
            and column.renamed_from.lower() not in wanted
        ]
        columns = {former: column.name for former, column in found if column.key not in present}
        return cls(
            columns=tuple(columns.items()),
            fields=tuple(_fields(desired, _with_new_names(observed.columns, _by_key(columns)))),
            clashes=tuple(
                (former, present[column.key].name) for former, column in found if column.key in present
            ),
        )

    def applied_to(self, observed: TableState) -> TableState:
        """Return the state with the new names, except in keys and checks."""
        names = _by_key(dict(self.columns))
        if not names and not self.fields:
            return observed
        return replace(
            observed,
            columns=self.applied_to_fields(_with_new_names(observed.columns, names)),
            cluster_by=_new_names(observed.cluster_by, names),
            partitioned_by=_new_names(observed.partitioned_by, names),
            not_null_checks=_new_names(observed.not_null_checks, names),
        )

    def applied_to_fields(self, columns: Iterable[Column]) -> tuple[Column, ...]:
        """Return columns with the new names of their fields."""
        return tuple(map(self._with_new_fields, columns))

    def _with_new_fields(self, column: Column) -> Column:
        for rename in self.fields:
            if rename.path[0].lower() == column.key and not rename.both_exist:
                inside = replace(rename, path=rename.path[1:])
                column = replace(column, data_type=with_field_renamed(column.data_type, inside))
        return column


NO_RENAMES = Renames()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Generic[Model_co, State_co]):
    """A model and the table or schema that it describes, with columns paired by name.

    Renamed columns and fields have their new names on every side. Keys and checks keep the old names, because a plan
    drops them before the rename and adds them after it.

    Args:
        record: what the deployment state has of it.
        differing: the shared columns with any difference.
        fields: the differing fields inside shared columns. Each path starts with the column.
        types: the differing types of shared columns and inside them. Each path starts with the column.
    """

    desired: Model_co
    observed: State_co
    record: Record[Model_co]
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
        desired: _Model,
        observed: _State,
        record: Record[_Model] | None = None,
        policy: Policy = NO_POLICY,
    ) -> Comparison[_Model, _State]:
        """Pair the columns of both sides in model order, ignoring case. Schemas have no columns."""
        plain = Comparison(desired=desired, observed=observed, record=record or Record(), policy=policy)
        if isinstance(desired, Schema) or isinstance(observed, SchemaState):
            return plain
        pairs = _paired(desired.columns, observed.columns)
        return _with_columns(plain, pairs) if any(pairs) else plain  # without a pair, nothing is renamed

    def may_remove(self, names: Callable[[Model_co], object]) -> bool:
        """Whether the engine may remove an undeclared part: its own, or any under full ownership."""
        return self.policy.definitions is Ownership.FULL or self.is_ours(names)

    def is_ours(self, names: Callable[[Model_co], object]) -> bool:
        """Whether an applied or attempted model names a part."""
        return any(map(names, self.record.ours))

    def clears(self, names: Callable[[Model_co], object], column: str | None = None) -> bool:
        """Whether the engine may clear a value that the model leaves empty.

        Beside what `may_remove` allows, that is a value that the baseline has not: it was set later. The
        baseline of a model of some parts of a table does not know the others.

        Args:
            column: the key of the column that has the value; None for a value of the table.
        """
        if self.may_remove(names):
            return True
        baseline = self.record.baseline
        if baseline is None or names(baseline):
            return False
        if isinstance(baseline, Table) and baseline.manages is not None:
            return False
        return column is None or any(column == one.key for one in _columns(baseline))

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


AnyComparison: TypeAlias = Comparison[Securable, SecurableState]
"""A comparison of either kind, for aspects that tables and schemas share."""


def bare_column(column: Column) -> Column:
    """Return a column as ADD COLUMNS creates it, without the parts that other statements add."""
    return Column(column.name, column.data_type, column.is_nullable, column.comment)


def changed_defaults(comparison: Comparison) -> Iterator[ColumnPair]:
    """Yield the columns whose defaults differ by more than spelling."""
    for desired, observed in comparison.differing_or_new:
        one, other = desired.default, observed.default
        if one != other and (one is None or other is None or not is_same_expression(one, other)):
            yield desired, observed


def lost_places(comparison: Comparison) -> Iterator[Path]:
    """Yield the dropped and renamed paths, by present names: expressions can no longer read them."""
    yield from ((former,) for former, _ in comparison.renames.columns)
    yield from ((column.name,) for column in comparison.dropped)
    renamed = [(*rename.path, rename.observed) for rename in comparison.renames.fields]
    dropped = [pair.path for pair in comparison.fields if pair.desired is None]
    yield from _with_dots(comparison, [*renamed, *dropped])


def retyped_places(comparison: Comparison) -> Iterator[Path]:
    """Yield the paths whose type changes, by present names."""
    yield from _with_dots(comparison, [pair.path for pair in comparison.types])


def _with_dots(comparison: Comparison, places: Sequence[Path]) -> Iterator[Path]:
    """Yield paths by present names, as far as SQL has a dotted notation."""
    if not places:
        return
    former = {name.lower(): former for former, name in comparison.renames.columns}
    types = {column.key: column.data_type for _, column in comparison.shared}
    for name, *inside in places:
        yield (former.get(name.lower(), name), *within_structs(types[name.lower()], tuple(inside)))


def declares_renames(model: Table) -> bool:
    """Whether a model names the former name of a column or field, pending or not."""
    return any(map(_FORMER_NAME, model.columns)) or any(map(_FORMER_FIELD_NAMES, model.columns))


def with_renames(model: Table, renames: Mapping[str, str]) -> Table:
    """Return a model with columns renamed in every part; `renames` maps old names to new ones."""
    if not renames:
        return model
    names, key = _by_key(renames), model.primary_key
    return replace(
        model,
        columns=_with_new_names(model.columns, names),
        primary_key=PrimaryKey(_new_names(key.columns, names), key.name, key.rely) if key else None,
        foreign_keys=tuple(
            replace(
                foreign_key,
                columns=_new_names(foreign_key.columns, names),
                referenced_columns=(
                    _new_names(foreign_key.referenced_columns, names)
                    if foreign_key.references.lower() == model.qualified_name.key
                    else foreign_key.referenced_columns
                ),
            )
            for foreign_key in model.foreign_keys
        ),
        cluster_by=_new_names(model.cluster_by, names),
        partitioned_by=_new_names(model.partitioned_by, names),
    )


def _with_all_renames(applied: Table, desired: Table, pending: Renames) -> Table:
    """Return the applied model with the names of columns and fields of the desired one.

    The desired model keeps former names after their rename was done by hand or by an unrecorded run.
    """
    known, wanted = {column.key for column in applied.columns}, {column.key for column in desired.columns}
    done = {
        column.renamed_from: column.name
        for column in desired.columns
        if column.renamed_from and column.renamed_from.lower() in known - wanted and column.key not in known
    }
    renamed = with_renames(applied, {**done, **dict(pending.columns)})
    fields = Renames(fields=tuple(_fields(desired, renamed.columns)))
    return replace(renamed, columns=fields.applied_to_fields(renamed.columns)) if fields.fields else renamed


def _renamed_record(record: Record[Table], desired: Table, pending: Renames) -> Record[Table]:
    whole = record.with_unmanaged_parts
    return Record(
        declared=record.declared and _with_all_renames(record.declared, desired, pending),
        with_unmanaged_parts=whole and _with_all_renames(whole, desired, pending),
        attempted=tuple(_with_all_renames(model, desired, pending) for model in record.attempted),
    )


def _columns(model: Securable) -> tuple[Column, ...]:
    return () if isinstance(model, Schema) else model.columns


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


def _with_columns(plain: Comparison[Any, Any], pairs: _Paired) -> Comparison[Any, Any]:
    desired, renames = plain.desired, NO_RENAMES
    if declares_renames(desired):
        renames = Renames.of(desired, plain.observed)
        plain = replace(
            plain,
            observed=renames.applied_to(plain.observed),
            record=_renamed_record(plain.record, desired, renames),
        )
        pairs = _paired(desired.columns, plain.observed.columns)
    is_about_columns = desired.is_about(Part.COLUMNS)
    found = tuple(_inside(pairs.differing))
    contested = {former.lower() for former, _ in renames.clashes}  # a rename would have to drop them
    return replace(
        plain,
        differing=pairs.differing,
        added=pairs.added if is_about_columns else (),
        dropped=tuple(column for column in pairs.dropped if is_about_columns and column.key not in contested),
        renames=renames,
        fields=tuple(
            pair
            for pair in found
            if isinstance(pair, FieldPair) and (is_about_columns or (pair.desired and pair.observed))
        ),
        types=tuple(pair for pair in found if isinstance(pair, TypePair) and is_about_columns),
    )


def _inside(pairs: Iterable[ColumnPair]) -> Iterator[FieldPair | TypePair]:
    for desired, observed in pairs:
        if desired.data_type is observed.data_type:  # most columns: a text is parsed once
            continue
        for pair in type_differences(observed.data_type, desired.data_type):
            yield replace(pair, path=(observed.name, *pair.path))


def _fields(desired: Table, observed: Iterable[Column]) -> Iterator[FieldRename]:
    by_key = {column.key: column for column in observed}
    for column in desired.columns:
        present = by_key.get(column.key)
        if present is not None and column.renamed_fields:
            for rename in field_renames(column.renamed_fields, present.data_type, column.data_type):
                yield replace(rename, path=(present.name, *rename.path))


def _by_key(renames: Mapping[str, str]) -> dict[str, str]:
    return {old.lower(): new for old, new in renames.items()}


def _with_new_names(columns: Iterable[Column], new_names: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(
        _with_new_name(column, new_names[column.key]) if column.key in new_names else column
        for column in columns
    )


def _with_new_name(column: Column, name: str) -> Column:
    is_undone = column.renamed_from is not None and column.renamed_from.lower() == name.lower()
    return replace(column, name=name, renamed_from=None if is_undone else column.renamed_from)


def _new_names(names: Iterable[str], new_names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(new_names.get(name.lower(), name) for name in names)
