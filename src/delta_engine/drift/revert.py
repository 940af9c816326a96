"""Reverts: they restore the baseline, and rename columns back. Pure.

A comparison sees a renamed column or field as a dropped and an added one. If the history does not reach back to the
apply, two columns or fields of one type may be a rename, and a revert refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.drift.comparison import Model, accepted, explained
from delta_engine.drift.drifted_resources import (
    ClassifiedDrift,
    Drifted,
    DriftedResource,
    DriftedTable,
    DriftRefusal,
    drifted_tables,
)
from delta_engine.models import Column, Schema, Table
from delta_engine.models.nested_types import Path, type_at
from delta_engine.models.types import is_same_type
from delta_engine.telemetry.context import command


def restored(drifted: Drifted[Model, Any]) -> Model:
    """Return the baseline with ignored drift and explained differences. Renamed columns are renamed back."""
    if not drifted.observed.exists:
        return drifted.recorded.baseline
    kept = [detail.deviation for detail in drifted.details if detail.ignored_by is not None]
    kept.extend(explained(drifted.recorded, drifted.observed))
    model = accepted(drifted.recorded.baseline, drifted.observed, kept)
    return model if isinstance(model, Schema) else _with_former_names(model, drifted)


def renames_of(table: DriftedTable) -> Mapping[str, str]:
    """Return the renamed columns, new names by old ones, except those that the policy ignores."""
    return {
        str(detail.deviation.expected): str(detail.deviation.actual)
        for detail in table.drift
        if detail.deviation.kind is DriftKind.COLUMN_RENAMED
    }


def may_be_renamed(table: DriftedTable) -> bool:
    """Whether a drop and an add of columns or fields may be a rename, which only the history can tell."""
    kinds = {type(action) for action in _actions(table.details)}
    return {ColumnAdd, ColumnDrop} <= kinds or {FieldAdd, FieldDrop} <= kinds


def has_possible_renames(table: DriftedTable) -> bool:
    """Whether a column may have been renamed, or a field was."""
    return any(_possible_renames(table)) or any(_renamed_fields(table))


def irreversible(models: Iterable[Table], drifted: Iterable[DriftedResource]) -> Iterator[DriftRefusal]:
    """Yield the renames that a plan would undo by dropping a column and adding an empty one."""
    by_key = {model.key: model for model in models}
    for table in drifted_tables(drifted):
        model = by_key.get(table.name.key)
        if model is not None:
            yield from _lost_columns(model, table)
            yield from _lost_fields(model, table)


def _with_former_names(model: Table, table: DriftedTable) -> Table:
    former = {old.lower(): new for old, new in renames_of(table).items()}
    fields: dict[str, dict[str, str]] = {}
    for old, new in _renamed_fields(table):
        fields.setdefault(_column_key(table, old), {})[".".join(old[1:])] = new[-1]
    columns = (
        replace(
            column,
            renamed_from=former.get(column.key, column.renamed_from),
            renamed_fields={**column.renamed_fields, **fields.get(column.key, {})},
        )
        for column in model.columns
    )
    return replace(model, columns=tuple(columns)) if former or fields else model


def _lost_columns(model: Table, table: DriftedTable) -> Iterator[DriftRefusal]:
    declared = {column.key: (column.renamed_from or "").lower() for column in model.columns}
    sure = renames_of(table)
    for old, new in (*sure.items(), *_possible_renames(table)):
        is_declared = declared.get(old.lower()) == new.lower()
        if old.lower() in declared and new.lower() not in declared and not is_declared:
            yield _refusal(table, old, new, is_sure=old in sure)


def _lost_fields(model: Table, table: DriftedTable) -> Iterator[DriftRefusal]:
    sure = set(_renamed_fields(table))
    for pair in sorted({*sure, *_possibly_renamed_fields(table)}):
        if _would_be_lost(model, table, *pair):
            yield _refusal(table, ".".join(pair[0]), ".".join(pair[1]), is_sure=pair in sure)


def _possible_renames(table: DriftedTable) -> Iterator[tuple[str, str]]:
    if table.is_history_whole:
        return
    actions = _actions(table.drift)
    added = [action.desired for action in actions if isinstance(action, ColumnAdd)]
    dropped = [action.observed for action in actions if isinstance(action, ColumnDrop)]
    for old in added:
        for new in dropped:
            if is_same_type(old.data_type, new.data_type):
                yield old.name, new.name


def _renamed_fields(table: DriftedTable) -> Iterator[tuple[Path, Path]]:
    for added, dropped in _field_pairs(table):
        if table.field_renames.get(_text(added.path)) == _text(dropped.path):
            yield added.path, dropped.path


def _possibly_renamed_fields(table: DriftedTable) -> Iterator[tuple[Path, Path]]:
    for added, dropped in () if table.is_history_whole else _field_pairs(table):
        if is_same_type(added.desired.data_type, dropped.observed.data_type):
            yield added.path, dropped.path


def _field_pairs(table: DriftedTable) -> Iterator[tuple[FieldAdd, FieldDrop]]:
    actions = _actions(table.drift)
    dropped = [action for action in actions if isinstance(action, FieldDrop)]
    for add in actions:
        if isinstance(add, FieldAdd):
            for drop in dropped:
                if _text(add.path[:-1]) == _text(drop.path[:-1]):
                    yield add, drop


def _would_be_lost(model: Table, table: DriftedTable, old: Path, new: Path) -> bool:
    column = next((one for one in model.columns if one.key == _column_key(table, old)), None)
    if column is None or _has(column, new) or not _has(column, old):
        return False
    return column.renamed_fields.get(".".join(old[1:]), "").lower() != new[-1].lower()


def _column_key(table: DriftedTable, path: Path) -> str:
    names = {new.lower(): old.lower() for old, new in table.recorded.renames.items()}
    return names.get(path[0].lower(), path[0].lower())


def _has(column: Column, path: Path) -> bool:
    return type_at(column.data_type, path[1:]) is not None


def _text(path: Path) -> str:
    return ".".join(path).lower()


def _actions(details: Sequence[ClassifiedDrift]) -> list[object]:
    found = (detail.deviation.difference for detail in details)
    return [difference.action for difference in found if difference is not None]


def _refusal(table: DriftedTable, old: str, new: str, *, is_sure: bool) -> DriftRefusal:
    what = "it was renamed to" if is_sure else "it may have been renamed to"
    back = command("drift --revert") if is_sure else "ALTER TABLE … RENAME COLUMN"
    return DriftRefusal(
        f"{what} {new!r} outside the engine, and a plan could only drop that and add an empty {old!r}",
        table=str(table.name),
        column=old,
        way_out=f"Rename it back with {back}, take the new name into the model with {command('drift --accept')}, "
        "or leave this table out with -t.",
    )
