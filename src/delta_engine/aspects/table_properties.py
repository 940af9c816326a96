"""Table properties: set if the model names them, unset if the engine applied them and the model no longer names them.

A key that no model ever named is unmanaged: Databricks and other tools set properties too. Keys that enable a table
feature belong to `table_features`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import ClassVar, TypeAlias

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    CreateClauses,
    EntriesAction,
    EntryChange,
    RenderContext,
    desired_values,
    entry_keys,
    explain_entries,
    takes_modify,
)
from delta_engine.aspects.changed_models import with_property
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.delta_properties import (
    COLUMN_MAPPING_MODE,
    comparable,
    is_feature_key,
    is_same_value,
    is_set_by_platform,
    is_settable,
    is_upgrade,
    need_column_mapping,
    spelled,
)
from delta_engine.aspects.facet import TEXTS, Facet
from delta_engine.aspects.known_properties import properties_schema
from delta_engine.aspects.statistics import is_about_statistics
from delta_engine.models import Part, Table
from delta_engine.models.parts import NOTHING
from delta_engine.sql.tables import sql_set_table_properties, sql_unset_table_properties
from delta_engine.state.states import REDACTED, TableState


class SetTableProperties(EntriesAction):
    """Set or overwrite properties, sorted by key. Those that decide which columns have statistics are apart."""

    __slots__ = ()
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE

    @property
    def phase(self) -> Phase:
        """The phase before clustering, or that of other properties."""
        return _phase(self.entries, Phase.SET_TABLE_PROPERTIES)


class UnsetTableProperties(EntriesAction):
    """Remove applied properties, sorted by key; those of statistics are apart."""

    __slots__ = ()
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE

    @property
    def phase(self) -> Phase:
        """The phase before clustering, or that of other properties."""
        return _phase(self.entries, Phase.UNSET_TABLE_PROPERTIES)


_Action: TypeAlias = SetTableProperties | UnsetTableProperties


def _diff(comparison: Comparison) -> Iterable[_Action]:
    for changes in _apart(_differing(comparison)):
        yield SetTableProperties(changes)
    for removed in _apart(_no_longer_wanted(comparison)):
        yield UnsetTableProperties(removed)


def statistics_properties(comparison: Comparison) -> dict[str, str]:
    """Return the properties of a table that decide which columns have statistics, as they are when it is clustered."""
    properties = {
        key.lower(): value
        for key, value in comparison.observed.table_properties.items()
        if is_about_statistics(key)
    }
    if comparison.desired.is_about(Part.PROPERTIES):
        desired = desired_values(_differing(comparison))
        properties |= {key.lower(): value for key, value in desired.items()}
        for key in entry_keys(_no_longer_wanted(comparison)):
            properties.pop(key.lower(), None)
    return properties


def _phase(properties: Sequence[EntryChange], otherwise: Phase) -> Phase:
    is_apart = all(map(is_about_statistics, entry_keys(properties)))
    return Phase.CHOOSE_STATISTICS if is_apart else otherwise


def _apart(entries: Iterable[EntryChange]) -> Iterator[tuple[EntryChange, ...]]:
    """Yield the entries that decide which columns have statistics, then the others, without an empty group."""
    for _, group in groupby(sorted(entries, key=_comes_later), key=_comes_later):
        yield tuple(group)


def _comes_later(entry: EntryChange) -> bool:
    return not is_about_statistics(entry.key)


def _differences(comparison: Comparison) -> Iterable[_Action]:
    yield from (SetTableProperties((change,)) for change in _differing(comparison))
    yield from (UnsetTableProperties((removed,)) for removed in _no_longer_wanted(comparison))


def _create(desired: Table, _context: RenderContext) -> CreateClauses:
    return CreateClauses(properties=desired.effective_table_properties)


def _render(actions: Sequence[_Action], context: RenderContext) -> Iterable[str]:
    for action in actions:
        if isinstance(action, SetTableProperties):
            yield sql_set_table_properties(context.table, desired_values(action.entries))
        else:
            yield sql_unset_table_properties(context.table, entry_keys(action.entries))


def _explain(action: _Action) -> Iterator[Change]:
    return explain_entries("property", action.entries)


def _accept(model: Table, observed: TableState, action: _Action) -> Table:
    for key in entry_keys(action.entries):
        model = with_property(model, key, _value(observed.table_properties, key))
    return model


def _differing(comparison: Comparison) -> Iterable[EntryChange]:
    properties = comparison.observed.table_properties
    for key, value in comparison.desired.effective_table_properties.items():
        if properties.get(key) == value:
            continue
        if not is_settable(key, properties):
            continue
        observed = _value(properties, key)
        if observed != value and not is_upgrade(key, value) and not is_same_value(key, value, observed):
            yield EntryChange(key, value, observed)


def _value(properties: Mapping[str, str], key: str) -> str | None:
    """Return the value of a property in any spelling."""
    name = _own_name(properties, key)
    return None if name is None else properties[name]


def _own_name(properties: Mapping[str, str], key: str) -> str | None:
    """Return a property's key as the table has it; Delta spells its own keys in its own way."""
    if key in properties:
        return key
    return next((name for name in properties if comparable(name) == comparable(key)), None)


def _no_longer_wanted(comparison: Comparison) -> Iterable[EntryChange]:
    """Yield the applied properties to unset.

    Table features stay: unsetting them removes nothing. So do properties that the platform does not let go.
    """
    properties = comparison.observed.table_properties
    declared = comparison.desired.effective_table_properties
    unwanted = {
        comparable(key): key
        for model in comparison.ours
        for key in model.effective_table_properties
        if key not in declared and _own_name(declared, key) is None
    }
    for key in unwanted.values():
        name = _own_name(properties, key)
        if name is not None and not is_feature_key(key) and is_settable(key, properties):
            yield EntryChange(name, None, properties[name])


def _imported(table: TableState) -> dict[str, str]:
    """Return the properties that a model of a table declares."""
    return {
        key: value
        for key, value in table.table_properties.items()
        if value != REDACTED and (not is_set_by_platform(key) or _is_mapping_in_use(key, table))
    }


def _is_mapping_in_use(key: str, table: TableState) -> bool:
    """Whether a property is the mode of column mapping of a table that would not be the same without it.

    Databricks sets the mode of managed tables by itself.
    """
    is_chosen = table.location is not None or need_column_mapping(table.columns)
    return spelled(key) == COLUMN_MAPPING_MODE and is_chosen


FACET: Facet[Table, TableState, Mapping[str, str]] = Facet(
    key="properties",
    argument="table_properties",
    declared=lambda model: model.table_properties,
    observed=lambda state: state.table_properties,
    absent=NOTHING,
    form=replace(TEXTS, schema=properties_schema()),
    meaning="[table properties](#properties)",
    entry="property",
    recorded=lambda table: table.effective_table_properties,
    is_always_recorded=True,
    imported=lambda _name, table: _imported(table),
    part=Part.PROPERTIES,
    title="properties",
)

ASPECT: Aspect[_Action] = Aspect(
    name="table properties",
    part=Part.PROPERTIES,
    actions={
        SetTableProperties: takes_modify("SET TBLPROPERTIES"),
        UnsetTableProperties: takes_modify("UNSET TBLPROPERTIES"),
    },
    diff=_diff,
    differences=_differences,
    render=_render,
    explain=_explain,
    accept=_accept,
    drift_kind=lambda _action: DriftKind.PROPERTY,
    create=_create,
)
