"""What to do about drift: what a sync would undo, what it must leave, what a revert restores. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from delta_engine import aspects
from delta_engine.aspects.aspect import Comparison
from delta_engine.drift.comparison import Deviation, accepted
from delta_engine.drift.detector import Detected, DetectedTable
from delta_engine.drift_policy import DriftKind, Severity
from delta_engine.errors import RefusedError
from delta_engine.models import Table

_BEYOND_MODELS = (DriftKind.TABLE_DELETED, DriftKind.TABLE_REPLACED)
"""No model can say that it wants these; only `drift --accept` or `--revert` settles them."""


class DriftRefusal(RefusedError):
    """A sync would undo what somebody changed by hand."""


def undone(model: Table, table: DetectedTable) -> tuple[Detected, ...]:
    """Return the deviations that bringing the table to its model would undo.

    What the model has taken in by now is not among them.
    """
    return tuple(detail for detail in table.details if _is_undone(detail.deviation, model, table))


def tolerant(models: Sequence[Table], detected: Iterable[DetectedTable]) -> tuple[Table, ...]:
    """Return the models as a plan should take them: with the observed side of what the policy ignores.

    Args:
        models: the declared tables.
        detected: the tables that are not as they were applied.
    """
    tables = {table.name.key: table for table in detected if table.observed.exists}
    return tuple(_tolerant(model, tables.get(model.qualified_name.key)) for model in models)


def refusals(models: Sequence[Table], detected: Iterable[DetectedTable]) -> Iterator[DriftRefusal]:
    """Yield why a sync must not run: severe drift that it would undo, a refusal per finding.

    Args:
        models: the declared tables.
        detected: the tables that are not as they were applied.
    """
    by_key = {model.qualified_name.key: model for model in models}
    for table in detected:
        model = by_key.get(table.name.key)
        if model is None:
            continue
        for detail in undone(model, table):
            if detail.ignored_by is None and detail.finding.severity is Severity.HIGH:
                yield _refusal(detail, table, model)


def irreversible(detected: Iterable[DetectedTable]) -> Iterator[DriftRefusal]:
    """Yield what no plan can bring back: a renamed column would come back empty.

    Args:
        detected: the tables that shall be reverted.
    """
    for table in detected:
        for old, new in renames_of(table).items():
            yield DriftRefusal(
                f"somebody renamed it to {new!r}, and a plan could only drop that and add an empty {old!r}",
                table=str(table.name),
                column=old,
                way_out="Rename it back with ALTER TABLE … RENAME COLUMN (`delta-engine drift` has the statement), or "
                "leave this table out with -t.",
            )


def restored(table: DetectedTable) -> Table:
    """Return what a revert brings a table back to: as applied, but for what the policy ignores."""
    ignored = [detail.deviation for detail in table.details if detail.ignored_by is not None]
    return accepted(table.applied.table, table.observed, ignored)


def taken_in(model: Table, table: DetectedTable) -> Table:
    """Return a model with all of a table's drift in it, but for what the policy ignores."""
    return accepted(model, table.observed, [detail.deviation for detail in table.drift])


def renames_of(table: DetectedTable) -> Mapping[str, str]:
    """Return the columns that somebody renamed, new names by old ones, but for what the policy ignores."""
    return {
        str(detail.deviation.expected): str(detail.deviation.actual)
        for detail in table.drift
        if detail.deviation.kind is DriftKind.COLUMN_RENAMED
    }


def _tolerant(model: Table, table: DetectedTable | None) -> Table:
    if table is None:
        return model
    ignored = [detail.deviation for detail in undone(model, table) if detail.ignored_by is not None]
    return replace(accepted(model, table.observed, ignored), location=model.location) if ignored else model


def _is_undone(deviation: Deviation, model: Table, table: DetectedTable) -> bool:
    if deviation.kind in _BEYOND_MODELS:
        return True
    if deviation.kind is DriftKind.COLUMN_RENAMED:
        return str(deviation.expected).lower() in {column.key for column in model.columns}
    wanted = {
        (difference.change.subject, difference.change.desired)
        for difference in aspects.differences(
            Comparison.of(model, table.observed, last_applied=table.applied.table)
        )
    }
    return (deviation.field, deviation.expected) in wanted


def _refusal(detail: Detected, table: DetectedTable, model: Table) -> DriftRefusal:
    finding = detail.finding
    by = f", by {finding.changed.who}" if finding.changed and finding.changed.who else ""
    at = f" at {finding.changed.at:%Y-%m-%d %H:%M:%S} UTC" if finding.changed and finding.changed.at else ""
    return DriftRefusal(
        f"somebody changed it behind the engine's back{by}{at}, and a sync would undo that: {finding.field} "
        f"was applied as {finding.expected or 'absent'} and is {finding.actual or 'gone'}",
        table=str(table.name),
        location=model.location,
        way_out="`delta-engine drift` tells more; `drift --accept` takes it into the models, `drift --revert` "
        "undoes it, and `policy.drift: revert` lets every sync undo such changes.",
    )
