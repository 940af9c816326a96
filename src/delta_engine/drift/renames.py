"""Columns and fields that were renamed outside the engine: what models have taken, and what a plan would lose. Pure.

A comparison sees a renamed column or field as a dropped and an added one. If the history does not reach back to the
apply, two columns or fields of one type may be a rename, and a revert refuses.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects import Difference
from delta_engine.aspects.changed_models import with_column
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.renames import Renames
from delta_engine.drift.drifted_resources import (
    ComparedResource,
    ComparedTable,
    DriftRefusal,
    drifted_tables,
)
from delta_engine.models import Column, Table
from delta_engine.models.nested_types import Path, lower_path, type_at
from delta_engine.models.types import DataType, is_same_type
from delta_engine.ownership.recorded import Recorded
from delta_engine.telemetry.context import command, spoken


def all_renames(differences: Iterable[Difference]) -> dict[Path, Path]:
    """Return the renamed columns and fields, new paths by old ones, outer fields first."""
    pairs = (difference.renamed for difference in differences)
    return dict(pair for pair in pairs if pair is not None)


def _renamed_in(table: ComparedTable) -> Renames:
    """Return the renames of a table, except those that the policy ignores."""
    return Renames(all_renames(detail.difference for detail in table.drift))


def by_model_names(model: Table, renames: Mapping[Path, Path]) -> dict[Path, Path]:
    """Return new paths by those that a model has: it may rename the applied columns and fields itself.

    Args:
        renames: new paths by the applied ones, outer fields first.
    """
    return {_model_path(model, old, new): new for old, new in renames.items()}


def _model_path(model: Table, old: Path, new: Path) -> Path:
    former = old[-1].lower()
    if len(new) == 1:
        if has_path(model.columns, old):
            return old
        names = ((column.name, column.renamed_from) for column in model.columns)
        return next(((name,) for name, former_names in names if former in map(str.lower, former_names)), old)
    column = _column_of(model, old, new)
    if column is None or type_at(column.data_type, (*new[1:-1], old[-1])) is not None:
        return old
    paths = ((tuple(text.split(".")), former_names) for text, former_names in column.renamed_fields.items())
    inside = (
        path
        for path, former_names in paths
        if lower_path(path[:-1]) == lower_path(new[1:-1]) and former in map(str.lower, former_names)
    )
    return next(((column.name, *path) for path in inside), old)


def with_accepted_names(model: Table, renames: Mapping[Path, Path]) -> Table:
    """Return a model that has the new paths, with the former ones as `renamed_from` and `renamed_fields`.

    Other environments may have the former names still. A name that the model declares cannot be a former one.

    Args:
        renames: new paths by those of the model before, outer fields first.
    """
    former = {new: old for old, new in renames.items() if is_former_name(model, old, new)}
    return with_former_names(model, former)


def is_former_name(model: Table, old: Path, new: Path) -> bool:
    """Whether a model that has a new path can declare the name of the old one as a former name."""
    is_renamed = lower_path(old[-1:]) != lower_path(new[-1:])
    return is_renamed and has_path(model.columns, new) and not has_path(model.columns, (*new[:-1], old[-1]))


def with_former_names(model: Table, renames: Mapping[Path, Path]) -> Table:
    """Return a model that renames columns and fields, before what it renames already.

    Args:
        renames: former paths by those of the model, outer fields first.
    """
    for path, former in renames.items():
        column = _column_of(model, path, former)
        if column is not None:
            model = with_column(model, column.name, partial(_with_former_name, path=path, former=former[-1]))
    return model


def _with_former_name(column: Column, path: Path, former: str) -> Column:
    if len(path) == 1:
        return replace(column, renamed_from=_former_first(former, column.renamed_from))
    text = ".".join(path[1:])
    names = _former_first(former, column.renamed_fields.get(text, ()))
    return replace(column, renamed_fields={**column.renamed_fields, text: names})


def _former_first(name: str, names: Iterable[str]) -> tuple[str, ...]:
    return name, *(former for former in names if former.lower() != name.lower())


def with_taken_renames(
    records: Mapping[str, Recorded[Any]], models: Iterable[Table], drifted: Iterable[ComparedResource]
) -> Mapping[str, Recorded[Any]]:
    """Return records of tables under the new names of columns and fields that the models have taken."""
    taken = taken_renames(models, drifted)
    renamed = {key: records[key].mapped(renames.applied_to) for key, renames in taken.items()}
    return {**records, **renamed} if renamed else records


def taken_renames(models: Iterable[Table], drifted: Iterable[ComparedResource]) -> dict[str, Renames]:
    """Return the renames that the models have taken, by resource key."""
    by_key = {model.key: model.columns for model in models}
    taken = {}
    for table in drifted_tables(drifted):
        renames = {**Renames.of_columns(_renamed_in(table).columns).paths, **table.renames.fields}
        if not renames:
            continue
        columns = {column.key: column for column in by_key.get(table.model_name.key, ())}
        paths = {old: new for old, new in renames.items() if _is_taken(columns, old, new)}
        if paths:
            taken[table.model_key] = Renames(paths)
    return taken


def _is_taken(columns: Mapping[str, Column], old: Path, new: Path) -> bool:
    """Whether a model has the new name of a column or field, and not the former one; `columns` are by key."""
    column = columns.get(new[0].lower())
    if column is None or len(new) == 1:
        return column is not None and old[0].lower() not in columns
    return _has_inside(column, new) and not _has_inside(column, old)


def ignored_renames(drifted: Iterable[ComparedResource]) -> frozenset[str]:
    """Return the resource keys of the tables with renames that the policy ignores. Only the history tells of these."""
    return frozenset(
        table.model_key
        for table in drifted_tables(drifted)
        for detail in table.details
        if detail.ignored_by is not None and detail.finding.kind is DriftKind.COLUMN_RENAMED
    )


def irreversible(models: Iterable[Table], drifted: Iterable[ComparedResource]) -> Iterator[DriftRefusal]:
    """Yield the renames that a plan would undo by dropping a column and adding an empty one."""
    by_key = {model.key: model for model in models}
    for table in drifted_tables(drifted):
        model = by_key.get(table.model_name.key)
        if model is not None:
            yield from _lost_columns(model, table)
            yield from _lost_fields(model, table)


def renamed_notes(drifted: Iterable[ComparedResource]) -> Iterator[str]:
    """Yield the new names of missing tables."""
    for resource in drifted:
        if resource.renamed_to is not None:
            yield (
                f"{resource.name}: it was renamed to {resource.renamed_to}, which has its Delta id. "
                f"{command('drift --accept')} gives the model that name; a revert would create an empty {resource.name}"
            )


def _lost_columns(model: Table, table: ComparedTable) -> Iterator[DriftRefusal]:
    declared = {column.key: {*map(str.lower, column.renamed_from)} for column in model.columns}
    present = {column.key for column in table.observed.columns}
    names = {name: key for key, former in declared.items() if key not in present for name in former}
    sure = {names.get(old.lower(), old): new for old, new in _renamed_in(table).columns.items()}
    possible = ((old[0], new[0]) for old, new in _possible_renames(table) if len(old) == 1)
    for old, new in (*sure.items(), *possible, *_renamed_again(model, table)):
        is_declared = new.lower() in declared.get(old.lower(), ())
        if old.lower() in declared and new.lower() not in declared and not is_declared:
            yield _lost(table, old, new, is_sure=old in sure)


def _renamed_again(model: Table, table: ComparedTable) -> Iterator[tuple[str, str]]:
    """Yield columns that the model has under a name in between: a rename may have gone on after it was accepted."""
    present = {column.key: column for column in table.observed.columns}
    declared = {column.key for column in model.columns}
    added = [column for column in model.columns if column.key not in present and not column.renamed_from]
    for old, new in _renamed_in(table).columns.items():
        data_type = present[new.lower()].data_type
        if old.lower() not in declared:
            yield from ((column.name, new) for column in added if is_same_type(column.data_type, data_type))


def _lost_fields(model: Table, table: ComparedTable) -> Iterator[DriftRefusal]:
    sure = {*_renamed_in(table).fields.items()}
    possible = (pair for pair in _possible_renames(table) if len(pair[0]) > 1)
    for pair in sorted({*sure, *possible}):
        if _would_be_lost(model, *pair):
            yield _lost(table, ".".join(pair[0]), ".".join(pair[1]), is_sure=pair in sure)


def _possible_renames(table: ComparedTable) -> Iterator[tuple[Path, Path]]:
    """Yield the columns and fields of one type and parent that are gone and new: their history is not known."""
    missing: list[tuple[Path, DataType]] = []  # the action that would revert it is an addition
    present: list[tuple[Path, DataType]] = []
    for detail in table.drift if not table.is_history_whole else ():
        match detail.difference.action:
            case ColumnAdd(column):
                missing.append(((column.name,), column.data_type))
            case ColumnDrop(column):
                present.append(((column.name,), column.data_type))
            case FieldAdd(path, field):
                missing.append((path, field.data_type))
            case FieldDrop(path, field):
                present.append((path, field.data_type))
    for (old, former_type), (new, present_type) in product(missing, present):
        if lower_path(old[:-1]) == lower_path(new[:-1]) and is_same_type(former_type, present_type):
            yield old, new


def _would_be_lost(model: Table, old: Path, new: Path) -> bool:
    column = _column_of(model, old, new)
    if column is None or _has_inside(column, new):
        return False
    if not _has_inside(column, old):
        return _text(old[1:]) in map(_text, _former_paths(column))
    former = column.renamed_fields.get(".".join(old[1:]), ())
    return new[-1].lower() not in map(str.lower, former)


def _former_paths(column: Column) -> Iterator[Path]:
    """Yield the former paths of fields, inside the column."""
    for path, names in column.renamed_fields.items():
        yield from ((*path.split(".")[:-1], former) for former in names)


def _column_of(model: Table, old: Path, new: Path) -> Column | None:
    """Return the column of a renamed field, which the model may have under its former or its new name."""
    columns = {column.key: column for column in model.columns}
    return columns.get(old[0].lower()) or columns.get(new[0].lower())


def has_path(columns: Iterable[Column], path: Path) -> bool:
    """Whether one of the columns is at a path, or has the field there."""
    return any(column.key == path[0].lower() and _has_inside(column, path) for column in columns)


def _has_inside(column: Column, path: Path) -> bool:
    """Whether a column has the field at a path, which starts with a name of the column."""
    return type_at(column.data_type, path[1:]) is not None


def _text(path: Path) -> str:
    return ".".join(path).lower()


def _lost(table: ComparedTable, old: str, new: str, *, is_sure: bool) -> DriftRefusal:
    what = "it was renamed to" if is_sure else "it may have been renamed to"
    target = f"-t {shlex.quote(str(table.model_name))}"
    back = command(f"drift --revert {target}") if is_sure else "ALTER TABLE … RENAME COLUMN"
    return DriftRefusal(
        f"{what} {new!r} outside the engine, and a plan could only drop that and add an empty {old!r}",
        table=str(table.name),
        column=old,
        way_out=f"Rename it back with {back}, accept the new name into the model with "
        f"{command(f'drift --accept {target}')}, or exclude this table with {spoken('-t', 'select=[…]')}.",
    )
