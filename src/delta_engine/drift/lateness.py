"""What the catalog may show late of what a run did: which parts, for how long, and what plans make of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import Policy, as_whole
from delta_engine.aspects import Difference
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.protection import is_protected
from delta_engine.drift.baselines import differences_from
from delta_engine.drift.drifted_resources import ComparedResource
from delta_engine.models import QualifiedName, Securable, Table, ViewName, resource_key
from delta_engine.ownership.recorded import AnyRecord, RecordedDifference
from delta_engine.state.states import (
    CatalogState,
    SecurableState,
    TableState,
    state_of,
    with_described_protection,
)

HIDING: Final = (DriftKind.ROW_FILTER, DriftKind.COLUMN_MASK)
"""Row filters and masks. A table tells of one as soon as it is set; it cannot prove that one was removed."""

TOLD_BY_VIEWS_ALONE: Final = frozenset(
    {
        DriftKind.TABLE_TAG,
        DriftKind.COLUMN_TAG,
        DriftKind.GRANT,
        DriftKind.GRANT_ADDED,
        DriftKind.OWNER,
        DriftKind.ROW_FILTER,
        DriftKind.COLUMN_MASK,
    }
)
"""What may be shown late, even if a table is read directly. Filters and masks that were removed are part of it."""

NOT_TOLD_BY_ITSELF: Final = TOLD_BY_VIEWS_ALONE | {DriftKind.PRIMARY_KEY, DriftKind.FOREIGN_KEY}
"""What may be shown late of a table that a run did not read again. Older runtimes describe no keys."""

_TOLD_BY_ITSELF: Final = frozenset(
    {
        DriftKind.PRIMARY_KEY,
        DriftKind.FOREIGN_KEY,
        DriftKind.TABLE_COMMENT,
        DriftKind.ROW_FILTER,
        DriftKind.COLUMN_MASK,
        DriftKind.VIEW_QUERY,
        DriftKind.VIEW_MODE,
        DriftKind.VIEW_COMMENT,
        DriftKind.VIEW_COLUMN_COMMENT,
    }
)
"""What a snapshot takes from `information_schema`, and a direct read of the table or view may correct."""

_LONGEST_LAG: Final = timedelta(hours=1)


def may_lag(changed_at: datetime, now: datetime) -> bool:
    """Whether views of the catalog may not show yet what was changed at a time."""
    return now - changed_at < _LONGEST_LAG


def is_recent(record: AnyRecord, now: datetime) -> bool:
    """Whether a resource was created, or changed by a run, so lately that the catalog may not show it yet."""
    if record.created_at is not None and may_lag(record.created_at, now):
        return True
    change = record.change
    return change is not None and may_lag(max(change.at, record.deployed_at or change.at), now)


def is_creation_begun_recently(record: AnyRecord | None, now: datetime) -> bool:
    """Whether a run had just begun to create a resource and did not finish.

    The views may show what was on a dropped resource of its name.
    """
    return record is not None and record.is_begun_creation and is_recent(record, now)


def late_changes(lag: Iterable[RecordedDifference]) -> set[Change]:
    """Return late parts of a record as comparisons show them."""
    return {Change(part.field, observed=part.actual, desired=part.expected) for part in lag}


def late_parts(resource: ComparedResource, present: SecurableState) -> set[Change]:
    """Return the late parts of a record, without what a table tells of itself."""
    late = late_changes(resource.lag)
    if not late or not isinstance(present, TableState):
        return late
    return late - described_changes(resource.renamed(resource.baseline), present, resource.policy)


def described_changes(model: Table, present: TableState, policy: Policy) -> set[Change]:
    """Return the row filter and masks that a table's description names and its model does not declare so.

    No view shows them late. A description that names none proves nothing: those of older runtimes never do.
    """
    if not present.described:
        return set()
    return {
        difference.change
        for difference in differences_from(model, with_described_protection(present), as_whole(policy))
        if difference.kind in HIDING and difference.change.observed is not None
    }


def shown_late(resource: ComparedResource, present: SecurableState) -> tuple[Difference, ...]:
    """Return what a securable shows and the record expects to be late, tags and grants that others may add included."""
    if not resource.lag:
        return ()
    late, applied = late_parts(resource, present), resource.renamed(resource.baseline)
    differences = differences_from(applied, present, as_whole(resource.policy))
    return tuple(difference for difference in differences if difference.change in late)


def may_be_late(resource: ComparedResource, now: datetime) -> bool:
    """Whether a table or view may be as it was applied, and the catalog only shows that late.

    A late `information_schema` may also make it look as if an unfinished run had done what it did not.
    """
    if not is_recent(resource.record, now):
        return False
    if not resource.observed.exists:
        return isinstance(resource.name, QualifiedName | ViewName)
    late = late_parts(resource, resource.observed)
    return _is_unasked(resource) or any(
        difference.kind in _TOLD_BY_ITSELF and difference.change not in late
        for difference in resource.changes
    )


def _is_unasked(resource: ComparedResource) -> bool:
    """Whether a table was only listed, and views may show late which row filter or masks a run left it."""
    present = resource.observed
    if not isinstance(present, TableState) or present.described is not None:
        return False
    if not resource.lag and not resource.attempted:
        return False
    sides: tuple[Any, ...] = (present, resource.baseline, *resource.attempted)
    return any(map(is_protected, sides))


def with_applied_parts(
    snapshot: CatalogState,
    models: Iterable[Securable],
    resources: Mapping[str, ComparedResource],
    policy: Policy,
) -> CatalogState:
    """Return a snapshot in which tables have what was applied where views show a model's value, which may be late.

    A plan that took a late value for the present one would not bring a model back to it. For filters and masks that a
    run removed, see `with_proven_protection`.
    """
    by_key = {resource.model_key: resource for resource in resources.values() if resource.lag}
    tables = {}
    for model in models if by_key else ():
        resource = by_key.get(resource_key(model.qualified_name))
        present = snapshot.tables.get(model.qualified_name.key)
        if resource is None or present is None or not isinstance(model, Table):
            continue
        missing = {
            difference.change.subject for difference in differences_from(model, present, as_whole(policy))
        }
        late = [
            difference
            for difference in shown_late(resource, present)
            if difference.kind in TOLD_BY_VIEWS_ALONE and difference.change.subject not in missing
        ]
        applied = state_of(resource.renamed(resource.baseline))
        tables[model.key] = aspects.accept(present, applied, late)
    return replace(snapshot, tables={**snapshot.tables, **tables}) if tables else snapshot
