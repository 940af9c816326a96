"""What a table has besides its model, and the baseline that an apply leaves. Pure.

Unmanaged parts are constraints, clustering, comments, defaults, masks and row filters that no model of the engine ever
named. The first apply records the existing ones. Removing them is not drift, and a revert restores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from typing import TypeAlias, TypeVar

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import AS_APPLIED, NO_POLICY, Policy
from delta_engine.aspects.check_constraints import CheckDrop
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.column_masks import DropColumnMask
from delta_engine.aspects.columns import ColumnDrop, FieldDrop
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.aspects.renames import pending_renames
from delta_engine.aspects.row_filters import DropRowFilter
from delta_engine.drift.renames import has_path
from delta_engine.models import CheckConstraint, Column, ForeignKey, Securable, Table
from delta_engine.models.nested_types import (
    FieldPair,
    Path,
    lower_path,
    type_at,
    type_differences,
    with_field,
)
from delta_engine.models.types import StructField
from delta_engine.ownership.recorded import Recorded
from delta_engine.state.states import SecurableState, TableState, state_of

Subject: TypeAlias = tuple[DriftKind, str]
"""What a difference is about: its kind, and the part."""

_Part = TypeVar("_Part", ForeignKey, CheckConstraint)


def subject_of(difference: aspects.Difference) -> Subject:
    """Return the subject of a difference. A table has one primary key, whatever its name."""
    is_key = difference.kind is DriftKind.PRIMARY_KEY
    return difference.kind, "" if is_key else difference.change.subject


def differences_from(
    model: Securable, observed: SecurableState, policy: Policy, record: Recorded[Securable] | None = None
) -> Iterable[aspects.Difference]:
    """Return how a securable differs from a model by a policy; a record tells what is the engine's."""
    return aspects.differences(Comparison.of(model, observed, record, policy))


def unmanaged_parts(
    model: Table, observed: TableState, record: Recorded[Table] | None
) -> tuple[aspects.Difference, ...]:
    """Return the differences that a sync keeps."""
    return kept_parts(Comparison.of(model, observed, record)) if observed.exists else ()


def kept_parts(comparison: Comparison) -> tuple[aspects.Difference, ...]:
    """Return the differences of a comparison that a sync keeps."""
    if comparison.dropped:
        comparison = _without_dropped(comparison)
    unplanned = tuple(aspects.differences(replace(comparison, policy=AS_APPLIED)))
    if not unplanned:
        return ()
    planned = {
        difference.change.subject for difference in aspects.differences(replace(comparison, policy=NO_POLICY))
    }
    return tuple(difference for difference in unplanned if difference.change.subject not in planned)


def with_unmanaged_parts(model: Table, observed: TableState, earlier: Recorded[Table] | None) -> Table | None:
    """Return the baseline of an apply: the model with the prior unmanaged parts that are not drift; None without any.

    Those are the parts of the table when the engine took it over, and of columns and parts that the model took over
    since.
    """
    earlier_baseline = earlier.baseline if earlier is not None else None
    if (
        earlier is None
        or earlier_baseline is None
        or (earlier_baseline.manages is not None and earlier_baseline.manages != model.manages)
    ):
        before = observed
    else:
        columns = (
            *_with_fields_taken_over(model, observed, earlier_baseline),
            *_taken_over(model, observed, earlier_baseline),
        )
        if earlier.with_unmanaged_parts is None and columns == earlier_baseline.columns:
            return None
        before = replace(state_of(earlier_baseline), columns=columns)
    if not before.exists:
        return None
    comparison = _without_dropped(Comparison.of(model, before, earlier))
    whole = aspects.accept(model, comparison.observed, kept_parts(comparison))
    return None if whole == model else whole


def without_gone_parts(baseline: Table, record: Recorded[Table], observed: TableState) -> Table:
    """Return an earlier baseline without the unmanaged parts that a record has and the table no longer has."""
    if record.with_unmanaged_parts is None or record.declared is None:
        return baseline
    gone = _subjects(record.with_unmanaged_parts, observed) - _subjects(record.declared, observed)
    differences = aspects.differences(Comparison.of(baseline, observed, policy=AS_APPLIED))
    lost = [difference for difference in differences if subject_of(difference) in gone]
    return aspects.accept(baseline, observed, lost)


def _subjects(model: Table, observed: TableState) -> set[Subject]:
    return set(map(subject_of, aspects.differences(Comparison.of(model, observed, policy=AS_APPLIED))))


def _taken_over(model: Table, observed: TableState, baseline: Table) -> tuple[Column, ...]:
    """Return the columns that others added since the baseline and that the model declares now."""
    names = {column.key: {column.key, *map(str.lower, column.renamed_from)} for column in model.columns}
    columns = {column.key for column in baseline.columns}
    return tuple(
        column for column in observed.columns if column.key in names and columns.isdisjoint(names[column.key])
    )


def _with_fields_taken_over(model: Table, observed: TableState, baseline: Table) -> Iterator[Column]:
    """Yield the columns of the baseline, with the fields that others added since and that the model declares now."""
    declared = {column.key: column for column in model.columns}
    present = {column.key: column for column in observed.columns}
    for column in baseline.columns:
        if column.key in declared and column.key in present:
            yield _with_fields(column, present[column.key], declared[column.key])
        else:
            yield column


def _with_fields(column: Column, present: Column, declared: Column) -> Column:
    whole, declared_type = column.data_type, declared.data_type
    for pair in type_differences(whole, present.data_type):
        match pair:
            case FieldPair(path=path, desired=StructField() as field, observed=None):
                if type_at(declared_type, path) is not None:
                    whole = with_field(whole, path, field)
    return column if whole is column.data_type else replace(column, data_type=whole)


def with_former_columns(model: Table, baseline: Table, observed: TableState) -> Table:
    """Return an attempted model with the columns and fields that it drops or renames and that still exist, as applied.

    Its run changed nothing inside them: it renames them before it changes them (`Phase`).
    """
    before, model = state_of(baseline), _without_pending_renames(model, observed)
    drops = [
        difference
        for difference in aspects.differences(Comparison.of(model, before))
        for path in [_dropped_path(difference)]
        if path is not None and has_path(observed.columns, path)
    ]
    return aspects.accept(model, before, drops)


def _without_pending_renames(model: Table, observed: TableState) -> Table:
    """Return a model that drops the columns and fields that it would rename, and adds the new ones.

    What else names them, such as the clustering, has their former names.
    """
    pending = pending_renames(model, observed)
    if not pending:
        return model
    new = {*map(lower_path, pending.paths.values())}
    columns = tuple(_not_renamed(column, new) for column in model.columns)
    return replace(pending.taken_back_in(model), columns=columns)


def _not_renamed(column: Column, paths: Set[Path]) -> Column:
    """Return a column without the former names of it and of fields inside; `paths` have the new ones in lower case."""
    fields = {
        text: names
        for text, names in column.renamed_fields.items()
        if (column.key, *text.lower().split(".")) not in paths
    }
    former = () if (column.key,) in paths else column.renamed_from
    return replace(column, renamed_from=former, renamed_fields=fields)


def _dropped_path(difference: aspects.Difference) -> Path | None:
    match difference.action:
        case ColumnDrop(column):
            return (column.name,)
        case FieldDrop(path):
            return path
    return None


def _without_dropped(comparison: Comparison) -> Comparison:
    """Return a comparison without the unmanaged parts that a plan has to drop, such as checks on dropped columns."""
    observed = comparison.observed
    for action in aspects.diff(comparison):
        match action:
            case ChangeClustering(desired):
                observed = replace(observed, cluster_by=desired)
            case PrimaryKeyDrop():
                observed = replace(observed, primary_key=None)
            case ForeignKeyDrop(key, is_remade=False):
                observed = replace(observed, foreign_keys=_without(observed.foreign_keys, key))
            case CheckDrop(check, is_remade=False):
                observed = replace(observed, checks=_without(observed.checks, check))
            case DropRowFilter():
                observed = replace(observed, row_filter=None)
            case DropColumnMask(column):
                columns = (
                    replace(existing, mask=None) if existing.name == column else existing
                    for existing in observed.columns
                )
                observed = replace(observed, columns=tuple(columns))
    if observed is comparison.observed:
        return comparison
    return Comparison.of(comparison.desired, observed, comparison, comparison.policy)


def _without(parts: tuple[_Part, ...], part: _Part) -> tuple[_Part, ...]:
    return tuple(unmanaged_part for unmanaged_part in parts if unmanaged_part != part)
