"""Table features: properties that upgrade the protocol of a table. Only a manual DROP FEATURE lowers it.

They precede other properties, because dropping a column needs column mapping. The plan shows them, because older
readers can no longer read the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, Comparison, RenderContext, Sign, with_property
from delta_engine.aspects.rights import takes_modify
from delta_engine.models import Column, Part, Table
from delta_engine.models.type_widening import Widening, widening
from delta_engine.models.types import DataType, uses_type
from delta_engine.sql.expressions import is_same_expression
from delta_engine.sql.tables import sql_set_table_properties
from delta_engine.state.states import TableState

COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
TYPE_WIDENING = "delta.enableTypeWidening"
COLUMN_DEFAULTS = "delta.feature.allowColumnDefaults"
_PROTOCOL_VERSIONS = ("delta.minReaderVersion", "delta.minWriterVersion")
_FEATURE_PREFIX = "delta.feature."

_FEATURE_KEYS = (COLUMN_MAPPING_MODE, TYPE_WIDENING, *_PROTOCOL_VERSIONS)

_SWITCHES = (
    "delta.checkpointPolicy",
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV2",
    "delta.enableInCommitTimestamps",
    "delta.enableRowTracking",
)
"""Properties that upgrade the protocol when they are switched on (Delta documentation, "Table features")."""

_VALUES = ("true", "false", "v2")
"""Values that Delta reads without regard to case, as it does the mode of column mapping."""

_SPELLING = {key.lower(): key for key in (*_FEATURE_KEYS, *_SWITCHES)}

_FEATURES_OF_TYPES = {
    "timestamp_ntz": "delta.feature.timestampNtz",
    "variant": "delta.feature.variantType",
}
"""What an existing table needs before it can get a column of such a type; new tables get it themselves.
Older tables have `variantType-preview`, which counts as well (Delta documentation, "Table features")."""


@dataclass(frozen=True, slots=True)
class EnableTableFeature:
    """Set a property that upgrades the protocol."""

    phase: ClassVar[Phase] = Phase.ENABLE_TABLE_FEATURES
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.PERMANENT_UPGRADE, Hazard.BREAKS_READERS)
    key: str
    desired: str
    observed: str | None

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"property {self.key} already has this value")


@dataclass(frozen=True, slots=True)
class ContradictFeature:
    """A declared property or environment default contradicts the needs of the plan. A rule refuses it."""

    phase: ClassVar[Phase] = Phase.ENABLE_TABLE_FEATURES
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    key: str
    declared: str
    needed: str
    reason: str

    def __post_init__(self) -> None:
        if self.declared == self.needed:
            raise ValueError(f"property {self.key} is declared as it is needed")


def is_feature_key(key: str) -> bool:
    """Whether a property always belongs to this aspect. Delta ignores the case of its own keys."""
    return _spelled(key) in _FEATURE_KEYS or key.lower().startswith(_FEATURE_PREFIX)


def is_upgrade(key: str, value: str) -> bool:
    """Whether setting a property upgrades the protocol."""
    spelled = _SPELLING.get(key.lower())
    if spelled is None:
        return key.lower().startswith(_FEATURE_PREFIX)
    return spelled in _FEATURE_KEYS or value.lower() in ("true", "v2")


def allowed_values(key: str) -> tuple[str, ...]:
    """Return the values that Delta accepts, in lower case; empty for an unchecked property."""
    if key.lower().startswith(_FEATURE_PREFIX):
        return ("supported", "enabled")
    return {COLUMN_MAPPING_MODE: ("name", "id", "none"), TYPE_WIDENING: ("true", "false")}.get(
        _spelled(key), ()
    )


def diff(comparison: Comparison) -> Iterable[EnableTableFeature | ContradictFeature]:
    """Yield the features that the model declares, and those that the changes of its columns need."""
    wanted = _declared(comparison)
    if not wanted and comparison.has_equal_columns:
        return
    observed = _observed(comparison)
    for key, value, reason in _needed(comparison, observed, wanted):
        declared = wanted.get(key)
        if declared is None or _is_satisfied(key, value, declared):
            wanted[key] = value
        else:
            yield ContradictFeature(key, declared, value, reason)
    yield from _missing(wanted, observed)


def differences(comparison: Comparison) -> Iterable[EnableTableFeature]:
    """Yield the features that the model declares. The needs of a revert are not drift."""
    yield from _missing(_declared(comparison), _observed(comparison))


def changed_defaults(comparison: Comparison) -> Iterator[tuple[Column, Column]]:
    """Yield the columns, desired and observed, whose defaults differ by more than spelling."""
    for desired, observed in comparison.differing_or_new:
        one, other = desired.default, observed.default
        if one != other and (one is None or other is None or not is_same_expression(one, other)):
            yield desired, observed


def render(
    actions: Sequence[EnableTableFeature | ContradictFeature], context: RenderContext
) -> Iterable[str]:
    """Yield one SET TBLPROPERTIES for all features."""
    properties = {action.key: action.desired for action in actions if isinstance(action, EnableTableFeature)}
    if properties:
        yield sql_set_table_properties(context.table, properties)


def explain(action: EnableTableFeature | ContradictFeature) -> Iterable[Change]:
    """Yield the property with both sides."""
    match action:
        case EnableTableFeature(key, desired, observed):
            yield Change(
                sign=Sign.CHANGED if observed else Sign.ADDED,
                subject=f"table feature {key}",
                observed=observed,
                desired=desired,
            )
        case ContradictFeature(key, declared, needed, reason):
            yield Change(
                sign=Sign.CHANGED,
                subject=f"table feature {key}",
                observed=f"declared as {declared}",
                desired=f"{needed}, for {reason}",
            )


def accept(model: Table, _observed: TableState, action: EnableTableFeature | ContradictFeature) -> Table:
    """Return the model with the observed property."""
    match action:
        case EnableTableFeature(key, _, observed):
            return with_property(model, key, observed)
        case ContradictFeature():
            return model


def _spelled(key: str) -> str:
    return _SPELLING.get(key.lower(), key)


def _declared(comparison: Comparison) -> dict[str, str]:
    if not comparison.desired.is_about(Part.PROPERTIES):
        return {}
    properties = comparison.desired.effective_table_properties
    return {_spelled(key): value for key, value in properties.items() if is_upgrade(key, value)}


def _observed(comparison: Comparison) -> dict[str, str]:
    properties = comparison.observed.table_properties
    return {COLUMN_MAPPING_MODE: "none", **{_spelled(key): value for key, value in properties.items()}}


def _needed(
    comparison: Comparison, observed: Mapping[str, str], declared: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield the key, value and reason of each feature that the changes of columns need."""
    if not comparison.desired.is_about(Part.COLUMNS):
        return
    if _needs_column_mapping(comparison) and observed[COLUMN_MAPPING_MODE].lower() == "none":
        yield COLUMN_MAPPING_MODE, "name", "dropping or renaming columns or fields"
    added = _added_types(comparison)
    widenings = {widening(pair.observed, pair.desired) for pair in comparison.types}
    if widenings & {Widening.TYPE_WIDENING, Widening.TIMESTAMP_NTZ}:
        yield TYPE_WIDENING, "true", "widening types"
    if any(desired.default is not None for desired, _ in changed_defaults(comparison)):
        yield COLUMN_DEFAULTS, "supported", "setting defaults"
    for type_name, feature in _FEATURES_OF_TYPES.items():
        is_needed = any(uses_type(data_type, type_name) for data_type in added) or (
            type_name == "timestamp_ntz" and Widening.TIMESTAMP_NTZ in widenings
        )
        if is_needed and not any(key.startswith(feature) for key in (*observed, *declared)):
            yield feature, "supported", f"{type_name} in an existing table"


def _is_satisfied(key: str, desired: str, observed: str | None) -> bool:
    """Whether the table already has it: protocol versions only rise, and features stay."""
    if observed is None or desired == observed:
        return desired == observed
    if key in _PROTOCOL_VERSIONS and desired.isdecimal() and observed.isdecimal():
        return int(desired) <= int(observed)
    if desired.lower() == observed.lower() and (key == COLUMN_MAPPING_MODE or desired.lower() in _VALUES):
        return True
    return key.lower().startswith(_FEATURE_PREFIX)


def _missing(wanted: Mapping[str, str], observed: Mapping[str, str]) -> Iterable[EnableTableFeature]:
    for key, value in sorted(wanted.items()):
        if not _is_satisfied(key, value, observed.get(key)):
            yield EnableTableFeature(key, value, observed.get(key))


def _needs_column_mapping(comparison: Comparison) -> bool:
    return bool(
        comparison.dropped
        or comparison.renames.columns
        or comparison.renames.fields
        or any(pair.desired is None for pair in comparison.fields)
    )


def _added_types(comparison: Comparison) -> list[DataType]:
    fields = (pair.desired.data_type for pair in comparison.fields if pair.desired and not pair.observed)
    return [*(column.data_type for column in comparison.added), *fields]


ASPECT: Aspect[EnableTableFeature | ContradictFeature] = Aspect(
    name="table features",
    part=None,
    actions={EnableTableFeature: takes_modify("SET TBLPROPERTIES (table features)"), ContradictFeature: None},
    diff=diff,
    differences=differences,
    render=render,
    explain=explain,
    accept=accept,
    drift_kind=lambda _action: DriftKind.TABLE_FEATURE,
)
