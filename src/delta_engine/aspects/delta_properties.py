"""The meaning of table properties: which upgrade the protocol, which platforms set, and which values are equal."""

from __future__ import annotations

COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
TYPE_WIDENING = "delta.enableTypeWidening"
COLUMN_DEFAULTS = "delta.feature.allowColumnDefaults"
_PROTOCOL_VERSIONS = ("delta.minReaderVersion", "delta.minWriterVersion")
FEATURE_PREFIX = "delta.feature."

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


def is_feature_key(key: str) -> bool:
    """Whether a property always belongs to this aspect. Delta ignores the case of its own keys."""
    return spelled(key) in _FEATURE_KEYS or key.lower().startswith(FEATURE_PREFIX)


def is_upgrade(key: str, value: str) -> bool:
    """Whether setting a property upgrades the protocol."""
    spelled = _SPELLING.get(key.lower())
    if spelled is None:
        return key.lower().startswith(FEATURE_PREFIX)
    return spelled in _FEATURE_KEYS or value.lower() in ("true", "v2")


def is_set_by_platform(key: str) -> bool:
    """Whether platforms set a property by themselves."""
    return key.startswith(_SET_BY_PLATFORM)


def spelled(key: str) -> str:
    """Return a key as Delta spells it."""
    return _SPELLING.get(key.lower(), key)


def is_same_value(key: str, desired: str, observed: str | None) -> bool:
    """Whether two values are equal. Delta keeps its own booleans as written: `TRUE` and `true` are one value."""
    if desired == observed or observed is None:
        return desired == observed
    return (
        key.lower().startswith("delta.")
        and desired.lower() == observed.lower()
        and desired.lower() in ("true", "false")
    )


def is_satisfied(key: str, desired: str, observed: str | None) -> bool:
    """Whether the table already has it: protocol versions only rise, and features stay."""
    if observed is None or desired == observed:
        return desired == observed
    if key in _PROTOCOL_VERSIONS and desired.isdecimal() and observed.isdecimal():
        return int(desired) <= int(observed)
    if desired.lower() == observed.lower() and (key == COLUMN_MAPPING_MODE or desired.lower() in _VALUES):
        return True
    return key.lower().startswith(FEATURE_PREFIX)
