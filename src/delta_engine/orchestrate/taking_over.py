"""Records what others did as applied: drift that was accepted, and tables that somebody made anew. Saves nothing."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.drift import schemas
from delta_engine.drift.detector import DetectedTable
from delta_engine.drift.handling import renames_of, taken_in
from delta_engine.drift.schemas import DetectedSchema
from delta_engine.state.table_queries import TableVersionReader


def take_over(
    recorder: RunRecorder,
    versions: TableVersionReader | None,
    detected: Sequence[DetectedTable],
    detected_schemas: Sequence[DetectedSchema],
) -> None:
    """Record drift as applied.

    Args:
        recorder: records it.
        versions: asks Delta where the tables stand; nobody is asked without it.
        detected: the tables; what the policy ignores stays out.
        detected_schemas: the schemas.
    """
    existing = [table.name for table in detected if table.observed.exists]
    found = (
        versions.read_versions(existing, with_id={name.key for name in existing})
        if versions and existing
        else {}
    )
    for table in detected:
        if table.observed.exists:
            recorder.records.accept(
                taken_in(table.applied.table, table),
                table.observed,
                found.get(table.name.key) or table.version,
                renames=renames_of(table),
                has_other_order=_has_other_order(table),
            )
        else:
            recorder.records.forget(table.name)
    for schema in detected_schemas:
        if schema.observed is None:
            recorder.records.forget(schema.name)
        else:
            recorder.records.adopt_schemas([schemas.taken_in(schema.applied, schema)])


def renew(
    recorder: RunRecorder, versions: TableVersionReader | None, replaced: Sequence[DetectedTable]
) -> None:
    """Take over tables that somebody made anew: they are as wanted by now.

    Args:
        recorder: records it.
        versions: asks Delta for the tables' ids; they stay the recorded ones without it.
        replaced: the tables.
    """
    if not replaced or versions is None:
        return
    names = [table.name for table in replaced]
    found = versions.read_versions(names, with_id={name.key for name in names})
    for table in replaced:
        if table.name.key in found:
            recorder.records.renew(table.name, found[table.name.key], table.observed)


def _has_other_order(table: DetectedTable) -> bool:
    """Whether the policy ignores that columns stand in another order."""
    return any(
        detail.ignored_by is not None and detail.deviation.kind is DriftKind.COLUMN_ORDER
        for detail in table.details
    )
