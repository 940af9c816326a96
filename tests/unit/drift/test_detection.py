"""What is drift, and what is not: renames, replaced tables, orders of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from delta_engine.actions.drift_policy import DriftKind, DriftPolicy, IgnoreEntry
from delta_engine.actions.policy import ColumnOrder, Policy
from delta_engine.deployment.document import (
    DeploymentState,
)
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.drifted_resources import NOT_DELTA
from delta_engine.drift.observation import DriftFacts, Observation, PlannedRevert
from delta_engine.drift.renames import irreversible
from delta_engine.drift.reporting import drift_report
from delta_engine.models import Column, PrimaryKey, QualifiedName, Table, resource_key
from delta_engine.ownership.recorded import Failure, Kept, LastChange, RecordedDifference, Status
from delta_engine.report.drift_text import drift_text
from delta_engine.state.audits import Audit
from delta_engine.state.states import ABSENT, CatalogState, TableState, state_of
from delta_engine.state.table_queries import Commit
from tests.builders.deployment import NOON, applied, deployment_state, records_of
from tests.builders.detection import (
    AS_APPLIED,
    LATER,
    MODEL,
    FakeHistory,
    FakeRefusedVersions,
    FakeVersions,
    commit,
    detect,
    drift_after,
    kinds,
    recorded,
    synchronized,
)
from tests.builders.models import ORDERS, observed, orders


def test_a_rename_before_the_apply_is_no_drift() -> None:
    renamed = observed(Column("id", "bigint"), Column("full_name", "string"), comment="a table")
    rename = {"oldColumnPath": "name", "newColumnPath": "full_name"}
    (drifted,) = detect(renamed, history=FakeHistory(commit(4, "RENAME COLUMN", **rename)))
    assert kinds([drifted]) == ["column_renamed"]
    assert [str(refusal) for refusal in irreversible([MODEL], [drifted])]
    assert kinds(detect(renamed, history=FakeHistory(commit(2, "RENAME COLUMN", **rename)))) == [
        "column_dropped",
        "column_added",
    ]


def test_an_untouched_table_costs_nothing_unless_it_may_be_another() -> None:
    history, versions = FakeHistory(), FakeVersions("another id")
    born = NOON + timedelta(seconds=5)  # the catalog's clock, which is not ours
    state = recorded(created_at=born)
    same = replace(AS_APPLIED, audit=Audit(created_at=born))
    assert detect(same, state=state, history=history, versions=versions) == ()
    assert (history.asked, versions.asked) == ([], [])

    unknown = recorded(created_at=None)
    assert detect(same, state=unknown, history=history, versions=versions, is_thorough=False) == ()
    assert versions.asked == []
    assert kinds(detect(AS_APPLIED, history=history, versions=versions)) == ["table_replaced"]
    assert kinds(detect(AS_APPLIED, versions=FakeVersions("0e8400e2-29b1-41d4-a716-446655440000"))) == []

    anew = replace(AS_APPLIED, audit=Audit(created_at=born + timedelta(days=1)))
    assert kinds(detect(anew, state=state, versions=versions, is_thorough=False)) == ["table_replaced"]


ID = "0e8400e2-29b1-41d4-a716-446655440000"
BORN = NOON + timedelta(seconds=5)
MANAGED_BY_CATALOG = replace(AS_APPLIED, table_properties={"delta.feature.catalogManaged": "supported"})
CREATED_AGAIN = replace(MANAGED_BY_CATALOG, audit=Audit(created_at=BORN + timedelta(days=1)))
REPLACE = commit(5, "CREATE OR REPLACE TABLE AS SELECT")


@pytest.mark.parametrize(
    "operation", ["CREATE OR REPLACE TABLE AS SELECT", "REPLACE TABLE", "CREATE OR REPLACE TABLE", "CLONE"]
)
def test_a_catalog_managed_table_that_was_replaced_keeps_its_id_and_is_drift(operation: str) -> None:
    replaced_by = commit(5, operation)
    history = FakeHistory(commit(2, operation), replaced_by, commit(6, "WRITE"))
    detected = detect(
        CREATED_AGAIN, state=recorded(created_at=BORN), history=history, versions=FakeVersions(ID)
    )
    (detail,) = detected[0].details
    assert (detail.finding.kind.value, detail.finding.expected) == ("table_replaced", "version 3")
    assert detail.finding.actual == "replaced by version 5"
    assert detail.finding.changed is not None
    assert detail.finding.changed.who == "user 5"


def test_a_catalog_managed_table_that_the_engine_replaced_is_the_recorded_one() -> None:
    history = FakeHistory(commit(3, "CREATE OR REPLACE TABLE AS SELECT"), commit(4, "WRITE"))
    assert (
        detect(CREATED_AGAIN, state=recorded(created_at=BORN), history=history, versions=FakeVersions(ID))
        == ()
    )


def restore(version: int, to: str) -> Commit:
    return replace(commit(version, "RESTORE"), parameters={"version": to})


def test_a_restore_takes_a_replacement_back() -> None:
    history = FakeHistory(commit(4, "WRITE"), REPLACE, restore(6, "3"))
    assert (
        detect(CREATED_AGAIN, state=recorded(created_at=BORN), history=history, versions=FakeVersions(ID))
        == ()
    )
    of_the_new_table = FakeHistory(commit(4, "WRITE"), REPLACE, restore(7, "5"))
    detected = detect(
        CREATED_AGAIN, state=recorded(created_at=BORN), history=of_the_new_table, versions=FakeVersions(ID)
    )
    assert kinds(detected) == ["table_replaced"]


@pytest.mark.parametrize(
    "history", [None, FakeHistory(), FakeHistory(commit(900, "WRITE")), FakeHistory(commit(1, "WRITE"))]
)
def test_the_creation_time_decides_where_the_history_does_not_tell(history: FakeHistory | None) -> None:
    state = recorded(created_at=BORN)
    detected = detect(
        CREATED_AGAIN, state=state, history=history, versions=FakeVersions(ID), is_thorough=False
    )
    assert kinds(detected) == ["table_replaced"]
    (detail,) = detected[0].details
    assert detail.finding.actual == "created 2026-03-02 12:00:05 UTC"
    refused = detect(CREATED_AGAIN, state=state, history=history, versions=FakeRefusedVersions())
    assert kinds(refused) == ["table_replaced"]


def test_only_a_suspected_table_costs_a_read_of_its_history() -> None:
    history, versions = FakeHistory(REPLACE), FakeVersions(ID)
    same = replace(MANAGED_BY_CATALOG, audit=Audit(created_at=BORN))
    assert detect(same, state=recorded(created_at=BORN), history=history, versions=versions) == ()
    assert (history.asked, versions.asked) == ([], [])
    of_another_kind = replace(AS_APPLIED, audit=Audit(created_at=BORN + timedelta(days=1)))
    assert detect(of_another_kind, state=recorded(created_at=BORN), history=history, versions=versions) == ()
    assert history.asked == []
    unchanged = FakeVersions(ID, version=3)  # the recorded version
    assert detect(MANAGED_BY_CATALOG, history=history, versions=unchanged) == ()
    assert history.asked == []
    assert kinds(detect(MANAGED_BY_CATALOG, history=history, versions=versions)) == ["table_replaced"]


def test_a_replacement_shows_in_the_history_of_any_changed_table() -> None:
    """Its creation time may be the same."""
    changed = observed(*MODEL.columns, comment="theirs")
    assert kinds(detect(changed, history=FakeHistory(REPLACE))) == ["table_replaced", "table_comment"]
    assert kinds(detect(changed, history=FakeHistory(commit(5, "WRITE")))) == ["table_comment"]


def test_ids_are_read_where_the_catalog_has_no_times_unless_the_read_has_shown_them() -> None:
    versions = FakeVersions("another id")
    assert kinds(detect(AS_APPLIED, versions=versions, is_thorough=False)) == ["table_replaced"]
    versions.asked.clear()
    shown = replace(AS_APPLIED, audit=Audit(table_id=ID))
    assert detect(shown, versions=versions, is_thorough=False) == ()
    assert versions.asked == []
    other = replace(AS_APPLIED, audit=Audit(table_id="another id"))
    assert kinds(detect(other, versions=versions, is_thorough=False)) == ["table_replaced"]


LATE = RecordedDifference(field="table comment", expected="'a table'", actual="'before'")
BEFORE = observed(*MODEL.columns, comment="before")


def lagging(change: LastChange | None, **changes: Any) -> DeploymentState:
    """Return a document of a table of which the catalog did not show the comment after the apply."""
    unknown = Failure(Status.UNKNOWN)
    return recorded(failure=unknown, explained=(LATE,), lag=(LATE,), change=change, **changes)


def test_what_the_catalog_showed_late_after_our_apply_is_no_drift_and_hides_none() -> None:
    state = lagging(LastChange(run="a", at=LATER - timedelta(minutes=59)))
    assert detect(BEFORE, state=state) == ()
    dropped = observed(Column("id", "bigint"), comment="before")
    assert kinds(detect(dropped, state=state)) == ["column_dropped"]
    snapshot = CatalogState(tables={ORDERS.key: dropped})
    current = synchronized(state, snapshot)
    assert current.resources[resource_key(ORDERS)].status is Status.DRIFTED
    assert kinds(detect(dropped, state=current)) == ["column_dropped"]


@pytest.mark.parametrize("change", [LastChange(run="a", at=LATER - timedelta(hours=1)), None])
def test_what_the_catalog_still_shows_an_hour_after_our_apply_is_drift(change: LastChange | None) -> None:
    state = lagging(change)
    assert kinds(detect(BEFORE, state=state)) == ["table_comment"]
    current = synchronized(state, CatalogState(tables={ORDERS.key: BEFORE}))
    assert current.resources[resource_key(ORDERS)].status is Status.DRIFTED
    assert kinds(detect(BEFORE, state=current)) == ["table_comment"]


def test_what_was_late_for_an_hour_stays_drift_after_a_later_failed_run() -> None:
    state = lagging(LastChange(run="a", at=NOON))
    current = synchronized(state, CatalogState(tables={ORDERS.key: BEFORE}))
    failed = replace(current.resources[resource_key(ORDERS)], change=LastChange(run="b", at=LATER))
    state = state.with_resources({resource_key(ORDERS): failed})
    assert kinds(detect(BEFORE, state=state)) == ["table_comment"]


def test_the_hour_of_a_table_begins_when_the_run_has_applied_it() -> None:
    begun = LastChange(run="a", at=LATER - timedelta(hours=2))
    for applied_at, drift in ((NOON, ["table_comment"]), (LATER, [])):
        assert kinds(detect(BEFORE, state=lagging(begun, deployed_at=applied_at))) == drift


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.DEGRADED])
def test_what_our_own_run_left_half_done_is_no_drift(status: Status) -> None:
    key = resource_key(ORDERS)
    state = deployment_state().with_resources({key: applied(MODEL, status)})
    assert detect(ABSENT, state=state) == ()


def unverified(change: LastChange | None, **changes: Any) -> DeploymentState:
    """Return a document of a table whose second read after the apply failed."""
    unknown = Failure(Status.UNKNOWN, "the second read after the apply failed")
    return recorded(failure=unknown, change=change, **changes)


@pytest.mark.parametrize(
    ("present", "drift", "at_once"),
    [(BEFORE, ["table_comment"], ["table_comment"]), (ABSENT, ["table_deleted"], [])],
)
def test_the_doubt_of_an_unverified_apply_ends_after_an_hour(
    present: TableState, drift: list[str], at_once: list[str]
) -> None:
    begun = LastChange(run="a", at=NOON)
    late = RecordedDifference(field="table comment", expected="'a table'", actual="'earlier'")
    for state in (unverified(begun), unverified(begun, explained=(late,))):
        assert kinds(detect(present, state=state)) == drift
        current = synchronized(state, CatalogState(tables={ORDERS.key: present}))
        assert kinds(detect(present, state=current)) == drift
    recent = unverified(begun, deployed_at=LATER - timedelta(minutes=59))
    assert kinds(detect(present, state=recent)) == at_once


@pytest.mark.parametrize("change", [LastChange(run="b", at=NOON + timedelta(minutes=1)), None])
def test_the_doubt_of_what_no_run_is_known_to_have_finished_stays(change: LastChange | None) -> None:
    """Such as that of a DROP that got no answer: its run began after the last apply."""
    assert detect(ABSENT, state=unverified(change)) == ()


def test_replacing_an_unmanaged_key_on_a_half_done_table_is_drift() -> None:
    model = orders(Column("id", "bigint", is_nullable=False))
    theirs = replace(model, primary_key=PrimaryKey(["id"], "theirs"))
    resource = replace(
        applied(model, Status.DEGRADED),
        whole=Kept(theirs),
        attempts=(Kept(replace(model, comment="new")),),
    )
    state = deployment_state().with_resources({resource_key(ORDERS): resource})
    assert detect(state_of(theirs), state=state) == ()
    replaced = state_of(replace(theirs, comment="new", primary_key=PrimaryKey(["id"], "later")))
    assert kinds(detect(replaced, state=state)) == ["primary_key"]
    snapshot = CatalogState(tables={ORDERS.key: replaced})
    current = synchronized(state, snapshot).resources[resource_key(ORDERS)]
    assert [detail.field for detail in current.drift] == ["primary key"]


@pytest.mark.parametrize(
    ("facet", "applied_value", "later", "kind"),
    [("owner", "lee", "kim", "owner"), ("predictive_optimization", "enable", "disable", "property")],
)
def test_an_attempt_without_a_value_explains_no_new_one(
    facet: str, applied_value: str, later: str, kind: str
) -> None:
    def having(value: str, comment: str) -> Table:
        values: dict[str, Any] = {facet: value}
        return replace(MODEL, comment=comment, **values)

    model = having(applied_value, "a table")
    attempted, done = replace(MODEL, comment="new"), state_of(replace(model, comment="new"))
    assert drift_after(model, attempted=attempted, observed=done) == ()
    changed = state_of(having(later, "new"))
    assert kinds(drift_after(model, attempted=attempted, observed=changed)) == [kind]


def test_a_known_table_is_not_unmanaged() -> None:
    names = [QualifiedName("dev", "silver", name) for name in ("mine", "theirs")]
    audits = {names[1].key: Audit(created_at=datetime(2026, 1, 2, tzinfo=timezone.utc), created_by="charlie")}
    snapshot = CatalogState(tables={}, other_tables=tuple(names), audits=audits)
    ((name, classified),) = DriftDetector(DriftPolicy()).unmanaged(
        snapshot, {resource_key(names[0])}, now=LATER
    )
    assert name == names[1]
    assert classified.finding.changed is not None
    assert (classified.finding.changed.who, classified.finding.kind) == ("charlie", DriftKind.UNMANAGED)


def test_of_unmanaged_tables_only_importable_ones_are_recommended() -> None:
    """A listing of any format has no audits; a table without a history is no Delta table; no model has a blank."""
    names = tuple(QualifiedName("dev", "silver", name) for name in ("delta", "parquet", "with blank"))
    snapshot = CatalogState(tables={}, other_tables=names)

    class DeltaAlone(FakeHistory):
        def read_commits(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
            return {
                key: history_of_key
                for key, history_of_key in super().read_commits(tables).items()
                if not key.endswith(".parquet")
            }

    unmanaged = DriftDetector(DriftPolicy(), history=DeltaAlone()).unmanaged(snapshot, (), now=LATER)
    assert [classified.finding.actual for _, classified in unmanaged] == ["exists", NOT_DELTA, "exists"]
    facts = DriftFacts(
        environment="test",
        checked_at=LATER,
        basis=Observation(models=(), observed=snapshot),
        unmanaged=unmanaged,
    )
    report = drift_report(facts)
    assert [recommendation.text for recommendation in report.recommendations] == [
        "Declare dev.silver.delta, and list the file under models.yaml"
    ]
    for pattern, place in (
        ("conf/models/**/*.yml", "conf/models/silver/delta.yml"),
        ("models/*.yml", "models/silver.delta.yml"),
        ("tables/*/*.yml", "tables/silver/delta.yml"),
    ):
        (recommendation,) = drift_report(replace(facts, model_patterns=("one.yml", pattern))).recommendations
        assert recommendation.command.endswith(f"--to {place}")
    assert "note: it exists, but is not a readable Delta table" in drift_text(report)


def test_the_order_is_compared_with_the_one_after_the_apply_and_not_with_the_definition() -> None:
    def state(*order: str) -> DeploymentState:
        return recorded(column_order=order)

    reversed_columns = observed(*reversed(MODEL.columns), comment="a table")
    assert kinds(detect(reversed_columns)) == []  # no order is recorded
    assert kinds(detect(reversed_columns, state=state())) == ["column_order"]
    assert kinds(detect(reversed_columns, state=state("NAME", "ID"))) == []
    more = observed(Column("new", "int"), *MODEL.columns, comment="a table")
    assert kinds(detect(more, state=state())) == ["column_added"]


@pytest.mark.parametrize("state", [recorded(column_order=()), recorded(column_order=("name", "id"))])
def test_moves_that_a_policy_enforces_are_drift_undone_or_pending(state: DeploymentState) -> None:
    state_now = observed(*reversed(MODEL.columns), comment="a table")
    detected = detect(state_now, state=state)
    facts = DriftFacts(
        environment="test",
        checked_at=LATER,
        basis=Observation(
            models=(MODEL,),
            state=state,
            observed=CatalogState(tables={ORDERS.key: state_now}),
            records=records_of([MODEL]),
        ),
        drifted=detected,
        plan_policy=Policy(column_order=ColumnOrder.ENFORCE),
        reversal=PlannedRevert(resources=frozenset(resource.key for resource in detected)),
    )
    report = drift_report(facts)
    pending = [change.field for table in report.pending for change in table.changes]
    assert pending == ([] if detected else ["column id place"])
    assert any("--revert" in recommendation.command for recommendation in report.recommendations) == bool(
        detected
    )
    assert drift_report(replace(facts, plan_policy=Policy())).pending == ()


def test_of_entries_that_overlap_the_first_that_has_not_expired_counts_and_none_is_called_idle() -> None:
    long_ago = IgnoreEntry(resource="*", fields=("*",), reason="old", expires=date(2026, 1, 1))
    narrow = IgnoreEntry(resource="table.dev.silver.orders", fields=("table_comment",), reason="narrow")
    wide = IgnoreEntry(resource="silver.*", fields=("*comment",), reason="wide")
    idle = IgnoreEntry(resource="silver.*", fields=("clustering",), reason="idle")
    policy = DriftPolicy(ignores=(long_ago, narrow, wide, idle))
    changed = observed(Column("id", "bigint"), Column("name", "string", comment="x"), comment="y")
    detected = detect(changed, policy=policy)
    report = drift_report(
        DriftFacts(
            environment="test",
            checked_at=LATER,
            basis=Observation(
                models=(MODEL,),
                state=deployment_state(MODEL),
                observed=CatalogState(tables={ORDERS.key: changed}),
                records=records_of([MODEL]),
            ),
            drifted=detected,
            policy=policy,
        )
    )
    assert report.drifted == ()
    assert {(ignored.finding.field, ignored.reason) for ignored in report.ignored} == {
        ("column name comment", "wide"),
        ("table comment", "narrow"),
    }
    assert [(note.reason, note.problem) for note in report.policy_notes] == [
        ("old", "expired on 2026-01-01"),
        ("idle", "matches nothing"),
    ]
