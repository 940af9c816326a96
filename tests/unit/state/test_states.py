"""Observed states are immutable, whatever collections they are made from."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from delta_engine.models import CheckConstraint, Column, ForeignKey, QualifiedName, Reference
from delta_engine.state.audits import NO_AUDIT
from delta_engine.state.states import CatalogState, SchemaState, TableState

ORDERS = QualifiedName("dev", "silver", "orders")
ID = Column("id", "bigint")
FOREIGN_KEY = ForeignKey(["id"], "dev.silver.other", ["id"], "fk")
CHECK = CheckConstraint("positive", "id > 0")
REFERENCE = Reference(table=ORDERS, name="fk")


def made(collection: Any) -> TableState:
    """Return a state with something in each of its sequences, given as a kind of collection."""
    return TableState(
        columns=collection([ID]),
        foreign_keys=collection([FOREIGN_KEY]),
        checks=collection([CHECK]),
        not_null_checks=collection(["id"]),
        cluster_by=collection(["id"]),
        partitioned_by=collection(["id"]),
        referenced_by=collection([REFERENCE]),
        table_properties={"b": "1", "a": "2"},
        tags={"team": "sales"},
        grants={"analysts": collection(["select", "ALL_PRIVILEGES"])},
    )


def test_a_table_state_takes_lists_for_tuples() -> None:
    assert made(list) == made(tuple)
    assert hash(made(list).columns) == hash((ID,))
    values = [getattr(made(list), field.name) for field in fields(TableState)]
    assert not [value for value in values if isinstance(value, (list, dict, set))]


def test_what_a_state_was_made_from_may_change_afterwards() -> None:
    columns: Any = [ID]
    granted: Any = ["SELECT"]
    tags = {"team": "sales"}
    state = TableState(columns=columns, tags=tags, grants={"analysts": granted})
    schema = SchemaState(tags=tags, grants={"analysts": granted})
    columns.clear()
    tags.clear()
    granted.clear()
    assert state == TableState(columns=(ID,), tags={"team": "sales"}, grants={"analysts": ("SELECT",)})
    assert schema == SchemaState(tags={"team": "sales"}, grants={"analysts": ("SELECT",)})


@pytest.mark.parametrize("name", ["table_properties", "tags", "grants"])
def test_mappings_of_a_table_state_are_read_only(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(made(list), name)["new"] = ""
    with pytest.raises(FrozenInstanceError):
        setattr(made(list), name, {})


def test_a_text_is_no_list_of_names() -> None:
    wrong: Any = "id"
    with pytest.raises(TypeError, match="cluster_by takes a tuple or list of names, not the string 'id'"):
        TableState(cluster_by=wrong)


def test_a_catalog_state_keeps_what_it_was_given() -> None:
    tables, audits, schemas = {ORDERS.key: made(list)}, {ORDERS.key: NO_AUDIT}, {"dev.silver": SchemaState()}
    other_tables: Any = [ORDERS]
    state = CatalogState(tables=tables, audits=audits, schema_states=schemas, other_tables=other_tables)
    for collection in (tables, audits, schemas, other_tables):
        collection.clear()
    assert (*state.tables, *state.audits, *state.schema_states) == (ORDERS.key, ORDERS.key, "dev.silver")
    assert state.other_tables == (ORDERS,)
    mappings: Any = (state.tables, state.audits, state.schema_states)
    for mapping in mappings:
        with pytest.raises(TypeError):
            mapping["new"] = None
