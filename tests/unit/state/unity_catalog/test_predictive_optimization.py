"""How the reader of Unity Catalog reads predictive optimization: listings, descriptions of tables and of schemas."""

from __future__ import annotations

import pytest

from delta_engine.models import Schema
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from tests.builders.models import ORDERS, orders
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.unit.state.unity_catalog.catalogs import (
    LISTED_ROWS,
    PLAIN,
    FakeListing,
    document,
    listed,
    read,
    reader_over,
    unity,
)


@pytest.mark.parametrize("setting", ["enable", "disable", "inherit"])
def test_a_listing_says_the_table_s_own_optimization(setting: str) -> None:
    listing = FakeListing(listed(enable_predictive_optimization=setting.upper()))
    state = reader_over(unity(LISTED_ROWS, {}), listing).snapshot([orders()]).table(ORDERS)
    assert state.predictive_optimization == setting


@pytest.mark.parametrize(
    ("shown", "setting"),
    [
        ("ENABLE", "enable"),
        ("DISABLE", "disable"),
        ("ENABLE (inherited from METASTORE main)", "inherit"),
        ("", None),
        (None, None),
    ],
)
def test_predictive_optimization_is_the_table_s_own(shown: str | None, setting: str | None) -> None:
    text = document(*PLAIN, predictive_optimization=shown)
    assert read(texts={"AS JSON": text}).predictive_optimization == setting


def test_only_existing_schemas_that_declare_their_optimization_are_described() -> None:
    catalog = FakeUnityCatalog(("dev.silver", "dev.gold"))
    catalog.run("ALTER SCHEMA dev.silver DISABLE PREDICTIVE OPTIMIZATION")
    declared = [
        Schema("dev", "Silver", predictive_optimization="enable"),
        Schema("dev", "gold"),
        Schema("dev", "not_yet", predictive_optimization="enable"),
    ]
    schemas = UnityCatalogReader(catalog).snapshot(declared).schema_states
    assert schemas["dev.silver"].predictive_optimization == "disable"
    assert schemas["dev.gold"].predictive_optimization is None
    assert [sql for sql in catalog.questions if "DESCRIBE" in sql] == [
        "DESCRIBE SCHEMA EXTENDED `dev`.`silver`"
    ]
