"""The status of resources, and comparing documents."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from delta_engine.actions.policy import NO_POLICY, Ownership, Policy
from delta_engine.aspects.aspect import Sign
from delta_engine.deployment.document import (
    DeploymentState,
)
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.deployment.resources import (
    unfinished,
    with_new_name,
    without_resources,
)
from delta_engine.drift.document_changes import compare_states
from delta_engine.drift.synchronizing import confirmed
from delta_engine.models import (
    CheckConstraint,
    Column,
    QualifiedName,
    RowFilter,
    SchemaName,
    resource_key,
)
from delta_engine.ownership.recorded import (
    AnyRecord,
    Failure,
    Kept,
    LastChange,
    Recorded,
    RecordedDifference,
    Status,
)
from delta_engine.ownership.recorded_models import (
    declared_by,
)
from delta_engine.state.states import ABSENT, CatalogState, TableState
from tests.builders.deployment import NOON, applied, deployment_state, recorded_table
from tests.builders.detection import LATER, synchronized
from tests.builders.models import ORDERS, WORKED_MODEL, observed, orders
from tests.fakes.applying import created

KEY = "table.dev.silver.orders"
JUST_NOW = LastChange(run="a", at=LATER)


def as_applied() -> TableState:
    """Return dev.silver.orders as its model says."""
    return created(WORKED_MODEL)


def with_orders(
    state: DeploymentState, state_now: TableState, *other_tables: QualifiedName
) -> DeploymentState:
    catalog = CatalogState(tables={ORDERS.key: state_now}, other_tables=other_tables)
    return synchronized(state, catalog, managed={KEY})


def test_nothing_new_is_the_same_document() -> None:
    state = deployment_state(WORKED_MODEL)
    assert with_orders(state, as_applied()) is state


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Status.DEGRADED, Status.DEGRADED),
        (Status.UNKNOWN, Status.UNKNOWN),
        (Status.FAILED, Status.DRIFTED),  # it changed nothing, and hides no drift
    ],
)
def test_the_half_done_work_of_a_run_is_no_drift(before: Status, after: Status) -> None:
    state = deployment_state().with_resources({KEY: applied(WORKED_MODEL, before)})
    resource = with_orders(state, replace(as_applied(), table_comment="half-way")).resources[KEY]
    assert (resource.status, len(resource.differences)) == (after, 1)
    assert with_orders(state, as_applied()).resources[KEY].status is Status.HEALTHY


DROPPED = LastChange(run="b", at=LATER + timedelta(seconds=1), is_drop=True)


def test_a_drop_in_doubt_is_known_behind_an_unfinished_run() -> None:
    before = applied(WORKED_MODEL)
    attempted = unfinished(ORDERS, None, attempted=[Kept(WORKED_MODEL)], earlier=before, change=JUST_NOW)
    doubt = Failure(Status.UNKNOWN, "lost")
    assert not replace(attempted, change=JUST_NOW, failure=doubt).is_begun_drop
    assert replace(attempted, change=DROPPED, failure=doubt).is_begun_drop
    assert not replace(attempted, change=DROPPED, failure=Failure(Status.FAILED, "refused")).is_begun_drop
    state = deployment_state(WORKED_MODEL)
    state = state.with_resources({KEY: replace(attempted, change=DROPPED, failure=doubt)})
    gone = with_orders(state, ABSENT).resources[KEY]
    assert gone.is_begun_drop
    assert not gone.is_missing


@pytest.mark.parametrize("left", [Status.UNKNOWN, Status.FAILED])
def test_the_next_deletion_after_a_drop_that_was_not_done_is_drift(left: Status) -> None:
    before = unfinished(ORDERS, None, attempted=[Kept(WORKED_MODEL)], earlier=applied(WORKED_MODEL))
    state = deployment_state(WORKED_MODEL)
    state = state.with_resources({KEY: replace(before, change=DROPPED, failure=Failure(left, "lost"))})
    kept = with_orders(state, as_applied()).resources[KEY]
    assert kept.attempts == before.attempts
    doubted = replace(kept, failure=Failure(Status.UNKNOWN, "lost"))
    assert with_orders(state.with_resources({KEY: doubted}), ABSENT).resources[KEY].is_missing


def test_a_table_that_is_gone_is_missing_and_keeps_its_definition() -> None:
    state = deployment_state(WORKED_MODEL)
    synced = with_orders(state, ABSENT)
    resource = synced.resources[KEY]
    assert resource.status is Status.MISSING
    assert resource.reason == "the catalog does not show the table"
    assert resource.declared == state.resources[KEY].declared
    assert synced.synced_at == LATER
    assert with_orders(synced, as_applied()).resources == state.resources


def test_a_changed_table_is_drifted_and_says_how() -> None:
    state = deployment_state(WORKED_MODEL)
    changed = replace(
        as_applied(),
        table_comment="by hand",
        columns=(*as_applied().columns[:2], Column("extra", "int")),
        table_properties={"delta.autoOptimize.optimizeWrite": "false", "foreign": "1"},
    )
    synced = with_orders(state, changed)
    resource = synced.resources[KEY]
    assert resource.status is Status.DRIFTED
    assert {difference.field for difference in resource.drift} == {
        "column amount",
        "column extra",
        "property delta.autoOptimize.optimizeWrite",
        "table comment",
    }
    assert (
        RecordedDifference(field="table comment", expected="'Orders table'", actual="'by hand'")
        in resource.drift
    )
    metadata = recorded_table(synced, KEY)
    assert metadata.actual_checksum not in (None, metadata.schema_checksum)
    assert resource.declared == state.resources[KEY].declared
    assert with_orders(with_orders(state, changed), as_applied()).resources == state.resources


def test_another_order_of_columns_is_drift_in_the_state_as_in_the_report() -> None:
    state = deployment_state(WORKED_MODEL)
    state = state.with_resources({KEY: replace(state.resources[KEY], column_order=())})
    synced = with_orders(state, replace(as_applied(), columns=as_applied().columns[::-1]))
    (difference,) = synced.resources[KEY].drift
    assert (synced.resources[KEY].status, difference.field) == (Status.DRIFTED, "column order")
    assert with_orders(synced, as_applied()).resources == state.resources


def test_what_the_catalog_shows_late_is_no_drift_next_to_drift_or_after_it() -> None:
    late = RecordedDifference(field="table comment", expected="'Orders table'", actual="'old'")
    record = replace(applied(WORKED_MODEL, Status.UNKNOWN), lag=(late,), change=JUST_NOW)
    state = deployment_state().with_resources({KEY: record})
    still_late = replace(as_applied(), table_comment="old")
    drifted = with_orders(state, replace(still_late, table_properties={}))
    assert "table comment" not in {difference.field for difference in drifted.resources[KEY].drift}
    assert drifted.resources[KEY].status is Status.DRIFTED
    undone = with_orders(drifted, still_late).resources[KEY]
    assert (undone.status, undone.drift, undone.explained) == (Status.UNKNOWN, (), (late,))


def test_what_the_catalog_has_shown_next_to_drift_is_drift_when_it_changes_back() -> None:
    late = RecordedDifference(field="table comment", expected="'Orders table'", actual="'old'")
    record = replace(applied(WORKED_MODEL, Status.UNKNOWN), lag=(late,), change=JUST_NOW)
    state = deployment_state().with_resources({KEY: record})
    drifted = with_orders(state, replace(as_applied(), table_properties={}))
    changed_back = with_orders(drifted, replace(as_applied(), table_properties={}, table_comment="old"))
    assert "table comment" in {difference.field for difference in changed_back.resources[KEY].drift}


def test_what_was_not_read_is_left_as_it_is() -> None:
    state = deployment_state(WORKED_MODEL, orders(name="other"))
    synced = synchronized(state, CatalogState(tables={ORDERS.key: ABSENT}), managed=None)
    assert synced.resources["table.dev.silver.other"] is state.resources["table.dev.silver.other"]


def test_unmanaged_tables_come_and_go() -> None:
    state = deployment_state(WORKED_MODEL)
    temp = QualifiedName("dev", "silver", "temp")
    synced = with_orders(state, as_applied(), temp)
    assert synced.resources["table.dev.silver.temp"].status is Status.UNMANAGED
    assert with_orders(synced, as_applied(), temp) is synced
    assert with_orders(synced, as_applied()).resources == state.resources
    partial = synchronized(synced, CatalogState(tables={ORDERS.key: as_applied()}), managed=None)
    assert partial is synced


def test_an_unmanaged_table_that_gets_a_model_is_no_longer_unmanaged() -> None:
    temp = orders(name="temp")
    synced = with_orders(deployment_state(WORKED_MODEL), as_applied(), temp.qualified_name)
    catalog = CatalogState(tables={ORDERS.key: as_applied(), temp.qualified_name.key: observed()})
    again = synchronized(synced, catalog, managed={KEY, resource_key(temp.qualified_name)})
    assert "table.dev.silver.temp" not in again.resources


def test_schemas_go_missing_and_come_back() -> None:
    schema = Recorded(SchemaName("dev", "silver"), deployed_at=NOON, deployed_by="ana")
    state = deployment_state().with_resources({"schema.dev.silver": schema})
    gone = CatalogState(tables={ORDERS.key: ABSENT}, missing_schemas=frozenset({("dev", "silver")}))
    missing = synchronized(state, gone, managed=set())
    assert missing.resources["schema.dev.silver"].status is Status.MISSING
    assert synchronized(missing, CatalogState(tables={}), managed=set()) is missing
    back = synchronized(missing, CatalogState(tables={ORDERS.key: ABSENT}), managed=set())
    assert back.resources == state.resources


def test_what_was_never_applied_says_nothing_about_drift() -> None:
    failed = unfinished(ORDERS, Failure(Status.FAILED, "refused"), attempted=(), earlier=None)
    state = deployment_state().with_resources({KEY: failed})
    assert with_orders(state, ABSENT) is state
    assert declared_by(state.resources) == {}


def resource_with(state: DeploymentState, **changes: Any) -> AnyRecord:
    return replace(state.resources[KEY], **changes)


def with_id(state: DeploymentState, key: str, table_id: str) -> DeploymentState:
    changed = replace(state.resources[key], delta_table_id=table_id)
    return state.with_resources({**state.resources, key: changed})


def test_documents_are_compared_resource_by_resource() -> None:
    before = deployment_state(WORKED_MODEL, orders(name="gone"))
    after = deployment_state(
        orders(*WORKED_MODEL.columns, comment="new", properties={"a": "1"}), orders(name="new")
    )
    renamed = compare_states(before, after)  # the records of the two tables have one Delta id
    assert next((change.key, change.changes[0].subject) for change in renamed) == (
        "table.dev.silver.new",
        "name",
    )
    after = with_id(after, "table.dev.silver.new", "another")
    changes = {change.key: change for change in compare_states(before, after)}
    assert {key: change.sign for key, change in changes.items()} == {
        "table.dev.silver.gone": Sign.REMOVED,
        "table.dev.silver.new": Sign.ADDED,
        KEY: Sign.CHANGED,
    }
    assert {(part.sign, part.subject) for part in changes[KEY].changes} == {
        (Sign.CHANGED, "table comment"),
        (Sign.ADDED, "property a"),
        (Sign.REMOVED, "property delta.autoOptimize.optimizeWrite"),
        (Sign.REMOVED, "primary key pk_dev_silver_orders__id"),
    }
    assert compare_states(before, before) == ()


LATE = RecordedDifference(field="table comment", expected="a", actual="b")


def test_a_change_of_status_shows() -> None:
    before = deployment_state(WORKED_MODEL)
    after = before.with_resources({KEY: resource_with(before, drift=(LATE,))})
    (change,) = compare_states(before, after)
    assert [(part.subject, part.observed, part.desired) for part in change.changes] == [
        ("status", "healthy", "drifted")
    ]


def test_a_newer_version_and_its_time_show() -> None:
    before, later = deployment_state(WORKED_MODEL), NOON + timedelta(days=1)
    changed = resource_with(before, delta_version=4, deployed_at=later)
    (change,) = compare_states(before, before.with_resources({KEY: changed}))
    assert [(part.subject, part.observed, part.desired) for part in change.changes] == [
        ("delta version", "3", "4"),
        ("deployed at", str(NOON), str(later)),
    ]


def test_what_is_no_longer_applied_differs_in_no_part() -> None:
    before = deployment_state(WORKED_MODEL)
    after = before.with_resources({KEY: resource_with(before, applied=None)})
    for pair in ((before, after), (after, before)):
        (change,) = compare_states(*pair)
        assert (change.sign, change.changes) == (Sign.CHANGED, ())


def test_a_table_beside_another_of_its_id_is_new() -> None:
    before = deployment_state(WORKED_MODEL)  # the builder gives all tables one Delta id
    (change,) = compare_states(before, deployment_state(WORKED_MODEL, orders(name="new")))
    assert (change.key, change.sign) == ("table.dev.silver.new", Sign.ADDED)


def test_resources_are_forgotten_and_renamed() -> None:
    state = deployment_state(WORKED_MODEL)
    assert without_resources(state, [KEY]).resources == {}
    new = QualifiedName("dev", "gold", "Orders2")
    renamed = with_new_name(state, ORDERS, new)
    resource = renamed.resources["table.dev.gold.orders2"]
    assert list(renamed.resources) == ["table.dev.gold.orders2"]
    assert (str(resource.name), resource.dependencies) == ("dev.gold.Orders2", ("schema.dev.gold",))
    (model,) = declared_by(renamed.resources).values()
    assert model.qualified_name == new
    assert resource.config_checksum != state.resources[KEY].config_checksum
    with pytest.raises(StateMismatchError, match=r"no table dev\.silver\.orders"):
        with_new_name(renamed, ORDERS, new)
    both = deployment_state(WORKED_MODEL, orders(name="other"))
    with pytest.raises(StateMismatchError, match="already"):
        with_new_name(both, ORDERS, QualifiedName("dev", "silver", "other"))


@pytest.mark.parametrize(
    ("policy", "lag"), [(NO_POLICY, []), (Policy(definitions=Ownership.FULL), ["check theirs"])]
)
def test_what_a_revert_removed_and_the_catalog_still_shows_is_lag(policy: Policy, lag: list[str]) -> None:
    resource = applied(WORKED_MODEL)
    shown = replace(as_applied(), checks=(CheckConstraint("theirs", "id > 0"),))
    record_now = confirmed(resource, WORKED_MODEL, shown, earlier=resource, ordered=resource, policy=policy)
    assert [difference.field for difference in record_now.lag] == lag
    assert record_now.status is (Status.UNKNOWN if lag else Status.HEALTHY)
    assert record_now.column_order == (None if lag else ())  # the model's


def test_what_the_run_before_applied_may_still_be_shown_where_it_was_shown_late() -> None:
    owned = replace(WORKED_MODEL, comment="New", owner="jo")
    late = RecordedDifference(field="owner", expected="jo", actual="ann")
    earlier = replace(applied(owned), lag=(late,))
    back, third = replace(WORKED_MODEL, owner="ann"), replace(WORKED_MODEL, owner="eve")
    for model, lag in ((back, [("owner", "ann", "jo")]), (owned, []), (third, [])):
        record_now = confirmed(
            applied(model), model, created(model), earlier=earlier, ordered=earlier, policy=NO_POLICY
        )
        assert [(part.field, part.expected, part.actual) for part in record_now.lag] == lag
        assert record_now.status is Status.HEALTHY
    record_now = confirmed(
        applied(third), third, created(back), earlier=earlier, ordered=earlier, policy=NO_POLICY
    )
    assert [(part.field, part.actual) for part in record_now.lag] == [("owner", "ann"), ("owner", "jo")]


@pytest.mark.parametrize(
    ("between", "is_removed", "lag"),
    [
        (timedelta(minutes=59), True, [("row filter", None, "dev.silver.mine (id)")]),
        (timedelta(hours=1), True, []),
        (timedelta(0), False, []),
    ],
)
def test_a_late_view_may_still_show_a_filter_that_was_removed_soon(
    between: timedelta, is_removed: bool, lag: list[tuple[str, str | None, str | None]]
) -> None:
    """The table told of the filter by itself when it was set, so that the view did not look late then."""
    filtered = replace(WORKED_MODEL, row_filter=RowFilter("dev.silver.mine", ("id",)))
    model = WORKED_MODEL if is_removed else filtered
    earlier = replace(applied(filtered), deployed_at=NOON)
    record = replace(applied(model), deployed_at=NOON + between)
    record_now = confirmed(record, model, created(model), earlier=earlier, ordered=earlier, policy=NO_POLICY)
    assert [(part.field, part.expected, part.actual) for part in record_now.lag] == lag
    assert record_now.status is Status.HEALTHY
