"""Table features: properties that upgrade the protocol of a table. Only a manual DROP FEATURE lowers it.

The features that a change of the same plan needs precede that change: dropping a column needs column mapping. Other
features follow the changes that the platform may refuse, because no statement takes an upgrade back. The plan shows
them, because older readers can no longer read the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import Aspect, Change, RenderContext, takes_modify
from delta_engine.aspects.changed_models import with_property
from delta_engine.aspects.comparison import Comparison, changed_defaults
from delta_engine.aspects.delta_properties import (
    COLUMN_DEFAULTS,
    COLUMN_MAPPING_MODE,
    TYPE_WIDENING,
    comparable,
    is_held_by_catalog,
    is_same_value,
    is_satisfied,
    is_upgrade,
    need_column_mapping,
    needs_column_mapping,
    spelled,
)
from delta_engine.models import Part, Table
from delta_engine.models.nested_types import Widening, widening
from delta_engine.models.types import AtomicType, uses_type
from delta_engine.sql.tables import sql_set_table_properties
from delta_engine.state.states import TableState

_FEATURES_OF_TYPES = {
    "timestamp_ntz": "delta.feature.timestampNtz",
    "variant": "delta.feature.variantType",
}
"""What an existing table needs before it can get a column of such a type; new tables get it themselves.
Older tables have `variantType-preview`, which counts as well (Delta documentation, "Table features")."""


@dataclass(frozen=True, slots=True)
class EnableTableFeature:
    """Set a property that upgrades the protocol; `is_needed` if a change of the same plan needs it."""

    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.PERMANENT_UPGRADE, Hazard.BREAKS_READERS)
    key: str
    desired: str
    observed: str | None
    is_needed: bool = False

    def __post_init__(self) -> None:
        if self.desired == self.observed:
            raise ValueError(f"property {self.key} already has this value")

    @property
    def phase(self) -> Phase:
        """The phase before the change that needs it, or the one after all changes that may be refused."""
        return Phase.ENABLE_TABLE_FEATURES if self.is_needed else Phase.UPGRADE_TABLE


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
            raise ValueError(f"property {self.key} is already declared as needed")


_Action: TypeAlias = EnableTableFeature | ContradictFeature


def _diff(comparison: Comparison) -> Iterable[_Action]:
    """Yield the features that the model declares, and those that the changes of its columns need."""
    desired, contradictions = _declared(comparison)
    yield from contradictions
    sets_default = not comparison.has_equal_columns and _sets_default(comparison)
    if not (desired or sets_default) and comparison.has_equal_structure:
        return
    observed = _observed(comparison)
    needed = set()
    for key, value, reason in _needed(comparison, observed, desired, sets_default=sets_default):
        needed.add(key)
        declared = desired.get(key)
        if declared is None or is_satisfied(key, value, declared):
            desired[key] = value
        else:
            yield ContradictFeature(key, declared, value, reason)
    yield from _missing(desired, observed, needed)


def _differences(comparison: Comparison) -> Iterable[EnableTableFeature]:
    """Yield the features that the model declares. The needs of a revert are not drift."""
    declared, _ = _declared(comparison)
    if declared:
        yield from _missing(declared, _observed(comparison))


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    properties = {action.key: action.desired for action in actions if isinstance(action, EnableTableFeature)}
    if properties:
        yield sql_set_table_properties(context.table, properties)


def _explain(action: _Action) -> Iterable[Change]:
    subject = f"table feature {action.key}"
    if isinstance(action, EnableTableFeature):
        yield Change(subject, action.observed or None, action.desired)
    else:
        yield Change(subject, f"declared as {action.declared}", f"{action.needed}, for {action.reason}")


def _accept(model: Table, _observed: TableState, action: _Action) -> Table:
    if isinstance(action, ContradictFeature):
        return model
    return with_property(model, action.key, action.observed)


def _declared(comparison: Comparison) -> tuple[dict[str, str], list[ContradictFeature]]:
    """Return the features that the model declares, and what a catalog-managed table needs otherwise."""
    features: dict[str, str] = {}
    contradictions: list[ContradictFeature] = []
    if not comparison.desired.is_about(Part.PROPERTIES):
        return features, contradictions
    observed = comparison.observed.table_properties
    for key, value in comparison.desired.effective_table_properties.items():
        if not is_held_by_catalog(key, observed):
            if is_upgrade(key, value):
                features[spelled(key)] = value
        elif not is_same_value(key, value, "true"):
            contradictions.append(ContradictFeature(spelled(key), value, "true", "a catalog-managed table"))
    return features, contradictions


def _sets_default(comparison: Comparison) -> bool:
    return any(column.default is not None for column, _ in changed_defaults(comparison))


def _observed(comparison: Comparison) -> dict[str, str]:
    properties = comparison.observed.table_properties
    return {COLUMN_MAPPING_MODE: "none", **{spelled(key): value for key, value in properties.items()}}


def _needed(
    comparison: Comparison, observed: Mapping[str, str], declared: Mapping[str, str], *, sets_default: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield the key, value and reason of each feature that the changes of columns need."""
    if not comparison.desired.is_about(Part.COLUMNS):
        return
    renames, fields = comparison.renames, comparison.fields
    is_shrinking = comparison.dropped or any(pair.desired is None for pair in fields)
    is_renaming = renames or comparison.conversions
    is_unmapped = observed[COLUMN_MAPPING_MODE].lower() == "none"
    if (is_shrinking or is_renaming) and is_unmapped:
        yield COLUMN_MAPPING_MODE, "name", "dropping or renaming columns or fields"
    elif is_unmapped and _adds_unusual_names(comparison):
        yield COLUMN_MAPPING_MODE, "name", "names with special characters"
    new_fields = (pair.desired.data_type for pair in fields if pair.desired and not pair.observed)
    converted = (conversion.desired.data_type for conversion in comparison.converted)
    typed = (pair.desired for pair in comparison.types if pair.observed == AtomicType("void"))
    added = [*(column.data_type for column in comparison.added), *new_fields, *converted, *typed]
    widenings = {widening(pair.observed, pair.desired) for pair in comparison.types}
    if widenings & {Widening.TYPE_WIDENING, Widening.TIMESTAMP_NTZ}:
        yield TYPE_WIDENING, "true", "widening types"
    if sets_default:
        yield COLUMN_DEFAULTS, "supported", "setting defaults"
    for type_name, feature in _FEATURES_OF_TYPES.items():
        is_needed = any(uses_type(data_type, type_name) for data_type in added) or (
            type_name == "timestamp_ntz" and Widening.TIMESTAMP_NTZ in widenings
        )
        if is_needed and not any(_is_version_of(feature, key) for key in observed):
            key = next((key for key in declared if _is_version_of(feature, key)), feature)
            yield key, "supported", f"{type_name} in an existing table"


def _is_version_of(feature: str, key: str) -> bool:
    """Whether a key is a feature's, or that of its preview."""
    return comparable(key).startswith(comparable(feature))


def _adds_unusual_names(comparison: Comparison) -> bool:
    """Whether the plan adds a name that Delta stores only with column mapping."""
    new_fields = (pair.desired for pair in comparison.fields if pair.desired and not pair.observed)
    return need_column_mapping(comparison.added) or any(
        needs_column_mapping(field.name, is_field=True) for field in new_fields
    )


def _missing(
    desired: Mapping[str, str], observed: Mapping[str, str], needed: Collection[str] = ()
) -> Iterable[EnableTableFeature]:
    present = {comparable(key): value for key, value in observed.items()}
    for key, value in sorted(desired.items()):
        value_now = present.get(comparable(key))
        if not is_satisfied(key, value, value_now):
            yield EnableTableFeature(key, value, value_now, is_needed=key in needed)


ASPECT: Aspect[_Action] = Aspect(
    name="table features",
    part=None,
    actions={EnableTableFeature: takes_modify("SET TBLPROPERTIES (table features)"), ContradictFeature: None},
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.TABLE_FEATURE,
)
