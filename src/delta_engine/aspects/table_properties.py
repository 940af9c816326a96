"""Table properties: set if the model names them, unset if the engine applied them and the model no longer names them.

A key that no model ever named is unmanaged: Databricks and other tools set properties too. Keys that enable a table
feature belong to `table_features`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import assert_never

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    Comparison,
    CreateClauses,
    RenderContext,
    Sign,
    with_property,
)
from delta_engine.aspects.facet import TEXTS, Facet
from delta_engine.aspects.rights import takes_modify
from delta_engine.aspects.table_features import is_feature_key, is_upgrade
from delta_engine.models import Part, Table
from delta_engine.models.values import NOTHING
from delta_engine.sql.tables import sql_set_table_properties, sql_unset_table_properties
from delta_engine.state.states import REDACTED, TableState

_SET_BY_PLATFORM = (
    "delta.feature.",
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.columnMapping.maxColumnId",
    "delta.constraints.",
    "delta.enableDeletionVectors",
    "delta.enableRowTracking",
    "delta.rowTracking.",
    "delta.inCommitTimestamp",
    "delta.lastCommitTimestamp",
    "delta.lastUpdateVersion",
    "delta.liquid.",
    "delta.checkpointPolicy",
    "delta.writePartitionColumnsToParquet",
    "delta.parquet.",
    "clusterByAuto",
    "option.",
    "serialization.",
    "transient_",
    "external",
    "io.unitycatalog.",
    "spark.",
    "view.",
)
"""Prefixes of properties that Delta and Databricks set by themselves, or that stand for something else."""


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One property, both sides. None marks an absent key."""

    key: str
    desired: str
    observed: str | None

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"property {self.key} already has this value")


@dataclass(frozen=True, slots=True)
class SetTableProperties:
    """Set or overwrite properties, sorted by key."""

    phase: ClassVar[Phase] = Phase.SET_TABLE_PROPERTIES
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    properties: tuple[PropertyChange, ...]

    def __post_init__(self) -> None:
        if not self.properties:
            raise ValueError("setting table properties needs at least one")


@dataclass(frozen=True, slots=True)
class UnsetTableProperties:
    """Remove applied properties, as (key, observed value) pairs sorted by key."""

    phase: ClassVar[Phase] = Phase.UNSET_TABLE_PROPERTIES
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    properties: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        if not self.properties:
            raise ValueError("unsetting table properties needs at least one")


def diff(comparison: Comparison) -> Iterable[SetTableProperties | UnsetTableProperties]:
    """Yield one action for all properties whose value differs, and one for those to remove."""
    changes = tuple(_differing(comparison))
    if changes:
        yield SetTableProperties(changes)
    removed = tuple(_no_longer_wanted(comparison))
    if removed:
        yield UnsetTableProperties(removed)


def differences(comparison: Comparison) -> Iterable[SetTableProperties | UnsetTableProperties]:
    """Yield one action per property."""
    for change in _differing(comparison):
        yield SetTableProperties((change,))
    for removed in _no_longer_wanted(comparison):
        yield UnsetTableProperties((removed,))


def create(desired: Table, _context: RenderContext) -> CreateClauses:
    """Return the TBLPROPERTIES clause, features included."""
    return CreateClauses(properties=desired.effective_table_properties)


def render(
    actions: Sequence[SetTableProperties | UnsetTableProperties], context: RenderContext
) -> Iterable[str]:
    """Yield one SET TBLPROPERTIES or one UNSET TBLPROPERTIES."""
    for action in actions:
        match action:
            case SetTableProperties(changes):
                values = {change.key: change.desired for change in changes}
                yield sql_set_table_properties(context.table, values)
            case UnsetTableProperties(properties):
                yield sql_unset_table_properties(context.table, [key for key, _ in properties])
            case other:
                assert_never(other)


def explain(action: SetTableProperties | UnsetTableProperties) -> Iterable[Change]:
    """Yield a line per property."""
    match action:
        case SetTableProperties(changes):
            for change in changes:
                yield Change(
                    sign=Sign.ADDED if change.observed is None else Sign.CHANGED,
                    subject=f"property {change.key}",
                    observed=None if change.observed is None else repr(change.observed),
                    desired=repr(change.desired),
                )
        case UnsetTableProperties(properties):
            for key, value in properties:
                yield Change(sign=Sign.REMOVED, subject=f"property {key}", observed=repr(value))
        case other:
            assert_never(other)


def accept(model: Table, observed: TableState, action: SetTableProperties | UnsetTableProperties) -> Table:
    """Return the model with the observed properties."""
    match action:
        case SetTableProperties(changes):
            keys = [change.key for change in changes]
        case UnsetTableProperties(properties):
            keys = [key for key, _ in properties]
        case other:
            assert_never(other)
    for key in keys:
        model = with_property(model, key, observed.table_properties.get(key))
    return model


def is_set_by_platform(key: str) -> bool:
    """Whether platforms set a property by themselves."""
    return key.startswith(_SET_BY_PLATFORM)


def _differing(comparison: Comparison) -> Iterable[PropertyChange]:
    properties = comparison.observed.table_properties
    for key, value in comparison.desired.effective_table_properties.items():
        if properties.get(key) == value:
            continue
        observed = _value(properties, key)
        if observed != value and not is_upgrade(key, value) and not _is_same_value(key, value, observed):
            yield PropertyChange(key, value, observed)


def _value(properties: Mapping[str, str], key: str) -> str | None:
    """Return a property's value; Delta spells its own keys in its own way."""
    if key in properties or not key.lower().startswith("delta."):
        return properties.get(key)
    return next((value for name, value in properties.items() if name.lower() == key.lower()), None)


def _no_longer_wanted(comparison: Comparison) -> Iterable[tuple[str, str]]:
    """Yield the applied properties to unset. Table features stay: unsetting them removes nothing."""
    wanted = comparison.desired.effective_table_properties
    unwanted = {
        key: None
        for model in comparison.ours
        for key in model.effective_table_properties
        if key not in wanted
    }
    for key in unwanted:
        value = comparison.observed.table_properties.get(key)
        if value is not None and not is_feature_key(key):
            yield key, value


def _is_same_value(key: str, desired: str, observed: str | None) -> bool:
    """Delta keeps booleans of its own properties as written: `TRUE` and `true` are one value."""
    if desired == observed or observed is None:
        return desired == observed
    return (
        key.lower().startswith("delta.")
        and desired.lower() == observed.lower()
        and desired.lower() in ("true", "false")
    )


def _declarable(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties that a model can declare: neither set by the platform nor redacted."""
    return {
        key: value for key, value in properties.items() if not is_set_by_platform(key) and value != REDACTED
    }


FACET: Facet[Table, TableState, Mapping[str, str]] = Facet(
    key="properties",
    argument="table_properties",
    declared=lambda table: table.table_properties,
    absent=NOTHING,
    form=TEXTS,
    meaning="[table properties](#properties)",
    entry="property",
    observed=lambda table: table.table_properties,
    recorded=lambda table: table.effective_table_properties,
    is_always_recorded=True,
    imported=lambda _name, table: _declarable(table.table_properties),
    part=Part.PROPERTIES,
    title="properties",
)

ASPECT: Aspect[SetTableProperties | UnsetTableProperties] = Aspect(
    name="table properties",
    part=Part.PROPERTIES,
    actions={
        SetTableProperties: takes_modify("SET TBLPROPERTIES"),
        UnsetTableProperties: takes_modify("UNSET TBLPROPERTIES"),
    },
    diff=diff,
    differences=differences,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.PROPERTY,
    create=create,
)
