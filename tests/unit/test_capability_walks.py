"""Every yes of docs/backends.md for `databricks`, walked on a Unity Catalog in memory."""

from pathlib import Path

import pytest

from delta_engine.backends.capabilities import DATABRICKS, Feature
from tests.cases.capability_walks import WALKS, walked_in_memory

ELSEWHERE = {
    Feature.SCHEMA_METADATA,  # tests/golden/schemas-*, tests/unit/drift/test_schema_drift.py
    Feature.STREAMING_TABLES,  # tests/unit/compile/test_managed_parts.py
    Feature.FUNCTIONS,  # tests/unit/aspects/test_definitions.py, and with them
    Feature.FUNCTION_TAGS,
    Feature.POLICIES,
    Feature.VIEWS,  # tests/unit/aspects/test_view_definition.py, and with them
    Feature.VIEW_COLUMN_COMMENTS,
    Feature.VOID_WIDENING,  # tests/unit/drift/test_unmanaged_types.py
}


@pytest.mark.parametrize("feature", WALKS, ids=lambda feature: feature.name)
def test_databricks(feature: Feature, tmp_path: Path) -> None:
    assert walked_in_memory(feature, tmp_path).statements


def test_every_yes_is_walked() -> None:
    assert {*WALKS} | ELSEWHERE == {*Feature}
    assert not DATABRICKS.refused
