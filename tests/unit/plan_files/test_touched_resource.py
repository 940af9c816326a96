"""What a plan file holds of a table or schema is another value if, and only if, what a plan depends on is."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any

import pytest

from delta_engine.deployment.definitions import define
from delta_engine.deployment.resources import (
    unmanaged_table,
)
from delta_engine.models import Column, QualifiedName, Reference, Schema
from delta_engine.models.open_struct import canonical_checksum
from delta_engine.ownership.recorded import AcceptedDrift, Failure, Kept, RecordedDifference, Status
from delta_engine.plan_files.document import TouchedResource
from delta_engine.plan_files.touched import touched_resource
from delta_engine.state.audits import Audit
from delta_engine.state.states import (
    ABSENT,
    ABSENT_SCHEMA,
    RelationKind,
    SchemaState,
    TableState,
    state_of,
)
from tests.builders.deployment import NOON, deployment_state
from tests.builders.models import WORKED_MODEL, orders
from tests.cases.documented_models import WHOLE_TABLE
from tests.projects.plan_files import SOME

TABLE = TableState(columns=(Column("id", "bigint", False, "x"),), table_properties={"a": "1"})

SPECIAL: dict[str, Any] = {
    "columns": (Column("id", "bigint", True, "x"),),
    "not_null_checks": ("id",),
    "referenced_by": (Reference(table=QualifiedName("dev", "silver", "x"), name="fk"),),
    "relation": RelationKind.STREAMING_TABLE,
    "former_name": QualifiedName("dev", "silver", "x"),
    "unique_constraints": ("one_number",),
}
"""The fields that are no facets."""

WHOLE = state_of(WHOLE_TABLE)
FIELDS = [field.name for field in fields(TableState) if field.name not in ("audit", "described", "exists")]


def observed(state: TableState | SchemaState) -> str | None:
    return touched_resource(state, None, None, None).observed


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_counts(field: str) -> None:
    other = replace(TABLE, **{field: SPECIAL.get(field, getattr(WHOLE, field))})
    assert other != TABLE
    assert observed(other) != observed(TABLE)


def test_where_the_engine_learned_of_filter_and_masks_does_not_count() -> None:
    assert observed(replace(TABLE, described=frozenset({"", "id"}))) == observed(TABLE)


@pytest.mark.parametrize(
    "column",
    [
        Column("Id", "bigint", False, "x"),
        Column("id", "int", False, "x"),
        Column("id", "bigint", False, "y"),
        Column("id", "bigint", False, "x", default="1"),
        Column("id", "bigint", False, "x", tags={"a": "b"}),
    ],
)
def test_every_part_of_a_column_counts(column: Column) -> None:
    assert observed(replace(TABLE, columns=(column,))) != observed(TABLE)


def test_the_place_of_a_declaration_does_not_count() -> None:
    columns = [replace_place(column) for column in WHOLE.columns]
    assert columns[0].declared_at != WHOLE.columns[0].declared_at
    assert observed(replace(WHOLE, columns=tuple(columns))) == observed(WHOLE)


def replace_place(column: Column) -> Column:
    return Column(column.name, column.data_type, column.is_nullable, column.comment, tags=column.tags)


def test_the_columns_that_the_platform_chooses_do_not_count() -> None:
    automatic = replace(TABLE, clusters_automatically=True)
    assert observed(replace(automatic, cluster_by=("id",))) == observed(automatic)


def test_what_moves_with_the_data_does_not_count() -> None:
    moved = {"a": "1", "delta.lastUpdateVersion": "7", "spark.sql.statistics.numRows": "5"}
    assert observed(replace(TABLE, table_properties=moved)) == observed(TABLE)


def test_the_order_of_what_has_none_does_not_count() -> None:
    first = replace(TABLE, tags={"a": "1", "b": "2"}, grants={"x": ("SELECT",), "y": ("MODIFY", "SELECT")})
    second = replace(TABLE, tags={"b": "2", "a": "1"}, grants={"y": ("SELECT", "MODIFY"), "x": ("SELECT",)})
    assert observed(first) == observed(second)


def test_what_identifies_a_table_stands_beside_its_definition() -> None:
    made = datetime(2026, 3, 1, tzinfo=timezone.utc)
    state = replace(TABLE, audit=Audit(created_at=made, altered_at=made))
    assert touched_resource(state, None, None, "id 1") == TouchedResource(
        observed=observed(TABLE), table_id="id 1", created_at=made
    )


@pytest.mark.parametrize("state", [None, ABSENT, ABSENT_SCHEMA])
def test_what_does_not_exist_has_no_definition(state: TableState | SchemaState | None) -> None:
    assert touched_resource(state, None, None, None) == TouchedResource()


def test_schemas() -> None:
    assert observed(SchemaState()) is not None
    assert observed(SchemaState(comment="x")) != observed(SchemaState())


def test_a_model_counts_as_the_deployment_state_records_it() -> None:
    declared = touched_resource(None, WORKED_MODEL, None, None).declared
    assert declared == canonical_checksum(define(WORKED_MODEL))
    assert touched_resource(None, orders(comment="other"), None, None).declared != declared
    schemas = [Schema("dev", "silver", comment) for comment in ("a", "b")]
    first, second = (touched_resource(None, schema, None, None).declared for schema in schemas)
    assert first != second


ORDERS = f"table.{WORKED_MODEL.key}"


def record(**changes: Any) -> str | None:
    """Return the checksum of the record of a table, after changes to its metadata."""
    state = deployment_state(WORKED_MODEL)
    changed = replace(state.resources[ORDERS], **changes)
    return touched_resource(None, None, changed, None).recorded


ACCEPTED = AcceptedDrift(kind="comment", field="table comment", expected="a", actual="b", by="ana", at=NOON)


@pytest.mark.parametrize(
    "changes",
    [
        {"applied": Kept(orders(comment="other"))},
        {"whole": Kept(orders(comment="whole"))},
        {"attempts": (Kept(WORKED_MODEL),)},
        {"accepted": (ACCEPTED,)},
        {"column_order": ("id",)},
        {"full_ownership": ("tags",)},
        {"delta_table_id": "another"},
        {"created_at": NOON},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_planned_from_a_record_counts(changes: dict[str, Any]) -> None:
    assert record(**changes) != record()


LATE = RecordedDifference(field="table comment", expected="a", actual="b")


@pytest.mark.parametrize(
    "changes",
    [
        {"drift": (LATE,)},
        {"lag": (LATE,)},
        {"failure": Failure(Status.UNKNOWN, "x")},
        {"warning": "x"},
        {"actual_checksum": SOME},
        {"delta_version": 9},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_every_run_derives_again_does_not_count(changes: dict[str, Any]) -> None:
    assert record(**changes) == record()


def test_a_record_without_a_model_is_none() -> None:
    unmanaged = unmanaged_table(QualifiedName("dev", "silver", "x"))
    assert touched_resource(None, None, unmanaged, None).recorded is None
    assert record() is not None
