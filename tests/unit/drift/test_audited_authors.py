"""Authors from the audit log: deletions, privileges and tags; one query, and nothing where it may not be read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from delta_engine.actions.drift_policy import DriftPolicy
from delta_engine.drift.attribution import with_audited_authors
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.drifted_resources import Attribution
from delta_engine.drift.observation import DriftFacts, Observation
from delta_engine.drift.reporting import drift_report
from delta_engine.errors import StatementError
from delta_engine.models import Table
from delta_engine.report.drift_text import drift_text
from delta_engine.report.pages import drift_html
from delta_engine.state.states import ABSENT, CatalogState, TableState, state_of
from delta_engine.state.table_queries import AuditEvent, SqlAuditLogReader
from tests.builders.deployment import NOON, deployment_state, records_of
from tests.builders.detection import LATER, MODEL, compare
from tests.builders.models import ORDERS
from tests.fakes.recorded_catalog import RecordedRunner

GOVERNED = replace(MODEL, tags={"domain": "sales"}, grants={"analysts": ("SELECT",)})


def event(action: str, who: str, minutes: int, name: str = "dev.silver.orders") -> AuditEvent:
    return AuditEvent(at=NOON + timedelta(minutes=minutes), who=who, action=action, name=name)


class FakeAuditLog:
    """Has events, newest first, or may not be read; notes what it was asked."""

    def __init__(self, *events: AuditEvent, error: StatementError | None = None) -> None:
        self.asked: list[tuple[set[str], list[str], datetime]] = []
        self._events = events
        self._error = error

    def read(
        self, actions: Collection[str], names: Collection[str], *, since: datetime
    ) -> Sequence[AuditEvent]:
        self.asked.append((set(actions), list(names), since))
        if self._error:
            raise self._error
        return self._events


def facts(observed: TableState, model: Table = GOVERNED, *, checked_at: datetime = LATER) -> DriftFacts:
    """Return what is found of a table that was applied at noon."""
    state, snapshot = deployment_state(model), CatalogState(tables={ORDERS.key: observed})
    return DriftFacts(
        environment="test",
        checked_at=checked_at,
        basis=Observation(models=(model,), state=state, observed=snapshot, records=records_of([model])),
        drifted=DriftDetector(DriftPolicy()).detect(compare(state, snapshot), now=checked_at),
    )


def authors(drift_facts: DriftFacts) -> dict[str, str | None]:
    return {
        finding.kind.value: finding.changed.who if finding.changed else None
        for _, finding in drift_report(drift_facts).findings()
    }


def test_a_deletion_is_put_down_to_the_last_one_who_deleted() -> None:
    log = FakeAuditLog(
        event("deleteTable", "bob", 40),
        event("deleteTable", "ann", 20),
        event("deleteTable", "jo", 50, "dev.silver.other"),
    )
    audited = with_audited_authors(facts(ABSENT), log)
    ((_, finding),) = drift_report(audited).findings()
    assert finding.changed == Attribution(who="bob", at=NOON + timedelta(minutes=40), operation="deleteTable")
    assert log.asked == [({"deleteTable"}, ["dev.silver.orders"], NOON)]


def test_privileges_and_tags_have_authors_and_what_the_log_does_not_tell_has_none() -> None:
    observed = replace(state_of(GOVERNED), tags={}, grants={}, table_comment="other")
    log = FakeAuditLog(
        event("updatePermissions", "bob", 40),
        event("updateTagSecurableAssignments", "jo", 30),
        event("updatePermissions", "the engine", -1),
    )
    audited = with_audited_authors(facts(observed), log)
    assert authors(audited) == {"grant": "bob", "table_tag": "jo", "table_comment": None}
    assert len(log.asked) == 1


def test_of_several_principals_none_is_accused() -> None:
    observed = replace(state_of(GOVERNED), grants={})
    log = FakeAuditLog(event("updatePermissions", "bob", 40), event("updatePermissions", "ann", 20))
    assert authors(with_audited_authors(facts(observed), log)) == {"grant": None}


@pytest.mark.parametrize("observed", [state_of(GOVERNED), replace(state_of(GOVERNED), table_comment="other")])
def test_the_log_is_not_asked_without_need(observed: TableState) -> None:
    log = FakeAuditLog()
    assert with_audited_authors(facts(observed), log) == facts(observed)
    assert log.asked == []


def test_the_log_is_asked_for_thirty_days_at_most() -> None:
    log, much_later = FakeAuditLog(), NOON + timedelta(days=90)
    with_audited_authors(facts(ABSENT, checked_at=much_later), log)
    assert log.asked[0][2] == NOON + timedelta(days=60)


def test_a_log_that_may_not_be_read_is_noted_once() -> None:
    log = FakeAuditLog(error=StatementError("No SELECT <here>.\nmore", sql="x", error_class="FORBIDDEN"))
    report = drift_report(with_audited_authors(facts(replace(state_of(GOVERNED), tags={}, grants={})), log))
    note = "The audit log, which records deletions, grants and tags, cannot be read: No SELECT <here>."
    assert report.notes == (note,)
    assert f"\nNote: {note}\n" in drift_text(report)
    assert "Note: The audit log, which records deletions, grants and tags, cannot be read" in drift_html(
        report, ()
    )


def test_events_are_asked_with_one_query_and_refused_requests_do_not_count() -> None:
    row = {"event_time": LATER, "who": "bob", "action_name": "deleteTable", "full_name": "dev.silver.orders"}
    answers = [
        {**row, "response": '{"status_code":200}'},
        {**row, "response": '{"statusCode":200}'},
        {**row, "response": '{"status_code":403}'},
        {**row, "response": None},
        {**row, "who": None, "response": '{"status_code":200}'},
    ]
    runner = RecordedRunner({}, {"system.access.audit": answers})
    events = SqlAuditLogReader(runner).read({"deleteTable"}, ["dev.silver.it's"], since=NOON)
    assert events == [AuditEvent(at=LATER, who="bob", action="deleteTable", name="dev.silver.orders")] * 2
    (sql,) = runner.statements
    assert (
        f"event_date >= DATE '{NOON:%Y-%m-%d}' AND event_time > TIMESTAMP '{NOON:%Y-%m-%dT%H:%M:%S}Z'" in sql
    )
    assert "lower(action_name) IN ('deletetable')" in sql
    assert "IN ('dev.silver.it\\'s')" in sql
    assert sql.endswith("LIMIT 1000")
