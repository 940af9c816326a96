"""Views from rows of `information_schema`, and listings of databricks-sdk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from databricks.sdk.service.catalog import ColumnInfo, TableInfo, TableType

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models.views import SchemaMode, ViewColumn, ViewName
from delta_engine.state.audits import Audit
from delta_engine.state.unity_catalog.information_schema import (
    COLUMN_TAGS,
    COLUMNS,
    TABLE_PRIVILEGES,
    TABLE_TAGS,
)
from delta_engine.state.unity_catalog.views import (
    VIEWS,
    Parts,
    is_view,
    listed_view,
    view_state,
)
from delta_engine.state.unmanaged import Unmanaged
from delta_engine.state.view_states import ABSENT_VIEW, ViewState

NAME = ViewName("dev", "gold", "Revenue")
CREATED = datetime(2026, 11, 25, 8, 30, tzinfo=timezone.utc)
QUERY = "SELECT id, sum(amount) AS total FROM dev.silver.orders GROUP BY id"


def table(**changes: Any) -> Row:
    row = {
        "table_schema": "gold",
        "table_name": "revenue",
        "table_type": "VIEW",
        "data_source_format": None,
        "comment": "Revenue",
        "table_owner": "ann",
        "storage_path": None,
        "created": CREATED,
        "created_by": "ann",
        "last_altered": CREATED,
        "last_altered_by": "jo",
    }
    return {**row, **changes}


def named(**values: object) -> Row:
    return {"table_schema": "gold", "table_name": "revenue", **values}


def column(position: object, name: str | None, comment: str | None = None) -> Row:
    types = {"full_data_type": "bigint", "is_nullable": "YES"}
    return named(column_name=name, ordinal_position=position, comment=comment, **types)


def parts(**changes: Sequence[Row]) -> Parts:
    of_tag = {"schema_name": "gold", "table_name": "revenue"}
    rows: Mapping[str, Sequence[Row]] = {
        "columns": [column(2, "total"), column(1, "Id", "The customer")],
        "table_tags": [{**of_tag, "tag_name": "domain", "tag_value": "sales"}],
        "column_tags": [{**of_tag, "column_name": "id", "tag_name": "pii", "tag_value": "no"}],
        "table_privileges": [named(grantee="analysts", privilege_type="SELECT")],
        "views": [named(view_definition=QUERY)],
        **changes,
    }
    views = (COLUMNS, TABLE_TAGS, COLUMN_TAGS, TABLE_PRIVILEGES, VIEWS)
    return {view: rows[view.name] for view in views}


OF_ROWS = ViewState(
    query=QUERY,
    columns=(ViewColumn("Id", "The customer", tags={"pii": "no"}), ViewColumn("total")),
    comment="Revenue",
    tags={"domain": "sales"},
    owner="ann",
    grants={"analysts": ("SELECT",)},
)


def test_a_view_is_read_from_rows() -> None:
    state = view_state(NAME, table(), parts())
    assert state == OF_ROWS
    assert isinstance(state, ViewState)
    assert state.audit == Audit(created_at=CREATED, created_by="ann", altered_at=CREATED, altered_by="jo")


@pytest.mark.parametrize("rows", [[], [named(view_definition=None)]])
def test_a_hidden_query_is_unknown_and_all_else_is_read(rows: Sequence[Row]) -> None:
    state = view_state(NAME, table(), parts(views=rows))
    assert isinstance(state, ViewState)
    assert state.query is None
    assert state.tags == {"domain": "sales"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"columns": []}, "its columns are not visible to you"),
        ({"columns": [column(1, None)]}, "column_name is None"),
        ({"columns": [column(None, "a")]}, "ordinal_position is None"),
        (
            {
                "column_tags": [
                    {"schema_name": "gold", "table_name": "revenue", "column_name": None, "tag_name": "a"}
                ]
            },
            "column_name is None",
        ),
    ],
)
def test_rows_that_are_not_whole_are_refused(changes: Any, reason: str) -> None:
    with pytest.raises(CatalogReadError, match=reason):
        view_state(NAME, table(), parts(**changes))


@pytest.mark.parametrize(
    ("kind", "is_one", "reason"),
    [
        ("MATERIALIZED_VIEW", True, "it is a materialized view, which the engine does not manage"),
        ("METRIC_VIEW", True, "it is a metric view, which the engine does not manage"),
        ("MANAGED", False, r"there is a table of this name \(managed\)"),
        ("STREAMING_TABLE", False, r"there is a table of this name \(streaming table\)"),
    ],
)
def test_other_relations_are_refused(kind: str, is_one: bool, reason: str) -> None:
    row = table(table_type=kind)
    assert is_view(row) is is_one
    with pytest.raises(CatalogReadError, match=reason) as refusal:
        view_state(NAME, row, parts())
    assert refusal.value.securable == "view dev.gold.Revenue"


def test_a_description_wins_and_rows_stand_in_for_one_that_failed() -> None:
    described = ViewState(
        query="SELECT 1 AS Id", columns=(ViewColumn("Id", "own"),), schema_mode=SchemaMode.BINDING
    )
    state = view_state(NAME, table(), parts(), described)
    assert (state.query, state.schema_mode, state.owner) == (described.query, SchemaMode.BINDING, "ann")
    assert state.columns == (ViewColumn("Id", "own", tags={"pii": "no"}),)
    assert view_state(NAME, table(), parts(), CatalogReadError("it is broken")) == OF_ROWS


def test_a_view_that_is_gone_is_absent_although_rows_still_show_it() -> None:
    assert view_state(NAME, table(), parts(), ABSENT_VIEW) == ABSENT_VIEW


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        (CatalogReadError("it is broken"), "it is broken"),
        (Unmanaged("it is a metric view"), "it is a metric view"),
        (None, "the platform does not describe it as JSON"),
    ],
)
def test_a_view_that_only_its_description_shows_needs_one(described: Any, reason: str) -> None:
    with pytest.raises(CatalogReadError, match=reason):
        view_state(NAME, None, parts(), described)


def info(**changes: Any) -> TableInfo:
    arguments = {
        "table_type": TableType.VIEW,
        "view_definition": QUERY,
        "columns": [
            ColumnInfo(name="total", position=1),
            ColumnInfo(name="Id", position=0, comment="The customer"),
        ],
        "properties": {"view.schemaMode": "TYPE EVOLUTION", "view.sqlConfig.spark.sql.ansi.enabled": "true"},
        "comment": "Revenue",
        "owner": "ann",
        "created_at": 1764059400000,
        "created_by": "ann",
        "updated_at": 1764059400000,
        "updated_by": "jo",
        **changes,
    }
    return TableInfo(**arguments)


def test_a_listed_view_has_its_mode_and_gets_tags_and_grants_from_rows() -> None:
    state = listed_view(info())
    assert isinstance(state, ViewState)
    assert state.schema_mode is SchemaMode.TYPE_EVOLUTION
    assert state.audit.altered_by == "jo"
    assert state.audit.created_at == datetime(2025, 11, 25, 8, 30, tzinfo=timezone.utc)
    whole = view_state(NAME, table(), parts(), state)
    assert whole == replace(OF_ROWS, schema_mode=SchemaMode.TYPE_EVOLUTION)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"table_type": TableType.MATERIALIZED_VIEW}, Unmanaged("it is a materialized view")),
        ({"table_type": TableType.METRIC_VIEW}, Unmanaged("it is a metric view")),
        ({"table_type": TableType.MANAGED}, None),
        ({"table_type": None}, None),
        ({"columns": None}, None),
        ({"browse_only": True}, None),
    ],
)
def test_other_listings_are_no_views(changes: Any, state: object) -> None:
    assert listed_view(info(**changes)) == state


def test_a_listing_without_query_or_properties_is_a_view_with_unknown_parts() -> None:
    state = listed_view(info(view_definition=None, properties=None))
    assert isinstance(state, ViewState)
    assert (state.query, state.schema_mode) == (None, None)
