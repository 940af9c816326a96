"""Fields inside columns that somebody renamed, which a comparison takes for dropped and added ones. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from delta_engine.aspects.columns import FieldAdd, FieldDrop
from delta_engine.drift.detector import DetectedTable
from delta_engine.models import Column, Table
from delta_engine.models.nested_types import Path, type_at
from delta_engine.models.types import is_same_type


def renamed_fields(table: DetectedTable) -> Iterator[tuple[Path, Path]]:
    """Yield the old and new paths of fields of which the history says that they were renamed."""
    for added, dropped in _pairs(table):
        if table.field_renames.get(_text(added.path)) == _text(dropped.path):
            yield added.path, dropped.path


def possibly_renamed_fields(table: DetectedTable) -> Iterator[tuple[Path, Path]]:
    """Yield those of fields that may be one: of one type, in a table whose history is not whole."""
    for added, dropped in () if table.is_history_whole else _pairs(table):
        if is_same_type(added.desired.data_type, dropped.observed.data_type):
            yield added.path, dropped.path


def with_former_fields(model: Table, table: DetectedTable) -> Table:
    """Return a model that renames back what somebody renamed."""
    former: dict[str, dict[str, str]] = {}
    for old, new in renamed_fields(table):
        former.setdefault(_column_key(table, old), {})[".".join(old[1:])] = new[-1]
    if not former:
        return model
    columns = (_with_former(column, former.get(column.key, {})) for column in model.columns)
    return replace(model, columns=tuple(columns))


def would_be_lost(model: Table, table: DetectedTable, old: Path, new: Path) -> bool:
    """Whether bringing a table to its model would drop a field, and add an empty one under its former name."""
    column = next((one for one in model.columns if one.key == _column_key(table, old)), None)
    if column is None or _has(column, new) or not _has(column, old):
        return False
    return column.renamed_fields.get(".".join(old[1:]), "").lower() != new[-1].lower()


def _pairs(table: DetectedTable) -> Iterator[tuple[FieldAdd, FieldDrop]]:
    """Yield every two fields of one struct, one of which is gone and one of which has come."""
    found = [one.deviation.difference for one in table.drift if one.deviation.difference is not None]
    added = [one.action for one in found if isinstance(one.action, FieldAdd)]
    dropped = [one.action for one in found if isinstance(one.action, FieldDrop)]
    for add in added:
        for drop in dropped:
            if _text(add.path[:-1]) == _text(drop.path[:-1]):
                yield add, drop


def _column_key(table: DetectedTable, path: Path) -> str:
    """Return what identifies a path's column in models, which know nothing of how somebody renamed it."""
    names = {new.lower(): old.lower() for old, new in table.applied.renames.items()}
    return names.get(path[0].lower(), path[0].lower())


def _with_former(column: Column, former: Mapping[str, str]) -> Column:
    return replace(column, renamed_fields={**column.renamed_fields, **former}) if former else column


def _has(column: Column, path: Path) -> bool:
    return type_at(column.data_type, path[1:]) is not None


def _text(path: Path) -> str:
    return ".".join(path).lower()
