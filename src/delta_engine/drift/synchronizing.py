"""Records after a comparison with the catalog, and what runs attempt. Pure.

`ownership.recorded.status_of` derives the status of a resource from what is noted here.
Attempts are the definitions that runs record before they apply them, so that parts of unfinished runs stay managed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from delta_engine import aspects
from delta_engine.actions import Align, AlignTable, Create, SecurableChange, TablePlan
from delta_engine.actions.drift_policy import DELETIONS, DriftKind
from delta_engine.actions.policy import Ownership, Policy, as_applied, as_whole
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.column_renames import renamed_columns
from delta_engine.aspects.columns import ColumnAdd
from delta_engine.aspects.comparison import AnyComparison, Comparison, Model_co
from delta_engine.aspects.protection import is_protected
from delta_engine.deployment.definitions import (
    keep,
    keep_attempt,
    schema_checksum,
)
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.resources import created, noted, unmanaged_table
from delta_engine.drift.baselines import kept_parts, unmanaged_parts
from delta_engine.drift.comparison import differences_of, drift_of, is_known, still_accepted
from delta_engine.drift.drifted_resources import ComparedResource
from delta_engine.drift.lateness import (
    HIDING,
    TOLD_BY_VIEWS_ALONE,
    described_changes,
    is_creation_begun_recently,
    may_lag,
    shown_late,
)
from delta_engine.models import (
    Function,
    QualifiedName,
    Securable,
    SecurableName,
    Table,
    View,
    by_resource,
    resource_key,
)
from delta_engine.ownership.recorded import (
    AnyRecord,
    Failure,
    Kept,
    Recorded,
    RecordedDifference,
    Status,
    is_of_table,
)
from delta_engine.state.function_states import FunctionState
from delta_engine.state.states import CatalogState, SecurableState, TableState, state_of

NOT_SHOWN_YET = "immediately after the apply, the catalog did not show all of it yet"
"""Why what a run has just applied is not verified, although it was read again."""


def synchronize(
    state: DeploymentState,
    observed: CatalogState,
    compared_resources: Mapping[str, ComparedResource],
    *,
    managed: Collection[str] | None,
    now: datetime,
) -> DeploymentState:
    """Return the document with current statuses; the same document if nothing differs.

    Args:
        observed: a snapshot. Resources that it does not cover keep their status.
        compared_resources: the comparisons with it, by resource key.
        managed: the resource keys of all models; None if only some models were loaded: unmanaged tables are unknown.
    """
    resources = {
        key: _synchronized(resource, observed, compared_resources.get(key))
        for key, resource in state.resources.items()
    }
    if managed is not None:
        resources = _with_unmanaged(resources, observed, managed)
    if resources == state.resources:
        return state
    return state.compared(resources, at=now)


def with_settled_creations(
    state: DeploymentState, undeclared: Iterable[SecurableName], observed: CatalogState, policy: Policy
) -> DeploymentState:
    """Return a document in which undeclared resources that runs only attempted are recorded as created, or forgotten.

    A run can end between a creation and its record. What exists was applied if it is as the run attempted it, and may
    be another principal's otherwise. `synchronize` settles such a table.
    """
    records = dict(state.resources)
    for name in undeclared:
        record, present = records.get(resource_key(name)), observed.of(name)
        if record is None or record.applied is not None or present is None:
            continue
        attempts = reversed(record.attempts) if record.is_begun_creation and present.exists else ()
        made = [model for kept in attempts for model in _made_from(kept.model, present, policy)]
        if made:
            records[record.key] = created(record, made[0])
        elif not isinstance(name, QualifiedName):  # `_with_unmanaged` settles tables
            del records[record.key]
    return state if records == state.resources else state.with_resources(records)


def _made_from(model: Securable, observed: SecurableState, policy: Policy) -> Iterator[Securable]:
    """Yield what CREATE made from a model, without what the statements after it did not do, if that is what exists."""
    comparison: AnyComparison = Comparison.of(model, observed, policy=as_applied(policy))
    missing = [*aspects.differences(comparison)]
    if all(map(aspects.follows_create, missing)):
        yield aspects.accept(model, observed, missing)


def confirmed(
    record: Recorded[Table],
    model: Table,
    observed: TableState,
    *,
    earlier: Recorded[Table] | None,
    ordered: Recorded[Table] | None,
    added: Collection[str] = (),
    policy: Policy,
) -> Recorded[Table]:
    """Return the record of a table that was just applied, after a second read of the table.

    A difference is lag, not drift: the catalog may show a change late, and removed parts for a while. The catalog may
    also have yet to show what the run before applied. A filter or mask that the table itself names in place of the
    model's is drift: it was replaced since.

    Args:
        earlier: the record before the apply.
        ordered: as in `noted`.
        added: the keys of the columns that the apply added.
    """
    shown, lag = _late(record, model, observed, earlier, policy, lambda _difference: True)
    changes = described_changes(model, observed, policy)
    replaced = [_recorded(change) for change in changes if change.desired is not None]
    record = replace(record, lag=lag, drift=tuple(sorted(replaced, key=attrgetter("field"))))
    if shown:
        return replace(record, failure=Failure(Status.UNKNOWN, NOT_SHOWN_YET), explained=shown)
    return noted(record, model, observed, earlier, ordered=ordered, added=added)


def with_late_views(
    record: AnyRecord,
    model: Table,
    before: TableState,
    *,
    earlier: Recorded[Table] | None,
    policy: Policy,
) -> AnyRecord:
    """Return the record of a table that was just applied, with what views may still show as it was before.

    Under a new name, they may show nothing at first.

    Args:
        before: the table as it was shown then.
        earlier: the record before the apply.
    """
    states = []
    if not before.exists or before.former_name is not None:
        columns = tuple(replace(column, tags={}) for column in model.columns)
        states.append(state_of(replace(model, columns=columns, tags={}, grants={})))
    if before.exists:
        states.append(_with_new_columns(before, model))
    lag: dict[RecordedDifference, None] = {}
    for state in states:
        lag |= dict.fromkeys(_late(record, model, state, earlier, policy, _is_told_by_views)[1])
    return replace(record, lag=tuple(lag))


def _with_new_columns(before: TableState, model: Table) -> TableState:
    """Return a table from before a run with the columns that it has added, without their tags."""
    known = {column.key for column in before.columns}
    added = (
        replace(column, tags={})
        for column in model.columns
        if known.isdisjoint({column.key, *map(str.lower, column.renamed_from)})
    )
    return replace(before, columns=(*before.columns, *added), described=None)


def _late(
    record: AnyRecord,
    model: Table,
    observed: TableState,
    earlier: Recorded[Table] | None,
    policy: Policy,
    can_be_late: Callable[[aspects.Difference], bool],
) -> tuple[tuple[RecordedDifference, ...], tuple[RecordedDifference, ...]]:
    """Return how a table differs from its model, and how it will differ for a while.

    What others added and the engine leaves to them is no difference.
    """
    comparison, whole = Comparison.of(model, observed, earlier), as_whole(policy)
    recent = earlier if _is_soon_after(record, earlier) else None
    unrecorded = replace(comparison, declared=None, baseline=None, attempted=(), policy=whole)
    differences = tuple(aspects.differences(unrecorded))
    others = _of_others(differences, comparison, earlier, policy, is_new=_is_new(record, earlier))
    late = {(part.field, part.actual) for part in recent.lag} if recent else set()
    others = {change for change in others if (change.subject, change.observed) not in late}
    others |= described_changes(model, observed, policy)
    shown = _documented(
        difference
        for difference in differences
        if difference.change not in others and can_be_late(difference)
    )
    return shown, tuple(dict.fromkeys((*shown, *_still_to_come(model, recent, shown, whole))))


def _is_told_by_views(difference: aspects.Difference) -> bool:
    """Whether only views tell it: a table tells of a filter or mask as soon as it is set."""
    is_set = difference.kind in HIDING and difference.change.desired is not None
    return difference.kind in TOLD_BY_VIEWS_ALONE and not is_set


def _is_soon_after(record: AnyRecord, earlier: Recorded[Table] | None) -> bool:
    """Whether the catalog may still show late what the run before applied, or changed and did not finish."""
    at = record.deployed_at
    if at is None or earlier is None:
        return False
    last = (earlier.deployed_at, earlier.change.at if earlier.change else None)
    return any(moment is not None and may_lag(moment, at) for moment in last)


def _of_others(
    differences: Collection[aspects.Difference],
    comparison: Comparison[Table, TableState],
    earlier: Recorded[Table] | None,
    policy: Policy,
    *,
    is_new: bool,
) -> set[Change]:
    """Return the changes that others made and the engine leaves to them. What it removed itself is none of them.

    The views may show the row filter and masks of a dropped table on a new one of its name.
    """
    others = {difference.change for difference in differences if _is_additional(difference, policy)}
    for ours in earlier.ours if earlier is not None and others else ():
        before = Comparison.of(comparison.desired, state_of(ours), policy=as_whole(policy))
        others -= {difference.change for difference in aspects.differences(before)}
    if differences and policy.definitions is not Ownership.FULL:
        kept = kept_parts(comparison)
        others |= {part.change for part in kept if not (is_new and part.kind in HIDING)}
    return others


def _is_new(record: AnyRecord, earlier: Recorded[Table] | None) -> bool:
    """Whether the run that last changed a table created it, or continued a creation that a run had just begun."""
    if record.change is None or not record.change.is_new:
        return False
    if earlier is None or not earlier.is_begun_creation:
        return True
    return is_creation_begun_recently(earlier, record.deployed_at or record.change.at)


def _is_additional(difference: aspects.Difference, policy: Policy) -> bool:
    """Whether it is a tag or grant that the model does not declare and the policy lets others add."""
    if difference.kind is DriftKind.GRANT_ADDED:
        return policy.grants is not Ownership.FULL
    is_tag = difference.kind in (DriftKind.TABLE_TAG, DriftKind.COLUMN_TAG)
    return is_tag and difference.change.desired is None and policy.tags is not Ownership.FULL


def _still_to_come(
    model: Table,
    earlier: Recorded[Table] | None,
    shown: Collection[RecordedDifference],
    policy: Policy,
) -> Iterator[RecordedDifference]:
    """Yield how a table will differ from its model for a while, if the catalog shows the run before this one late.

    A part that was late after that run may still get the values that follow the shown one. So may a filter or mask
    of that run, or of one before it that failed, that is gone by now: its view may not have shown it yet.

    Args:
        earlier: the record before the apply; None if it was long before.
        shown: how the catalog differs now.
    """
    if earlier is None:
        return
    for ours in filter(is_protected, earlier.ours):
        for difference in aspects.differences(Comparison.of(model, state_of(ours), policy=policy)):
            if difference.kind in HIDING and difference.change.desired is None:
                yield _recorded(difference.change)
    if earlier.declared is None or not earlier.lag:
        return
    comparison = Comparison.of(model, state_of(earlier.declared), policy=policy)
    changes = {difference.change.subject: difference for difference in aspects.differences(comparison)}
    now = {part.field: part.actual for part in shown}
    for field in dict.fromkeys(part.field for part in earlier.lag):
        late = [part for part in earlier.lag if part.field == field]
        change = changes[field].change if field in changes else None
        desired = change.desired if change else late[0].expected
        values = [*(part.actual for part in late), *([change.observed] if change else [])]
        seen = now.get(field, desired)
        to_come = values[values.index(seen) + 1 :] if seen in values else []
        is_hiding = field in changes and changes[field].kind in HIDING
        for actual in to_come:
            if actual != desired and not (is_hiding and actual is None):
                yield RecordedDifference(field=field, expected=desired, actual=actual)


def confirmed_definition(
    record: AnyRecord,
    model: Securable,
    intended: Securable,
    before: SecurableState | None,
    observed: SecurableState | None,
) -> AnyRecord:
    """Return the record of a function, policy or view that was just created or replaced, after a second read of it.

    Its baseline has texts as the platform shows them, which may be in other words. Every other difference means that
    the catalog shows the change late, or that it was changed again.

    Args:
        intended: what was submitted: the model with ignored drift, or the baseline that a revert restores.
        before: its state before the apply; None if the same was submitted before.
    """
    if observed is None or not observed.exists:
        return unconfirmed(record, NOT_SHOWN_YET)
    former = {_shown(difference) for difference in _differing(intended, before)} if before else set()
    differing = _differing(intended, observed)
    words = [
        difference
        for difference in differing
        if aspects.is_text(difference) and _shown(difference) not in former
    ]
    if len(words) < len(differing):
        return unconfirmed(record, NOT_SHOWN_YET)
    return replace(
        record, failure=None, whole=keep(aspects.accept(model, observed, words)) if words else None
    )


def _differing(model: Securable, observed: SecurableState) -> list[aspects.Difference]:
    if isinstance(observed, FunctionState) and isinstance(model, Function) and not observed.shows_tags:
        observed = replace(observed, tags=model.tags)
    comparison: AnyComparison = Comparison.of(model, observed)
    return [*aspects.differences(comparison)]


def _shown(difference: aspects.Difference) -> tuple[str, str | None]:
    return difference.change.subject, difference.change.observed


def unconfirmed(record: Recorded[Model_co], reason: str) -> Recorded[Model_co]:
    """Return the record of what was just applied and not read again: the next run compares it."""
    return replace(record, failure=Failure(Status.UNKNOWN, reason))


def with_accepted_drift(
    record: Recorded[Table],
    model: Table,
    observed: TableState,
    promised: TableState,
    earlier: Recorded[Table],
) -> Recorded[Table]:
    """Return the record of a table that was just applied, with the accepted drift that the apply left.

    Args:
        observed: the table before the apply.
        promised: the table after it.
        earlier: the record before the apply.
    """
    kept = unmanaged_parts(model, observed, earlier)
    left = {(difference.change.subject, difference.change.observed) for difference in kept}
    is_moved = [column.key for column in promised.columns] != [column.key for column in model.columns]
    accepted = tuple(
        accepted
        for accepted in earlier.accepted
        if (accepted.field, accepted.actual) in left
        or (is_moved and accepted.kind == DriftKind.COLUMN_ORDER.value)
    )
    return replace(record, accepted=accepted)


def attempted_by(
    plan: TablePlan,
    models: Iterable[Securable],
    records: Mapping[str, AnyRecord],
    baselines: Iterable[Securable] = (),
) -> Mapping[str, tuple[Kept[Any], ...]]:
    """Return the models that a run applies, by resource key.

    It applies recorded tables under new column names, too, and views first with the queries that stand in between. An
    undo also brings back unmanaged parts.

    Args:
        baselines: as in `Undo`; none for other runs.
    """
    by_key, whole = by_resource(models), by_resource(baselines)
    changes = {
        resource_key(change.name): change
        for change in plan.changes
        if isinstance(change, Align) or (isinstance(change, Create) and not change.name.is_container)
    }
    return {
        key: tuple(
            _attempts(by_key[key], changes[key], _former_record(changes[key], records), whole.get(key))
        )
        for key in sorted(changes.keys() & by_key.keys())
    }


def _former_record(change: SecurableChange, records: Mapping[str, AnyRecord]) -> AnyRecord | None:
    """Return the record from before a run, possibly under a former name."""
    former = aspects.former_name(change) if isinstance(change, Align) else None
    return records.get(resource_key(former or change.name))


def _attempts(
    model: Securable, change: SecurableChange, earlier: AnyRecord | None, baseline: Securable | None
) -> Iterator[Kept[Any]]:
    if isinstance(model, View) and isinstance(change, Align):
        between = (setting.query for setting in change.order.settings if setting.query)
        yield from (keep(replace(model, query=query)) for query in between)
    if not isinstance(model, Table):
        yield keep(model)
        return
    align = change if isinstance(change, AlignTable) else None
    intended = _intended(model, align)
    if isinstance(baseline, Table) and is_of_table(earlier):
        given_back = _with_parts_of_others(intended, baseline, earlier)
        if given_back != intended:
            yield keep_attempt(given_back)
    yield keep_attempt(intended)
    yield from _renamed(align, earlier)


def _with_parts_of_others(model: Table, baseline: Table, earlier: Recorded[Table]) -> Table:
    """Return a model with the unmanaged parts that an undo brings back in place of what the engine had declared.

    Other unmanaged parts were not the engine's, and do not become its own by an attempt.
    """
    before = state_of(baseline)
    record = Recorded.of(earlier.declared, baseline=earlier.baseline)
    return aspects.accept(model, before, aspects.differences(Comparison.of(model, before, record)))


def _intended(model: Table, align: AlignTable | None) -> Table:
    """Return a model with `using` of the columns alone that its run adds: their rows may lack a value afterwards."""
    added = {add.desired.key for add in align.of_type(ColumnAdd)} if align else set()
    if all(column.using is None or column.key in added for column in model.columns):
        return model
    columns = (column if column.key in added else replace(column, using=None) for column in model.columns)
    return replace(model, columns=tuple(columns))


def is_accepted_deletion(record: AnyRecord) -> bool:
    """Whether the deletion of a securable was accepted."""
    return any(accepted.kind == DELETIONS[record.kind].value for accepted in record.accepted)


def has_accepted_replacement(record: AnyRecord) -> bool:
    """Whether it was accepted that another table replaced the recorded one: the next sync records that table."""
    return any(accepted.kind == DriftKind.TABLE_REPLACED.value for accepted in record.accepted)


def _synchronized(record: AnyRecord, observed: CatalogState, compared: ComparedResource | None) -> AnyRecord:
    state_now = observed.of(record.name) if compared is None else compared.observed  # under a new name, too
    if state_now is not None and not state_now.exists and (record.name.is_container or record.applied):
        return record if record.is_begun_drop else _seen(record, is_missing=True, lag=record.lag)
    if compared is None:
        is_back = record.status is Status.MISSING and _has_tables(record.name, observed)
        return _seen(record) if is_back else record
    accepted = still_accepted(compared)
    if accepted != record.accepted:
        record = replace(record, accepted=accepted)
    differences = differences_of(compared)
    is_kept = record.is_begun_drop and not record.attempts and not drift_of(compared)
    record = _without_drop(record)
    if is_kept:
        return _seen(record)
    explained = _documented(differences)
    lag = tuple(_still_late(compared.lag, _documented(shown_late(compared, compared.observed))))
    if not differences:
        return _seen(record, lag=lag)
    checksum = schema_checksum(state_now.columns) if isinstance(state_now, TableState) else None
    if is_known(compared) and (drift := _documented(drift_of(compared))):
        failure = record.failure if compared.attempted else None
        return _seen(record, failure=failure, drift=drift, lag=lag, actual_checksum=checksum)
    return _seen(record, failure=record.failure, explained=explained, lag=lag, actual_checksum=checksum)


def _without_drop(record: AnyRecord) -> AnyRecord:
    """Return the record of what exists: a DROP of the run that last changed it was not done."""
    change = record.change
    return replace(record, change=change.with_values(is_drop=False)) if change and change.is_drop else record


def _still_late(
    lag: Iterable[RecordedDifference], shown: Collection[RecordedDifference]
) -> Iterator[RecordedDifference]:
    """Yield the parts of lag from those that are shown on: each field has them in the order in which they come."""
    late: set[str] = set()
    for part in lag:
        if part in shown:
            late.add(part.field)
        if part.field in late:
            yield part


def _has_tables(name: SecurableName, observed: CatalogState) -> bool:
    """Whether it is a schema with tables in the snapshot: undeclared schemas are not read themselves."""
    return tuple(name.key.split(".")) in observed.schemas


def _seen(
    record: AnyRecord,
    *,
    failure: Failure | None = None,
    is_missing: bool = False,
    drift: tuple[RecordedDifference, ...] = (),
    explained: tuple[RecordedDifference, ...] = (),
    lag: tuple[RecordedDifference, ...] = (),
    actual_checksum: str | None = None,
) -> AnyRecord:
    """Return a record with what a comparison with the catalog has shown, and nothing of earlier ones."""
    facts: dict[str, Any] = {
        "failure": failure,
        "is_missing": is_missing,
        "drift": drift,
        "explained": explained,
        "lag": lag,
        "actual_checksum": actual_checksum,
    }
    is_known = all(getattr(record, field) == value for field, value in facts.items())
    return record if is_known else replace(record, **facts)


def _documented(differences: Iterable[aspects.Difference]) -> tuple[RecordedDifference, ...]:
    return tuple(_recorded(difference.change) for difference in differences)


def _recorded(change: Change) -> RecordedDifference:
    return RecordedDifference(field=change.subject, expected=change.desired, actual=change.observed)


def _with_unmanaged(
    records: dict[str, AnyRecord], observed: CatalogState, managed: Collection[str]
) -> dict[str, AnyRecord]:
    """Replace the known unmanaged tables by those that exist, and omit undeclared tables that were only attempted."""
    formers = {resource_key(table.former_name) for table in observed.tables.values() if table.former_name}
    others = {(name.catalog.lower(), name.schema.lower()) for name in observed.other_tables}
    listed = observed.schemas | observed.missing_schemas | others
    given_up = {
        key
        for key, record in records.items()
        if key not in managed and key not in formers and _is_given_up(record, listed)
    }
    left = {
        key: record
        for key, record in records.items()
        if key not in given_up
        and (record.status is not Status.UNMANAGED or (key in managed and record.attempts))
    }
    for name in observed.other_tables:
        key = resource_key(name)
        if key not in left and key not in managed:
            earlier_record = records.get(key)
            left[key] = (
                earlier_record
                if earlier_record and key not in given_up
                else unmanaged_table(name, earlier_record)
            )
    return left


def _is_given_up(record: AnyRecord, listed: Collection[tuple[str, str]]) -> bool:
    if not isinstance(record.name, QualifiedName) or record.applied:
        return False
    schema = (record.name.catalog.lower(), record.name.schema.lower())
    return record.status is not Status.UNMANAGED and schema in listed


def _renamed(align: AlignTable | None, earlier: AnyRecord | None) -> Iterator[Kept[Table]]:
    """Yield the recorded models under new names of table and columns: a half-done rename leaves them there."""
    renames = renamed_columns(align) if align else None
    if align and renames and is_of_table(earlier):
        for model in earlier.ours:
            yield keep(aspects.under_name(renames.applied_to(model), align.table))
