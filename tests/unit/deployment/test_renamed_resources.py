"""Records of tables and columns that got another name: everything on record says it."""

from __future__ import annotations

from dataclasses import replace

from delta_engine.deployment.codec import decode_state, encode_state
from delta_engine.deployment.recorded_models import table_records
from delta_engine.deployment.resources import (
    with_renamed_table,
)
from delta_engine.models import Column, ForeignKey, PrimaryKey, QualifiedName, Table
from delta_engine.ownership.recorded import resource_key
from tests.builders.deployment import deployment_state
from tests.builders.models import ORDERS, orders

MODEL = orders(Column("id", "bigint"), Column("amount", "int"))


def test_foreign_keys_name_a_table_as_it_is_called_by_now() -> None:
    keys = [ForeignKey(["id"], "dev.silver.orders", ["id"], "up")]
    child = Table("dev", "silver", "items", [Column("id", "bigint")], foreign_keys=keys)
    parent = replace(MODEL, primary_key=PrimaryKey(["id"]), foreign_keys=(replace(keys[0], name="itself"),))
    name = QualifiedName("dev", "silver", "sales")
    state = with_renamed_table(deployment_state(parent, child), ORDERS, name)
    declared_models = [record.declared for record in table_records(state).values()]
    assert [key.references for model in declared_models if model for key in model.foreign_keys] == [
        str(name),
        str(name),
    ]
    decode_state(encode_state(state), environment="test", where="the document")  # its checksums hold


def test_the_records_of_other_tables_are_as_they_were() -> None:
    """Also those of an older engine, which recorded no dependencies; and none of them costs a checksum."""
    items = Table("dev", "silver", "items", [Column("id", "bigint")])
    state = deployment_state(MODEL, items)
    key = resource_key(items.qualified_name)
    older = replace(state.resources[key], dependencies=())
    state = state.with_resources({**state.resources, key: older})
    renamed = with_renamed_table(state, ORDERS, QualifiedName("dev", "silver", "sales"))
    assert renamed.resources[key] is older
