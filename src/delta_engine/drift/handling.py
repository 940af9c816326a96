"""The handling of drift: what a sync reverts, keeps or refuses, what a model accepts, what a revert restores. Pure.

A comparison sees a renamed column or field as a dropped and an added one. If the history does not reach back to the
apply, two columns or fields of one type may be a rename, and a revert refuses.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind, DriftPolicy
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.aspects.aspect import with_type
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.comparison import Comparison, Securable, SecurableState, with_renames
from delta_engine.aspects.foreign_keys import as_declared
from delta_engine.drift.baselines import subject_of
from delta_engine.drift.comparison import beyond_drift, with_former_field_names
from delta_engine.drift.drifted_resources import (
    ClassifiedDrift,
    Deviation,
    Drifted,
    DriftedResource,
    DriftedTable,
    DriftRefusal,
    drifted_tables,
)
from delta_engine.models import Column, Schema, Table
from delta_engine.models.nested_types import FieldRename, Path, type_at, with_field_renamed
from delta_engine.models.record import Record
from delta_engine.models.types import DataType, is_same_type
from delta_engine.state.states import SchemaState
from delta_engine.telemetry.context import command

Model = TypeVar("Model", Table, Schema)

Undone: TypeAlias = tuple[Securable, DriftedResource, ClassifiedDrift]
"""Drift that a plan undoes, with its model."""


def accepted(model: Model, observed: SecurableState, taken: Sequence[Deviation]) -> Model:
    """Return a model with the observed side of the deviations in `taken`, and its own side of all others."""
    renames = _new_column_names(taken)
    differences = [one.difference for one in taken if one.difference is not None]
    differences.sort(key=_from_the_inside_out)
    if isinstance(model, Schema):
        return aspects.accept(model, observed, differences)
    model = aspects.accept(with_renames(model, renames), observed, differences)
    if isinstance(observed, SchemaState) or all(one.kind is not DriftKind.COLUMN_ORDER for one in taken):
        return model
    places = {column.key: place for place, column in enumerate(observed.columns)}
    ordered = sorted(model.columns, key=lambda column: places.get(column.key, len(places)))
    return replace(model, columns=tuple(ordered))


def reverted_drift(
    model: Securable,
    drifted: DriftedResource,
    policy: Policy = NO_POLICY,
    *,
    includes_overwritten: bool = False,
) -> tuple[ClassifiedDrift, ...]:
    """Return the drift that a sync reverts, without the order of columns unless the policy enforces it.

    Args:
        includes_overwritten: whether to return also the drift that a sync replaces with a new value of the model.
    """
    observed = drifted.observed
    if not observed.exists:
        return drifted.details
    comparison = Comparison.of(model, observed, drifted.recorded, policy)
    planned = tuple(aspects.differences(comparison))
    wanted = {(one.change.subject, one.change.desired) for one in planned}
    columns = {column.key: column for column in model.columns} if isinstance(model, Table) else {}
    moves_columns = any(one.kind is DriftKind.COLUMN_ORDER for one in planned)
    changed = {subject_of(one) for one in planned} if includes_overwritten else set()
    return tuple(
        detail
        for detail in drifted.details
        if _is_reverted(detail.deviation, columns, wanted, moves_columns=moves_columns)
        or (detail.deviation.difference is not None and subject_of(detail.deviation.difference) in changed)
    )


def with_ignored_drift(
    models: Sequence[Model], drifted: Iterable[DriftedResource], policy: Policy = NO_POLICY
) -> tuple[Model, ...]:
    """Return the models with the observed side of ignored drift, without those whose deletion is ignored."""
    by_key = {one.model_name.key: one for one in drifted}
    pairs = ((model, by_key.get(model.key)) for model in without_ignored_deletions(models, by_key.values()))
    return tuple(_with_ignored(model, one, policy) if one else model for model, one in pairs)


def without_ignored_deletions(
    models: Sequence[Model], drifted: Iterable[DriftedResource]
) -> tuple[Model, ...]:
    """Return the models without those whose deletion the policy ignores."""
    ignored = {one.model_name.key for one in drifted if not one.observed.exists and not one.drift}
    return tuple(model for model in models if model.key not in ignored)


def undone_drift(
    models: Sequence[Securable], drifted: Iterable[DriftedResource], policy: Policy = NO_POLICY
) -> Iterator[Undone]:
    """Yield the drift that a sync reverts or overwrites, with its model. An accepted replaced table stays as it is."""
    by_key = {model.key: model for model in models}
    for one in drifted:
        model = by_key.get(one.model_name.key)
        if model is None:
            continue
        for detail in reverted_drift(model, one, policy, includes_overwritten=True):
            is_taken = detail.deviation.kind is DriftKind.TABLE_REPLACED and detail.finding.accepted
            if detail.ignored_by is None and not is_taken:
                yield model, one, detail


def refusals(undone: Iterable[Undone], policy: DriftPolicy) -> Iterator[DriftRefusal]:
    """Yield one refusal for each drift that a sync would undo, and that the policy refuses to undo."""
    for model, _, detail in undone:
        if policy.refuses(detail.finding.severity, is_accepted=detail.finding.accepted is not None):
            yield _refusal(detail, model)


def is_replaced(drifted: DriftedResource) -> bool:
    """Whether another table of the same name replaced the table."""
    return any(one.deviation.kind is DriftKind.TABLE_REPLACED for one in drifted.details)


def accepting(model: Model, drifted: Drifted[Model, Any]) -> Model:
    """Return a model with the drift of its table or schema, except what the policy ignores."""
    if not drifted.observed.exists:
        return model
    return accepted(model, drifted.observed, [detail.deviation for detail in drifted.drift])


def edited(model: Table, table: DriftedTable) -> Table:
    """Return an accepting model for a model file: new foreign keys have the shortest table names."""
    found = accepting(model, table)
    keys = (
        key if key in model.foreign_keys else as_declared(found.qualified_name, key)
        for key in found.foreign_keys
    )
    return replace(found, foreign_keys=tuple(keys))


def restored(drifted: Drifted[Model, Any], policy: Policy) -> Model:
    """Return the baseline with all that is no drift, or ignored. Renamed columns are renamed back."""
    if not drifted.observed.exists:
        return drifted.recorded.baseline
    kept = [detail.deviation for detail in drifted.details if detail.ignored_by is not None]
    kept += (*drifted.explained, *beyond_drift(drifted.recorded, drifted.observed, policy))
    model = accepted(drifted.recorded.baseline, drifted.observed, kept)
    return model if isinstance(model, Schema) else _with_former_names(model, drifted)


def renames_of(table: DriftedTable) -> Mapping[str, str]:
    """Return the renamed columns, new names by old ones, except those that the policy ignores."""
    return _new_column_names(detail.deviation for detail in table.drift)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRenames:
    """The columns and fields of a table that the model has under their new names, by former ones."""

    columns: Mapping[str, str]
    fields: Mapping[Path, Path]

    def applied_to(self, model: Table) -> Table:
        """Return a former model with the new names."""
        model = with_renames(model, self.columns)
        for old, new in self.fields.items():
            rename = FieldRename(path=new[1:-1], observed=old[-1], desired=new[-1])
            model = with_type(model, new[0], partial(_renamed_inside, rename=rename))
        return model

    def applied_to_record(self, record: Record[Table]) -> Record[Table]:
        """Return a record with the new names."""
        whole = record.with_unmanaged_parts
        return Record(
            declared=record.declared and self.applied_to(record.declared),
            with_unmanaged_parts=whole and self.applied_to(whole),
            attempted=tuple(map(self.applied_to, record.attempted)),
        )


def _renamed_inside(data_type: DataType, rename: FieldRename) -> DataType:
    is_there = type_at(data_type, (*rename.path, rename.observed)) is not None
    return with_field_renamed(data_type, rename) if is_there else data_type


def with_taken_renames(
    records: Mapping[str, Record[Table]], taken: Mapping[str, TakenRenames]
) -> Mapping[str, Record[Table]]:
    """Return records of tables under the new names of columns and fields that the models have taken."""
    renamed = {key: renames.applied_to_record(records[key]) for key, renames in taken.items()}
    return {**records, **renamed} if renamed else records


def taken_renames(models: Iterable[Table], drifted: Iterable[DriftedResource]) -> dict[str, TakenRenames]:
    """Return the renames that the models have taken, by table key."""
    by_key = {model.key: {column.key: column for column in model.columns} for model in models}
    found = {}
    for one in drifted_tables(drifted):
        columns = by_key.get(one.model_name.key, {})
        taken = {
            old: new
            for old, new in renames_of(one).items()
            if new.lower() in columns and old.lower() not in columns
        }
        fields = {
            old: new
            for old, new in one.recorded.field_renames.items()
            if new[0].lower() in columns and _has(columns[new[0].lower()], new)
        }
        if taken or fields:
            found[one.model_name.key] = TakenRenames(columns=taken, fields=fields)
    return found


def irreversible(models: Iterable[Table], drifted: Iterable[DriftedResource]) -> Iterator[DriftRefusal]:
    """Yield the renames that a plan would undo by dropping a column and adding an empty one."""
    by_key = {model.key: model for model in models}
    for table in drifted_tables(drifted):
        model = by_key.get(table.model_name.key)
        if model is not None:
            yield from _lost_columns(model, table)
            yield from _lost_fields(model, table)


def _is_reverted(
    deviation: Deviation,
    declared: Mapping[str, Column],
    wanted: Collection[tuple[str, str | None]],
    *,
    moves_columns: bool,
) -> bool:
    match deviation:
        case Deviation(kind=DriftKind.TABLE_REPLACED):  # no model can declare it
            return True
        case Deviation(kind=DriftKind.COLUMN_ORDER):
            return moves_columns
        case Deviation(
            difference=aspects.Difference(action=ColumnRename(desired=name, inside=(column, *_) as inside))
        ):
            return column.lower() in declared and _has(declared[column.lower()], (*inside, name))
        case Deviation(kind=DriftKind.COLUMN_RENAMED):
            return str(deviation.expected).lower() in declared
        case Deviation(difference=aspects.Difference(action=ColumnAdd(column))):
            return column.key in declared
        case Deviation(difference=aspects.Difference(action=ColumnDrop(column))):
            return column.key not in declared
    return (deviation.field, deviation.expected) in wanted


def _new_column_names(found: Iterable[Deviation]) -> dict[str, str]:
    """Return the renamed columns, new names by old ones. Renames of fields have an action."""
    return {
        str(one.expected): str(one.actual)
        for one in found
        if one.kind is DriftKind.COLUMN_RENAMED and one.difference is None
    }


def _from_the_inside_out(difference: aspects.Difference) -> int:
    """Sort renames of fields behind all other differences, which name the former paths, and inner ones first."""
    action = difference.action
    return -len(action.inside) if isinstance(action, ColumnRename) else -sys.maxsize


def _with_ignored(model: Model, drifted: DriftedResource, policy: Policy) -> Model:
    if not drifted.observed.exists or len(drifted.drift) == len(drifted.details):
        return model
    found = reverted_drift(model, drifted, policy)
    ignored = [detail.deviation for detail in found if detail.ignored_by is not None]
    return accepted(model, drifted.observed, ignored) if ignored else model


def _refusal(detail: ClassifiedDrift, model: Securable) -> DriftRefusal:
    finding, name = detail.finding, model.qualified_name
    author = f", {finding.author}" if finding.author else ""
    reason = (
        f"it was changed outside the engine{author}, and a sync would revert that: {finding.field} "
        f"was applied as {finding.expected or 'absent'} and is {finding.actual or 'gone'}"
    )
    way_out = (
        f"{command('drift')} shows the details; {command('drift --accept')} takes the change into the models, "
        f"{command('drift --revert')} reverts it where a plan can, "
        "and `policy.drift: revert` lets every sync revert such changes."
    )
    if finding.accepted is not None:
        reason += f". It was accepted {finding.accepted}, and waits for its model"
        way_out = f"Merge the change of the model, or undo the drift with {command('drift --revert')}."
    if isinstance(model, Schema):
        return DriftRefusal(f"schema {name}: {reason}", location=model.declared_at, way_out=way_out)
    return DriftRefusal(reason, table=str(name), location=model.declared_at, way_out=way_out)


def _with_former_names(model: Table, table: DriftedTable) -> Table:
    former = {old.lower(): new for old, new in renames_of(table).items()}
    columns = (
        replace(column, renamed_from=former.get(column.key, column.renamed_from)) for column in model.columns
    )
    model = replace(model, columns=tuple(columns)) if former else model
    former_columns = {new: old for old, new in table.recorded.renames.items()}
    return with_former_field_names(model, _renamed_fields(table), former_columns)


def _lost_columns(model: Table, table: DriftedTable) -> Iterator[DriftRefusal]:
    declared = {column.key: (column.renamed_from or "").lower() for column in model.columns}
    sure = renames_of(table)
    for old, new in (*sure.items(), *_possible_renames(table), *_renamed_again(model, table)):
        is_declared = declared.get(old.lower()) == new.lower()
        if old.lower() in declared and new.lower() not in declared and not is_declared:
            yield _lost(table, old, new, is_sure=old in sure)


def _renamed_again(model: Table, table: DriftedTable) -> Iterator[tuple[str, str]]:
    """Yield columns that the model has under a name in between: a rename may have gone on after it was accepted."""
    present = {column.key: column for column in table.observed.columns}
    declared = {column.key for column in model.columns}
    added = [one for one in model.columns if one.key not in present and one.renamed_from is None]
    for old, new in renames_of(table).items():
        data_type = present[new.lower()].data_type
        if old.lower() not in declared:
            yield from ((one.name, new) for one in added if is_same_type(one.data_type, data_type))


def _lost_fields(model: Table, table: DriftedTable) -> Iterator[DriftRefusal]:
    sure = set(_renamed_fields(table))
    for pair in sorted({*sure, *_possibly_renamed_fields(table)}):
        if _would_be_lost(model, table, *pair):
            yield _lost(table, ".".join(pair[0]), ".".join(pair[1]), is_sure=pair in sure)


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
    for action in _actions(table.drift):
        if isinstance(action, ColumnRename):
            yield (*action.inside, action.desired), (*action.inside, action.observed)


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


def _lost(table: DriftedTable, old: str, new: str, *, is_sure: bool) -> DriftRefusal:
    what = "it was renamed to" if is_sure else "it may have been renamed to"
    back = command("drift --revert") if is_sure else "ALTER TABLE … RENAME COLUMN"
    return DriftRefusal(
        f"{what} {new!r} outside the engine, and a plan could only drop that and add an empty {old!r}",
        table=str(table.name),
        column=old,
        way_out=f"Rename it back with {back}, take the new name into the model with {command('drift --accept')}, "
        "or leave this table out with -t.",
    )
