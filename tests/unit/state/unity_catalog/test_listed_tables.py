"""What a workspace's listing says of tables, and when the table itself is asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models import CheckConstraint, Column, ColumnMask, Identity, RowFilter, Table
from delta_engine.state.unity_catalog.listed_details import open_listings
from tests.builders.described_columns import listed_column
from tests.builders.models import ORDERS, orders
from tests.fakes.recorded_catalog import Answer, column_rows, table_row
from tests.unit.state.unity_catalog.catalogs import (
    LISTED_ROWS,
    PLAIN,
    FakeListing,
    document,
    listed,
    reader_over,
    unity,
)

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo


def test_a_listing_says_what_the_views_do_not() -> None:
    runner, listing = unity(LISTED_ROWS, {}), FakeListing(listed(), listed(name="another"))
    state = reader_over(runner, listing).snapshot([orders()]).table(ORDERS)
    assert state.columns == (
        Column("Id", "bigint", False, "Order ID", identity=Identity(100, 10, always=False)),
        Column("state", "varchar(2)", default="'XX'"),
        Column("placed_on", "date", generated_as="CAST(placed AS DATE)"),
    )
    assert (state.cluster_by, state.clusters_automatically) == (("Id",), True)
    assert state.partitioned_by == ("placed_on",)
    assert state.checks == (CheckConstraint("positive", "Id > 0"),)
    assert state.location == "s3://bucket/orders/"
    assert listing.asked == [("dev", "silver")]
    assert len(runner.statements) == 13


def not_listed() -> Iterable[Sequence[TableInfo | Exception]]:
    """Yield listings that do not say all of the table."""
    from databricks.sdk.errors import PermissionDenied

    yield ()
    yield (PermissionDenied("no"),)
    yield (TimeoutError(),)
    yield (RuntimeError("[CONTEXT_UNAVAILABLE_FOR_REMOTE_CLIENT] no"),)
    yield (AttributeError("'str' object has no attribute 'get'"),)
    yield (KeyError("tables"),)
    yield (listed(properties=None),)
    yield (listed(columns=None),)
    yield (listed(columns=[{"name": "Id", "position": 0, "type_json": '"long"'}]),)
    yield (listed(columns=[{"name": "Id", "position": 0, "type_json": "{"}]),)
    for half in (
        '{"name": "Id"}',
        '{"name": null, "type": "long"}',
        '{"name": "Id", "type": "long", "nullable": 1}',
    ):
        yield (listed(columns=[{"name": "Id", "position": 0, "type_json": half}]),)
    hidden = {"name": "Id", "position": 0, "type_json": '{"name": "Id", "type": "long", "metadata": {}}'}
    yield (listed(columns=[hidden]),)  # the properties say that there is an identity column


@pytest.mark.parametrize("tables", list(not_listed()))
def test_what_a_listing_does_not_say_the_table_is_asked_for(tables: Sequence[TableInfo | Exception]) -> None:
    runner = unity()
    state = reader_over(runner, FakeListing(*tables)).snapshot([orders()]).table(ORDERS)
    assert [column.name for column in state.columns] == ["Id", "B"]
    assert sum("AS JSON" in sql for sql in runner.statements) == 1


def test_a_listing_of_another_shape_is_asked_for_in_sql() -> None:
    runner, broken = unity(), listed()
    broken.columns = [None]  # type: ignore[list-item]  # what no SDK should return
    assert reader_over(runner, FakeListing(broken)).snapshot([orders()]).table(ORDERS).exists
    assert sum("AS JSON" in sql for sql in runner.statements) == 1


def clustered(paths: object, *fields: tuple[str, object, str], **changes: object) -> TableInfo:
    """Return a listed table that is clustered, of columns with their types and physical names."""
    columns = [
        {
            "name": name,
            "position": position,
            "type_json": json.dumps(
                {"name": name, "type": kind, "metadata": {"delta.columnMapping.physicalName": physical}}
            ),
        }
        for position, (name, kind, physical) in enumerate(fields)
    ]
    return listed(columns=columns, properties={"clusteringColumns": json.dumps(paths)}, **changes)


STRUCT = {
    "type": "struct",
    "fields": [{"name": "Inside", "type": "long", "nullable": True, "metadata": {}}],
}


@pytest.mark.parametrize(
    ("table", "questions"),
    [
        (clustered([["Id"]], ("Id", "long", "Id"), ("B", "date", "B")), 0),
        (clustered([["ID"]], ("Id", "long", "col-1"), ("B", "date", "col-2")), 0),
        (clustered([["S", "inside"]], ("S", STRUCT, "col-1")), 0),
        (clustered([["a.b"]], ("a.b", "long", "col-1")), 0),
        (clustered([["col-1"]], ("Id", "long", "col-1"), ("B", "date", "col-2")), 1),
        (clustered([["S", "col-7"]], ("S", STRUCT, "col-1")), 1),
        (clustered([["Id"]], ("New", "long", "Id"), ("B", "date", "B")), 1),  # renamed since
        (clustered([["Id"]], ("New", "long", "Id"), ("Id", "long", "B")), 1),  # and another has its name now
    ],
)
def test_physical_names_of_clustering_columns_cost_a_question_for_that_table_alone(
    table: TableInfo, questions: int
) -> None:
    other = clustered([["Id"]], ("Id", "long", "Id"), ("B", "date", "B"), name="other", storage_location=None)
    views: dict[str, Answer] = {
        "tables": [table_row(), table_row("other")],
        "columns": [
            *(column_rows(*PLAIN) if questions else _shown(table)),
            *column_rows(*PLAIN, name="other"),
        ],
    }
    asked = document(*PLAIN, clustering_information=[{"name": "B"}])
    runner = unity(views, {"AS JSON": asked})
    table.storage_location = None
    models = [orders(), Table("dev", "silver", "other", [Column("Id", "bigint")])]
    state = reader_over(runner, FakeListing(table, other)).snapshot(models)
    assert [sql.count("orders") for sql in runner.statements if "AS JSON" in sql] == [1] * questions
    (listed_name,) = json.loads((table.properties or {})["clusteringColumns"])
    assert state.table(ORDERS).cluster_by == (("B",) if questions else (".".join(listed_name),))
    assert state.tables["dev.silver.other"].cluster_by == ("Id",)


def _shown(table: TableInfo) -> list[Row]:
    """Return what the view `columns` shows of a listed table."""
    kinds = {"date": "date", "long": "bigint"}
    fields = [json.loads(column.type_json or "") for column in table.columns or ()]
    return column_rows(
        *((field["name"], kinds.get(str(field["type"]), "struct<Inside: bigint>")) for field in fields)
    )


@pytest.mark.parametrize("error", [TimeoutError(), RuntimeError("no"), AttributeError("no")])
def test_a_workspace_that_cannot_be_used_is_tried_once(error: Exception) -> None:
    listing = FakeListing(error)
    reader = reader_over(unity(), listing)
    for _ in range(2):
        assert reader.snapshot([orders()]).table(ORDERS).exists
    assert listing.asked == [("dev", "silver")]


def test_a_listing_of_another_workspace_is_not_believed() -> None:
    views = {**LISTED_ROWS, "tables": [table_row(storage_path="s3://other/orders")]}
    with pytest.raises(
        CatalogReadError, match="shows the location s3://other/orders, the table itself s3://b"
    ):
        reader_over(unity(views, {}), FakeListing(listed())).snapshot([orders()])


MASKED = {
    "column_masks": [
        {
            "column_name": "B",
            "function_name": {"catalog_name": "dev", "schema_name": "f", "function_name": "hide"},
            "using_column_names": ["Id"],
        }
    ],
    "row_filter": {
        "function_name": {"catalog_name": "dev", "schema_name": "f", "function_name": "mine"},
        "column_names": ["Id", "B"],
    },
}


def test_a_table_that_may_only_be_browsed_tells_its_masks_itself() -> None:
    runner = unity(texts={"AS JSON": document(*PLAIN, **MASKED)})
    state = reader_over(runner, FakeListing(listed(browse_only=True))).snapshot([orders()]).table(ORDERS)
    assert [column.mask for column in state.columns] == [None, ColumnMask("dev.f.hide", ["Id"])]
    assert state.row_filter == RowFilter("dev.f.mine", ["Id", "B"])


def test_a_table_that_may_only_be_browsed_is_refused_where_a_mask_may_be_hidden() -> None:
    with pytest.raises(CatalogReadError) as caught:
        reader_over(unity(), FakeListing(listed(browse_only=True))).snapshot([orders()])
    assert str(caught.value) == (
        "table dev.silver.orders: you may only browse it: information_schema hides its column masks from you. Ask for "
        "SELECT on it."
    )


@pytest.mark.usefixtures("no_credentials")
def test_no_listing_without_credentials() -> None:
    assert open_listings() is None


@pytest.mark.usefixtures("no_credentials")
@pytest.mark.parametrize(
    "error", [RuntimeError("[CONTEXT_UNAVAILABLE_FOR_REMOTE_CLIENT] no"), AttributeError("no")]
)
def test_no_listing_without_a_client(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    import databricks.sdk

    def fail(**_arguments: object) -> None:
        raise error

    monkeypatch.setenv("DATABRICKS_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("DATABRICKS_TOKEN", "made-up")
    monkeypatch.setattr(databricks.sdk, "WorkspaceClient", fail)
    assert open_listings() is None


@pytest.mark.usefixtures("no_credentials")
def test_no_listing_without_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sdk", None)
    assert open_listings() is None


def test_a_listed_type_that_the_engine_does_not_manage_is_opaque_to_models_of_other_parts() -> None:
    shape = Column("Shape", "geometry(4326)")
    info = listed(columns=[listed_column(shape, 0)], properties={})
    rows: dict[str, Answer] = {"columns": column_rows(("Shape", "geometry(OGC:CRS84)"))}
    comments = orders(Column("shape", "void", comment="Where"), manages=["comments"])
    runner, listing = unity(rows, {}), FakeListing(info)
    assert reader_over(runner, listing).snapshot([comments]).table(ORDERS).columns == (shape,)
    assert len(runner.statements) == 13
    with pytest.raises(CatalogReadError, match=r"the engine does not manage its type 'geometry\(4326\)'"):
        reader_over(unity(rows, {}), FakeListing(info)).snapshot([orders()])
