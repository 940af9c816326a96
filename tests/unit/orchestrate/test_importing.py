"""Tables that exist as models: what is taken, what is left out, and how people would write it."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from delta_engine.aspects.existing_models import as_schema_model
from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.models import (
    AUTO,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    RowFilter,
    Schema,
    SchemaName,
)
from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.orchestrate.importing import as_model, import_tables
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.states import RelationKind, SchemaState, TableState
from delta_engine.validation.validator import PlanValidator
from tests.builders.models import ORDERS, observed, orders
from tests.fakes.recording_sql_runner import ScriptedSqlRunner

COLUMNS = (
    Column("id", "bigint", is_nullable=False, identity=Identity()),
    Column("parent", "bigint", default="0"),
    Column("day", "date", tags={"a": "b"}, mask=ColumnMask("dev.gov.f")),
)


def test_everything_that_a_model_can_say_is_taken_but_owner_and_grants() -> None:
    state = TableState(
        columns=COLUMNS,
        table_comment="c",
        table_properties={"a": "b", "delta.minReaderVersion": "3"},
        primary_key=PrimaryKey(["id"], "pk_dev_silver_orders__id"),
        checks=(CheckConstraint("positive", "id > 0"),),
        clusters_automatically=True,
        cluster_by=("id",),
        tags={"t": "v"},
        row_filter=RowFilter("dev.gov.r", ["id"]),
        owner="somebody",
        grants={"analysts": ("SELECT",)},
        location="s3://bucket/orders",
    )
    assert as_model(ORDERS, state) == orders(
        *COLUMNS,
        comment="c",
        properties={"a": "b"},
        primary_key=["id"],
        checks=[CheckConstraint("positive", "id > 0")],
        cluster_by=AUTO,
        tags={"t": "v"},
        row_filter=RowFilter("dev.gov.r", ["id"]),
        location="s3://bucket/orders",
    )


def test_of_a_schema_comment_and_tags_are_taken() -> None:
    state = SchemaState(comment="c", tags={"t": "v"}, owner="somebody", grants={"jo": ("SELECT",)})
    assert as_schema_model(SchemaName("dev", "silver"), state) == Schema(
        "dev", "silver", "c", tags={"t": "v"}
    )
    bare = SchemaState(owner="somebody", grants={"jo": ("SELECT",)})
    assert as_schema_model(SchemaName("dev", "silver"), bare) is None


def test_partitions_are_taken() -> None:
    state = TableState(columns=COLUMNS, partitioned_by=("day",))
    assert as_model(ORDERS, state).partitioned_by == ("day",)


def test_foreign_keys_name_their_tables_as_shortly_as_they_can() -> None:
    near, beside, far = (
        ForeignKey(["parent"], name, ["id"], "own_name")
        for name in ("dev.silver.parents", "dev.gold.parents", "prod.gold.parents")
    )
    state = TableState(columns=COLUMNS, foreign_keys=(near, beside, far))
    assert [key.references for key in as_model(ORDERS, state).foreign_keys] == [
        "parents",
        "gold.parents",
        "prod.gold.parents",
    ]


def test_of_a_streaming_table_comments_and_tags_are_taken() -> None:
    column = Column("id", "bigint", is_nullable=False, comment="c", tags={"a": "b"}, default="1")
    state = TableState(
        columns=(column,),
        table_comment="d",
        tags={"t": "v"},
        table_properties={"a": "b"},
        relation=RelationKind.STREAMING_TABLE,
    )
    model = as_model(ORDERS, state)
    assert model == orders(
        Column("id", "bigint", comment="c", tags={"a": "b"}),
        comment="d",
        tags={"t": "v"},
        manages=["comments", "tags"],
    )
    assert not list(PlanValidator().model_violations([model]))


def test_a_schema_with_capitals_is_reported_and_not_passed_over() -> None:
    runner = ScriptedSqlRunner({"SHOW SCHEMAS": [{"namespace": "Upper"}]})

    def no_schema(address: str) -> NoReturn:
        raise AssertionError(f"{address} is not there")

    reader = SparkDeltaReader(runner, no_schema, CatalogAddressing())
    backend = replace(databricks_backend(runner), reader=reader, lister=reader)
    for target in ("dev", "dev.Upper", "dev.upper"):
        imported = import_tables(backend, target)
        assert [str(refusal) for refusal in imported.refusals] == [
            "schema dev.upper exists as 'Upper', and schemas are addressed in lower case. Rename that schema, "
            "or choose "
            "another name in the model."
        ]
    (refusal,) = import_tables(backend, "dev.Upper.orders").refusals
    assert "its schema 'upper' exists as 'Upper'" in str(refusal)


def test_a_name_that_would_be_derived_is_left_out() -> None:
    own = observed(primary_key=PrimaryKey(["id"], "own_name"))
    assert as_model(ORDERS, own).primary_key == PrimaryKey(["id"], "own_name")
    derived = ForeignKey(["parent"], "dev.silver.orders", ["id"], "fk_dev_silver_orders__parent__orders")
    state = TableState(columns=COLUMNS, foreign_keys=(derived,))
    assert as_model(ORDERS, state).foreign_keys == (ForeignKey(["parent"], "orders", ["id"]),)
