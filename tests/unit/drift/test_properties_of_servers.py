"""Properties that the server of open-source Unity Catalog keeps in its tables are changes of no principal.

The keys are those of version 0.6 (`UcManagedDeltaContract`, `DeltaPropertyMapper` in unitycatalog/unitycatalog).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.actions.policy import NO_POLICY
from delta_engine.drift.comparison import listed_parts
from delta_engine.orchestrate.importing import as_model
from tests.builders.detection import AS_APPLIED, MODEL, detect
from tests.builders.models import ORDERS, catalog_of

OF_SERVER = {
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpointPolicy": "v2",
    "delta.columnMapping.maxColumnId": "2",
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableRowTracking": "true",
    "delta.feature.catalogManaged": "supported",
    "delta.feature.columnMapping": "supported",
    "delta.feature.deletionVectors": "supported",
    "delta.feature.domainMetadata": "supported",
    "delta.feature.inCommitTimestamp": "supported",
    "delta.feature.rowTracking": "supported",
    "delta.feature.v2Checkpoint": "supported",
    "delta.feature.vacuumProtocolCheck": "supported",
    "delta.inCommitTimestampEnablementTimestamp": "1",
    "delta.inCommitTimestampEnablementVersion": "1",
    "delta.lastCommitTimestamp": "1767312000000",
    "delta.lastUpdateVersion": "0",
    "delta.minReaderVersion": "3",
    "delta.minWriterVersion": "7",
    "delta.parquet.compression.codec": "zstd",
    "delta.randomizeFilePrefixes": "true",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.rowIdHighWaterMark": "7",
    "io.unitycatalog.tableId": "3a9d9b0e-1a3f-4a3e-9b1c-0f6f1b3f2a55",
    "option.fs.unitycatalog.table.id": "3a9d9b0e-1a3f-4a3e-9b1c-0f6f1b3f2a55",
}


@pytest.mark.parametrize("key", OF_SERVER)
def test_a_property_of_the_server_is_no_drift_and_not_listed(key: str) -> None:
    with_property = replace(AS_APPLIED, table_properties={**AS_APPLIED.table_properties, key: OF_SERVER[key]})
    assert detect(with_property) == ()
    assert [*listed_parts([MODEL], catalog_of([MODEL], with_property), {}, NO_POLICY.column_order)] == []
    assert key not in as_model(ORDERS, with_property).table_properties
