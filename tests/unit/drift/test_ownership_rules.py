"""Single rules of ownership and baselines, in corners that random histories rarely reach."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import NO_POLICY
from delta_engine.aspects.comparison import Comparison
from delta_engine.deployment.definitions import define
from delta_engine.deployment.document import AcceptedDrift, TableResource
from delta_engine.drift.baselines import with_unmanaged_parts
from delta_engine.drift.status import with_accepted_drift
from delta_engine.models import CheckConstraint, Column, Part, Table
from delta_engine.models.record import Record, resource_key
from delta_engine.state.states import CatalogState, state_of
from tests.builders.deployment import NOON, applied, deployment_state
from tests.builders.detection import kinds, synchronized
from tests.builders.models import ORDERS, observed, orders
from tests.unit.drift.attempts import drift_after

X = Column("x", "int")
CHANGED = observed(Column("new", "int", comment="theirs"))


def comment_of(model: Table) -> str:
    return model.comment


def test_the_baseline_of_some_parts_does_not_know_the_others() -> None:
    recorded = orders(manages=[Part.COLUMNS])
    comparison = Comparison.of(orders(), observed(comment="theirs"), Record(declared=recorded), NO_POLICY)
    assert not comparison.clears(comment_of)
    whole = replace(comparison, record=Record(declared=orders()))
    assert whole.clears(comment_of)


def test_an_applied_column_is_not_renamed_onto_another_one() -> None:
    applied = orders(Column("old", "int"), Column("new", "int"))
    desired = orders(Column("new", "int", renamed_from="old"))
    comparison = Comparison.of(desired, CHANGED, Record(declared=applied), NO_POLICY)
    assert comparison.record.declared is not None
    assert [column.name for column in comparison.record.declared.columns] == ["old", "new"]


def test_attempted_models_follow_a_rename() -> None:
    attempted = orders(Column("old", "int", default="1"))
    desired = orders(Column("new", "int", renamed_from="old"))
    record = Record(declared=orders(), attempted=(attempted,))
    comparison = Comparison.of(desired, CHANGED, record, NO_POLICY)
    assert [one.columns[0].name for one in comparison.record.attempted] == ["new"]


def test_a_model_of_more_parts_takes_the_table_over_as_it_is() -> None:
    earlier = Record(declared=orders(manages=[Part.COLUMNS]))
    found = with_unmanaged_parts(orders(), observed(comment="theirs"), earlier)
    assert found == orders(comment="theirs")


def test_a_field_that_the_model_renames_is_not_one_of_others() -> None:
    applied = orders(Column("s", "struct<a: int>"))
    desired = orders(Column("s", "struct<b: int>", renamed_fields={"b": "a"}))
    present = observed(Column("s", "struct<b: int comment 'theirs'>"))
    assert with_unmanaged_parts(desired, present, Record(declared=applied)) is None


def test_a_field_that_no_model_declares_is_not_taken_over() -> None:
    model = orders(Column("s", "struct<a: int>"))
    present = observed(Column("s", "struct<a: int, n: int comment 'theirs'>"))
    assert with_unmanaged_parts(model, present, Record(declared=model)) is None


def test_a_killed_run_explains_the_column_that_it_dropped() -> None:
    model = orders(Column("id", "bigint"), X)
    assert drift_after(model, attempted=orders(comment="new"), found=observed()) == ()


def test_a_killed_run_explains_nothing_inside_a_field_that_it_has_not_dropped() -> None:
    model = orders(Column("s", "struct<a: int, b: int>"))
    attempted = orders(Column("s", "struct<a: int>"), comment="new")
    found = observed(Column("s", "struct<a: int, b: int comment 'theirs'>"))
    assert kinds(drift_after(model, attempted=attempted, found=found)) == ["column_comment"]


def accepted(kind: DriftKind, field: str, actual: str) -> AcceptedDrift:
    return AcceptedDrift(kind=kind.value, field=field, expected=None, actual=actual, by="ana", at=NOON)


def with_accepted(model: Table, *drift: AcceptedDrift, attempted: tuple[Table, ...] = ()) -> TableResource:
    resource = applied(model)
    metadata = msgspec.structs.replace(
        resource.metadata, accepted=drift, attempted=tuple(map(define, attempted))
    )
    return msgspec.structs.replace(resource, metadata=metadata)


def test_an_apply_leaves_accepted_drift_of_parts_that_it_keeps() -> None:
    model, table = orders(), replace(observed(), checks=(CheckConstraint("theirs", "id > 0"),))
    kept = accepted(DriftKind.CHECK, "check theirs", "id > 0")
    settled = accepted(DriftKind.TABLE_COMMENT, "table comment", "'theirs'")
    done = with_accepted_drift(
        applied(model), model, table, state_of(model), with_accepted(model, kept, settled)
    )
    assert done.metadata.accepted == (kept,)


def test_an_apply_leaves_an_accepted_order_where_columns_are_still_moved() -> None:
    model, moved = orders(Column("id", "bigint"), X), observed(X, Column("id", "bigint"))
    order = accepted(DriftKind.COLUMN_ORDER, "column order", "(x, id)")
    earlier = with_accepted(model, order)
    assert with_accepted_drift(applied(model), model, moved, moved, earlier).metadata.accepted == (order,)
    in_order = state_of(model)
    assert with_accepted_drift(applied(model), model, moved, in_order, earlier).metadata.accepted == ()


def test_after_an_unfinished_run_accepted_drift_stays() -> None:
    model, gone = orders(), accepted(DriftKind.TABLE_COMMENT, "table comment", "'theirs'")
    snapshot = CatalogState(tables={ORDERS.key: observed()})
    for attempted, left in (((), ()), ((orders(comment="new"),), (gone,))):
        resource = with_accepted(model, gone, attempted=attempted)
        state = msgspec.structs.replace(deployment_state(), resources={resource_key(ORDERS): resource})
        (found,) = synchronized(state, snapshot).resources.values()
        assert found.metadata.accepted == left
