"""The row filters and masks that a plan counts on. Pure.

A view may show a filter or mask on after a run removed it, and a description that names none proves nothing: those of
older runtimes never do. A run that failed, was killed, or did not read the table again may have removed one and not
recorded that. A plan that believed the view would leave the table without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from delta_engine import aspects
from delta_engine.actions.policy import AS_APPLIED
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.protection import is_protected
from delta_engine.aspects.renames import Renames, pending_renames
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.drift.lateness import is_recent
from delta_engine.models import ColumnMask, RowFilter, Securable, Table, of_kind
from delta_engine.ownership.recorded import AnyRecord, Recorded, table_record
from delta_engine.state.states import (
    CatalogState,
    TableState,
    protections_of,
    with_protection,
    without_described_protection,
)


def with_proven_protection(
    snapshot: CatalogState, models: Iterable[Securable], records: Mapping[str, AnyRecord], now: datetime
) -> CatalogState:
    """Return a snapshot without the filters and masks of models that may be gone: the plan sets them again.

    Args:
        records: by resource key, of what is renamed also under its new name.
    """
    recent = {key: record for key, record in records.items() if is_recent(record, now)}
    tables = {}
    for model in filter(is_protected, of_kind(Table, models)) if recent else ():
        record, present = table_record(recent, model.qualified_name), snapshot.tables.get(model.key)
        if record is not None and present is not None:
            tables[model.key] = _proven(model, record, present)
    return replace(snapshot, tables={**snapshot.tables, **tables}) if tables else snapshot


def _proven(model: Table, record: Recorded[Table], present: TableState) -> TableState:
    """Return a table without what only views show and its model has, if it may be gone."""
    renames = pending_renames(model, present)
    shown = without_described_protection(renames.applied_to(present))
    if not is_protected(shown):
        return present
    gone = _may_be_gone(record, renames, shown) - _beyond(model, shown)
    former = {new: old.lower() for new, old in renames.former_names.items()}
    return with_protection(present, protections_of(present) - {former.get(key, key) for key in gone})


def _may_be_gone(record: Recorded[Table], renames: Renames, shown: TableState) -> frozenset[str]:
    """Return what a run may have removed and not recorded, as in `TableState.described`.

    A run removes only what the engine had set: what the applied model and all attempts lack stays. Of a table that was
    created, views may show what was on a dropped one of its name.
    """
    attempts = [_beyond(renames.applied_to(model), shown) for model in record.attempted]
    gone = frozenset[str]().union(*attempts)
    if record.declared is not None:
        gone -= _beyond(renames.applied_to(record.declared), shown).intersection(*attempts)
    if record.baseline is not None:
        gone |= _beyond(renames.applied_to(record.baseline), shown)
    return gone


def _beyond(model: Table, shown: TableState) -> frozenset[str]:
    """Return the filter and masks that a table shows and a model lacks or has otherwise."""
    comparison = Comparison.of(model, shown, policy=AS_APPLIED)
    return frozenset(_hiding(difference.action for difference in aspects.differences(comparison)))


def _hiding(actions: Iterable[object]) -> Iterator[str]:
    for action in actions:
        match action:
            case DropRowFilter() | SetRowFilter(observed=RowFilter()):
                yield ""
            case DropColumnMask(name) | SetColumnMask(name, observed=ColumnMask()):
                yield name.lower()
