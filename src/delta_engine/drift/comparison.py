"""Compares securables with their baselines, less what an attempt explains. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import ColumnOrder, Ownership, Policy, as_applied
from delta_engine.aspects import Difference
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.delta_properties import comparable, is_feature_key, is_set_by_platform
from delta_engine.aspects.renames import Renames, named_renames, pending_renames
from delta_engine.deployment.resources import shared_order
from delta_engine.drift.baselines import (
    Subject,
    differences_from,
    subject_of,
    unmanaged_parts,
    with_former_columns,
)
from delta_engine.drift.drifted_resources import (
    Compared,
    ComparedResource,
    UnmanagedPart,
)
from delta_engine.drift.lateness import NOT_TOLD_BY_ITSELF, is_recent, late_parts
from delta_engine.models import (
    Column,
    Part,
    QualifiedName,
    Securable,
    SecurableName,
    Table,
    former_names,
    resource_key,
)
from delta_engine.models.nested_types import Path, all_differences, lower_path, paths_inside
from delta_engine.models.types import DataType
from delta_engine.ownership.recorded import (
    AcceptedDrift,
    AnyRecord,
    Recorded,
    Status,
)
from delta_engine.sql.readable_types import readable_data_type
from delta_engine.state.states import (
    CatalogState,
    SecurableState,
    TableState,
    former_name_of,
)
from delta_engine.state.view_states import ViewState
from delta_engine.telemetry.garbage import no_garbage_collection

_NAME = attrgetter("name")

SomeCompared = TypeVar("SomeCompared", bound=ComparedResource)

DriftKey: TypeAlias = tuple[str, str, str | None]
"""The kind, subject and observed side of drift."""


@no_garbage_collection()
def compared(
    records: Mapping[str, AnyRecord],
    observed: CatalogState,
    policy: Policy,
    models: Iterable[Securable],
    earlier: Mapping[str, ComparedResource] = MappingProxyType({}),
    *,
    now: datetime,
) -> dict[str, ComparedResource]:
    """Compare each applied record with what exists under its present name, once, by resource key.

    Left out is what was not read, and what something else has taken the name of.

    Args:
        policy: of the environment.
        models: the declared ones. What one of them renames is compared under its former name.
        earlier: the comparisons with an earlier snapshot. What looks the same is not compared again.
    """
    new_names, held = _pending_names(models), as_applied(policy)
    resources = {}
    for key, recorded in sorted(records.items()):
        record = _without_ended_doubt(recorded, now)
        name = new_names.get(key, record.name)
        present = observed.of(name)
        if record.applied is None or present is None:
            continue
        if key in new_names and present.exists and former_name_of(present) is None:
            continue  # the new name is taken: nothing of the recorded securable was read
        before = earlier.get(key)
        if before and (before.record, before.model_name) == (record, name) and _looks_same(before, present):
            resources[key] = before
            continue
        attempted = () if name.is_container else record.attempted  # an unfinished schema is not compared
        if isinstance(present, TableState | ViewState) and present.former_name is not None:
            if present.former_name.key != record.name.key:
                continue  # the record of what is gone: another table or view gets its name
            present = replace(present, former_name=None)
            again = records.get(resource_key(name))
            if again is not None:  # an unfinished run that renames it has its attempts under the new name
                attempted = (*again.attempted, *attempted)
        resources[key] = _with_changes(
            Compared(
                record=record,
                model_name=name,
                observed=present,
                policy=_as_recorded(held, record.full_ownership),
                attempted=attempted,
                lag=record.lag if is_recent(record, now) else (),
            )
        )
    return resources


def _without_ended_doubt(record: AnyRecord, now: datetime) -> AnyRecord:
    """Return a record without the doubt of a run that applied all of a table and has not verified it, after an hour.

    The doubt about functions, policies and views stays: only a second read records the texts that the platform shows.
    """
    if record.status is not Status.UNKNOWN or record.attempts or not record.is_half_done:
        return record
    if not _is_applied_table(record) or is_recent(record, now):
        return record
    return replace(record, failure=None, explained=())


def _pending_names(models: Iterable[Securable]) -> dict[str, SecurableName]:
    """Return the new names of what models rename, by the keys of the resources."""
    return {resource_key(former): model.qualified_name for model in models for former in former_names(model)}


def with_new_names(resource: SomeCompared, renames: Renames) -> SomeCompared:
    """Compare a table again, whose columns or fields were renamed since."""
    return _with_changes(replace(resource, renames=renames))


def differences_of(resource: ComparedResource) -> tuple[Difference, ...]:
    """Return how an existing securable differs from what was applied, as far as no history is needed."""
    return (*resource.changes, *_reordered(resource))


def _looks_same(before: ComparedResource, present: SecurableState) -> bool:
    """Whether a snapshot has nothing new of a resource, nor what a table tells of itself."""
    if isinstance(before.observed, TableState) and isinstance(present, TableState):
        return before.observed == present and before.observed.described == present.described
    return bool(before.observed == present)


def is_known(resource: ComparedResource) -> bool:
    """Whether it is known what runs of the engine did to it. A DROP that may have failed changed nothing of it."""
    record = resource.record
    if record.is_begun_drop:
        return resource.observed.exists
    return not record.is_half_done or bool(resource.attempted)


def is_unread(resource: ComparedResource) -> bool:
    """Whether a run applied all of an existing table and did not read it again."""
    record = resource.record
    return resource.observed.exists and _is_applied_table(record) and not is_known(resource)


def _is_applied_table(record: AnyRecord) -> bool:
    """Whether it is the record of a table whose last change is known to be finished."""
    return isinstance(record.name, QualifiedName) and record.change is not None and record.is_change_applied


def drift_of(resource: ComparedResource) -> tuple[Difference, ...]:
    """Return the drift of an existing securable, without what the catalog only shows late.

    Of a table that its run did not read again, that is what every table tells of itself: views may show all else late.
    """
    everything = (*_renamed(resource), *unexplained(resource), *_reordered(resource))
    late = late_parts(resource, resource.observed)
    doubted = NOT_TOLD_BY_ITSELF if is_unread(resource) else ()
    return tuple(
        difference
        for difference in everything
        if difference.change not in late and difference.kind not in doubted
    )


def _with_changes(resource: SomeCompared) -> SomeCompared:
    return replace(resource, changes=_changes(resource) if resource.observed.exists else ())


def _as_recorded(policy: Policy, full_ownership: Sequence[str] | None) -> Policy:
    """Return the policy for drift: tags and grants from before their ownership became `full` are not drift."""
    if full_ownership is None:
        return policy
    return replace(
        policy,
        tags=policy.tags if "tags" in full_ownership else Ownership.ADDITIVE,
        grants=policy.grants if "grants" in full_ownership else Ownership.ADDITIVE,
    )


def _changes(resource: ComparedResource) -> tuple[Difference, ...]:
    """Return the changes since the baseline. Removing an unmanaged part is not a change."""
    renamed, side = resource.renamed, (resource.observed, resource.policy)
    changes = tuple(differences_from(renamed(resource.baseline), *side))
    if not changes or resource.record.whole is None:
        return changes
    subjects = {*map(subject_of, differences_from(renamed(resource.declared), *side))}
    return tuple(change for change in changes if subject_of(change) in subjects)


def unexplained(resource: ComparedResource) -> tuple[Difference, ...]:
    """Return the changes that no unfinished run can have made. Accepted ones were there before the run.

    A run may also have dropped keys and checks that blocked its changes, NOT NULL where a check replaces it, and what a
    replaced function or a view with another query loses. RESTORE brings back columns, also of runs that were never
    recorded: a table that has it differs from the attempted model only by added columns.
    """
    left, observed, renamed = resource.changes, resource.observed, resource.renamed
    if not left or not resource.attempted:
        return left
    removed, baseline = Recorded.of(renamed(resource.declared)), renamed(resource.baseline)
    before = {*map(accepted_key, resource.record.accepted)}
    for model in map(renamed, resource.attempted):
        attempted = _with_kept_parts(model, baseline, observed)
        undone = {*map(subject_of, differences_from(attempted, observed, resource.policy, removed))}
        if _may_be_restored(resource.record):
            added = differences_from(model, observed, resource.policy, removed)
            if all(difference.kind is DriftKind.COLUMN_ADDED for difference in added):
                undone = {(kind, part) for kind, part in undone if kind not in _RESTORED}
        left = tuple(
            change for change in left if drift_key(change) in before or not _explains(change, undone)
        )
    return left


_RESTORED: Final = frozenset(
    {
        DriftKind.COLUMN_ADDED,
        DriftKind.COLUMN_TYPE,
        DriftKind.COLUMN_NULLABILITY,
        DriftKind.COLUMN_DEFAULT,
        DriftKind.COLUMN_GENERATION,
        DriftKind.COLUMN_COMMENT,
    }
)
"""What RESTORE brings back of a column that others had added before the undone run."""


def _may_be_restored(record: AnyRecord) -> bool:
    """Whether an undo that did not finish may have brought a table back to a version."""
    change = record.change
    return change is not None and change.undoes is not None and change.needs_restore


def may_be_renamed(resource: ComparedResource) -> bool:
    """Whether a drop and an add of columns or fields may be a rename, which only the history can tell."""
    kinds = {type(change.action) for change in resource.changes}
    return {ColumnAdd, ColumnDrop} <= kinds or {FieldAdd, FieldDrop} <= kinds


def still_accepted(resource: ComparedResource) -> tuple[AcceptedDrift, ...]:
    """Return the accepted drift that was not undone by hand. Only the history tells of renames and replacements."""
    accepted = resource.record.accepted
    if not accepted or resource.attempted or is_unread(resource):
        return accepted
    left = {*map(drift_key, drift_of(resource))}
    beyond = {DriftKind.TABLE_REPLACED.value, *([DriftKind.COLUMN_RENAMED.value] if resource.changes else [])}
    return tuple(drift for drift in accepted if drift.kind in beyond or accepted_key(drift) in left)


def explained(resource: ComparedResource) -> tuple[Difference, ...]:
    """Return the changes that an unfinished run may have made, or that are shown late. They are not drift."""
    if not resource.attempted:
        return ()
    settled, drift = replace(resource, attempted=()), drift_of(resource)
    everything = (*_renamed(settled), *resource.changes, *_reordered(settled))
    return tuple(difference for difference in everything if difference not in drift)


def beyond_drift(resource: ComparedResource, policy: Policy) -> Iterator[Difference]:
    """Yield what a policy would remove and is not drift: tags and grants from before it became `full`."""
    if {*policy.fully_owned} <= {*resource.policy.fully_owned}:
        return
    drift = tuple(differences_from(resource.baseline, resource.observed, resource.policy))
    for difference in differences_from(resource.baseline, resource.observed, policy):
        if difference not in drift:
            yield difference


def listed_parts(
    models: Iterable[Table],
    observed: CatalogState,
    records: Mapping[str, Recorded[Any]],
    column_order: ColumnOrder,
) -> Iterator[UnmanagedPart]:
    """Yield the unmanaged parts of tables, and orders of columns that are kept.

    Properties that platforms set, or that the engine switches on for a plan, are not among them.

    Args:
        records: by resource key.
        column_order: of the policy.
    """
    for model in models:
        resource, table = resource_key(model.qualified_name), observed.table(model.qualified_name)
        if not table.exists:
            continue
        record = records.get(resource)
        for part in unmanaged_parts(model, table, record):
            yield UnmanagedPart(resource=resource, key=part.change.subject, value=part.change.observed or "")
        for key, value in _other_cases(model, table):
            yield UnmanagedPart(resource=resource, key=key, value=value)
        order = _order_kept(model, table) if column_order is ColumnOrder.REPORT else None
        if order is not None:
            yield UnmanagedPart(resource=resource, key="column order", value=order)
        if not model.is_about(Part.PROPERTIES):
            continue
        ours = record.ours if record else ()
        declared = {comparable(key) for side in (model, *ours) for key in side.effective_table_properties}
        for name, value in table.table_properties.items():
            if comparable(name) not in declared and not (is_set_by_platform(name) or is_feature_key(name)):
                yield UnmanagedPart(resource=resource, key=name, value=value)


def _other_cases(model: Table, table: TableState) -> Iterator[tuple[str, str]]:
    """Yield the columns of a model whose names, or names of fields inside, have another case in the table, and how."""
    if not model.is_about(Part.COLUMNS) or table.columns == model.columns:
        return
    present = {column.key: column for column in table.columns}
    for column in model.columns:
        there = present.get(column.key, column)
        if there.name != column.name:
            yield f"case of column {column.name}", there.name
        if _has_other_cases(there.data_type, column.data_type):
            yield f"case of fields in column {column.name}", readable_data_type(there.data_type)


def _has_other_cases(observed: DataType, desired: DataType) -> bool:
    """Whether the names of fields differ in their case alone; their order does not matter."""
    if observed == desired or any(True for _ in all_differences(observed, desired)):
        return False
    return {*paths_inside(observed)} != {*paths_inside(desired)}


def _order_kept(model: Table, table: TableState) -> str | None:
    """Return the table's order of the model's columns; None if it is the model's."""
    if not model.is_about(Part.COLUMNS) or [*map(_NAME, model.columns)] == [*map(_NAME, table.columns)]:
        return None
    table = pending_renames(model, table).applied_to(table)
    expected, actual = _shown_order(_column_keys(model), _column_keys(table))
    return None if expected == actual else actual


def _explains(difference: Difference, differing: Collection[Subject]) -> bool:
    """Whether a run that attempted a model may have made a change; `differing` is what it left undone."""
    return subject_of(difference) not in differing or _may_be_side_effect(difference)


def _declares_rename(model: Securable, old: Path, new: Path) -> bool:
    """Whether a model names the former name of a column or field. Without that, a run renames nothing."""
    path = lower_path(new)
    return isinstance(model, Table) and ((*path[:-1], old[-1].lower()), path) in named_renames(model.columns)


def _may_be_side_effect(difference: Difference) -> bool:
    match difference.kind:
        case DriftKind.CHECK | DriftKind.PRIMARY_KEY | DriftKind.FOREIGN_KEY:
            return difference.change.observed is None
    return difference.kind is DriftKind.COLUMN_NULLABILITY or difference.kind in _LOST_FOR_A_WHILE


_LOST_FOR_A_WHILE: Final = frozenset(
    {
        DriftKind.FUNCTION_GRANT,
        DriftKind.FUNCTION_TAG,
        DriftKind.FUNCTION_OWNER,
        DriftKind.VIEW_COMMENT,
        DriftKind.VIEW_COLUMN_COMMENT,
        DriftKind.VIEW_TAG,
        DriftKind.VIEW_COLUMN_TAG,
    }
)
"""What a replaced function, or a view with another query, may lose until the run restores it."""


def _with_kept_parts(attempted: Securable, baseline: Securable, observed: SecurableState) -> Securable:
    """Return an attempted model with what its run left as it was."""
    if not (
        isinstance(attempted, Table) and isinstance(baseline, Table) and isinstance(observed, TableState)
    ):
        return attempted
    attempted = replace(
        attempted,
        owner=attempted.owner or baseline.owner,
        predictive_optimization=attempted.predictive_optimization or baseline.predictive_optimization,
    )
    return with_former_columns(attempted, baseline, observed)


def _renamed(resource: ComparedResource) -> Iterator[Difference]:
    """Yield the renames that no unfinished run can have made. Accepted ones were there before the run."""
    before = {*map(accepted_key, resource.record.accepted)}
    for old, new in resource.renames.paths.items():
        renamed = _renamed_column(old, new)
        is_accepted = drift_key(renamed) in before
        if is_accepted or not any(_declares_rename(model, old, new) for model in resource.attempted):
            yield renamed


def _renamed_column(old: Path, new: Path) -> Difference:
    """Return the difference of a renamed column or field."""
    former, name = ".".join(old), ".".join(new)
    change = Change(f"column {former}", observed=name, desired=former)
    return Difference(kind=DriftKind.COLUMN_RENAMED, change=change, renamed=(old, new))


def drift_key(difference: Difference) -> DriftKey:
    """Return what identifies drift from its acceptance on."""
    return difference.kind.value, difference.change.subject, difference.change.observed


def accepted_key(drift: AcceptedDrift) -> DriftKey:
    """Return what identifies accepted drift."""
    return drift.kind, drift.field, drift.actual


def _reordered(resource: ComparedResource) -> tuple[Difference, ...]:
    order = resource.record.column_order
    if order is None or (resource.attempted and (order or not _leave_columns(resource))):
        return ()  # the order is unknown, or an unfinished run may have moved columns
    new_names = {old.lower(): new.lower() for old, new in resource.renames.columns.items()}
    applied = [name.lower() for name in order] or _column_keys(resource.declared)
    expected = [new_names.get(name, name) for name in applied]
    present = _column_keys(resource.observed)
    if expected == present:
        return ()
    desired_order, actual = _shown_order(expected, present)
    if desired_order == actual:
        return ()
    change = Change("column order", observed=actual, desired=desired_order)
    return (Difference(kind=DriftKind.COLUMN_ORDER, change=change),)


def _leave_columns(resource: ComparedResource) -> bool:
    """Whether unfinished runs were to leave the columns of a table as they were applied."""
    applied, attempted = resource.declared, resource.attempted
    return isinstance(applied, Table) and all(
        isinstance(model, Table)
        and _without_former_names(model.columns) == _without_former_names(applied.columns)
        and model.partitioned_by == applied.partitioned_by
        for model in attempted
    )


def _without_former_names(columns: Iterable[Column]) -> list[Column]:
    """Return columns as the record of an apply has them."""
    return [replace(column, renamed_from=(), renamed_fields={}) for column in columns]


def _shown_order(expected: Sequence[str], present: Sequence[str]) -> tuple[str, str]:
    """Return how reports show the columns that both sides have, as each side orders them."""
    expected_order, actual = shared_order(expected, present)
    return f"({', '.join(expected_order)})", f"({', '.join(actual)})"


def _column_keys(side: Securable | SecurableState) -> list[str]:
    return [column.key for column in side.columns]
