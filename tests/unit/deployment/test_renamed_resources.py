"""Records of tables and columns that got another name: everything on record says it."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from delta_engine.deployment.codec import decode_state, encode_state
from delta_engine.deployment.definitions import define
from delta_engine.deployment.editing import with_renamed_table
from delta_engine.deployment.left_alone import drift_of, others_of
from delta_engine.deployment.resources import table_key
from delta_engine.deployment.run_records import RunRecords
from delta_engine.models import Column, ForeignKey, PrimaryKey, QualifiedName, Table
from delta_engine.state.states import CatalogState, state_of
from tests.builders import ORDERS, orders
from tests.deployment_builders import FACTS, NOON, applied, deployment_state

MODEL = orders(Column("id", "bigint"), Column("amount", "int"))
THEIRS = replace(
    MODEL, columns=(MODEL.columns[0], Column("amount", "int", comment="x")), cluster_by=("amount",)
)


def test_foreign_keys_name_a_table_as_it_is_called_by_now() -> None:
    keys = [ForeignKey(["id"], "dev.silver.orders", ["id"], "up")]
    child = Table("dev", "silver", "items", [Column("id", "bigint")], foreign_keys=keys)
    parent = replace(MODEL, primary_key=PrimaryKey(["id"]), foreign_keys=(replace(keys[0], name="itself"),))
    name = QualifiedName("dev", "silver", "sales")
    state = with_renamed_table(deployment_state(parent, child), ORDERS, name)
    found = [one.metadata.definition for one in state.resources.values()]
    assert [key.references for one in found if one for key in one.foreign_keys] == [str(name), str(name)]
    decode_state(encode_state(state), environment="test", where="the document")  # its checksums hold


def test_what_is_left_alone_goes_along_with_a_column_whose_other_name_is_accepted() -> None:
    key = table_key(ORDERS)
    known = applied(MODEL)
    metadata = msgspec.structs.replace(known.metadata, with_others=define(THEIRS))
    records = RunRecords({key: msgspec.structs.replace(known, metadata=metadata)}, FACTS.who, lambda: NOON)
    total = Column("total", "int", comment="x")
    observed = state_of(replace(THEIRS, columns=(MODEL.columns[0], total), cluster_by=("total",)))
    records.look_at(CatalogState(tables={ORDERS.key: observed}))
    accepted = orders(MODEL.columns[0], Column("total", "int"))
    records.accept(accepted, observed, None, renames={"amount": "total"})
    assert drift_of(accepted, others_of(records.resources[key].metadata), observed) == ()
