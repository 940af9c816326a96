"""What is recorded of a table or schema, and the status that follows from it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from delta_engine.deployment.codec import decode_state, encode_state
from delta_engine.deployment.definitions import define, kept
from delta_engine.deployment.resources import unapplied, unfinished, unmanaged_table
from delta_engine.models import Column, SchemaName, Table
from delta_engine.models.open_struct import canonical_checksum
from delta_engine.ownership.recorded import (
    AnyRecord,
    Failure,
    Kept,
    LastChange,
    Recorded,
    RecordedDifference,
    Status,
    is_unrecorded,
    status_of,
)
from delta_engine.ownership.recorded_models import with_models
from tests.builders.deployment import NOON, applied, deployment_state
from tests.builders.models import ORDERS, WORKED_MODEL, orders

LATE = RecordedDifference(field="table comment", expected="a", actual="b")
APPLIED: AnyRecord = applied(WORKED_MODEL)
ATTEMPT = Kept(orders(Column("id", "bigint")))
LAG = Failure(Status.UNKNOWN, "immediately after the apply, the catalog did not show all of it yet")

STANDINGS: dict[str, tuple[AnyRecord, Status, str | None]] = {
    "as applied": (APPLIED, Status.HEALTHY, None),
    "an undeclared schema": (unapplied(SchemaName("dev", "silver")), Status.HEALTHY, None),
    "in part": (
        unfinished(ORDERS, Failure(Status.DEGRADED, "lost"), attempted=(ATTEMPT,), earlier=APPLIED),
        Status.DEGRADED,
        "lost",
    ),
    "in part, and compared since": (
        replace(APPLIED, failure=Failure(Status.DEGRADED, "lost"), attempts=(ATTEMPT,), explained=(LATE,)),
        Status.DEGRADED,
        "lost",
    ),
    "in part, with drift": (
        replace(APPLIED, failure=Failure(Status.UNKNOWN, "lost"), attempts=(ATTEMPT,), drift=(LATE,)),
        Status.DRIFTED,
        "lost",
    ),
    "not at all": (
        unfinished(ORDERS, Failure(Status.FAILED, "refused"), attempted=(), earlier=None),
        Status.FAILED,
        "refused",
    ),
    "shown late": (
        replace(APPLIED, failure=LAG, explained=(LATE,), lag=(LATE,)),
        Status.UNKNOWN,
        LAG.reason,
    ),
    "gone": (replace(APPLIED, is_missing=True), Status.MISSING, "the catalog does not show the table"),
    "changed by another principal": (replace(APPLIED, drift=(LATE,)), Status.DRIFTED, None),
    "in no model": (unmanaged_table(ORDERS), Status.UNMANAGED, None),
}


@pytest.mark.parametrize(("record", "status", "reason"), STANDINGS.values(), ids=STANDINGS)
def test_a_status_follows_from_the_record_and_survives_the_document(
    record: AnyRecord, status: Status, reason: str | None
) -> None:
    assert (status_of(record), record.reason) == (status, reason)
    state = deployment_state().with_resources({record.key: record})
    (read,) = decode_state(encode_state(state), environment="test", where="here")[0].resources.values()
    assert (read, read.status, read.reason) == (record, status, reason)


def test_a_run_that_does_not_finish_hides_the_drift_of_before() -> None:
    drifted = replace(APPLIED, drift=(LATE,), is_missing=False)
    record = unfinished(ORDERS, Failure(Status.FAILED, "refused"), attempted=(), earlier=drifted)
    assert (record.status, record.differences) == (Status.FAILED, (LATE,))


@pytest.mark.parametrize(
    ("record", "is_half_done"),
    [
        (STANDINGS["as applied"][0], False),
        (STANDINGS["in part"][0], True),
        (STANDINGS["not at all"][0], False),
        (STANDINGS["shown late"][0], False),
        (replace(APPLIED, failure=LAG), True),
        (replace(APPLIED, attempts=(ATTEMPT,)), True),
    ],
)
def test_a_change_that_the_catalog_shows_late_is_finished(record: AnyRecord, is_half_done: bool) -> None:
    assert record.is_half_done is is_half_done


def test_no_model_is_read_from_a_document_before_it_is_asked_for() -> None:
    """Listing ten thousand resources needs none: this one could not even be read."""
    definition = define(WORKED_MODEL)
    newer = msgspec.structs.replace(definition, manages=("a part of a newer engine",))
    unreadable = replace(APPLIED, applied=kept(newer), config_checksum=canonical_checksum(newer))
    data = encode_state(deployment_state().with_resources({APPLIED.key: unreadable}))
    state = decode_state(data, environment="test", where="here")[0]
    assert [record.status for record in state.resources.values()] == [Status.HEALTHY]
    assert encode_state(state) == data
    (record,) = with_models(state.resources).values()
    with pytest.raises(ValueError, match="a part of a newer engine"):
        assert record.declared


def test_the_baseline_is_the_applied_model_unless_the_catalog_had_more() -> None:
    more = orders(comment="theirs")
    assert Recorded.of(orders()).baseline == orders()
    assert Recorded.of(orders(), baseline=more).baseline == more
    assert Recorded.of(attempted=[orders()]).baseline is None


def test_a_record_of_attempts_alone_says_nothing_of_an_existing_table() -> None:
    record = Recorded.of(attempted=[orders()])
    assert (record.declared, record.ours, record.attempted) == (None, (orders(),), (orders(),))
    assert is_unrecorded(record)
    assert is_unrecorded(None)
    assert not is_unrecorded(Recorded.of(orders()))


def test_a_table_that_a_run_was_creating_is_not_adopted() -> None:
    begun = Recorded.of(attempted=[orders()])
    assert not is_unrecorded(replace(begun, change=LastChange(run="r", at=NOON, is_new=True)))
    assert is_unrecorded(replace(begun, change=LastChange(run="r", at=NOON)))


def test_a_change_of_all_models_adds_none() -> None:
    def commented(model: Table) -> Table:
        return replace(model, comment="new")

    attempt = Recorded.of(attempted=[orders()]).mapped(commented)
    assert (attempt.applied, attempt.whole, attempt.attempted) == (None, None, (orders(comment="new"),))
    whole = Recorded.of(orders(), baseline=orders(properties={"a": "1"})).mapped(commented)
    assert (whole.declared, whole.baseline) == (
        orders(comment="new"),
        orders(comment="new", properties={"a": "1"}),
    )


def test_a_kept_model_is_not_the_model() -> None:
    assert Kept(orders()) == Kept(orders())
    assert Kept(orders()) != orders()
