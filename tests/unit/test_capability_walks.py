"""Every yes of docs/capabilities.md for `databricks`, walked on a Unity Catalog in memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.capabilities import DATABRICKS, Feature
from delta_engine.compile.planner import TablePlanner
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import QualifiedName
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.validation.validator import PlanValidator
from tests.capability_walks import POLICY, WALKS, walk
from tests.deployment_builders import deployment_over
from tests.fakes.unity_catalog import FakeUnityCatalog

ELSEWHERE = {
    Feature.SCHEMA_METADATA,  # tests/unit/aspects/test_schemas.py
    Feature.STREAMING_TABLES,  # tests/unit/compile/test_managed_parts.py
}


class NoRows:
    """Counts the rows of tables that nobody wrote to."""

    def count(self, tables: Iterable[QualifiedName]) -> dict[str, int]:
        return {table.key: 0 for table in tables}


@pytest.mark.parametrize("feature", WALKS, ids=lambda feature: feature.name)
def test_databricks(feature: Feature, tmp_path: Path) -> None:
    catalog = FakeUnityCatalog()
    engine = Orchestrator(
        reader=catalog,
        action_runner=ActionRunner(catalog, CatalogAddressing(), DATABRICKS),
        planner=TablePlanner(POLICY),
        validator=PlanValidator(POLICY),
        deployment=deployment_over(tmp_path),
        row_counter=NoRows(),
    )
    walk(engine, feature)


def test_every_yes_is_walked() -> None:
    assert {*WALKS} | ELSEWHERE == {*Feature}
    assert not DATABRICKS.refused
