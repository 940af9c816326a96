"""What to do about drift: what a sync would undo, what it must leave, what a revert restores. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.actions.policy import NO_POLICY, Policy
from delta_engine.aspects import column_order
from delta_engine.aspects.aspect import Comparison
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.foreign_keys import as_declared
from delta_engine.drift import schemas
from delta_engine.drift.comparison import Deviation, accepted, excused
from delta_engine.drift.detector import DetectedTable
from delta_engine.drift.field_renames import (
    possibly_renamed_fields,
    renamed_fields,
    with_former_fields,
    would_be_lost,
)
from delta_engine.drift.judgement import Detected
from delta_engine.drift.schemas import DetectedSchema
from delta_engine.errors import RefusedError
from delta_engine.models import Schema, Table
from delta_engine.models.types import is_same_type
from delta_engine.telemetry.context import command

_BEYOND_MODELS = (DriftKind.TABLE_DELETED, DriftKind.TABLE_REPLACED)
"""No model can say that it wants these; only `drift --accept` or `--revert` settles them."""


def _way_out() -> str:
    return (
        f"{command('drift')} tells more; {command('drift --accept')} takes it into the models, "
        f"{command('drift --revert')} undoes it where a plan can, "
        "and `policy.drift: revert` lets every sync undo such changes."
    )


class DriftRefusal(RefusedError):
    """A sync would undo what somebody changed by hand."""


def undone(model: Table, table: DetectedTable, policy: Policy = NO_POLICY) -> tuple[Detected, ...]:
    """Return the deviations that bringing the table to its model would undo.

    What the model has taken in by now is not among them, nor the order of columns, unless the policy enforces it.
    """
    if not table.observed.exists:
        return table.details
    declared = {column.key for column in model.columns}
    comparison = Comparison.of(model, table.observed, last_applied=table.applied.table, policy=policy)
    wanted = {(one.change.subject, one.change.desired) for one in aspects.differences(comparison)}
    moves_columns = any(column_order.diff(Comparison.of(model, table.observed, policy=policy)))
    return tuple(
        detail
        for detail in table.details
        if _is_undone(detail.deviation, declared, wanted, moves_columns=moves_columns)
    )


def tolerant(
    models: Sequence[Table], detected: Iterable[DetectedTable], policy: Policy = NO_POLICY
) -> tuple[Table, ...]:
    """Return the models as a plan should take them: with the observed side of what the policy ignores.

    A table whose deletion the policy ignores is left out.

    Args:
        models: the declared tables.
        detected: the tables that are not as they were applied.
        policy: what a plan does about the order of columns.
    """
    tables = {table.name.key: table for table in detected}
    pairs = ((model, tables.get(model.qualified_name.key)) for model in models)
    return tuple(
        _tolerant(model, table, policy)
        for model, table in pairs
        if table is None or not _is_left_deleted(table)
    )


def refusals(
    models: Sequence[Table], detected: Iterable[DetectedTable], policy: Policy = NO_POLICY
) -> Iterator[DriftRefusal]:
    """Yield why a sync must not run: severe drift that it would undo, a refusal per finding.

    Args:
        models: the declared tables.
        detected: the tables that are not as they were applied.
        policy: what a plan does about the order of columns.
    """
    by_key = {model.qualified_name.key: model for model in models}
    for table in detected:
        model = by_key.get(table.name.key)
        if model is None:
            continue
        for detail in undone(model, table, policy):
            if detail.ignored_by is None and detail.finding.severity is Severity.HIGH:
                yield _refusal(detail, table, model)


def schema_refusals(
    models: Sequence[Schema], detected: Iterable[DetectedSchema], policy: Policy = NO_POLICY
) -> Iterator[DriftRefusal]:
    """Yield the same of schemas.

    Args:
        models: the declared schemas.
        detected: the schemas that are not as they were applied.
        policy: whose the tags and privileges are that nobody declares.
    """
    by_key = {model.key: model for model in models}
    for schema in detected:
        model = by_key.get(schema.name.key)
        for detail in schemas.undone(model, schema, policy) if model else ():
            if detail.ignored_by is None and detail.finding.severity is Severity.HIGH:
                yield DriftRefusal(
                    f"schema {schema.name}: {_undoing(detail)}",
                    location=model.declared_at if model else None,
                    way_out=_way_out(),
                )


def irreversible(models: Sequence[Table], detected: Iterable[DetectedTable]) -> Iterator[DriftRefusal]:
    """Yield what no plan can bring back: a renamed column would come back empty, and its data would be dropped.

    Args:
        models: what the tables shall become.
        detected: the tables that are not as they were applied.
    """
    by_key = {model.qualified_name.key: model for model in models}
    for table in detected:
        model = by_key.get(table.name.key)
        if model is None:
            continue
        declared = {column.key: (column.renamed_from or "").lower() for column in model.columns}
        sure = renames_of(table)
        for old, new in (*sure.items(), *possible_renames(table)):
            is_declared = declared.get(old.lower()) == new.lower()
            if old.lower() in declared and new.lower() not in declared and not is_declared:
                yield _lossy(table, old, new, is_sure=old in sure)
        sure_fields = set(renamed_fields(table))
        for pair in sorted({*sure_fields, *possibly_renamed_fields(table)}):
            if would_be_lost(model, table, *pair):
                yield _lossy(table, ".".join(pair[0]), ".".join(pair[1]), is_sure=pair in sure_fields)


def may_be_renamed(table: DetectedTable) -> bool:
    """Whether a column or field is missing while another one has come: only the history tells what that was."""
    actions = [
        one.deviation.difference.action for one in table.details if one.deviation.difference is not None
    ]
    kinds = {type(one) for one in actions}
    return {ColumnAdd, ColumnDrop} <= kinds or {FieldAdd, FieldDrop} <= kinds


def is_replaced(table: DetectedTable) -> bool:
    """Whether a table of the same name is another one."""
    return any(one.deviation.kind is DriftKind.TABLE_REPLACED for one in table.details)


def possible_renames(table: DetectedTable) -> Iterator[tuple[str, str]]:
    """Yield (old, new) pairs of columns that may be one: of one type, in a table whose history is not whole."""
    if table.is_history_whole:
        return
    differences = [one.deviation.difference for one in table.drift if one.deviation.difference is not None]
    added = [one.action.desired for one in differences if isinstance(one.action, ColumnAdd)]
    dropped = [one.action.observed for one in differences if isinstance(one.action, ColumnDrop)]
    for old in added:
        for new in dropped:
            if is_same_type(old.data_type, new.data_type):
                yield old.name, new.name


def restored(table: DetectedTable) -> Table:
    """Return what a revert brings a table back to: as applied and left alone, but for what is ignored, or no drift.

    What somebody renamed is renamed back, and keeps its data. A deleted table is made as it was left.
    """
    if not table.observed.exists:
        return table.applied.left
    ignored = [detail.deviation for detail in table.details if detail.ignored_by is not None]
    kept = [*ignored, *excused(table.applied, table.observed)]
    model = accepted(table.applied.left, table.observed, kept)
    former = {old.lower(): new for old, new in renames_of(table).items()}
    columns = (
        replace(column, renamed_from=former.get(column.key, column.renamed_from)) for column in model.columns
    )
    return with_former_fields(replace(model, columns=tuple(columns)), table)


def taken_in(model: Table, table: DetectedTable) -> Table:
    """Return a model with all of a table's drift in it, but for what the policy ignores."""
    return accepted(model, table.observed, [detail.deviation for detail in table.drift])


def written(model: Table, table: DetectedTable) -> Table:
    """Return the same as people write it: keys that are new in it name other tables as shortly as they can."""
    found = taken_in(model, table)
    keys = (
        key if key in model.foreign_keys else as_declared(found.qualified_name, key)
        for key in found.foreign_keys
    )
    return replace(found, foreign_keys=tuple(keys))


def renames_of(table: DetectedTable) -> Mapping[str, str]:
    """Return the columns that somebody renamed, new names by old ones, but for what the policy ignores."""
    return {
        str(detail.deviation.expected): str(detail.deviation.actual)
        for detail in table.drift
        if detail.deviation.kind is DriftKind.COLUMN_RENAMED
    }


def _is_undone(
    deviation: Deviation,
    declared: Collection[str],
    wanted: Collection[tuple[str, str | None]],
    *,
    moves_columns: bool,
) -> bool:
    """Whether a plan undoes a deviation of a table that exists.

    Args:
        deviation: what is not as it was applied.
        declared: the keys of the model's columns.
        wanted: what a plan changes, and to what.
        moves_columns: whether it moves any.
    """
    match deviation:
        case Deviation(kind=kind) if kind in _BEYOND_MODELS:
            return True
        case Deviation(kind=DriftKind.COLUMN_ORDER):
            return moves_columns
        case Deviation(kind=DriftKind.COLUMN_RENAMED):
            return str(deviation.expected).lower() in declared
        case Deviation(difference=aspects.Difference(action=ColumnAdd(column))):
            return column.key in declared
        case Deviation(difference=aspects.Difference(action=ColumnDrop(column))):
            return column.key not in declared
    return (deviation.field, deviation.expected) in wanted


def _tolerant(model: Table, table: DetectedTable | None, policy: Policy) -> Table:
    if table is None or not table.observed.exists:
        return model
    ignored = [detail.deviation for detail in undone(model, table, policy) if detail.ignored_by is not None]
    return (
        replace(accepted(model, table.observed, ignored), declared_at=model.declared_at) if ignored else model
    )


def _is_left_deleted(table: DetectedTable) -> bool:
    return not table.observed.exists and not table.drift


def _refusal(detail: Detected, table: DetectedTable, model: Table) -> DriftRefusal:
    return DriftRefusal(
        _undoing(detail), table=str(table.name), location=model.declared_at, way_out=_way_out()
    )


def _undoing(detail: Detected) -> str:
    finding = detail.finding
    by = f", by {finding.changed.who}" if finding.changed and finding.changed.who else ""
    at = f" at {finding.changed.at:%Y-%m-%d %H:%M:%S} UTC" if finding.changed and finding.changed.at else ""
    return (
        f"somebody changed it behind the engine's back{by}{at}, and a sync would undo that: {finding.field} "
        f"was applied as {finding.expected or 'absent'} and is {finding.actual or 'gone'}"
    )


def _lossy(table: DetectedTable, old: str, new: str, *, is_sure: bool) -> DriftRefusal:
    what = "somebody renamed it to" if is_sure else "somebody may have renamed it to"
    back = command("drift --revert") if is_sure else "ALTER TABLE … RENAME COLUMN"
    return DriftRefusal(
        f"{what} {new!r}, and a plan could only drop that and add an empty {old!r}",
        table=str(table.name),
        column=old,
        way_out=f"Rename it back with {back}, take it in with {command('drift --accept')}, "
        "or leave this table out with -t.",
    )
