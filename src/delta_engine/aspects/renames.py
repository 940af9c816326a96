"""Declared renames of columns and fields, and models under new names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TypeVar

from delta_engine.models import Column, ForeignKey, Part, PrimaryKey, Table
from delta_engine.models.nested_types import (
    Path,
    field_renames,
    lower_path,
    place_named,
    type_at,
    with_field_renamed,
)
from delta_engine.state.states import TableState

_SomeTable = TypeVar("_SomeTable", Table, TableState)

_FORMER_NAME, _FORMER_FIELD_NAMES = map(attrgetter, ("renamed_from", "renamed_fields"))


@dataclass(frozen=True, slots=True)
class Renames:
    """Renames of columns and fields: new paths by former ones, outer fields first.

    The path of a column has one step. Both paths of a field may start with any name of the column.
    """

    paths: Mapping[Path, Path] = field(default_factory=dict)

    @classmethod
    def of_columns(cls, names: Mapping[str, str]) -> Renames:
        """Return the renames of columns; `names` has the new names by the former ones."""
        return cls({(old,): (new,) for old, new in names.items()})

    def __bool__(self) -> bool:
        return bool(self.paths)

    @property
    def columns(self) -> Mapping[str, str]:
        """The new names of columns by the former ones."""
        return {old[0]: new[0] for old, new in self.paths.items() if len(old) == 1}

    @property
    def fields(self) -> Mapping[Path, Path]:
        """The new paths of fields by the former ones, outer fields first."""
        return {old: new for old, new in self.paths.items() if len(old) > 1}

    @property
    def former_names(self) -> Mapping[str, str]:
        """The former names of columns by the new ones in lower case."""
        return {new.lower(): old for old, new in self.columns.items()}

    def applied_to(self, table: _SomeTable) -> _SomeTable:
        """Return a model or a state with the new names. What it lacks changes nothing.

        Keys and checks of a state keep the former names: a plan drops them before the rename, and adds them after it.
        """
        if not self:
            return table
        names = _by_key(self.columns)
        renamed = replace(
            table,
            columns=self.applied_to_columns(table.columns),
            cluster_by=tuple(self._applied_to_keys(table.cluster_by, table.columns)),
            partitioned_by=_new_names(table.partitioned_by, names),
        )
        if isinstance(renamed, TableState):
            described = renamed.described
            return replace(
                renamed,
                not_null_checks=_new_names(renamed.not_null_checks, names),
                described=described and frozenset(map(str.lower, _new_names(described, names))),
            )
        key = renamed.primary_key
        return replace(
            renamed,
            primary_key=PrimaryKey(_new_names(key.columns, names), key.name, key.rely) if key else None,
            foreign_keys=tuple(
                _with_new_names_in_key(foreign_key, renamed, names) for foreign_key in renamed.foreign_keys
            ),
        )

    def taken_back_in(self, model: Table) -> Table:
        """Return a model that has the new names, with the former ones."""
        for old, new in reversed([*self.paths.items()]):
            model = Renames({new: (*new[:-1], old[-1])}).applied_to(model)
        return model

    def applied_to_columns(self, columns: Iterable[Column]) -> tuple[Column, ...]:
        """Return columns with the new names of them and of fields inside."""
        names, fields = _by_key(self.columns), self.fields
        renamed = (
            _with_new_name(column, names[column.key]) if column.key in names else column for column in columns
        )
        return tuple(_with_fields_renamed(column, fields) for column in renamed) if fields else tuple(renamed)

    def _applied_to_keys(self, keys: Iterable[str], columns: Sequence[Column]) -> Iterator[str]:
        """Yield clustering keys with the new names; `columns` have the former ones."""
        names = _by_key(self.columns)
        for key in keys:
            place = former = place_of_key(key, columns)
            place = (names.get(place[0].lower(), place[0]), *place[1:])
            for old, new in self.fields.items():
                if lower_path(place[: len(new)]) == lower_path((*new[:-1], old[-1])):
                    place = (*new, *place[len(new) :])
            yield key if place == former else ".".join(place)


NO_RENAMES = Renames()


def pending_renames(desired: Table, observed: TableState) -> Renames:
    """Return the declared renames of columns and fields that a table still has under a former name.

    A model that does not manage columns renames none.
    """
    return declared_renames(desired, observed)[0]


def declared_renames(desired: Table, observed: TableState) -> tuple[Renames, tuple[tuple[Path, Path], ...]]:
    """Return the pending renames, and the former and new paths of which the table has both.

    A rename would lose the data of one of the two.
    """
    return _declared(desired, observed.columns) if desired.is_about(Part.COLUMNS) else (NO_RENAMES, ())


def declares_renames(model: Table) -> bool:
    """Whether a model names the former name of a column or field, pending or not."""
    return any(map(_FORMER_NAME, model.columns)) or any(map(_FORMER_FIELD_NAMES, model.columns))


def named_renames(columns: Iterable[Column]) -> Iterator[tuple[Path, Path]]:
    """Yield the former and the present path of all columns and fields with former names, in lower case.

    Both paths of a field name the column and the outer fields as they are now.
    """
    for column in columns:
        for former in column.renamed_from:
            yield (former.lower(),), (column.key,)
        for text, names in column.renamed_fields.items():
            path = (column.key, *text.lower().split("."))
            yield from (((*path[:-1], former.lower()), path) for former in names)


def place_of_key(key: str, columns: Sequence[Column]) -> Path:
    """Return the path of a clustering key, a column or a field in structs, as the columns spell it."""
    place = place_named(key, [(column.name, column.data_type) for column in columns])
    return place or (key,)


def with_all_renames(applied: Table, desired: Table) -> Table:
    """Return a recorded model with the names of columns and fields of the desired one.

    That keeps former names after their rename was done by hand or by an unrecorded run.
    """
    return _declared(desired, applied.columns)[0].applied_to(applied)


def _declared(desired: Table, columns: Sequence[Column]) -> tuple[Renames, tuple[tuple[Path, Path], ...]]:
    """Return the renames that a model declares of columns and of fields inside, and those whose names both exist."""
    if not declares_renames(desired):
        return NO_RENAMES, ()
    present = {column.key: column for column in columns}
    desired_keys = {column.key for column in desired.columns}
    paths: dict[Path, Path] = {}
    contested: list[tuple[Path, Path]] = []
    for column in desired.columns:
        names = (name.lower() for name in column.renamed_from)
        former = next(
            (present[name].name for name in names if name in present and name not in desired_keys), None
        )
        if former is not None and column.key in present:
            contested.append(((former,), (present[column.key].name,)))
        elif former is not None:
            paths[(former,)] = (column.name,)
    for old, new, both_exist in _of_fields(desired, Renames(paths).applied_to_columns(columns)):
        if both_exist:
            contested.append((old, new))
        else:
            paths[old] = new
    return Renames(paths), tuple(contested)


def _of_fields(desired: Table, columns: Iterable[Column]) -> Iterator[tuple[Path, Path, bool]]:
    by_key = {column.key: column for column in columns}
    for column in desired.columns:
        present = by_key.get(column.key)
        if present is not None and column.renamed_fields:
            for old, new, both_exist in field_renames(
                column.renamed_fields, present.data_type, column.data_type
            ):
                yield (present.name, *old), (present.name, *new), both_exist


def _with_new_names_in_key(key: ForeignKey, model: Table, names: Mapping[str, str]) -> ForeignKey:
    is_own = key.references.lower() == model.qualified_name.key
    referenced = _new_names(key.referenced_columns, names) if is_own else key.referenced_columns
    return replace(key, columns=_new_names(key.columns, names), referenced_columns=referenced)


def _with_fields_renamed(column: Column, renames: Mapping[Path, Path]) -> Column:
    for old, new in renames.items():
        former = (*new[1:-1], old[-1])
        if new[0].lower() == column.key and type_at(column.data_type, former) is not None:
            column = replace(column, data_type=with_field_renamed(column.data_type, former, new[-1]))
            column = _with_new_field_paths(column, former, new[1:]) if column.renamed_fields else column
    return column


def _with_new_field_paths(column: Column, old: Path, new: Path) -> Column:
    """Return a column with the new path of a field in `renamed_fields`, unless the field has its former name again."""
    paths = {text: tuple(text.split(".")) for text in column.renamed_fields}
    moved = {
        text: ".".join((*new, *path[len(old) :])) if lower_path(path[: len(old)]) == lower_path(old) else text
        for text, path in paths.items()
    }
    names = {
        moved[text]: tuple(
            name
            for name in former
            if (lower_path(paths[text]), name.lower()) != (lower_path(old), new[-1].lower())
        )
        for text, former in column.renamed_fields.items()
    }
    return replace(column, renamed_fields={text: former for text, former in names.items() if former})


def _by_key(renames: Mapping[str, str]) -> dict[str, str]:
    return {old.lower(): new for old, new in renames.items()}


def _with_new_name(column: Column, name: str) -> Column:
    former = tuple(former_name for former_name in column.renamed_from if former_name.lower() != name.lower())
    return replace(column, name=name, renamed_from=former)


def _new_names(names: Iterable[str], new_names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(new_names.get(name.lower(), name) for name in names)
