"""A fingerprint is another one if, and only if, what a plan depends on is."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any

import msgspec
import pytest

from delta_engine.deployment.definitions import define
from delta_engine.deployment.document import AcceptedDrift, Difference
from delta_engine.deployment.resources import unmanaged_table
from delta_engine.deployment.stored_definitions import Baseline
from delta_engine.models import Column, QualifiedName, Reference
from delta_engine.plan_files.document import TableFingerprint
from delta_engine.plan_files.fingerprints import deployment_fingerprint, fingerprints, model_checksums
from delta_engine.state.states import (
    ABSENT,
    Audit,
    CatalogState,
    RelationKind,
    SchemaState,
    TableState,
    state_of,
)
from tests.builders.deployment import NOON, deployment_state
from tests.builders.models import WORKED_MODEL, orders
from tests.cases.documented_models import WHOLE_TABLE
from tests.projects.plan_files import SOME

KEY = "dev.silver.orders"
NOTHING = deployment_fingerprint(None, ())

TABLE = TableState(columns=(Column("id", "bigint", False, "x"),), table_properties={"a": "1"})

SPECIAL: dict[str, Any] = {
    "exists": False,
    "columns": (Column("id", "bigint", True, "x"),),
    "not_null_checks": ("id",),
    "referenced_by": (Reference(table=QualifiedName("dev", "silver", "x"), name="fk"),),
    "relation": RelationKind.STREAMING_TABLE,
    "former_name": QualifiedName("dev", "silver", "x"),
    "unique_constraints": ("one_number",),
}
"""The fields that are no facets."""

WHOLE = state_of(WHOLE_TABLE)
FIELDS = [field.name for field in fields(TableState) if field.name != "audit"]


def fingerprint(table: TableState, table_id: str | None = None) -> TableFingerprint:
    found = fingerprints(
        {KEY: table}, CatalogState(tables={KEY: table}), NOTHING, {KEY: table_id} if table_id else {}
    )
    return found.tables[KEY]


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_counts(field: str) -> None:
    other = replace(TABLE, **{field: SPECIAL.get(field, getattr(WHOLE, field))})
    assert other != TABLE
    assert fingerprint(other).state != fingerprint(TABLE).state


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
    assert fingerprint(replace(TABLE, columns=(column,))).state != fingerprint(TABLE).state


def test_the_columns_that_the_platform_chooses_do_not_count() -> None:
    automatic = replace(TABLE, clusters_automatically=True)
    assert fingerprint(replace(automatic, cluster_by=("id",))).state == fingerprint(automatic).state


def test_what_moves_with_the_data_does_not_count() -> None:
    moved = {"a": "1", "delta.lastUpdateVersion": "7", "spark.sql.statistics.numRows": "5"}
    assert fingerprint(replace(TABLE, table_properties=moved)) == fingerprint(TABLE)


def test_the_order_of_what_has_none_does_not_count() -> None:
    one = replace(TABLE, tags={"a": "1", "b": "2"}, grants={"x": ("SELECT",), "y": ("MODIFY", "SELECT")})
    other = replace(TABLE, tags={"b": "2", "a": "1"}, grants={"y": ("SELECT", "MODIFY"), "x": ("SELECT",)})
    assert fingerprint(one) == fingerprint(other)


def test_who_it_is() -> None:
    made = datetime(2026, 3, 1, tzinfo=timezone.utc)
    found = fingerprint(replace(TABLE, audit=Audit(created_at=made, altered_at=made)), "id 1")
    assert (found.table_id, found.created_at) == ("id 1", made)
    assert found.state == fingerprint(TABLE).state
    assert fingerprint(ABSENT) == TableFingerprint()


def test_schemas() -> None:
    observed = CatalogState(
        tables={KEY: TABLE},
        missing_schemas=frozenset({("dev", "gold")}),
        schema_states={"dev.silver": SchemaState(comment="x")},
    )
    found = fingerprints({KEY: TABLE, "dev.bronze.x": ABSENT}, observed, NOTHING, {}).schemas
    assert list(found) == ["dev.bronze", "dev.gold", "dev.silver"]
    assert found["dev.gold"] is None
    assert found["dev.bronze"] != found["dev.silver"]


ORDERS = f"table.{WORKED_MODEL.key}"


def record(**changes: Any) -> str | None:
    """Return the checksum of the record of a table, after changes to its metadata."""
    state = deployment_state(WORKED_MODEL)
    resource = state.resources[ORDERS]
    changed = msgspec.structs.replace(
        resource, metadata=msgspec.structs.replace(resource.metadata, **changes)
    )
    state = msgspec.structs.replace(state, resources={ORDERS: changed})
    return deployment_fingerprint(state, [ORDERS]).records[ORDERS]


def test_the_deployment_state() -> None:
    state = deployment_state(WORKED_MODEL)
    found = deployment_fingerprint(state, [ORDERS, "schema.dev.silver"])
    assert found.state_id == "state-1"
    assert found.touched == {WORKED_MODEL.key, "dev.silver"}
    assert found.records == {ORDERS: record(), "schema.dev.silver": None}
    later = deployment_state(WORKED_MODEL, orders(name="other"), serial=8)
    assert deployment_fingerprint(later, found.records) == found
    unsaved = msgspec.structs.replace(state, serial=0)
    assert deployment_fingerprint(unsaved, [ORDERS]).state_id is None
    assert deployment_fingerprint(None, [ORDERS]).records == {ORDERS: None}


DECLARED = define(WORKED_MODEL)
ACCEPTED = AcceptedDrift(kind="comment", field="table comment", expected="a", actual="b", by="ana", at=NOON)


@pytest.mark.parametrize(
    "changes",
    [
        {"declared": define(orders(comment="other"))},
        {"baseline": Baseline(columns=DECLARED.columns)},
        {"attempted": (DECLARED,)},
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


LATE = Difference(field="table comment", expected="a", actual="b")


@pytest.mark.parametrize(
    "changes",
    [
        {"drift": (LATE,)},
        {"lag": (LATE,)},
        {"sync_error": "x"},
        {"sync_warning": "x"},
        {"actual_checksum": SOME},
        {"delta_version": 9},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_every_run_derives_again_does_not_count(changes: dict[str, Any]) -> None:
    assert record(**changes) == record()


def test_a_record_without_a_model_is_none() -> None:
    key = "table.dev.silver.x"
    state = msgspec.structs.replace(
        deployment_state(), resources={key: unmanaged_table(QualifiedName("dev", "silver", "x"))}
    )
    assert deployment_fingerprint(state, [key]).records == {key: None}


def test_models() -> None:
    models = [orders(name="b"), orders(name="A"), orders(name="c", comment="x")]
    found = model_checksums(models)
    assert list(found) == ["dev.silver.a", "dev.silver.b", "dev.silver.c"]
    assert model_checksums(reversed(models)) == found
    assert len(set(found.values())) == 3
