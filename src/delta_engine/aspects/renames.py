"""Declared renames of columns and fields, and models under new names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from delta_engine.models import Column, Part, PrimaryKey, Table
from delta_engine.models.nested_types import (
    FieldRename,
    Path,
    field_renames,
    lower_path,
    place_named,
    with_field_renamed,
)
from delta_engine.models.record import Record
from delta_engine.state.states import TableState

_FORMER_NAME, _FORMER_FIELD_NAMES = map(attrgetter, ("renamed_from", "renamed_fields"))


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
            (present[former[0]].name, column)
            for column in desired.columns
            if column.renamed_from
            for former in [
                [name for name in map(str.lower, column.renamed_from) if name in present.keys() - wanted]
            ]
            if former
        ]
        columns = {former: column.name for former, column in found if column.key not in present}
        return cls(
            columns=tuple(columns.items()),
            fields=tuple(_fields(desired, _with_new_names(observed.columns, _by_key(columns)))),
            clashes=tuple(
                (former, present[column.key].name) for former, column in found if column.key in present
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
                columns = Renames(fields=(rename,)).applied_to_fields(columns)
        return tuple(keys)

    def _with_new_fields(self, column: Column) -> Column:
        for rename in self.fields:
            if rename.path[0].lower() == column.key and not rename.both_exist:
                inside = replace(rename, path=rename.path[1:])
                column = replace(column, data_type=with_field_renamed(column.data_type, inside))
        return column


NO_RENAMES = Renames()


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
        cluster_by=_new_keys(model.cluster_by, model.columns, names),
        partitioned_by=_new_names(model.partitioned_by, names),
    )


def place_of_key(key: str, columns: Sequence[Column]) -> Path:
    """Return the path of a clustering key, a column or a field in structs, as the columns spell it."""
    place = place_named(key, [(column.name, column.data_type) for column in columns])
    return place or (key,)


def _with_all_renames(applied: Table, desired: Table, pending: Renames) -> Table:
    """Return the applied model with the names of columns and fields of the desired one.

    The desired model keeps former names after their rename was done by hand or by an unrecorded run.
    """
    known, wanted = {column.key for column in applied.columns}, {column.key for column in desired.columns}
    done = {
        former: column.name
        for column in desired.columns
        if column.renamed_from and column.key not in known
        for former in [name for name in column.renamed_from if name.lower() in known - wanted][:1]
    }
    renamed = with_renames(applied, {**done, **dict(pending.columns)})
    fields = Renames(fields=tuple(_fields(desired, renamed.columns)))
    if not fields.fields:
        return renamed
    return replace(
        renamed,
        columns=fields.applied_to_fields(renamed.columns),
        cluster_by=fields.applied_to_keys(renamed.cluster_by, renamed.columns),
    )


def renamed_record(record: Record[Table], desired: Table, pending: Renames) -> Record[Table]:
    """Return a record with the names of columns and fields of the desired model."""
    whole = record.with_unmanaged_parts
    return Record(
        declared=record.declared and _with_all_renames(record.declared, desired, pending),
        with_unmanaged_parts=whole and _with_all_renames(whole, desired, pending),
        attempted=tuple(_with_all_renames(model, desired, pending) for model in record.attempted),
    )


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
    former = tuple(one for one in column.renamed_from if one.lower() != name.lower())
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
