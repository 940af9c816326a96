"""The known properties: Delta's own checks take and refuse the same names and values as the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_engine.aspects.known_properties import KNOWN_PROPERTIES, known_values
from delta_engine.backends.capabilities import OPEN_SOURCE
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import StatementError
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql.tables import sql_set_table_properties
from delta_engine.validation.validator import PlanValidator
from tests.builders.engines import engine_over
from tests.builders.models import orders

ONLY_ON_DATABRICKS = {
    "delta.enableIcebergWriterCompatV1",
    "delta.parquet.compression.codec",
    "delta.targetFileSize",
    "delta.tuneFileSizesForRewrites",
    "delta.universalFormat.compatibility.location",
}
NOT_FOR_MODELS = {
    "delta.columnMapping.maxColumnId",
    "delta.coordinatedCommits.commitCoordinator-preview",
    "delta.coordinatedCommits.commitCoordinatorConf-preview",
    "delta.coordinatedCommits.tableConf-preview",
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.inCommitTimestampEnablementVersion",
    "delta.redirectReaderWriter-preview",
    "delta.redirectWriterOnly-preview",
}
"""Configurations that Delta sets itself, or that its documentation does not have."""

NOT_STORED = {
    ("delta.minReaderVersion", "3"),
    ("delta.minWriterVersion", "7"),
    ("delta.minWriterVersion", "007"),
}
"""Versions that Delta takes and lowers at once, because no feature needs them: they would never converge."""

PROBES = (
    *(
        "true",
        "FALSE",
        "maybe",
        "auto",
        "legacy",
        "0",
        "1",
        "-1",
        "-2",
        "3",
        "4",
        "7",
        "8",
        "007",
        "32",
        "1.5",
        "big",
    ),
    *(
        "interval 7 days",
        "7 days",
        "INTERVAL 1 week 36 hours",
        "interval 1.5 seconds",
        "interval 1 month",
        "30",
    ),
    *("interval 0.5 days", "7days", "interval", "none", "name", "ID", "classic", "v2", "V2", "Serializable"),
    *(
        "SERIALIZABLE",
        "WriteSerializable",
        "SnapshotIsolation",
        "iceberg",
        "hudi,iceberg",
        "iceberg, hudi",
        "delta",
    ),
)


@pytest.fixture
def configurations(spark: SparkSession) -> Mapping[str, Any]:
    """Return Delta's configurations, Java objects, by property."""
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    companion = loader.loadClass("org.apache.spark.sql.delta.DeltaConfigs$")
    entries = companion.getField("MODULE$").get(None).entries().values()
    return {str(entry.key()): entry for entry in entries}


def test_the_engine_knows_the_properties_of_delta(configurations: Mapping[str, Any]) -> None:
    assert configurations.keys() - KNOWN_PROPERTIES.keys() == NOT_FOR_MODELS
    assert KNOWN_PROPERTIES.keys() - configurations.keys() == ONLY_ON_DATABRICKS
    assert OPEN_SOURCE.refused_properties == {key.lower() for key in ONLY_ON_DATABRICKS}


def test_values_are_checked_as_delta_checks_them(configurations: Mapping[str, Any]) -> None:
    differing = [
        (key, value)
        for key, configuration in configurations.items()
        if (values := known_values(key)) is not None
        for value in PROBES
        for refused in [OPEN_SOURCE.refused_values.get(key.lower(), ())]
        if (values.allow(value) and value.lower() not in refused) != _takes(configuration, value)
    ]
    assert {*differing} == NOT_STORED


def test_a_refused_value_fails_on_a_table(backend: Backend) -> None:
    model = orders()
    engine_over(backend).sync_tables([model])
    table = backend.addressing.table(model.qualified_name)
    for key, value, is_taken in (
        ("delta.appendOnly", "maybe", False),
        ("delta.logRetentionDuration", "30", False),
        ("delta.autoOptimise.optimizeWrite", "true", False),
        ("delta.APPENDONLY", "False", True),
        ("delta.logRetentionDuration", "interval 30 days", True),
    ):
        assert _runs(backend.runner, sql_set_table_properties(table, {key: value})) == is_taken, key


def test_what_delta_does_not_store_is_refused(backend: Backend) -> None:
    model = orders()
    engine_over(backend).sync_tables([model])
    table = backend.addressing.table(model.qualified_name)
    for properties in (
        {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"},
        {"delta.ignoreProtocolDefaults": "true"},
    ):
        backend.runner.run(sql_set_table_properties(table, properties))
        stored = backend.reader.snapshot([model]).table(model.qualified_name).table_properties
        assert not stored.items() & properties.items()
        refused = list(PlanValidator().model_violations([orders(properties=properties)]))
        assert len(refused) == len(properties)


def _takes(configuration: Any, value: str) -> bool:
    try:
        configuration.apply(value)
    except (Py4JJavaError, PySparkException):
        return False
    return True


def _runs(runner: SqlRunner, sql: str) -> bool:
    try:
        runner.run(sql)
    except StatementError:
        return False
    return True
