"""Compares tables and schemas with their baselines, less what an attempt explains. Pure.

Unmanaged parts are constraints, clustering, comments and defaults that no model of the engine ever named. The first
apply records the existing ones. Removing them is not drift, and a revert restores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import AS_APPLIED, NO_POLICY, Ownership, Policy, as_applied
from delta_engine.aspects.check_constraints import CheckDrop
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.comparison import (
    Comparison,
    Securable,
    SecurableState,
    with_renames,
    without_declared_renames,
)
from delta_engine.aspects.delta_properties import is_set_by_platform
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.deployment.document import DeploymentState, Resource, SchemaResource, TableResource
from delta_engine.deployment.recorded_models import schema_records
from delta_engine.deployment.resources import resource_key, resource_name
from delta_engine.drift.drifted_resources import (
    AppliedRecord,
    Compared,
    ComparedResource,
    Deviation,
    UnmanagedPart,
)
from delta_engine.models import (
    CheckConstraint,
    Column,
    ForeignKey,
    Part,
    QualifiedName,
    Schema,
    SchemaName,
    Table,
)
from delta_engine.models.record import Record
from delta_engine.state.states import ABSENT, CatalogState, SchemaState, TableState, state_of

Subject: TypeAlias = tuple[DriftKind, str]
"""What a difference is about: its kind, and the part."""

_Part = TypeVar("_Part", ForeignKey, CheckConstraint)


def compared(
    state: DeploymentState | None,
    records: Mapping[str, Record[Table]],
    observed: CatalogState,
    policy: Policy,
) -> dict[str, ComparedResource]:
    """Compare every record with what exists, once, by resource key. Resources that were not read are left out.

    Args:
        records: of tables, by `QualifiedName.key`.
        policy: of the environment.
    """
    schemas: Mapping[str, Record[Securable]] = schema_records(state)
    found = {}
    for key, resource in sorted(state.resources.items()) if state else ():
        name = key.partition(".")[2]
        record = (schemas if isinstance(resource, SchemaResource) else records).get(name)
        present = state_under(resource_name(resource), observed)
        if record is not None and record.declared is not None and present is not None:
            found[key] = _compared(resource, applied_record(resource, record, policy), present)
    return found


def state_under(name: QualifiedName | SchemaName, observed: CatalogState) -> SecurableState | None:
    """Return the state under a name; None if the snapshot does not cover it."""
    return observed.schema(name) if isinstance(name, SchemaName) else observed.tables.get(name.key)


def applied_record(resource: Resource, record: Record[Securable], policy: Policy) -> AppliedRecord[Securable]:
    """Return the record of an applied resource, with the policy that decides which undeclared parts are drift."""
    assert record.declared is not None
    table = resource if isinstance(resource, TableResource) else None
    return AppliedRecord(
        declared=record.declared,
        with_unmanaged_parts=record.with_unmanaged_parts,
        attempted=record.attempted if table else (),  # an unfinished schema is not compared
        column_order=table.metadata.column_order if table else None,
        policy=_as_recorded(policy, resource.metadata.full_ownership),
    )


def with_new_column_names(found: ComparedResource, renames: Mapping[str, str]) -> ComparedResource:
    """Compare a table again, whose columns were renamed since; `renames` has new names by old ones."""
    return _compared(found.resource, replace(found.recorded, renames=renames), found.observed)


def deviations(found: ComparedResource) -> tuple[Deviation, ...]:
    """Return the drift of an existing table or schema, without what the catalog only shows late."""
    known = found.recorded
    everything = (*_renamed(known), *map(_deviation, found.drift), *_reordered(known, found.observed))
    resource = found.resource
    lag = resource.metadata.lag if isinstance(resource, TableResource) else ()
    late = {(one.field, one.expected, one.actual) for one in lag}
    return tuple(one for one in everything if (one.field, one.expected, one.actual) not in late)


def _compared(
    resource: Resource, known: AppliedRecord[Securable], observed: SecurableState
) -> ComparedResource:
    current = _with_current_names(known)
    changes = _changes(current, observed) if observed.exists else ()
    return Compared(
        resource=resource,
        recorded=known,
        observed=observed,
        changes=changes,
        drift=_unexplained(changes, current, observed),
    )


def _as_recorded(policy: Policy, full_ownership: Sequence[str] | None) -> Policy:
    """Return the policy of drift: what was there before a policy became `full` is none."""
    held = as_applied(policy)
    if full_ownership is None:
        return held
    return replace(
        held,
        tags=held.tags if "tags" in full_ownership else Ownership.ADDITIVE,
        grants=held.grants if "grants" in full_ownership else Ownership.ADDITIVE,
    )


def _changes(known: AppliedRecord[Securable], observed: SecurableState) -> tuple[aspects.Difference, ...]:
    """Return the changes since the baseline. Removing an unmanaged part is not a change."""
    found = tuple(_differences(known.baseline, observed, known.policy))
    if not found or known.with_unmanaged_parts is None:
        return found
    subjects = {subject_of(one) for one in _differences(known.declared, observed, known.policy)}
    return tuple(one for one in found if subject_of(one) in subjects)


def _unexplained(
    found: Sequence[aspects.Difference], known: AppliedRecord[Securable], observed: SecurableState
) -> tuple[aspects.Difference, ...]:
    """Return the changes that no unfinished run can have made.

    A run may also have dropped keys and checks that blocked its changes, and NOT NULL where a check replaces it.
    """
    left, removed = tuple(found), Record(declared=known.declared)
    for model in known.attempted if left else ():
        attempted = _with_kept_parts(model, known)
        seen = {subject_of(one) for one in _differences(attempted, observed, known.policy, removed)}
        left = tuple(one for one in left if subject_of(one) in seen and not _may_be_side_effect(one))
    return left


def subject_of(difference: aspects.Difference) -> Subject:
    """Return the subject of a difference. A table has one primary key, whatever its name."""
    is_key = difference.kind is DriftKind.PRIMARY_KEY
    return difference.kind, "" if is_key else difference.change.subject


def explained(found: ComparedResource) -> tuple[Deviation, ...]:
    """Return the differences from the baseline that an attempt or ownership explains. They are not drift."""
    known, observed = found.recorded, found.observed
    if not known.attempted and known.with_unmanaged_parts is None:
        return ()
    drift = {(one.kind, one.field, one.actual) for one in deviations(found)}
    settled = replace(known, attempted=())
    differences = _differences(_with_current_names(known).baseline, observed, known.policy)
    everything = (*_renamed(settled), *map(_deviation, differences), *_reordered(settled, observed))
    return tuple(one for one in everything if (one.kind, one.field, one.actual) not in drift)


def unmanaged_parts(
    model: Table, observed: TableState, record: Record[Table] | None
) -> tuple[aspects.Difference, ...]:
    """Return the differences that a sync keeps."""
    return kept_parts(Comparison.of(model, observed, record)) if observed.exists else ()


def kept_parts(comparison: Comparison) -> tuple[aspects.Difference, ...]:
    """Return the differences of a comparison that a sync keeps."""
    found = tuple(aspects.differences(replace(comparison, policy=AS_APPLIED)))
    if not found:
        return ()
    planned = {one.change.subject for one in aspects.differences(replace(comparison, policy=NO_POLICY))}
    return tuple(one for one in found if one.change.subject not in planned)


def with_unmanaged_parts(model: Table, observed: TableState, earlier: Record[Table]) -> Table | None:
    """Return the baseline of an apply: the model with the prior unmanaged parts that are not drift; None without any.

    Those are the parts of the table when the engine took it over, and of columns that the model took over since.
    """
    known = earlier.baseline
    if known is None:
        before = observed
    elif (taken := _taken_over(model, observed, known)) or earlier.with_unmanaged_parts is not None:
        before = replace(state_of(known), columns=(*known.columns, *taken))
    else:
        return None
    if not before.exists:
        return None
    comparison = Comparison.of(model, before, earlier)
    comparison = replace(comparison, observed=_without_dropped(comparison))
    found = aspects.accept(model, comparison.observed, kept_parts(comparison))
    return None if found == model else found


def listed_parts(
    models: Iterable[Table], observed: CatalogState, records: Mapping[str, Record[Table]]
) -> Iterator[UnmanagedPart]:
    """Yield the unmanaged parts of tables, and properties that no platform sets; `records` is by table key."""
    for model in models:
        record, table = records.get(model.key), observed.table(model.qualified_name)
        resource = resource_key(model.qualified_name)
        for one in unmanaged_parts(model, table, record):
            yield UnmanagedPart(resource=resource, key=one.change.subject, value=one.change.observed or "")
        if not model.is_about(Part.PROPERTIES):
            continue
        ours = record.ours if record else ()
        known = {key for one in (model, *ours) for key in one.effective_table_properties}
        for name, value in table.table_properties.items():
            if name not in known and not is_set_by_platform(name):
                yield UnmanagedPart(resource=resource, key=name, value=value)


def _differences(
    model: Securable, observed: SecurableState, policy: Policy, record: Record[Securable] | None = None
) -> Iterable[aspects.Difference]:
    return aspects.differences(Comparison.of(model, observed, record, policy))


def _may_be_side_effect(difference: aspects.Difference) -> bool:
    match difference.kind:
        case DriftKind.CHECK | DriftKind.PRIMARY_KEY | DriftKind.FOREIGN_KEY:
            return difference.change.observed is None
    return difference.kind is DriftKind.COLUMN_NULLABILITY


def _with_kept_parts(attempted: Securable, known: AppliedRecord[Securable]) -> Securable:
    whole = known.with_unmanaged_parts
    if isinstance(attempted, Schema) or isinstance(whole, Schema) or whole is None:
        return attempted
    ours = tuple(model for model in known.ours if isinstance(model, Table))
    record = Record(declared=ours[0], with_unmanaged_parts=whole, attempted=ours[1:])
    return with_unmanaged_parts(attempted, ABSENT, record) or attempted


def _with_current_names(known: AppliedRecord[Securable]) -> AppliedRecord[Securable]:
    whole = known.with_unmanaged_parts
    return replace(
        known,
        declared=_with_current_names_only(known, known.declared),
        with_unmanaged_parts=whole and _with_current_names_only(known, whole),
        attempted=tuple(_renamed_model(model, known.renames) for model in known.attempted),
    )


def _renamed_model(model: Securable, renames: Mapping[str, str]) -> Securable:
    return model if isinstance(model, Schema) else with_renames(model, renames)


def _with_current_names_only(known: AppliedRecord[Securable], model: Securable) -> Securable:
    model = _renamed_model(model, known.renames)
    return model if isinstance(model, Schema) else without_declared_renames(model)


def _renamed(known: AppliedRecord[Securable]) -> Iterator[Deviation]:
    for old, new in known.renames.items():
        if all(old.lower() in _column_keys(model) for model in known.attempted):
            yield Deviation(kind=DriftKind.COLUMN_RENAMED, field=f"column {old}", expected=old, actual=new)


def _deviation(difference: aspects.Difference) -> Deviation:
    return Deviation(
        kind=difference.kind,
        field=difference.change.subject,
        expected=difference.change.desired,
        actual=difference.change.observed,
        difference=difference,
    )


def _reordered(known: AppliedRecord[Securable], observed: SecurableState) -> tuple[Deviation, ...]:
    if known.column_order is None or known.attempted:
        return ()  # the order is unknown, or an unfinished run was moving columns
    new_names = {old.lower(): new.lower() for old, new in known.renames.items()}
    applied = [name.lower() for name in known.column_order] or _column_keys(known.declared)
    expected = [new_names.get(name, name) for name in applied]
    present = _column_keys(observed)
    shared = {*present} & {*expected}
    wanted = [name for name in expected if name in shared]
    actual = [name for name in present if name in shared]
    if wanted == actual:
        return ()
    return (
        Deviation(
            kind=DriftKind.COLUMN_ORDER,
            field="column order",
            expected=f"({', '.join(wanted)})",
            actual=f"({', '.join(actual)})",
        ),
    )


def _column_keys(side: Securable | SecurableState) -> list[str]:
    return [] if isinstance(side, (Schema, SchemaState)) else [column.key for column in side.columns]


def _taken_over(model: Table, observed: TableState, known: Table) -> tuple[Column, ...]:
    """Return the columns that others added since the baseline and that the model declares now."""
    former = {column.key: (column.renamed_from or column.name).lower() for column in model.columns}
    columns = {column.key for column in known.columns}
    return tuple(
        column
        for column in observed.columns
        if column.key in former and columns.isdisjoint((column.key, former[column.key]))
    )


def _without_dropped(comparison: Comparison) -> TableState:
    """Return a table without the unmanaged parts that a plan has to drop, such as checks on dropped columns."""
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
    return observed


def _without(parts: tuple[_Part, ...], part: _Part) -> tuple[_Part, ...]:
    return tuple(one for one in parts if one != part)
