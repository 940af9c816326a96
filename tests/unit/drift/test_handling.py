"""What to do about drift: reverted, ignored, refused, accepted, restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from delta_engine.actions.drift_policy import DriftHandling, DriftPolicy, IgnoreEntry, Severity, SeverityRule
from delta_engine.actions.policy import AS_APPLIED, NO_POLICY, ColumnOrder, Policy
from delta_engine.compile.planner import TablePlanner
from delta_engine.drift.detector import DriftDetector
from delta_engine.drift.drifted_resources import ComparedTable, DriftRefusal, drifted_tables
from delta_engine.drift.handling import (
    accepting,
    edited,
    overwritten_drift,
    refusals,
    restored,
    reverted_drift,
    with_ignored_drift,
)
from delta_engine.drift.renames import irreversible
from delta_engine.models import CheckConstraint, Column, ForeignKey, Table
from delta_engine.orchestrate.observing import observe, with_statuses
from delta_engine.orchestrate.planning import draft_sync
from delta_engine.orchestrate.runs import Environment
from delta_engine.ownership.recorded import (
    Kept,
)
from delta_engine.state.states import ABSENT, CatalogState
from tests.builders.deployment import deployment_state, records_of
from tests.builders.detection import (
    LATER,
    MODEL,
    RENAMED,
    FakeHistory,
    commit,
    compare,
    detect,
    kinds,
    recorded,
)
from tests.builders.engines import runner_on
from tests.builders.models import ORDERS, catalog_of, observed, orders
from tests.fakes.fixed_reader import FixedReader
from tests.fakes.recording_sql_runner import RecordingSqlRunner


def refused(
    models: Sequence[Table], drifted: ComparedTable, policy: Policy = NO_POLICY
) -> list[DriftRefusal]:
    planner = TablePlanner(policy)
    plan = planner.plan(models, catalog_of(models, drifted.observed), records_of([drifted.declared]))
    return list(refusals(overwritten_drift(plan, models, [drifted]), DriftPolicy()))


def test_an_ignored_rename_is_kept_and_is_no_drop() -> None:
    ignore = IgnoreEntry(resource="orders", fields=("column_renamed",), reason="known")
    rename = commit(4, "RENAME COLUMN", oldColumnPath="name", newColumnPath="full_name")
    reader = FixedReader(catalog_of([MODEL], RENAMED))
    for ignores in ((ignore,), ()):
        policy = DriftPolicy(
            handling=DriftHandling.REVERT, severities=(SeverityRule(severity=Severity.LOW),), ignores=ignores
        )
        environment = Environment(
            reader=reader,
            action_runner=runner_on(RecordingSqlRunner()),
            drift_policy=policy,
            history=FakeHistory(commit(3, "OPTIMIZE"), rename),
        )
        basis = observe(environment, [MODEL], deployment_state(MODEL), is_partial=False)
        planned = draft_sync(environment, with_statuses(basis))
        if ignores:
            assert not planned.plan
            assert planned.refusals == ()
        else:
            (refusal,) = planned.refusals  # whatever the handling: the data would be gone
            assert "full_name" in str(refusal)


def test_a_renamed_column_is_renamed_back_with_its_data() -> None:
    rename = commit(4, "RENAME COLUMN", oldColumnPath="name", newColumnPath="full_name")
    columns = (Column("id", "bigint"), Column("full_name", "string", comment="x"))
    moved = observed(*columns, comment="a table", properties={"delta.columnMapping.mode": "name"})
    (drifted,) = detect(moved, history=FakeHistory(commit(3, "OPTIMIZE"), rename))
    wanted = restored(drifted, AS_APPLIED)
    plan = TablePlanner().for_reverts().plan([wanted], catalog_of([MODEL], moved))
    assert [type(action).__name__ for align in plan.align_tables for action in align.actions] == [
        "ColumnRename",
        "SetColumnComments",
    ]
    assert list(irreversible([wanted], [drifted])) == []
    (refusal,) = irreversible([MODEL], [drifted])
    assert (
        "Rename it back with `delta-engine -e ENV drift --revert -t dev.silver.orders`, accept the new name into "
        "the model" in str(refusal)
    )


NESTED = orders(Column("st", "struct<x: int, z: string>"))


def test_a_renamed_field_is_renamed_back_and_never_replaced_by_an_empty_one() -> None:
    moved = observed(
        Column("st", "struct<y: int, z: string>"), properties={"delta.columnMapping.mode": "name"}
    )
    rename = commit(4, "RENAME COLUMN", oldColumnPath="st.x", newColumnPath="st.`y`")
    state = deployment_state(NESTED)
    (sure,) = detect(moved, state=state, history=FakeHistory(commit(3, "OPTIMIZE"), rename))
    assert [
        (detail.finding.field, detail.finding.expected, detail.finding.actual) for detail in sure.details
    ] == [("column st.x", "st.x", "st.y")]
    assert kinds([sure]) == ["column_renamed"]
    wanted = restored(sure, AS_APPLIED)
    assert list(irreversible([wanted], [sure])) == []
    (align,) = TablePlanner().plan([wanted], catalog_of([NESTED], moved)).align_tables
    assert [type(action).__name__ for action in align.actions] == ["ColumnRename"]
    (refusal,) = irreversible([NESTED], [sure])
    assert "column st.x: it was renamed to 'st.y'" in str(refusal)
    (short,) = detect(moved, state=state, history=FakeHistory(commit(5000, "WRITE")))
    (refusal,) = irreversible([restored(short, AS_APPLIED)], [short])
    assert "column st.x: it may have been renamed to 'st.y'" in str(refusal)
    others = FakeHistory(commit(4, "ADD COLUMNS"), commit(5, "DROP COLUMNS"))
    (whole,) = detect(moved, state=state, history=others)
    assert list(irreversible([restored(whole, AS_APPLIED)], [whole])) == []
    followed = orders(Column("st", "struct<y: int, z: string>"))
    assert list(irreversible([followed], [sure, short])) == []
    assert not TablePlanner().plan([accepting(NESTED, sure)], catalog_of([NESTED], moved))


def test_unmanaged_parts_of_a_renamed_column_are_no_drift_and_come_back_with_it() -> None:
    theirs = replace(
        MODEL, columns=(MODEL.columns[0], Column("name", "string", comment="theirs")), cluster_by=("name",)
    )
    rename = commit(4, "RENAME COLUMN", oldColumnPath="name", newColumnPath="full_name")
    moved = replace(
        observed(Column("id", "bigint"), Column("full_name", "string", comment="theirs"), comment="a table"),
        cluster_by=("full_name",),
        table_properties={"delta.columnMapping.mode": "name"},
    )
    history = FakeHistory(commit(3, "OPTIMIZE"), rename)
    (drifted,) = detect(moved, state=recorded(whole=Kept(theirs)), history=history)
    assert kinds([drifted]) == ["column_renamed"]
    plan = TablePlanner().for_reverts().plan([restored(drifted, AS_APPLIED)], catalog_of([MODEL], moved))
    assert [type(action).__name__ for align in plan.align_tables for action in align.actions] == [
        "ColumnRename"
    ]


def test_where_the_history_does_not_reach_back_a_drop_may_be_a_rename() -> None:
    (short,) = detect(RENAMED, history=FakeHistory(commit(5000, "WRITE")))
    assert kinds([short]) == ["column_dropped", "column_added"]
    assert not short.is_history_whole
    assert "'full_name'" in str(next(irreversible([MODEL], [short])))
    (whole,) = detect(RENAMED, history=FakeHistory(commit(4, "ADD COLUMNS"), commit(5, "DROP COLUMNS")))
    assert whole.is_history_whole
    assert list(irreversible([MODEL], [whole])) == []


def test_a_deletion_that_is_ignored_is_not_reverted_by_a_sync() -> None:
    ignore = IgnoreEntry(resource="orders", fields=("*",), reason="on purpose")
    (drifted,) = detect(ABSENT, policy=DriftPolicy(ignores=(ignore,)))
    assert with_ignored_drift([MODEL], [drifted]) == ()


@pytest.mark.parametrize("name", ["name", "Name"])
def test_a_pending_change_of_a_dropped_column_does_not_switch_the_guard_off(name: str) -> None:
    (drifted,) = detect(observed(Column("id", "bigint"), comment="a table"))
    moved = orders(Column("id", "bigint"), Column(name, "string", comment="new"), comment="a table")
    assert [refusal.table for refusal in refused([moved], drifted)] == ["dev.silver.orders"]


def test_what_the_model_includes_is_not_accepted_twice() -> None:
    more = observed(*MODEL.columns, Column("x", "int"), comment="a table")
    (drifted,) = detect(more)
    followed = orders(*MODEL.columns, Column("X", "bigint"), comment="a table")
    assert accepting(followed, drifted).columns == (*MODEL.columns, Column("x", "int"))


def test_accepted_foreign_keys_are_written_as_shortly_as_they_can_be() -> None:
    kept = ForeignKey(["id"], "silver.others", ["id"], "kept")
    model = Table("dev", "silver", "orders", MODEL.columns, foreign_keys=[kept])
    keys = [
        ForeignKey(["id"], "dev.silver.others", ["id"], "kept"),
        ForeignKey(["id"], "dev.silver.customers", ["id"], "by_hand"),
        ForeignKey(["id"], "dev.gold.mails", ["id"], "other_schema"),
    ]
    snapshot = CatalogState(tables={ORDERS.key: replace(observed(*MODEL.columns), foreign_keys=tuple(keys))})
    recorded_keys = replace(model, foreign_keys=(keys[0],))
    (drifted,) = drifted_tables(
        DriftDetector(DriftPolicy()).detect(compare(deployment_state(recorded_keys), snapshot), now=LATER)
    )
    assert edited(model, drifted).foreign_keys == (
        kept,
        ForeignKey(["id"], "customers", ["id"], "by_hand"),
        ForeignKey(["id"], "gold.mails", ["id"], "other_schema"),
    )
    assert accepting(model, drifted).foreign_keys == (kept, *keys[1:])


def test_other_drift_does_not_move_the_columns_of_the_model() -> None:
    model = orders(Column("a", "int"), Column("b", "int"))
    state_now = observed(Column("b", "int"), Column("a", "int"), comment="theirs")
    (table,) = detect(state_now, state=deployment_state(model))
    after = edited(model, table)
    assert after.comment == "theirs"
    assert after.columns == model.columns


def test_each_field_of_a_struct_is_accepted_by_itself() -> None:
    def model(a: str, b: str) -> Table:
        return orders(Column("s", f"struct<a: {a}, b: {b}>"))

    detector = DriftDetector(
        DriftPolicy(ignores=(IgnoreEntry(resource="*", fields=("column s.b type",), reason="known"),))
    )
    changed = observed(Column("s", "struct<a: bigint, b: bigint>"))
    snapshot = CatalogState(tables={ORDERS.key: changed})
    (drifted,) = drifted_tables(
        detector.detect(compare(deployment_state(model("int", "int")), snapshot), now=LATER)
    )
    assert accepting(model("int", "double"), drifted) == model("bigint", "double")
    assert restored(drifted, AS_APPLIED) == model("int", "bigint")


def test_what_a_sync_reverts_keeps_and_refuses() -> None:
    hotfixed = observed(Column("id", "bigint"), Column("hotfix", "int"), comment="theirs")
    ignore = IgnoreEntry(resource="orders", fields=("table_comment",), reason="known")
    (drifted,) = detect(hotfixed, policy=DriftPolicy(ignores=(ignore,)))
    assert kinds([drifted]) == ["column_dropped", "column_added", "table_comment"]
    assert len(reverted_drift(MODEL, drifted)) == 3
    assert [refusal.table for refusal in refused([MODEL], drifted)] == ["dev.silver.orders"]
    (wanted,) = with_ignored_drift([MODEL], [drifted])
    assert (wanted.comment, wanted.columns) == ("theirs", MODEL.columns)
    assert restored(drifted, AS_APPLIED).comment == "theirs"
    assert restored(drifted, AS_APPLIED).columns == MODEL.columns
    accepted = accepting(MODEL, drifted)
    assert [column.name for column in accepted.columns] == ["id", "hotfix"]
    assert accepted.comment == "a table"  # what is ignored is not accepted either

    followed = orders(Column("id", "bigint"), Column("hotfix", "int"), comment="mine")
    assert reverted_drift(followed, drifted) == ()
    assert with_ignored_drift([followed], [drifted]) == (followed,)
    assert refused([followed], drifted) == []


def test_a_deleted_table_is_made_as_it_was_left() -> None:
    theirs = replace(MODEL, comment="theirs", checks=(CheckConstraint("positive", "id > 0"),))
    (drifted,) = detect(ABSENT, state=recorded(whole=Kept(theirs)))
    assert (restored(drifted, AS_APPLIED).comment, restored(drifted, AS_APPLIED).checks) == (
        "theirs",
        theirs.checks,
    )


def test_a_deleted_table_is_severe_and_is_not_ignored() -> None:
    (drifted,) = detect(ABSENT)
    assert drifted.details[0].finding.expected == "applied 2026-03-01 12:00:00 UTC by ana@example.com"
    assert [refusal.table for refusal in refused([MODEL], drifted)] == ["dev.silver.orders"]
    assert with_ignored_drift([MODEL], [drifted]) == (MODEL,)


def test_an_order_that_is_enforced_is_reverted_and_one_that_is_ignored_is_kept() -> None:
    reversed_columns = observed(*reversed(MODEL.columns), comment="a table")
    enforced, state = Policy(column_order=ColumnOrder.ENFORCE), recorded(column_order=())
    (drifted,) = detect(reversed_columns, state=state)
    assert reverted_drift(MODEL, drifted) == ()
    assert reverted_drift(MODEL, drifted, enforced) == drifted.details
    assert reverted_drift(replace(MODEL, columns=MODEL.columns[::-1]), drifted, enforced) == ()
    ignore = IgnoreEntry(resource="orders", fields=("column_order",), reason="known")
    (ignored,) = detect(reversed_columns, state=state, policy=DriftPolicy(ignores=(ignore,)))
    (wanted,) = with_ignored_drift([MODEL], [ignored], enforced)
    assert not TablePlanner(enforced).plan([wanted], catalog_of([MODEL], reversed_columns))
    assert TablePlanner(enforced).plan([MODEL], catalog_of([MODEL], reversed_columns))
    severe = DriftPolicy(severities=(SeverityRule(severity=Severity.HIGH),))
    (drifted,) = detect(reversed_columns, state=state, policy=severe)
    assert refused([MODEL], drifted) == []
    assert "column order was (id, name)" in str(refused([MODEL], drifted, enforced)[0])
