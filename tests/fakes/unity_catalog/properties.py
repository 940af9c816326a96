"""Properties: what users set, what that switches on, and what the platform adds by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from delta_engine.state.states import TableState
from tests.fakes.unity_catalog.refusals import Refusal, require
from tests.fakes.unity_catalog.stored import MAPPED, Stored

_VERSIONS = ("delta.minReaderVersion", "delta.minWriterVersion")
_MAPPING_MODE = "delta.columnMapping.mode"
_FEATURE = "delta.feature."
_CATALOG_MANAGED = ("delta.feature.catalogManaged", "delta.feature.catalogOwned-preview")
_IN_COMMIT_TIMESTAMPS = (
    "delta.enableInCommitTimestamps",
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
_OWN_SPELLING = {
    key.lower(): key
    for key in (
        *_VERSIONS,
        _MAPPING_MODE,
        "delta.appendOnly",
        "delta.enableChangeDataFeed",
        "delta.enableDeletionVectors",
        *_IN_COMMIT_TIMESTAMPS,
        "delta.enableTypeWidening",
        "delta.logRetentionDuration",
        "delta.deletedFileRetentionDuration",
        "delta.autoOptimize.optimizeWrite",
        "delta.dataSkippingNumIndexedCols",
        "delta.feature.timestampNtz",
    )
}
_OF_CHANGE_FEED = {"_change_type", "_commit_version", "_commit_timestamp"}
_SWITCHES = {
    "delta.enableTypeWidening": "delta.feature.typeWidening",
    "delta.enableChangeDataFeed": "delta.feature.changeDataFeed",
    "delta.appendOnly": "delta.feature.appendOnly",
}
_OF_NEW_TABLES = {
    "delta.enableDeletionVectors": "true",
    "delta.feature.deletionVectors": "supported",
    "delta.feature.appendOnly": "supported",
    "delta.feature.invariants": "supported",
    "delta.enableRowTracking": "true",
    "delta.minReaderVersion": "3",
    "delta.minWriterVersion": "7",
    "delta.checkpointPolicy": "v2",
}


def of_new_table(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return what a new table has besides what CREATE TABLE says."""
    given = dict(_OF_NEW_TABLES)
    for key, value in properties.items():
        is_mapping = _spelled(key) == _MAPPING_MODE and value in MAPPED
        given = _with(given, _spelled(key), "name" if is_mapping else value)
        given |= {_MAPPING_MODE: value} if is_mapping else {}  # a new table may have either mode
    return given


def with_properties(stored: Stored, properties: Mapping[str, str]) -> Stored:
    """Set properties, and what comes with them."""
    _check_catalog_managed(stored, properties)
    changed_properties = dict(stored.state.table_properties)
    for key, value in properties.items():
        changed_properties = _with(changed_properties, _spelled(key), value)
    changed = stored.with_state(table_properties=changed_properties)
    check_change_feed(changed, "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS")
    return changed


def check_change_feed(stored: Stored, condition: str) -> None:
    """Refuse columns with the names that the change data feed adds, in exactly this case (measured on 4.3.1)."""
    taken = {column.name for column in stored.state.columns} & _OF_CHANGE_FEED
    has_feed = stored.value_of("delta.enableChangeDataFeed").lower() == "true"
    require(not (has_feed and taken), condition, f"{stored.name}: {taken}")


def without_properties(stored: Stored, keys: tuple[str, ...]) -> Stored:
    """Unset properties; what is not there is no error, and what a feature means cannot go."""
    _check_catalog_managed(stored, keys)
    left_properties = dict(stored.state.table_properties)
    for key in map(_spelled, keys):
        is_protocol = key.startswith(_FEATURE) or key in _VERSIONS or key.startswith("delta.constraints.")
        require(not (is_protocol and key in left_properties), None, f"{key} cannot be unset")
        is_mapped = key == _MAPPING_MODE and left_properties.get(key) in MAPPED
        require(not is_mapped, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", f"{key} cannot be unset")
        left_properties.pop(key, None)
    return stored.with_state(table_properties=left_properties)


def _check_catalog_managed(stored: Stored, keys: Iterable[str]) -> None:
    """Refuse changes to in-commit timestamps where the catalog commits (Delta's error classes)."""
    is_managed = any(feature in stored.state.table_properties for feature in _CATALOG_MANAGED)
    changed = [key for key in map(_spelled, keys) if key in _IN_COMMIT_TIMESTAMPS]
    condition = "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES"
    require(not (is_managed and changed), condition, f"{stored.name} is catalog-managed: {changed}")


def features_of(state: TableState) -> dict[str, str]:
    """Return the features of a table's protocol, which RESTORE and a rewrite keep."""
    return {key: value for key, value in state.table_properties.items() if key.startswith(_FEATURE)}


def _with(properties: dict[str, str], key: str, value: str) -> dict[str, str]:
    require(not key.startswith("delta.constraints."), "DELTA_ADD_CONSTRAINTS", f"{key} takes ADD CONSTRAINT")
    former = properties.get(key)
    if key in _VERSIONS:
        require(value.isdecimal(), "DELTA_PROTOCOL_PROPERTY_NOT_INT", f"{key} = {value}")
        value = str(max(int(value), int(former or 0)))  # a lower one is ignored
    if key.startswith(_FEATURE):
        require(value.lower() == "supported", "DELTA_UNSUPPORTED_FEATURE_STATUS", f"{key} = {value}")
        value = former or "supported"
    if key == _MAPPING_MODE:
        _check_mapping_mode(former or "none", value)
        if value in MAPPED:
            properties = {
                **properties,
                "delta.columnMapping.maxColumnId": "99",
                "delta.feature.columnMapping": "supported",
            }
    if key in _SWITCHES and value.lower() == "true":
        properties = {**properties, _SWITCHES[key]: "supported"}
    return {**properties, key: value}


def _check_mapping_mode(observed: str, desired: str) -> None:
    if desired not in ("none", *MAPPED):
        raise Refusal("DELTA_MODE_NOT_SUPPORTED", f"no such mode: {desired}")
    is_allowed = observed == desired or (observed, desired) == ("none", "name")
    require(is_allowed, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", f"from {observed} to {desired}")


def _spelled(key: str) -> str:
    """Delta spells its own keys its own way."""
    return _OWN_SPELLING.get(key.lower(), key)
