"""The table properties that Delta and Databricks know, with the values that they take.

Delta checks its own properties when a statement sets them, after others may have run. Sources: the configurations of
Delta 4.3.1, with which `tests/integration/test_known_properties.py` compares them, and Databricks' documentation
("Table properties reference"). A property that is not listed here is unchecked: it may be newer than the engine.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from delta_engine.aspects.delta_properties import FEATURE_PREFIX
from delta_engine.aspects.facet import SCALAR_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyValues:
    """The values of a property: a pattern for the whole text, how a message names them, and all of them if few."""

    pattern: str
    words: str
    ignores_case: bool = False
    choices: tuple[str, ...] = ()

    def allow(self, value: str) -> bool:
        """Whether the platform takes a value."""
        return re.fullmatch(self.pattern, value, re.IGNORECASE if self.ignores_case else 0) is not None


def _one_of(*choices: str, ignores_case: bool = True) -> PropertyValues:
    words = " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
    return PropertyValues(
        pattern="|".join(map(re.escape, choices)), words=words, ignores_case=ignores_case, choices=choices
    )


_SWITCH = _one_of("true", "false")
_AMOUNT = r"\+?\d+\s+(?:week|day|hour|minute|millisecond|microsecond)s?|\+?\d+(?:\.\d+)?\s+seconds?"
_DURATION = PropertyValues(
    pattern=rf"\s*(?:interval\s+)?(?:{_AMOUNT})(?:\s+(?:{_AMOUNT}))*\s*",
    words="an interval of weeks, days or hours, such as interval 7 days",
    ignores_case=True,
)
_POSITIVE = PropertyValues(pattern=r"0*[1-9]\d*", words="an integer above 0")
_NATURAL = PropertyValues(pattern=r"\d+", words="an integer from 0")
_INDEXED = PropertyValues(pattern=r"-1|\d+", words="an integer, or -1 for all columns")
_SIZE = PropertyValues(
    pattern=r"\d+\s*(?:b|[kmgt]i?b?)?",
    words="a size in bytes, or with a unit, such as 100mb",
    ignores_case=True,
)
_FORMATS = PropertyValues(
    pattern=r"(?:iceberg|hudi)(?:,(?:iceberg|hudi))*",
    words="iceberg, hudi or iceberg,hudi",
    ignores_case=True,
)

_SWITCHES: Final = [
    "appendOnly",
    "autoOptimize",
    "autoOptimize.optimizeWrite",
    "castIcebergTimeType",
    "checkpoint.writeStatsAsJson",
    "checkpoint.writeStatsAsStruct",
    "compatibility.symlinkFormatManifest.enabled",
    "enableChangeDataCapture",
    "enableChangeDataFeed",
    "enableDeletionVectors",
    "enableExpiredLogCleanup",
    "enableFullRetentionRollback",
    "enableIcebergCompatV1",
    "enableIcebergCompatV2",
    "enableIcebergCompatV3",
    "enableIcebergWriterCompatV1",
    "enableInCommitTimestamps",
    "enableMaterializePartitionColumnsFeature",
    "enableRowTracking",
    "enableTypeWidening",
    "enableVariantShredding",
    "ignoreIcebergBucketPartition",
    "ignoreProtocolDefaults",
    "randomizeFilePrefixes",
    "rowTrackingSuspended",
    "tuneFileSizesForRewrites",
    "universalFormat.iceberg.atomicConversion.supported",
]
_DURATIONS: Final = [
    "checkpointRetentionDuration",
    "deletedFileRetentionDuration",
    "dropFeatureTruncateHistory.retentionDuration",
    "logRetentionDuration",
    "sampleRetentionDuration",
    "setTransactionRetentionDuration",
]

KNOWN_PROPERTIES: Final[Mapping[str, PropertyValues | None]] = {
    f"delta.{name}": values
    for name, values in {
        **dict.fromkeys(_SWITCHES, _SWITCH),
        **dict.fromkeys(_DURATIONS, _DURATION),
        "autoOptimize.autoCompact": _one_of("true", "false", "auto", "legacy"),
        "checkpointInterval": _POSITIVE,
        "checkpointPolicy": _one_of("classic", "v2", ignores_case=False),
        "columnMapping.mode": _one_of("name", "id", "none"),
        "dataSkippingNumIndexedCols": _INDEXED,
        "dataSkippingStatsColumns": None,
        "dataSkippingStringPrefixLength": _NATURAL,
        "isolationLevel": _one_of("Serializable", "WriteSerializable"),
        "minReaderVersion": PropertyValues(
            pattern="0*[12]",
            words="1 or 2, or declare delta.feature.… for version 3, which features enable",
        ),
        "minWriterVersion": PropertyValues(
            pattern="0*[1-6]",
            words="a version from 1 to 6, or declare delta.feature.… for version 7, which features enable",
        ),
        "parquet.compression.codec": None,
        "parquet.format.version": None,
        "randomPrefixLength": _POSITIVE,
        "requireCheckpointProtectionBeforeVersion": _NATURAL,
        "targetFileSize": _SIZE,
        "universalFormat.enabledFormats": _FORMATS,
        "universalFormat.compatibility.location": None,
    }.items()
}
"""The values by property; None for a property whose values are unchecked."""

_BY_LOWER_KEY = {key.lower(): (key, values) for key, values in KNOWN_PROPERTIES.items()}
_FEATURE_VALUES = _one_of("supported")


def known_values(key: str) -> PropertyValues | None:
    """Return the values that a property takes; None if they are unchecked. Delta ignores the case of its own keys."""
    if key.lower().startswith(FEATURE_PREFIX):
        return _FEATURE_VALUES
    return _BY_LOWER_KEY[key.lower()][1] if key.lower() in _BY_LOWER_KEY else None


_SHORTENED = {
    "delta.optimizewrite": "delta.autoOptimize.optimizeWrite",
    "delta.autocompact": "delta.autoOptimize.autoCompact",
}
_MOST_EDITS = 2


@lru_cache(maxsize=4096)
def probably_meant(key: str) -> str:
    """Return the known property that an unknown one misspells; empty if it resembles none.

    Names that differ in digits only, such as those of a later version of Iceberg compatibility, are not typing errors.
    """
    lower = key.lower()
    if lower in _BY_LOWER_KEY or lower.startswith(FEATURE_PREFIX):
        return ""
    if lower in _SHORTENED:
        return _SHORTENED[lower]
    return next(
        (spelling for lower_key, (spelling, _) in _BY_LOWER_KEY.items() if _is_misspelt(lower, lower_key)), ""
    )


def _is_misspelt(key: str, spelling: str) -> bool:
    if abs(len(key) - len(spelling)) > _MOST_EDITS or _DIGITS.sub("", key) == _DIGITS.sub("", spelling):
        return False
    blocks = difflib.SequenceMatcher(None, key, spelling, autojunk=False).get_matching_blocks()
    return max(len(key), len(spelling)) - sum(block.size for block in blocks) <= _MOST_EDITS


_DIGITS = re.compile(r"\d")


def properties_schema() -> dict[str, Any]:
    """Return the JSON schema of a mapping of properties; unknown ones may have any scalar value."""
    return {
        "type": "object",
        "properties": {
            key: SCALAR_SCHEMA if values is None else _schema(values)
            for key, values in KNOWN_PROPERTIES.items()
        },
        "patternProperties": {r"^delta\.feature\.": _schema(_FEATURE_VALUES)},
        "additionalProperties": SCALAR_SCHEMA,
    }


def _schema(values: PropertyValues) -> dict[str, Any]:
    text = {
        "type": "string",
        "pattern": f"^(?:{_in_any_case(values) if values.ignores_case else values.pattern})$",
    }
    written: list[Any] = [*values.choices, *((True, False) if "true" in values.choices else ())]
    if written:
        return {"description": values.words, "anyOf": [{"enum": written}, text]}
    return {
        "description": values.words,
        **text,
        "type": ["string", "integer"] if values.allow("1") else "string",
    }


def _in_any_case(values: PropertyValues) -> str:
    """Return the pattern for editors, whose regular expressions have no flags."""
    return re.sub(
        r"(?<!\\)[A-Za-z]", lambda letter: f"[{letter[0].lower()}{letter[0].upper()}]", values.pattern
    )
