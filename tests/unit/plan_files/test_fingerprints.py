"""A fingerprint is another one if, and only if, what a plan depends on is."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any

import msgspec
import pytest

from delta_engine.models import Column, QualifiedName, Reference
from delta_engine.plan_files.document import TableFingerprint
from delta_engine.plan_files.fingerprints import fingerprints, model_checksums
from delta_engine.state.states import (
    ABSENT,
    Audit,
    CatalogState,
    RelationKind,
    SchemaState,
    TableState,
    state_of,
)
from tests.builders.deployment import deployment_state
from tests.builders.models import WORKED_MODEL, orders
from tests.cases.documented_models import WHOLE_TABLE

KEY = "dev.silver.orders"

TABLE = TableState(columns=(Column("id", "bigint", False, "x"),), table_properties={"a": "1"})

SPECIAL: dict[str, Any] = {
    "exists": False,
    "columns": (Column("id", "bigint", True, "x"),),
    "not_null_checks": ("id",),
    "referenced_by": (Reference(table=QualifiedName("dev", "silver", "x"), name="fk"),),
    "relation": RelationKind.STREAMING_TABLE,
    "former_name": QualifiedName("dev", "silver", "x"),
}
"""The fields that are no facets."""

WHOLE = state_of(WHOLE_TABLE)
FIELDS = [field.name for field in fields(TableState) if field.name != "audit"]


def fingerprint(table: TableState, table_id: str | None = None) -> TableFingerprint:
    found = fingerprints(
        {KEY: table}, CatalogState(tables={KEY: table}), None, {KEY: table_id} if table_id else {}
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
    found = fingerprints({KEY: TABLE, "dev.bronze.x": ABSENT}, observed, None, {}).schemas
    assert list(found) == ["dev.bronze", "dev.gold", "dev.silver"]
    assert found["dev.gold"] is None
    assert found["dev.bronze"] != found["dev.silver"]


def test_the_deployment_state() -> None:
    nothing = CatalogState(tables={})
    state = deployment_state(WORKED_MODEL)
    found = fingerprints({}, nothing, state, {}).deployment_state
    assert found is not None
    assert (found.state_id, found.serial) == ("state-1", 7)
    touched = msgspec.structs.replace(state, resources={})
    assert fingerprints({}, nothing, touched, {}).deployment_state != found
    unsaved = msgspec.structs.replace(state, serial=0)
    assert fingerprints({}, nothing, unsaved, {}).deployment_state is None


def test_models() -> None:
    models = [orders(name="b"), orders(name="A"), orders(name="c", comment="x")]
    found = model_checksums(models)
    assert list(found) == ["dev.silver.a", "dev.silver.b", "dev.silver.c"]
    assert model_checksums(reversed(models)) == found
    assert len(set(found.values())) == 3
