"""Compares tables and schemas with their baselines, less what an attempt explains. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from delta_engine import aspects
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import AS_APPLIED, Policy
from delta_engine.aspects.comparison import (
    Comparison,
    Model_co,
    Securable,
    SecurableState,
    with_renames,
    without_declared_renames,
)
from delta_engine.deployment.definitions import as_schema, as_table
from delta_engine.deployment.document import ResourceMetadata
from delta_engine.deployment.recorded_models import table_with_unmanaged_parts
from delta_engine.drift.unmanaged import kept_by_plan, subject_of
from delta_engine.models import Schema, Table
from delta_engine.state.states import SchemaState

Model = TypeVar("Model", Table, Schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One difference from the baseline. None marks an absent side; `difference` is None if no aspect compares it."""

    kind: DriftKind
    field: str
    expected: str | None
    actual: str | None
    difference: aspects.Difference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(Generic[Model_co]):
    """The record of a table or schema in the deployment state.

    Args:
        with_unmanaged_parts: the model with the unmanaged parts of that time; None if there were none.
        attempted: the models of later unfinished runs. Empty for schemas: an unfinished schema is not compared.
        column_order: the column names in table order after the apply; None if unknown.
        renames: the later renames of columns, new names by old ones.
    """

    declared: Model_co
    with_unmanaged_parts: Model_co | None = None
    attempted: tuple[Model_co, ...] = ()
    column_order: tuple[str, ...] | None = None
    renames: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = AS_APPLIED

    @property
    def baseline(self) -> Model_co:
        """The table or schema as the last apply left it."""
        return self.with_unmanaged_parts or self.declared


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
    subjects = {subject_of(one) for one in _differences(known.declared, observed, known.policy)}
    return tuple(one for one in found if subject_of(one) in subjects)


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


def accepted(model: Model, observed: SecurableState, taken: Sequence[Deviation]) -> Model:
    """Return a model with the observed side of the deviations in `taken`, and its own side of all others."""
    renames = {str(one.expected): str(one.actual) for one in taken if one.kind is DriftKind.COLUMN_RENAMED}
    differences = (one.difference for one in taken if one.difference is not None)
    if isinstance(model, Schema):
        return aspects.accept(model, observed, differences)
    model = aspects.accept(with_renames(model, renames), observed, differences)
    is_reordered = any(one.kind is DriftKind.COLUMN_ORDER for one in taken)
    return _ordered_like(model, observed) if is_reordered else model


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
    return kept_by_plan(attempted, whole, ours)


def _with_current_names(known: Recorded[Securable]) -> Recorded[Securable]:
    whole = known.with_unmanaged_parts
    return replace(
        known,
        declared=_without_former_names(_renamed_model(known.declared, known.renames)),
        with_unmanaged_parts=whole and _without_former_names(_renamed_model(whole, known.renames)),
        attempted=tuple(_renamed_model(model, known.renames) for model in known.attempted),
    )


def _renamed_model(model: Securable, renames: Mapping[str, str]) -> Securable:
    return model if isinstance(model, Schema) else with_renames(model, renames)


def _without_former_names(model: Securable) -> Securable:
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


def _ordered_like(model: Table, observed: SecurableState) -> Table:
    places = {key: place for place, key in enumerate(_column_keys(observed))}
    ordered = sorted(model.columns, key=lambda column: places.get(column.key, len(places)))
    return replace(model, columns=tuple(ordered))


def _column_keys(side: Securable | SecurableState) -> list[str]:
    return [] if isinstance(side, (Schema, SchemaState)) else [column.key for column in side.columns]
