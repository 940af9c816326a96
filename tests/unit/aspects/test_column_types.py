"""Widenings of tables that Iceberg reads: Delta refuses those that Iceberg lacks."""

from __future__ import annotations

import pytest

from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.errors import StatementError
from delta_engine.models import Column
from delta_engine.state.states import TableState
from tests.builders.models import catalog_of, orders
from tests.fakes.planning import planned
from tests.fakes.unity_catalog import FakeUnityCatalog

V1, V2 = "delta.enableIcebergCompatV1", "delta.enableIcebergCompatV2"
UNIFORM = "delta.universalFormat.enabledFormats"


@pytest.mark.parametrize(
    ("observed", "declared", "refused_with"),
    [
        ({V2: "true"}, {}, V2),
        ({V1.lower(): "TRUE"}, {}, V1),
        ({UNIFORM: "hudi,iceberg"}, {}, UNIFORM),
        ({}, {V2: "true"}, V2),
        ({V2: "true"}, {V2: "false"}, V2),  # it is switched off after the types change
        ({V2: "false"}, {}, ""),
        ({"delta.enableIcebergCompatV3": "true", UNIFORM: "hudi"}, {}, ""),
    ],
)
def test_a_change_names_the_property_that_forbids_it(
    observed: dict[str, str], declared: dict[str, str], refused_with: str
) -> None:
    model = orders(Column("n", "double"), Column("wide", "bigint"), properties=declared)
    state = TableState(columns=(Column("n", "int"), Column("wide", "int")), table_properties=observed)
    (align,) = planned([model], catalog_of([model], state)).align_tables
    changes = {change.name: change.refused_with for change in align.of_type(ColumnTypeChange)}
    assert changes == {"n": refused_with, "wide": ""}


@pytest.mark.parametrize(
    ("column", "desired"),
    [("n", "DOUBLE"), ("d", "DECIMAL(12,4)"), ("t", "TIMESTAMP_NTZ"), ("s.n", "DOUBLE")],
)
def test_the_platform_refuses_it(column: str, desired: str) -> None:
    catalog = FakeUnityCatalog()
    catalog.run(
        "CREATE TABLE dev.silver.t (n INT, d DECIMAL(10,2), t DATE, s STRUCT<n: INT>) USING delta TBLPROPERTIES "
        f"('{V2}' = 'true', 'delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')"
    )
    with pytest.raises(StatementError) as refusal:
        catalog.run(f"ALTER TABLE dev.silver.t ALTER COLUMN {column} TYPE {desired}")
    assert refusal.value.error_class == "DELTA_ICEBERG_COMPAT_VIOLATION.UNSUPPORTED_TYPE_WIDENING"
