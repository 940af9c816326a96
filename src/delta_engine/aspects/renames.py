"""Declared renames of columns and fields, and models under new names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter

from delta_engine.aspects.changed_models import with_column
from delta_engine.models import Column, Part, PrimaryKey, Table
from delta_engine.models.nested_types import (
    FieldRename,
    Path,
    field_renames,
    lower_path,
    place_named,
    type_at,
    with_field_renamed,
)
from delta_engine.models.record import Record, mapped
from delta_engine.state.states import TableState

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

    def applied_to(self, model: Table) -> Table:
        """Return a model with the new names in every part. What the model lacks changes nothing."""
        model = _with_columns_renamed(model, _by_key(self.columns))
        for old, new in self.fields.items():
            model = _with_field_renamed(
                model, new[0], FieldRename(path=new[1:-1], observed=old[-1], desired=new[-1])
            )
        return model

    def applied_to_record(self, record: Record[Table]) -> Record[Table]:
        """Return a record with the new names in all its models."""
        return mapped(record, self.applied_to)


NO_RENAMES = Renames()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRenames:
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
    def of(cls, desired: Table, observed: TableState) -> PendingRenames:
        """Find the former names that a table still has; none for a model that does not manage columns."""
        if not desired.is_about(Part.COLUMNS) or not declares_renames(desired):
            return NO_PENDING_RENAMES
        present = {column.key: column for column in observed.columns}
        undeclared = present.keys() - {column.key for column in desired.columns}
        formers = [
            (present[former[0]].name, column)
            for column in desired.columns
            if column.renamed_from
            for former in [[name for name in map(str.lower, column.renamed_from) if name in undeclared]]
            if former
        ]
        columns = {former: column.name for former, column in formers if column.key not in present}
        return cls(
            columns=tuple(columns.items()),
            fields=tuple(_fields(desired, _with_new_names(observed.columns, _by_key(columns)))),
            clashes=tuple(
                (former, present[column.key].name) for former, column in formers if column.key in present
            ),
        )

    @property
    def former_names(self) -> Mapping[str, str]:
        """The present names of renamed columns, by their names in the model, in lower case."""
        return {name.lower(): former for former, name in self.columns}

    def applied_to(self, observed: TableState) -> TableState:
        """Return the state with the new names, except in keys and checks."""
        names = _by_key(dict(self.columns))
        if not names and not self.fields:
            return observed
        columns = _with_new_names(observed.columns, names)
        return replace(
            observed,
            columns=self.applied_to_fields(columns),
            cluster_by=self.applied_to_keys(_new_keys(observed.cluster_by, observed.columns, names), columns),
            partitioned_by=_new_names(observed.partitioned_by, names),
            not_null_checks=_new_names(observed.not_null_checks, names),
        )

    def applied_to_fields(self, columns: Iterable[Column]) -> tuple[Column, ...]:
        """Return columns with the new names of their fields."""
        return tuple(map(self._with_new_fields, columns))

    def applied_to_keys(self, keys: Sequence[str], columns: Sequence[Column]) -> tuple[str, ...]:
        """Return clustering keys with the new names of fields; `columns` have the former names."""
        for rename in self.fields:
            if not rename.both_exist:
                keys = [_key_with_field_renamed(key, columns, rename) for key in keys]
                columns = PendingRenames(fields=(rename,)).applied_to_fields(columns)
        return tuple(keys)

    def _with_new_fields(self, column: Column) -> Column:
        for rename in self.fields:
            if rename.path[0].lower() == column.key and not rename.both_exist:
                inside = replace(rename, path=rename.path[1:])
                column = replace(column, data_type=with_field_renamed(column.data_type, inside))
        return column


NO_PENDING_RENAMES = PendingRenames()


def declares_renames(model: Table) -> bool:
    """Whether a model names the former name of a column or field, pending or not."""
    return any(map(_FORMER_NAME, model.columns)) or any(map(_FORMER_FIELD_NAMES, model.columns))


def place_of_key(key: str, columns: Sequence[Column]) -> Path:
    """Return the path of a clustering key, a column or a field in structs, as the columns spell it."""
    place = place_named(key, [(column.name, column.data_type) for column in columns])
    return place or (key,)


def _with_all_renames(applied: Table, desired: Table, pending: PendingRenames) -> Table:
    """Return the applied model with the names of columns and fields of the desired one.

    The desired model keeps former names after their rename was done by hand or by an unrecorded run.
    """
    applied_keys = {column.key for column in applied.columns}
    undeclared = applied_keys - {column.key for column in desired.columns}
    done = {
        former: column.name
        for column in desired.columns
        if column.renamed_from and column.key not in applied_keys
        for former in [name for name in column.renamed_from if name.lower() in undeclared][:1]
    }
    renamed = Renames.of_columns({**done, **dict(pending.columns)}).applied_to(applied)
    fields = PendingRenames(fields=tuple(_fields(desired, renamed.columns)))
    if not fields.fields:
        return renamed
    return replace(
        renamed,
        columns=fields.applied_to_fields(renamed.columns),
        cluster_by=fields.applied_to_keys(renamed.cluster_by, renamed.columns),
    )


def renamed_record(record: Record[Table], desired: Table, pending: PendingRenames) -> Record[Table]:
    """Return a record with the names of columns and fields of the desired model."""
    return mapped(record, lambda model: _with_all_renames(model, desired, pending))


def _with_columns_renamed(model: Table, names: Mapping[str, str]) -> Table:
    """Return a model with columns renamed in every part; `names` has the new names by the former keys."""
    if not names:
        return model
    key = model.primary_key
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
        cluster_by=_new_keys(model.cluster_by, model.columns, names),
        partitioned_by=_new_names(model.partitioned_by, names),
    )


def _with_field_renamed(model: Table, column: str, rename: FieldRename) -> Table:
    """Return a model with a renamed field, also in `renamed_fields`; the path of `rename` is inside the column."""
    whole = PendingRenames(fields=(replace(rename, path=(column, *rename.path)),))
    keys = whole.applied_to_keys(model.cluster_by, model.columns)
    model = with_column(model, column, partial(_with_field_inside, rename=rename))
    return replace(model, cluster_by=keys)


def _fields(desired: Table, observed: Iterable[Column]) -> Iterator[FieldRename]:
    by_key = {column.key: column for column in observed}
    for column in desired.columns:
        present = by_key.get(column.key)
        if present is not None and column.renamed_fields:
            for rename in field_renames(column.renamed_fields, present.data_type, column.data_type):
                yield replace(rename, path=(present.name, *rename.path))


def _with_field_inside(column: Column, rename: FieldRename) -> Column:
    if type_at(column.data_type, (*rename.path, rename.observed)) is None:
        return column
    column = replace(column, data_type=with_field_renamed(column.data_type, rename))
    return _with_new_field_paths(column, rename)


def _with_new_field_paths(column: Column, rename: FieldRename) -> Column:
    """Return a column with the new path of a field in `renamed_fields`, unless the field has its former name again."""
    old, new = ((*rename.path, name) for name in (rename.observed, rename.desired))
    paths = {text: tuple(text.split(".")) for text in column.renamed_fields}
    moved = {
        text: ".".join((*new, *path[len(old) :])) if lower_path(path[: len(old)]) == lower_path(old) else text
        for text, path in paths.items()
    }
    names = {
        moved[text]: tuple(
            name
            for name in former
            if (lower_path(paths[text]), name.lower()) != (lower_path(old), rename.desired.lower())
        )
        for text, former in column.renamed_fields.items()
    }
    return replace(column, renamed_fields={text: former for text, former in names.items() if former})


def _by_key(renames: Mapping[str, str]) -> dict[str, str]:
    return {old.lower(): new for old, new in renames.items()}


def _with_new_names(columns: Iterable[Column], new_names: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(
        _with_new_name(column, new_names[column.key]) if column.key in new_names else column
        for column in columns
    )


def _with_new_name(column: Column, name: str) -> Column:
    former = tuple(former_name for former_name in column.renamed_from if former_name.lower() != name.lower())
    return replace(column, name=name, renamed_from=former)


def _new_names(names: Iterable[str], new_names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(new_names.get(name.lower(), name) for name in names)


def _new_keys(
    keys: Sequence[str], columns: Sequence[Column], new_names: Mapping[str, str]
) -> tuple[str, ...]:
    """Return clustering keys with the new names of columns; `columns` have the former names."""
    if not keys or not new_names:
        return tuple(keys)
    places = [place_of_key(key, columns) for key in keys]
    return tuple(
        ".".join((new_names[place[0].lower()], *place[1:])) if place[0].lower() in new_names else key
        for key, place in zip(keys, places, strict=True)
    )


def _key_with_field_renamed(key: str, columns: Sequence[Column], rename: FieldRename) -> str:
    place, former = place_of_key(key, columns), (*rename.path, rename.observed)
    if lower_path(place[: len(former)]) != lower_path(former):
        return key
    return ".".join((*rename.path, rename.desired, *place[len(former) :]))
