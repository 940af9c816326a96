"""The catalogs of a session, and what the connector of open-source Unity Catalog demands."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from delta_engine.backends.capabilities import UNITY_CATALOG
from delta_engine.backends.spark_catalogs import catalog_classes, empty_tokens

UNITY = {"spark.sql.catalog.unity": UNITY_CATALOG, "spark.sql.catalog.unity.uri": "http://localhost:8080"}


def test_catalogs_have_classes() -> None:
    settings = {**UNITY, "spark.sql.catalog.Other": "a.B", "spark.driver.memory": "2g"}
    assert catalog_classes(settings) == {"unity": UNITY_CATALOG, "other": "a.B"}


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        (UNITY, {"spark.sql.catalog.unity.token": ""}),
        ({**UNITY, "spark.sql.catalog.unity.token": "${env:UC_TOKEN}"}, {}),
        ({**UNITY, "spark.sql.catalog.unity.token": ""}, {}),
        ({**UNITY, "spark.sql.catalog.unity.auth.type": "oauth"}, {}),
        ({**UNITY, "spark.sql.catalog.other.token": "x"}, {"spark.sql.catalog.unity.token": ""}),
        ({"spark.sql.catalog.other": "a.B"}, {}),
    ],
)
def test_the_connector_gets_an_empty_token_where_the_server_needs_none(
    settings: Mapping[str, str], tokens: Mapping[str, str]
) -> None:
    assert empty_tokens(settings) == tokens
