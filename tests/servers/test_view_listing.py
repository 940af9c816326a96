"""databricks-sdk lists views over HTTP, and the engine reads them as the views of `information_schema` show them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from delta_engine.models.views import SchemaMode, View, ViewColumn
from delta_engine.sql.views import sql_create_view
from delta_engine.state.unity_catalog.views import listed_view
from delta_engine.state.view_states import ViewState, view_state_of
from tests.fakes import governance_api
from tests.fakes.governance_api import FakeGovernanceApi
from tests.fakes.unity_catalog import FakeUnityCatalog

VIEWS = [
    View("dev", "silver", "a", "SELECT 'it''s' AS a", [ViewColumn("a", "the a")], schema_mode="binding"),
    View("dev", "silver", "b", "SELECT\t1 AS a,\n\n\n2 AS b", comment="two", schema_mode="type evolution"),
    View("dev", "silver", "c", "SELECT * FROM dev.silver.b", schema_mode="evolution"),
]


@pytest.fixture
def api() -> Iterator[FakeGovernanceApi]:
    catalog = FakeUnityCatalog()
    for view in VIEWS:
        catalog.run(sql_create_view(view))
    with governance_api.serving(FakeGovernanceApi(catalog)) as serving:
        yield serving


def listed(api: FakeGovernanceApi) -> dict[str, Any]:
    sdk = pytest.importorskip("databricks.sdk")
    client = sdk.WorkspaceClient(host=api.host, token="secret")
    return {info.name: listed_view(info) for info in client.tables.list("dev", "silver")}


def test_views_are_listed_page_by_page_with_mode_and_owner(api: FakeGovernanceApi) -> None:
    states = listed(api)
    assert [*states] == ["a", "b", "c"]
    assert states["a"] == replace(view_state_of(VIEWS[0]), owner="ann@example.com")
    assert states["b"].query == "SELECT    1 AS a,\n2 AS b"
    assert states["c"].schema_mode is SchemaMode.EVOLUTION
    assert [column.name for column in states["c"].columns] == ["a", "b"]


def test_the_query_of_another_owner_is_unknown(api: FakeGovernanceApi) -> None:
    api.catalog.hides_queries, api.catalog.user = True, "eve"
    state = listed(api)["a"]
    assert isinstance(state, ViewState)
    assert (state.query, state.schema_mode) == (None, SchemaMode.BINDING)
