"""Compares tables and schemas with their baselines, less what an attempt explains. Pure.

Unmanaged parts are constraints, clustering, comments and defaults that no model of the engine ever named. The first
apply records the existing ones. Removing them is not drift, and a revert restores them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import AS_APPLIED, Policy
from delta_engine.aspects.check_constraints import CheckDrop
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.comparison import (
    Comparison,
    Renames,
    Securable,
    SecurableState,
    with_renames,
    without_declared_renames,
)
from delta_engine.aspects.delta_properties import is_set_by_platform
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop
from delta_engine.deployment.definitions import as_schema, as_table
from delta_engine.deployment.document import ResourceMetadata
from delta_engine.deployment.recorded_models import models_of, table_with_unmanaged_parts
from delta_engine.deployment.resources import resource_key
from delta_engine.drift.drifted_resources import Deviation, Recorded, UnmanagedPart
from delta_engine.models import CheckConstraint, ForeignKey, Part, Schema, Table
from delta_engine.state.states import CatalogState, SchemaState, TableState, state_of

_Subject: TypeAlias = tuple[DriftKind, str]
"""What a difference is about: its kind, and the part."""

_Part = TypeVar("_Part", ForeignKey, CheckConstraint)


def recorded(metadata: ResourceMetadata, policy: Policy) -> Recorded[Securable] | None:
    """Return the record in the metadata of a resource; None if it was never applied from a model."""
    if metadata.definition is not None:
        return Recorded(
            declared=as_table(metadata.definition),
            with_unmanaged_parts=table_with_unmanaged_parts(metadata),
            attempted=tuple(map(as_table, metadata.attempted)),
            column_order=metadata.column_order,
            policy=policy,
        )
    if metadata.schema_definition is not None:
        return Recorded(declared=as_schema(metadata.schema_definition), policy=policy)
    return None


def deviations(known: Recorded[Securable], observed: SecurableState) -> tuple[Deviation, ...]:
    """Return the drift of an existing table or schema."""
    current = _with_current_names(known)
    drift = unexplained(changes(current, observed), current, observed)
    return (*_renamed(known), *map(_deviation, drift), *_reordered(known, observed))


def changes(known: Recorded[Securable], observed: SecurableState) -> tuple[aspects.Difference, ...]:
    """Return the changes since the baseline. Removing an unmanaged part is not a change."""
    found = tuple(_differences(known.baseline, observed, known.policy))
    if not found or known.with_unmanaged_parts is None:
        return found
    subjects = {_subject_of(one) for one in _differences(known.declared, observed, known.policy)}
    return tuple(one for one in found if _subject_of(one) in subjects)


def unexplained(
    found: Sequence[aspects.Difference], known: Recorded[Securable], observed: SecurableState
) -> tuple[aspects.Difference, ...]:
    """Return the changes that no unfinished run can have made.

    A run may also have dropped keys and checks that blocked its changes, and NOT NULL where a check replaces it.
    """
    left = tuple(found)
    for model in known.attempted if left else ():
        attempted = _with_kept_parts(model, known)
        seen = {
            (one.change.subject, one.change.observed)
            for one in _differences(attempted, observed, known.policy)
        }
        left = tuple(
            one
            for one in left
            if (one.change.subject, one.change.observed) in seen and not _may_be_side_effect(one)
        )
    return left


def explained(known: Recorded[Securable], observed: SecurableState) -> tuple[Deviation, ...]:
    """Return the differences from the baseline that an attempt or ownership explains. They are not drift."""
    if not known.attempted and known.with_unmanaged_parts is None:
        return ()
    drift = {(one.kind, one.field, one.actual) for one in deviations(known, observed)}
    settled = replace(known, attempted=())
    differences = _differences(_with_current_names(known).baseline, observed, known.policy)
    everything = (*_renamed(settled), *map(_deviation, differences), *_reordered(settled, observed))
    return tuple(one for one in everything if (one.kind, one.field, one.actual) not in drift)


def unmanaged_parts(
    model: Table, observed: TableState, ours: Sequence[Table] = ()
) -> tuple[aspects.Difference, ...]:
    """Return the differences that a sync keeps; `ours` are the applied and attempted models."""
    if not observed.exists:
        return ()
    found = tuple(aspects.differences(Comparison.of(model, observed, policy=AS_APPLIED)))
    if not found:
        return ()
    planned = aspects.differences(Comparison.of(model, observed, attempted=ours))
    subjects = {difference.change.subject for difference in planned}
    return tuple(difference for difference in found if difference.change.subject not in subjects)


def with_unmanaged_parts(model: Table, observed: TableState, earlier: ResourceMetadata | None) -> Table:
    """Return the baseline of an apply: the model with the prior unmanaged parts that are not drift.

    Recorded parts stay, under the model's names. Parts that are new since the last apply are drift and stay out.
    """
    ours = models_of(earlier) if earlier else ()
    observed = _without_dropped(model, observed, ours)
    if earlier is None or earlier.definition is None:
        return _with_parts(model, model, observed, ours)
    known = table_with_unmanaged_parts(earlier) or as_table(earlier.definition)
    kept = _kept_by_plan(model, known, ours)
    now = Renames.of(model, observed).applied_to(observed)
    comparison = Comparison.of(_with_names_of(model, known), now, policy=AS_APPLIED)
    drifted = {_subject_of(one) for one in aspects.differences(comparison)}
    return _with_parts(kept, model, observed, ours, drifted)


def listed_parts(
    models: Iterable[Table], observed: CatalogState, applied: Mapping[str, Table]
) -> Iterator[UnmanagedPart]:
    """Yield the unmanaged parts of tables, and properties that no platform sets; `applied` is by table key."""
    for model in models:
        last, table = applied.get(model.key), observed.table(model.qualified_name)
        resource = resource_key(model.qualified_name)
        for one in unmanaged_parts(model, table, (last,) if last else ()):
            yield UnmanagedPart(resource=resource, key=one.change.subject, value=one.change.observed or "")
        if not model.is_about(Part.PROPERTIES):
            continue
        known = {*model.effective_table_properties, *(last.effective_table_properties if last else ())}
        for name, value in table.table_properties.items():
            if name not in known and not is_set_by_platform(name):
                yield UnmanagedPart(resource=resource, key=name, value=value)


def _differences(model: Securable, observed: SecurableState, policy: Policy) -> Iterable[aspects.Difference]:
    return aspects.differences(Comparison.of(model, observed, policy=policy))


def _may_be_side_effect(difference: aspects.Difference) -> bool:
    match difference.kind:
        case DriftKind.CHECK | DriftKind.PRIMARY_KEY | DriftKind.FOREIGN_KEY:
            return difference.change.observed is None
    return difference.kind is DriftKind.COLUMN_NULLABILITY


def _with_kept_parts(attempted: Securable, known: Recorded[Securable]) -> Securable:
    whole = known.with_unmanaged_parts
    if isinstance(attempted, Schema) or isinstance(whole, Schema) or whole is None:
        return attempted
    ours = [model for model in (known.declared, *known.attempted) if isinstance(model, Table)]
    return _kept_by_plan(attempted, whole, ours)


def _with_current_names(known: Recorded[Securable]) -> Recorded[Securable]:
    whole = known.with_unmanaged_parts
    return replace(
        known,
        declared=_with_current_names_only(known, known.declared),
        with_unmanaged_parts=whole and _with_current_names_only(known, whole),
        attempted=tuple(_renamed_model(model, known.renames) for model in known.attempted),
    )


def _renamed_model(model: Securable, renames: Mapping[str, str]) -> Securable:
    return model if isinstance(model, Schema) else with_renames(model, renames)


def _with_current_names_only(known: Recorded[Securable], model: Securable) -> Securable:
    model = _renamed_model(model, known.renames)
    return model if isinstance(model, Schema) else without_declared_renames(model)


def _renamed(known: Recorded[Securable]) -> Iterator[Deviation]:
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


def _reordered(known: Recorded[Securable], observed: SecurableState) -> tuple[Deviation, ...]:
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


def _kept_by_plan(model: Table, known: Table, ours: Sequence[Table]) -> Table:
    """Return a model with the unmanaged parts that its plan keeps; `ours` as in `unmanaged_parts`."""
    return _with_parts(model, model, _without_dropped(model, state_of(known), ours), ours)


def _subject_of(difference: aspects.Difference) -> _Subject:
    """Return the subject of a difference. A table has one primary key, whatever its name."""
    is_key = difference.kind is DriftKind.PRIMARY_KEY
    return difference.kind, "" if is_key else difference.change.subject


def _with_parts(
    base: Table,
    model: Table,
    observed: TableState,
    ours: Sequence[Table],
    excluded: Collection[_Subject] = frozenset(),
) -> Table:
    parts = [one for one in unmanaged_parts(model, observed, ours) if _subject_of(one) not in excluded]
    return aspects.accept(base, Renames.of(model, observed).applied_to(observed), parts)


def _without_dropped(model: Table, observed: TableState, ours: Sequence[Table]) -> TableState:
    """Return a table without the unmanaged parts that a plan has to drop, such as checks on dropped columns."""
    for action in aspects.diff(Comparison.of(model, observed, attempted=ours)):
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


def _with_names_of(model: Table, known: Table) -> Table:
    state = state_of(known)
    renamed = Renames.of(model, state).applied_to(state)
    return replace(
        known, columns=renamed.columns, cluster_by=renamed.cluster_by, partitioned_by=renamed.partitioned_by
    )
