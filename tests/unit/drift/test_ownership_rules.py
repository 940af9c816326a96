"""Single rules of ownership and baselines, in corners that random histories rarely reach."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.actions.policy import NO_POLICY
from delta_engine.aspects.comparison import Comparison
from delta_engine.aspects.renames import NO_RENAMES, Renames
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.definitions import define, define_attempt, kept
from delta_engine.deployment.resources import (
    noted,
    unfinished,
)
from delta_engine.drift.baselines import with_unmanaged_parts
from delta_engine.drift.comparison import compared, drift_of, with_new_names
from delta_engine.drift.drifted_resources import Compared
from delta_engine.drift.synchronizing import attempted_by, with_accepted_drift
from delta_engine.models import (
    CheckConstraint,
    Column,
    Part,
    QualifiedName,
    Table,
    Using,
    View,
    resource_key,
)
from delta_engine.ownership.recorded import (
    AcceptedDrift,
    Failure,
    Kept,
    LastChange,
    Recorded,
    RecordedDifference,
    Status,
)
from delta_engine.state.states import ABSENT, CatalogState, state_of
from delta_engine.state.view_states import view_state_of
from tests.builders.deployment import NOON, applied, deployment_state
from tests.builders.detection import LATER, detect, drift_after, drift_from, kinds, synchronized
from tests.builders.models import ORDERS, catalog_of, observed, orders

X = Column("x", "int")
CHANGED = observed(Column("new", "int", comment="theirs"))


def comment_of(model: Table) -> str:
    return model.comment


def test_the_baseline_of_some_parts_does_not_know_the_others() -> None:
    recorded = orders(manages=[Part.COLUMNS])
    comparison = Comparison.of(orders(), observed(comment="theirs"), Recorded.of(recorded), NO_POLICY)
    assert not comparison.clears(comment_of)
    whole = replace(comparison, declared=orders(), baseline=orders())
    assert whole.clears(comment_of)


def test_an_applied_column_is_not_renamed_onto_another_one() -> None:
    applied = orders(Column("old", "int"), Column("new", "int"))
    desired = orders(Column("new", "int", renamed_from="old"))
    comparison = Comparison.of(desired, CHANGED, Recorded.of(applied), NO_POLICY)
    assert comparison.declared is not None
    assert [column.name for column in comparison.declared.columns] == ["old", "new"]


def test_attempted_models_follow_a_rename() -> None:
    attempted = orders(Column("old", "int", default="1"))
    desired = orders(Column("new", "int", renamed_from="old"))
    record = Recorded.of(orders(), attempted=(attempted,))
    comparison = Comparison.of(desired, CHANGED, record, NO_POLICY)
    assert [model.columns[0].name for model in comparison.attempted] == ["new"]


def test_a_model_of_more_parts_takes_the_table_over_as_it_is() -> None:
    earlier = Recorded.of(orders(manages=[Part.COLUMNS]))
    whole = with_unmanaged_parts(orders(), observed(comment="theirs"), earlier)
    assert whole == orders(comment="theirs")


def test_a_field_that_the_model_renames_is_not_one_of_others() -> None:
    applied = orders(Column("s", "struct<a: int>"))
    desired = orders(Column("s", "struct<b: int>", renamed_fields={"b": "a"}))
    present = observed(Column("s", "struct<b: int comment 'theirs'>"))
    assert with_unmanaged_parts(desired, present, Recorded.of(applied)) is None


def test_a_field_that_no_model_declares_is_not_taken_over() -> None:
    model = orders(Column("s", "struct<a: int>"))
    present = observed(Column("s", "struct<a: int, n: int comment 'theirs'>"))
    assert with_unmanaged_parts(model, present, Recorded.of(model)) is None


def test_a_killed_run_explains_the_column_that_it_dropped() -> None:
    model = orders(Column("id", "bigint"), X)
    assert drift_after(model, attempted=orders(comment="new"), observed=observed()) == ()


def test_a_killed_run_explains_nothing_inside_a_field_that_it_has_not_dropped() -> None:
    model = orders(Column("s", "struct<a: int, b: int>"))
    attempted = orders(Column("s", "struct<a: int>"), comment="new")
    state_now = observed(Column("s", "struct<a: int, b: int comment 'theirs'>"))
    assert kinds(drift_after(model, attempted=attempted, observed=state_now)) == ["column_comment"]


RENAMED_BY_RUN = {
    "a column": (
        orders(Column("x", "int", comment="one")),
        orders(Column("n", "int", renamed_from=["w", "X"])),
    ),
    "a field": (
        orders(Column("s", "struct<a: int, o: int comment 'one'>")),
        orders(Column("s", "struct<a: int, p: int>", renamed_fields={"p": ["w", "O"]})),
    ),
    "a field of a renamed column": (
        orders(Column("s", "struct<a: int, o: int comment 'one'>")),
        orders(Column("t", "struct<a: int, p: int>", renamed_from="s", renamed_fields={"p": ("o",)})),
    ),
}
OF_OTHERS = {"a column": observed(Column("x", "int", comment="theirs"))} | dict.fromkeys(
    ["a field", "a field of a renamed column"],
    observed(Column("s", "struct<a: int, o: int comment 'theirs'>")),
)


@pytest.mark.parametrize("what", RENAMED_BY_RUN)
def test_a_killed_run_explains_nothing_of_what_it_has_not_renamed(what: str) -> None:
    model, attempted = RENAMED_BY_RUN[what]
    assert kinds(drift_after(model, attempted=attempted, observed=OF_OTHERS[what])) == ["column_comment"]


def test_a_killed_run_explains_what_it_changed_of_what_it_has_renamed() -> None:
    model, attempted = RENAMED_BY_RUN["a field"]
    half_done = observed(Column("s", "struct<a: int, p: int comment 'one'>"))
    for renamed in (half_done, observed(*attempted.columns)):
        assert drift_after(model, attempted=attempted, observed=renamed) == ()


TWO_FIELDS = Column("s", "struct<a: int, b: int>")
RENAMED_IN_STEPS = {
    "two columns": (
        orders(X, Column("y", "int"), cluster_by=["x", "y"]),
        orders(
            Column("n", "int", renamed_from="x"),
            Column("m", "int", renamed_from="y"),
            cluster_by=["n", "m"],
        ),
        observed(Column("n", "int"), Column("y", "int"), cluster_by=("n", "y")),
    ),
    "two fields": (
        orders(TWO_FIELDS, cluster_by=["s.a", "s.b"]),
        orders(
            Column("s", "struct<n: int, m: int>", renamed_fields={"n": "a", "m": "b"}),
            cluster_by=["s.n", "s.m"],
        ),
        observed(Column("s", "struct<n: int, b: int>"), cluster_by=("s.n", "s.b")),
    ),
    "a column and its field": (
        orders(TWO_FIELDS, cluster_by=["s.a", "s.b"]),
        orders(
            Column("t", "struct<n: int, b: int>", renamed_from="s", renamed_fields={"n": "a"}),
            cluster_by=["t.n", "t.b"],
        ),
        observed(Column("t", "struct<a: int, b: int>"), cluster_by=("t.a", "t.b")),
    ),
}


@pytest.mark.parametrize("what", RENAMED_IN_STEPS)
def test_a_killed_run_explains_clustering_under_the_names_of_which_it_has_changed_some(what: str) -> None:
    model, attempted, half_done = RENAMED_IN_STEPS[what]
    assert drift_after(model, attempted=attempted, observed=half_done) == ()
    theirs = replace(half_done, cluster_by=())
    assert kinds(drift_after(model, attempted=attempted, observed=theirs)) == ["clustering"]


IN_ORDER = orders(X, Column("y", "int"))
MOVED = observed(Column("y", "int"), X)


@pytest.mark.parametrize(
    ("attempted", "drift"),
    [
        (replace(IN_ORDER, comment="new"), ["column_order"]),
        (replace(IN_ORDER, table_name="sales", renamed_from=("orders",)), ["column_order"]),
        (orders(X, Column("y", "int", renamed_from="z")), ["column_order"]),
        (orders(Column("y", "int"), X), []),
        (orders(X, Column("y", "int"), Column("z", "int")), []),
        (orders(X, Column("y", "bigint")), []),  # by new columns in place of the old ones
        (replace(IN_ORDER, partitioned_by=("x",)), []),
    ],
)
def test_an_unfinished_run_explains_an_order_only_if_it_was_to_change_columns(
    attempted: Table, drift: list[str]
) -> None:
    resource = replace(applied(IN_ORDER, Status.DEGRADED), attempts=(Kept(attempted),), column_order=())
    state = deployment_state().with_resources({resource_key(ORDERS): resource})
    assert kinds(detect(MOVED, state=state)) == drift


def test_an_unfinished_run_may_have_moved_columns_that_others_had_moved_before() -> None:
    attempted = (Kept(replace(IN_ORDER, comment="new")),)
    resource = replace(applied(IN_ORDER, Status.DEGRADED), attempts=attempted, column_order=("y", "x"))
    state = deployment_state().with_resources({resource_key(ORDERS): resource})
    assert detect(observed(*IN_ORDER.columns), state=state) == ()


def test_the_order_that_an_unfinished_run_may_have_left_is_recorded() -> None:
    """It was to enforce the order of the model, and failed between two moves; the next run only reports orders."""
    three = orders(Column("y", "int"), X, Column("id", "bigint"))
    earlier = replace(applied(three), column_order=("id", "x", "y"))
    unfinished = replace(earlier, attempts=(Kept(three),))
    present = observed(Column("y", "int"), Column("id", "bigint"), X)
    for before, order in ((earlier, ("id", "x", "y")), (unfinished, ("y", "id", "x"))):
        assert noted(earlier, three, present, before, ordered=before).column_order == order


def accepted(kind: DriftKind, field: str, actual: str) -> AcceptedDrift:
    return AcceptedDrift(kind=kind.value, field=field, expected=None, actual=actual, by="ana", at=NOON)


def with_accepted(model: Table, *drift: AcceptedDrift, attempted: tuple[Table, ...] = ()) -> Recorded[Table]:
    return replace(applied(model), accepted=drift, attempts=tuple(map(Kept, attempted)))


def test_an_apply_leaves_accepted_drift_of_parts_that_it_keeps() -> None:
    model, table = orders(), replace(observed(), checks=(CheckConstraint("theirs", "id > 0"),))
    kept = accepted(DriftKind.CHECK, "check theirs", "id > 0")
    settled = accepted(DriftKind.TABLE_COMMENT, "table comment", "'theirs'")
    done = with_accepted_drift(
        applied(model), model, table, state_of(model), with_accepted(model, kept, settled)
    )
    assert done.accepted == (kept,)


def test_an_apply_leaves_an_accepted_order_where_columns_are_still_moved() -> None:
    model, moved = orders(Column("id", "bigint"), X), observed(X, Column("id", "bigint"))
    order = accepted(DriftKind.COLUMN_ORDER, "column order", "(x, id)")
    earlier = with_accepted(model, order)
    assert with_accepted_drift(applied(model), model, moved, moved, earlier).accepted == (order,)
    in_order = state_of(model)
    assert with_accepted_drift(applied(model), model, moved, in_order, earlier).accepted == ()


def test_after_an_unfinished_run_accepted_drift_stays() -> None:
    model, gone = orders(), accepted(DriftKind.TABLE_COMMENT, "table comment", "'theirs'")
    snapshot = CatalogState(tables={ORDERS.key: observed()})
    for attempted, left in (((), ()), ((orders(comment="new"),), (gone,))):
        resource = with_accepted(model, gone, attempted=attempted)
        state = deployment_state().with_resources({resource_key(ORDERS): resource})
        (record_after,) = synchronized(state, snapshot).resources.values()
        assert record_after.accepted == left


def test_accepted_drift_that_a_view_may_not_show_yet_stays() -> None:
    """After a run that did not read the table again, a view may still show a tag as it was."""
    model, tag = orders(tags={"team": "one"}), accepted(DriftKind.TABLE_TAG, "table tag team", "two")
    unread = replace(
        with_accepted(model, tag),
        failure=Failure(Status.UNKNOWN, "the second read failed"),
        change=LastChange(run="a", at=LATER),
        deployed_at=LATER,
    )
    state = deployment_state().with_resources({resource_key(ORDERS): unread})
    (record_after,) = synchronized(
        state, CatalogState(tables={ORDERS.key: state_of(model)})
    ).resources.values()
    assert record_after.accepted == (tag,)


RENAMING = orders(Column("n", "int", renamed_from="x"))
STRUCT, RENAMED_FIELD = orders(Column("s", "struct<a: int>")), Column("s", "struct<b: int>")


@pytest.mark.parametrize(
    ("attempted", "expected"),
    [
        (RENAMING, []),
        (orders(Column("N", "int", renamed_from="X")), []),
        (orders(Column("n", "int", renamed_from=["y", "X"])), []),
        (orders(Column("n", "int", renamed_from="y")), [DriftKind.COLUMN_RENAMED]),
        (orders(Column("n", "int")), [DriftKind.COLUMN_RENAMED]),
        (orders(Column("m", "int", renamed_from="x")), [DriftKind.COLUMN_RENAMED]),
    ],
)
def test_a_killed_run_explains_the_renames_that_it_names(attempted: Table, expected: list[DriftKind]) -> None:
    record, renames = Recorded.of(orders(X), attempted=[attempted]), Renames.of_columns({"x": "n"})
    assert [
        difference.kind for difference in drift_from(record, observed(Column("n", "int")), renames)
    ] == expected


@pytest.mark.parametrize(
    ("former", "is_explained"),
    [({"b": ("a",)}, True), ({"b": ("c", "a")}, True), ({"b": ("c",)}, False), ({}, False)],
)
def test_a_killed_run_explains_the_renames_of_fields_that_it_names(
    former: dict[str, tuple[str, ...]], is_explained: bool
) -> None:
    attempted = orders(replace(RENAMED_FIELD, renamed_fields=former))
    record, renames = Recorded.of(STRUCT, attempted=[attempted]), Renames({("s", "a"): ("s", "b")})
    assert (drift_from(record, observed(RENAMED_FIELD), renames) == ()) is is_explained


def test_attempts_are_compared_under_the_new_names_of_columns() -> None:
    attempted = orders(Column("x", "int", comment="new"))
    record, renames = Recorded.of(orders(X), attempted=[attempted]), Renames.of_columns({"x": "n"})
    differences = drift_from(record, observed(Column("n", "int", comment="new")), renames)
    assert [difference.kind for difference in differences] == [DriftKind.COLUMN_RENAMED]


def test_a_late_change_keeps_the_reason_of_its_run() -> None:
    late = RecordedDifference(field="table comment", expected="'new'", actual="''")
    resource = applied(orders(comment="new"), Status.UNKNOWN)
    failure = Failure(Status.UNKNOWN, "the catalog lags")
    change = LastChange(run="a", at=LATER)
    record = replace(resource, lag=(late,), failure=failure, change=change, deployed_at=LATER)
    state = deployment_state().with_resources({resource_key(ORDERS): record})
    (record_after,) = synchronized(state, CatalogState(tables={ORDERS.key: observed()})).resources.values()
    assert (record_after.status, record_after.reason) == (Status.UNKNOWN, "the catalog lags")


def test_an_unmanaged_table_that_a_run_attempted_keeps_its_record() -> None:
    name = QualifiedName("dev", "silver", "taken")
    listed = CatalogState(tables={ORDERS.key: observed()}, other_tables=(name,))
    managed = [resource_key(ORDERS), resource_key(name)]
    unmanaged = synchronized(deployment_state(orders()), listed, managed=managed[:1])
    record_before = unmanaged.resources[resource_key(name)]
    attempted = replace(record_before, attempts=(Kept(replace(orders(), table_name="taken")),))
    resources = {**unmanaged.resources, resource_key(name): attempted}
    state = unmanaged.with_resources(resources)
    snapshot = CatalogState(tables={ORDERS.key: observed(), name.key: ABSENT})
    kept = synchronized(state, snapshot, managed=managed).resources
    assert kept[resource_key(name)].attempts == attempted.attempts
    assert resource_key(name) not in synchronized(unmanaged, snapshot, managed=managed).resources


def test_a_declared_table_is_not_unmanaged() -> None:
    name = QualifiedName("dev", "silver", "declared")
    listed = CatalogState(tables={ORDERS.key: observed()}, other_tables=(name,))
    keys = [resource_key(ORDERS), resource_key(name)]
    assert [*synchronized(deployment_state(orders()), listed, managed=keys).resources] == keys[:1]


def test_an_attempted_table_of_a_schema_that_was_not_read_keeps_its_record() -> None:
    tried = QualifiedName("dev", "gold", "tried")
    record = unfinished(
        tried, Failure(Status.FAILED, "refused"), attempted=(kept(define(orders())),), earlier=None
    )
    resources = {**deployment_state(orders()).resources, resource_key(tried): record}
    state = msgspec.structs.replace(deployment_state(), resources=resources)
    here = CatalogState(tables={ORDERS.key: observed()})
    assert resource_key(tried) in synchronized(state, here, managed=[resource_key(ORDERS)]).resources
    there = replace(here, tables={**here.tables, "dev.gold.other": ABSENT})
    assert resource_key(tried) not in synchronized(state, there, managed=[resource_key(ORDERS)]).resources


def test_a_killed_run_may_have_moved_columns() -> None:
    record = replace(Recorded.of(orders(Column("id", "bigint"), X)), column_order=("id", "x"))
    moved = observed(X, Column("id", "bigint"))
    assert [difference.kind for difference in drift_from(record, moved)] == [DriftKind.COLUMN_ORDER]
    assert drift_from(record.attempting([orders(comment="new")]), moved) == ()


def test_the_order_of_columns_follows_their_renames() -> None:
    record = replace(Recorded.of(orders(Column("id", "bigint"), X)), column_order=("id", "x"))
    moved = observed(Column("n", "int"), Column("id", "bigint"))
    differences = drift_from(record, moved, Renames.of_columns({"x": "n"}))
    assert [(difference.kind, difference.change.desired) for difference in differences][-1] == (
        DriftKind.COLUMN_ORDER,
        "(id, n)",
    )


def test_a_killed_run_explains_no_change_of_unmanaged_parts() -> None:
    theirs = orders(checks=[CheckConstraint("theirs", "id > 0")])
    record = Recorded.of(orders(), baseline=theirs, attempted=[orders(comment="new")])
    changed = replace(observed(comment="new"), checks=(CheckConstraint("theirs", "id > 1"),))
    assert [difference.change.subject for difference in drift_from(record, changed)] == ["check theirs"]


def test_a_rename_of_an_unrecorded_table_is_attempted_too() -> None:
    model = orders(Column("new", "int", renamed_from="old"))
    table = observed(Column("old", "int"), properties={"delta.columnMapping.mode": "name"})
    plan = TablePlanner().plan([model], catalog_of([model], table))
    assert attempted_by(plan, [model], {}) == {resource_key(ORDERS): (kept(define_attempt(model)),)}
    resources = {resource_key(ORDERS): applied(orders(Column("old", "int")))}
    (_, former) = attempted_by(plan, [model], resources)[resource_key(ORDERS)]
    assert former == kept(define(orders(Column("new", "int"))))


def test_a_table_that_is_renamed_with_a_column_is_attempted_under_its_new_name() -> None:
    model = orders(Column("new", "int", renamed_from="old"), name="sales", renamed_from="orders")
    table = observed(Column("old", "int"), properties={"delta.columnMapping.mode": "name"})
    plan = TablePlanner().plan([model], catalog_of([model], replace(table, former_name=ORDERS)))
    resources = {resource_key(ORDERS): applied(orders(Column("old", "int")))}
    ((_, former),) = attempted_by(plan, [model], resources).values()
    assert former == kept(define(orders(Column("new", "int"), name="sales")))


def test_an_attempt_tells_the_columns_that_it_adds_and_fills() -> None:
    """Those that were there may have no value on purpose."""
    there, new = Column("there", "int", using="1"), Column("new", "int", using="2")
    model, table = orders(there, new), observed(Column("there", "int"))
    plan = TablePlanner().plan([model], catalog_of([model], table))
    ((attempt,),) = attempted_by(plan, [model], {}).values()
    assert [column.using for column in attempt.model.columns] == [None, Using("2")]


def test_a_killed_run_that_renames_a_table_explains_its_changes() -> None:
    model = orders(name="new", comment="mine", renamed_from="orders")
    renamed = QualifiedName("dev", "silver", "new")
    begun = unfinished(renamed, Failure(Status.FAILED, "killed"), attempted=(Kept(model),), earlier=None)
    state = deployment_state(orders())
    state = state.with_resources({**state.resources, resource_key(renamed): begun})
    for comment, expected in (("mine", []), ("theirs", [DriftKind.TABLE_COMMENT])):
        table = replace(observed(comment=comment), former_name=ORDERS)
        snapshot = CatalogState(tables={renamed.key: table})
        (resource,) = compared(state.resources, snapshot, NO_POLICY, [model], now=NOON).values()
        assert [drift.kind for drift in drift_of(resource)] == expected


@pytest.mark.parametrize(
    ("query", "is_drift"),
    [
        ("SELECT o.mail FROM dev.silver.orders AS o(`id`, `mail`)", False),
        ("SELECT o.mail FROM (SELECT `id`, `address` FROM dev.silver.orders) AS o(`id`, `mail`)", False),
        ("SELECT o.id FROM (SELECT `id`, `address` FROM dev.silver.orders) AS o(`id`, `mail`)", True),
    ],
)
def test_a_killed_run_explains_the_former_query_that_it_let_stand(query: str, is_drift: bool) -> None:
    model = View("dev", "gold", "mails", "SELECT o.mail FROM dev.silver.orders AS o")
    attempted = [
        replace(model, query=text)
        for text in (
            "SELECT o.mail FROM dev.silver.orders AS o(`id`, `mail`)",
            "SELECT o.mail FROM (SELECT `id`, `address` FROM dev.silver.orders) AS o(`id`, `mail`)",
            "SELECT o.address AS mail, o.day FROM dev.silver.orders AS o",
        )
    ]
    record = Recorded.of(model, attempted=attempted)
    resource = Compared(
        record=record,
        model_name=record.name,
        observed=view_state_of(replace(model, query=query)),
        attempted=record.attempted,
    )
    assert bool(drift_of(with_new_names(resource, NO_RENAMES))) is is_drift
