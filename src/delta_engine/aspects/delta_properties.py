"""The meaning of table properties: which upgrade the protocol, which platforms set, and which values are equal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from delta_engine.models import Column
from delta_engine.models.types import StructType, parts

COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
TYPE_WIDENING = "delta.enableTypeWidening"
COLUMN_DEFAULTS = "delta.feature.allowColumnDefaults"
_PROTOCOL_VERSIONS = ("delta.minReaderVersion", "delta.minWriterVersion")
FEATURE_PREFIX = "delta.feature."

CATALOG_MANAGED = "delta.feature.catalogManaged"
_CATALOG_MANAGED_PREVIEW = "delta.feature.catalogOwned-preview"
"""The name of the feature in previews (delta-io/delta 4ed3bbb859 renames it)."""

_IN_COMMIT_TIMESTAMPS = ("delta.enableincommittimestamps", "delta.incommittimestampenablement")
"""Prefixes, in lower case, of what a catalog-managed table depends on: Delta refuses to set or unset it there
(DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES)."""

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

_ICEBERG_COMPATIBILITY = ("delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2")
"""Delta 4.3.1 refuses the same changes of types with both, and none of them with the third version (measured)."""

CHANGE_FEED = "delta.enableChangeDataFeed"
CHANGE_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
"""The columns that the change data feed adds to a table (Databricks documentation, "Change data feed schema")."""

_UNIVERSAL_FORMAT = "delta.universalFormat.enabledFormats"

_VALUES = ("true", "false", "v2")
"""Values that Delta reads without regard to case, as it does the mode of column mapping."""

_SPELLING = {
    **{key.lower(): key for key in (*_FEATURE_KEYS, *_SWITCHES)},
    COLUMN_DEFAULTS.lower(): COLUMN_DEFAULTS,
    CATALOG_MANAGED.lower(): CATALOG_MANAGED,
    _CATALOG_MANAGED_PREVIEW.lower(): CATALOG_MANAGED,
}

_MAINTAINED = tuple(
    f"delta.{name}".lower()
    for name in (
        "columnMapping.maxColumnId",
        "constraints.",
        "coordinatedCommits.",
        "inCommitTimestampEnablement",
        "lastCommitTimestamp",
        "lastUpdateVersion",
        "liquid.",
        "requireCheckpointProtectionBeforeVersion",
        "rowTracking.",
        "workloadBasedColumns.",
    )
)
"""Prefixes, in lower case, of Delta's own records in a table: no statement of a user sets or unsets them."""

_SWITCHED_ON = tuple(
    f"delta.{name}".lower()
    for name in (
        "checkpoint.writeStatsAs",
        "checkpointPolicy",
        "columnMapping.mode",
        "enableDeletionVectors",
        "enableInCommitTimestamps",
        "enableRowTracking",
        "parquet.",
        "randomizeFilePrefixes",
        "writePartitionColumnsToParquet",
    )
)
"""Prefixes, in lower case, of what Databricks sets on new tables, and what a model may declare as well."""

_OF_CATALOG = (
    "clusterByAuto",
    "option.",
    "serialization.",
    "transient_",
    "spark.",
    "view.",
)
"""Prefixes of properties that catalogs and Spark set by themselves, or that stand for something else. Users may set
properties with the same prefixes: a property that a model declares is set like all others."""

_EXTERNAL = "external"
"""The key, in lower case, under which Hive and Spark note that a table is external."""

_OF_PIPELINES = ("pipelines.pipelineId", "pipelines.metastore.tableName", "pipeline_internal.")
"""Prefixes of properties that Databricks sets on streaming tables; users set others that begin with `pipelines.`."""

_NEEDS_MAPPING = re.compile(r"[ ,;{}()=.`]")
_NEEDS_MAPPING_INSIDE = re.compile(r"[ ,;{}()=]")


def iceberg_property(properties: Mapping[str, str]) -> str:
    """Return the property that keeps a table readable for Iceberg; empty if none does."""
    values = {key.lower(): value.lower() for key, value in properties.items()}
    for key in _ICEBERG_COMPATIBILITY:
        if values.get(key.lower()) == "true":
            return key
    return _UNIVERSAL_FORMAT if "iceberg" in values.get(_UNIVERSAL_FORMAT.lower(), "") else ""


def has_change_feed(properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties has a change data feed."""
    return any(
        key.lower() == CHANGE_FEED.lower() and value.lower() == "true" for key, value in properties.items()
    )


def is_feature_key(key: str) -> bool:
    """Whether a property always belongs to this aspect. Delta ignores the case of its own keys."""
    return spelled(key) in _FEATURE_KEYS or key.lower().startswith(FEATURE_PREFIX)


def is_upgrade(key: str, value: str) -> bool:
    """Whether setting a property upgrades the protocol."""
    lower = key.lower()
    if lower.startswith(FEATURE_PREFIX):
        return True
    spelled = _SPELLING.get(lower)
    return spelled is not None and (spelled in _FEATURE_KEYS or value.lower() in ("true", "v2"))


def is_set_by_platform(key: str) -> bool:
    """Whether platforms set a property by themselves.

    Imports leave such properties out, and they are not listed as unmanaged.
    """
    lower = key.lower()
    return (
        is_of_catalog(key)
        or key.startswith(_OF_PIPELINES)
        or is_maintained(key)
        or lower.startswith((FEATURE_PREFIX, *_SWITCHED_ON))
        or spelled(key) in _PROTOCOL_VERSIONS
    )


def is_of_catalog(key: str) -> bool:
    """Whether catalogs and Spark set properties like this one by themselves."""
    return key.startswith(_OF_CATALOG) or key.lower() == _EXTERNAL


def is_maintained(key: str) -> bool:
    """Whether a property is a record of Delta in the table, which a model cannot declare."""
    return key.lower().startswith((*_MAINTAINED, "io.unitycatalog."))


def is_catalog_managed(properties: Mapping[str, str]) -> bool:
    """Whether the catalog commits to the table with these properties."""
    return any(spelled(key) == CATALOG_MANAGED for key in properties)


def is_held_by_catalog(key: str, properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties is catalog-managed and depends on a property."""
    return key.lower().startswith(_IN_COMMIT_TIMESTAMPS) and is_catalog_managed(properties)


def is_settable(key: str, properties: Mapping[str, str]) -> bool:
    """Whether a statement can set and unset a property of a table that has these properties."""
    is_protocol = key.lower().startswith(FEATURE_PREFIX) or spelled(key) in _PROTOCOL_VERSIONS
    return not (is_protocol or is_maintained(key) or is_held_by_catalog(key, properties))


def needs_column_mapping(name: str, *, is_field: bool = False) -> bool:
    """Whether Delta stores a name only with column mapping.

    Args:
        is_field: whether the name is that of a field inside a column.
    """
    return bool((_NEEDS_MAPPING_INSIDE if is_field else _NEEDS_MAPPING).search(name))


def need_column_mapping(columns: Iterable[Column]) -> bool:
    """Whether a name of these columns, or of a field inside them, needs column mapping."""
    return any(
        needs_column_mapping(column.name)
        or any(
            needs_column_mapping(field.name, is_field=True)
            for part in parts(column.data_type)
            if isinstance(part, StructType)
            for field in part.fields
        )
        for column in columns
    )


def comparable(key: str) -> str:
    """Return what keys compare by: Delta ignores the case of its own keys, and spells them in its own way."""
    lower = key.lower()
    return lower if lower.startswith("delta.") else key


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
