"""Detection without a platform: who did it, renames, replaced tables, and what is nobody's drift."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone

import msgspec
import pytest

from delta_engine.addressing import CatalogAddressing
from delta_engine.capabilities import DATABRICKS
from delta_engine.compile.planner import TablePlanner
from delta_engine.deployment.document import DeploymentState, Difference, Status
from delta_engine.deployment.resources import table_key
from delta_engine.deployment.synchronizer import synchronize
from delta_engine.drift.attribution import attribution, renames, since
from delta_engine.drift.comparison import Deviation
from delta_engine.drift.detector import DetectedTable, DriftDetector
from delta_engine.drift.evidence import Evidence
from delta_engine.drift.handling import irreversible, refusals, restored, taken_in, tolerant, undone, written
from delta_engine.drift.reporting import drift_report
from delta_engine.drift_policy import (
    DriftHandling,
    DriftKind,
    DriftPolicy,
    IgnoreEntry,
    Severity,
    SeverityRule,
)
from delta_engine.execute.action_runner import ActionRunner
from delta_engine.execute.recording_sql_runner import RecordingSqlRunner
from delta_engine.models import Column, ForeignKey, QualifiedName, Schema, Table
from delta_engine.orchestrate.pipeline import Pipeline
from delta_engine.policy import ColumnOrder, Policy
from delta_engine.state.states import ABSENT, NO_AUDIT, Audit, CatalogState, TableState
from delta_engine.state.table_history import Commit
from delta_engine.state.table_versions import TableVersion
from tests.builders import ORDERS, catalog_of, observed, orders
from tests.deployment_builders import NOON, applied, deployment_state

LATER = NOON + timedelta(hours=3)
MODEL = orders(Column("id", "bigint"), Column("name", "string"), comment="a table")
AS_APPLIED = observed(*MODEL.columns, comment="a table")


def commit(version: int, operation: str, **parameters: str) -> Commit:
    return Commit(
        version=version,
        at=NOON + timedelta(minutes=version),
        who=f"user {version}",
        operation=operation,
        parameters=parameters,
    )


class FakeHistory:
    """Has commits for every table, and notes which were asked for."""

    def __init__(self, *commits: Commit) -> None:
        self.asked: list[str] = []
        self._commits = tuple(reversed(commits))

    def read(self, tables: Sequence[QualifiedName]) -> Mapping[str, tuple[Commit, ...]]:
        self.asked += [table.key for table in tables]
        return {table.key: self._commits for table in tables}


class FakeVersions:
    """Says the same id for every table, and notes which were asked for."""

    def __init__(self, table_id: str) -> None:
        self.asked: list[str] = []
        self._table_id = table_id

    def read(
        self, tables: Sequence[QualifiedName], *, with_id: Collection[str]
    ) -> Mapping[str, TableVersion]:
        self.asked += [table.key for table in tables]
        return {table.key: TableVersion(table_id=self._table_id, version=9) for table in tables}


def detect(
    found: TableState,
    *,
    state: DeploymentState | None = None,
    policy: DriftPolicy | None = None,
    history: FakeHistory | None = None,
    versions: FakeVersions | None = None,
    is_thorough: bool = True,
) -> tuple[DetectedTable, ...]:
    detector = DriftDetector(
        policy or DriftPolicy(), history=history, versions=versions, is_thorough=is_thorough
    )
    snapshot = CatalogState(tables={ORDERS.key: found})
    return detector.detect(state or deployment_state(MODEL), snapshot, now=LATER)


def kinds(tables: Sequence[DetectedTable]) -> list[str]:
    return [detail.finding.kind.value for table in tables for detail in table.details]


@pytest.mark.parametrize(
    ("field", "operation", "parameters"),
    [
        ("column x", "ADD COLUMNS", {"columns": '[{"column":{"name":"X","type":"int"}}]'}),
        ("column x", "DROP COLUMNS", {"columns": '["y","x"]'}),
        ("column a b type", "CHANGE COLUMN", {"column": '{"name":"a b","type":"long"}'}),
        ("column x comment", "CHANGE COLUMNS", {"columns": '[{"column":{"name":"x"}}]'}),
        ("column order", "CHANGE COLUMN", {"column": '{"name":"x"}', "position": "FIRST"}),
        ("property k'ey", "SET TBLPROPERTIES", {"properties": '{"k\'ey":"v"}'}),
        ("property gone", "UNSET TBLPROPERTIES", {"properties": '["gone"]', "ifExists": "true"}),
        ("table comment", "SET TBLPROPERTIES", {"properties": '{"comment":"x"}'}),
        (
            "table feature delta.columnMapping.mode",
            "SET TBLPROPERTIES",
            {"properties": '{"delta.columnMapping.mode":1}'},
        ),
        ("primary key pk_x", "UNSET TBLPROPERTIES", {"properties": '["delta_engine.constraint.pk_x"]'}),
        ("primary key", "SET TBLPROPERTIES", {"properties": '{"delta_engine.constraint.pk_y":"{}"}'}),
        ("clustering", "CLUSTER BY", {"oldClusteringColumns": "a", "newClusteringColumns": ""}),
        ("column x", "WRITE", {"mode": "Append", "canMergeSchema": "true"}),
        ("column x type", "CREATE OR REPLACE TABLE AS SELECT", {}),
        ("table comment", "RESTORE", {}),
    ],
)
def test_a_change_is_put_down_to_the_latest_commit_that_touched_it(
    field: str, operation: str, parameters: dict[str, str]
) -> None:
    kind = DriftKind.COLUMN_ADDED if field == "column x" else DriftKind.PROPERTY
    kind = DriftKind.COLUMN_TYPE if field.endswith(" type") else kind
    deviation = Deviation(kind=kind, field=field, expected="a", actual="b")
    commits: tuple[Commit, ...] = (
        commit(9, "WRITE", mode="Append"),
        commit(8, "OPTIMIZE"),
        commit(7, "ADD COLUMNS", columns='[{"column":{"name":"other"}}]'),
        commit(6, operation, **parameters),
        commit(5, operation, **parameters),
    )
    if field == "column order":
        commits = commits[3:]
    found = attribution(deviation, commits, NO_AUDIT, applied_at=NOON)
    assert found is not None
    assert (found.version, found.who, found.operation) == (6, "user 6", operation)


@pytest.mark.parametrize("text", ["", "not json", "[1, {}, null]", '{"a": {"b": []}}', "[[[["])
def test_parameters_that_are_not_understood_accuse_nobody(text: str) -> None:
    deviation = Deviation(kind=DriftKind.COLUMN_TYPE, field="column x type", expected="a", actual="b")
    commits = [
        commit(4, "ADD COLUMNS", columns=text, column=text),
        commit(3, "SET TBLPROPERTIES", properties=text),
        commit(2, "RENAME COLUMN"),
    ]
    assert attribution(deviation, commits, NO_AUDIT, applied_at=NOON) is None
    assert renames([]) == {}


def test_what_no_commit_explains_is_put_down_to_whom_the_catalog_names() -> None:
    deviation = Deviation(kind=DriftKind.PRIMARY_KEY, field="primary key pk_x", expected="(a)", actual=None)
    found = attribution(
        deviation, [commit(4, "OPTIMIZE")], Audit(altered_at=LATER, altered_by="bob"), applied_at=NOON
    )
    assert found is not None
    assert (found.who, found.at, found.operation, found.version) == ("bob", LATER, None, None)


def test_chains_of_renames_are_followed_and_circles_are_none() -> None:
    def rename(version: int, old: str, new: str) -> Commit:
        return commit(version, "RENAME COLUMN", oldColumnPath=old, newColumnPath=new)

    assert renames([rename(5, "`b c`", "d"), rename(4, "a", "`b c`"), rename(3, "x", "y")]) == {
        "x": "y",
        "a": "d",
    }
    assert renames([rename(5, "b", "a"), rename(4, "a", "b")]) == {}
    assert since([rename(5, "b", "a"), rename(4, "a", "b")], 4) == (rename(5, "b", "a"),)


def test_a_rename_before_the_apply_is_nobodys_drift() -> None:
    renamed = observed(Column("id", "bigint"), Column("full_name", "string"), comment="a table")
    rename = {"oldColumnPath": "name", "newColumnPath": "full_name"}
    (found,) = detect(renamed, history=FakeHistory(commit(4, "RENAME COLUMN", **rename)))
    assert kinds([found]) == ["column_renamed"]
    assert [str(one) for one in irreversible([MODEL], [found])]
    assert kinds(detect(renamed, history=FakeHistory(commit(2, "RENAME COLUMN", **rename)))) == [
        "column_dropped",
        "column_added",
    ]


def recorded(**changes: object) -> DeploymentState:
    """Return a document in which the record of the table says something else."""
    resource = applied(MODEL)
    metadata = msgspec.structs.replace(resource.metadata, **changes)
    changed = msgspec.structs.replace(resource, metadata=metadata)
    return msgspec.structs.replace(deployment_state(), resources={table_key(ORDERS): changed})


def test_an_untouched_table_costs_nothing_unless_it_may_be_another() -> None:
    history, versions = FakeHistory(), FakeVersions("another id")
    born = NOON + timedelta(seconds=5)  # the catalog's clock, which is not ours
    state = recorded(created_at=born)
    same = replace(AS_APPLIED, audit=Audit(created_at=born))
    assert detect(same, state=state, history=history, versions=versions) == ()
    assert (history.asked, versions.asked) == ([], [])

    assert detect(AS_APPLIED, history=history, versions=versions, is_thorough=False) == ()
    assert versions.asked == []
    assert kinds(detect(AS_APPLIED, history=history, versions=versions)) == ["table_replaced"]
    assert kinds(detect(AS_APPLIED, versions=FakeVersions("0e8400e2-29b1-41d4-a716-446655440000"))) == []

    anew = replace(AS_APPLIED, audit=Audit(created_at=born + timedelta(days=1)))
    assert kinds(detect(anew, state=state, versions=versions, is_thorough=False)) == ["table_replaced"]


def test_whoever_replaced_a_table_is_the_one_who_made_it_anew() -> None:
    history = FakeHistory(
        commit(0, "CREATE TABLE"), commit(7, "CREATE OR REPLACE TABLE"), commit(9, "WRITE", mode="Append")
    )
    (found,) = detect(AS_APPLIED, history=history, versions=FakeVersions("another id"))
    changed = found.details[0].finding.changed
    assert changed is not None
    assert changed.who == "user 7"


def test_a_write_that_merges_schemas_is_not_accused_of_what_it_cannot_do() -> None:
    drop = Deviation(kind=DriftKind.COLUMN_DROPPED, field="column x", expected="int", actual=None)
    commits = [commit(9, "WRITE", canMergeSchema="true"), commit(8, "DROP COLUMNS", columns='["x"]')]
    found = attribution(drop, commits, NO_AUDIT, applied_at=NOON)
    assert found is not None
    assert found.who == "user 8"
    assert attribution(drop, commits[:1], NO_AUDIT, applied_at=NOON) is None


def test_a_note_of_our_own_apply_accuses_nobody() -> None:
    deviation = Deviation(kind=DriftKind.PRIMARY_KEY, field="primary key", expected="(a)", actual=None)
    assert attribution(deviation, [], Audit(altered_at=NOON, altered_by="us"), applied_at=NOON) is None


RENAMED = observed(Column("id", "bigint"), Column("full_name", "string"), comment="a table")


def test_an_ignored_rename_is_tolerated_and_not_taken_for_a_drop() -> None:
    ignore = IgnoreEntry(resource="orders", fields=("column_renamed",), reason="known")
    rename = commit(4, "RENAME COLUMN", oldColumnPath="name", newColumnPath="full_name")
    reader = FixedReader(RENAMED)
    for ignores in ((ignore,), ()):
        policy = DriftPolicy(
            handling=DriftHandling.REVERT,
            severities=(SeverityRule(severity=Severity.LOW),),
            ignores=ignores,
        )
        pipeline = Pipeline(
            reader=reader,
            action_runner=ActionRunner(RecordingSqlRunner(), CatalogAddressing(), DATABRICKS, parallelism=1),
            drift_policy=policy,
            history=FakeHistory(commit(3, "OPTIMIZE"), rename),
        )
        planned = pipeline.plan([MODEL], reader.snapshot([MODEL]), {}, deployment_state(MODEL))
        if ignores:
            assert not planned.plan
            assert planned.drift == ()
        else:
            (refusal,) = planned.drift  # whatever the handling: the data would be gone
            assert "full_name" in str(refusal)


def test_what_somebody_renamed_is_renamed_back_with_its_data() -> None:
    rename = commit(4, "RENAME COLUMN", oldColumnPath="name", newColumnPath="full_name")
    columns = (Column("id", "bigint"), Column("full_name", "string", comment="x"))
    moved = observed(*columns, comment="a table", properties={"delta.columnMapping.mode": "name"})
    (found,) = detect(moved, history=FakeHistory(commit(3, "OPTIMIZE"), rename))
    wanted = restored(found)
    plan = TablePlanner().restoring().plan([wanted], catalog_of([MODEL], moved))
    assert [type(action).__name__ for align in plan.align_tables for action in align.actions] == [
        "ColumnRename",
        "SetColumnComments",
    ]
    assert list(irreversible([wanted], [found])) == []
    (refusal,) = irreversible([MODEL], [found])
    assert "Rename it back with `drift --revert`, take it in" in str(refusal)


NESTED = orders(Column("st", "struct<x: int, z: string>"))


def test_a_field_that_somebody_renamed_is_renamed_back_and_never_dropped_for_an_empty_one() -> None:
    moved = observed(
        Column("st", "struct<y: int, z: string>"), properties={"delta.columnMapping.mode": "name"}
    )
    rename = commit(4, "RENAME COLUMN", oldColumnPath="st.x", newColumnPath="st.`y`")
    state = deployment_state(NESTED)
    (sure,) = detect(moved, state=state, history=FakeHistory(commit(3, "OPTIMIZE"), rename))
    assert kinds([sure]) == ["column_dropped", "column_added"]
    wanted = restored(sure)
    assert list(irreversible([wanted], [sure])) == []
    (align,) = TablePlanner().plan([wanted], catalog_of([NESTED], moved)).align_tables
    assert [type(action).__name__ for action in align.actions] == ["ColumnRename"]
    (refusal,) = irreversible([NESTED], [sure])
    assert "column st.x: somebody renamed it to 'st.y'" in str(refusal)
    (short,) = detect(moved, state=state, history=FakeHistory(commit(5000, "WRITE")))
    (refusal,) = irreversible([restored(short)], [short])
    assert "column st.x: somebody may have renamed it to 'st.y'" in str(refusal)
    others = FakeHistory(commit(4, "ADD COLUMNS"), commit(5, "DROP COLUMNS"))
    (whole,) = detect(moved, state=state, history=others)
    assert list(irreversible([restored(whole)], [whole])) == []
    followed = orders(Column("st", "struct<y: int, z: string>"))
    assert list(irreversible([followed], [sure, short])) == []
    assert not TablePlanner().plan([taken_in(NESTED, sure)], catalog_of([NESTED], moved))


class FixedReader:
    """Reads the same state for every table."""

    def __init__(self, state: TableState) -> None:
        self._state = state

    def snapshot(self, models: Sequence[Table], schemas: Sequence[Schema] = ()) -> CatalogState:
        return CatalogState(tables={model.qualified_name.key: self._state for model in models})

    def snapshot_directly(self, models: Sequence[Table]) -> CatalogState:
        return self.snapshot(models)


def test_where_the_history_does_not_reach_back_a_drop_may_be_a_rename() -> None:
    (short,) = detect(RENAMED, history=FakeHistory(commit(5000, "WRITE")))
    assert kinds([short]) == ["column_dropped", "column_added"]
    assert not short.is_history_whole
    assert "'full_name'" in str(next(irreversible([MODEL], [short])))
    (whole,) = detect(RENAMED, history=FakeHistory(commit(4, "ADD COLUMNS"), commit(5, "DROP COLUMNS")))
    assert whole.is_history_whole
    assert list(irreversible([MODEL], [whole])) == []


def test_a_deletion_that_is_ignored_is_not_undone_by_a_sync() -> None:
    ignore = IgnoreEntry(resource="orders", fields=("*",), reason="on purpose")
    (found,) = detect(ABSENT, policy=DriftPolicy(ignores=(ignore,)))
    assert tolerant([MODEL], [found]) == ()


@pytest.mark.parametrize("name", ["name", "Name"])
def test_a_pending_change_of_a_dropped_column_does_not_switch_the_guard_off(name: str) -> None:
    (found,) = detect(observed(Column("id", "bigint"), comment="a table"))
    moved = orders(Column("id", "bigint"), Column(name, "string", comment="new"), comment="a table")
    assert [refusal.table for refusal in refusals([moved], [found])] == ["dev.silver.orders"]


def test_what_the_model_has_taken_in_already_is_not_put_in_twice() -> None:
    more = observed(*MODEL.columns, Column("x", "int"), comment="a table")
    (found,) = detect(more)
    followed = orders(*MODEL.columns, Column("X", "bigint"), comment="a table")
    assert taken_in(followed, found).columns == (*MODEL.columns, Column("x", "int"))


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
    (found,) = DriftDetector(DriftPolicy()).detect(deployment_state(recorded_keys), snapshot, now=LATER)
    assert written(model, found).foreign_keys == (
        kept,
        ForeignKey(["id"], "customers", ["id"], "by_hand"),
        ForeignKey(["id"], "gold.mails", ["id"], "other_schema"),
    )
    assert taken_in(model, found).foreign_keys == (kept, *keys[1:])


def test_each_field_of_a_struct_is_accepted_by_itself() -> None:
    def model(a: str, b: str) -> Table:
        return orders(Column("s", f"struct<a: {a}, b: {b}>"))

    detector = DriftDetector(
        DriftPolicy(ignores=(IgnoreEntry(resource="*", fields=("column s.b type",), reason="known"),))
    )
    changed = observed(Column("s", "struct<a: bigint, b: bigint>"))
    snapshot = CatalogState(tables={ORDERS.key: changed})
    (found,) = detector.detect(deployment_state(model("int", "int")), snapshot, now=LATER)
    assert taken_in(model("int", "double"), found) == model("bigint", "double")
    assert restored(found) == model("int", "bigint")


def test_what_the_catalog_showed_late_after_our_apply_is_nobodys_drift_and_hides_none() -> None:
    late = Difference(field="table comment", expected="'a table'", actual="'before'")
    resource = applied(MODEL, Status.UNKNOWN)
    metadata = msgspec.structs.replace(resource.metadata, drift=(late,), lag=(late,))
    lagging = msgspec.structs.replace(resource, metadata=metadata)
    state = msgspec.structs.replace(deployment_state(), resources={table_key(ORDERS): lagging})
    before = observed(*MODEL.columns, comment="before")
    assert detect(before, state=state) == ()
    dropped = observed(Column("id", "bigint"), comment="before")
    assert kinds(detect(dropped, state=state)) == ["column_dropped"]
    snapshot = CatalogState(tables={ORDERS.key: dropped})
    synchronized = synchronize(state, snapshot, managed=None, now=LATER)
    assert synchronized.resources[table_key(ORDERS)].status is Status.DRIFTED
    assert kinds(detect(dropped, state=synchronized)) == ["column_dropped"]


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.DEGRADED])
def test_what_our_own_run_left_half_done_is_nobodys_drift(status: Status) -> None:
    key = table_key(ORDERS)
    state = msgspec.structs.replace(deployment_state(), resources={key: applied(MODEL, status)})
    assert detect(ABSENT, state=state) == ()


def test_what_a_sync_would_undo_what_it_leaves_and_what_it_refuses() -> None:
    hotfixed = observed(Column("id", "bigint"), Column("hotfix", "int"), comment="theirs")
    ignore = IgnoreEntry(resource="orders", fields=("table_comment",), reason="known")
    (found,) = detect(hotfixed, policy=DriftPolicy(ignores=(ignore,)))
    assert kinds([found]) == ["column_dropped", "column_added", "table_comment"]
    assert len(undone(MODEL, found)) == 3
    assert [refusal.table for refusal in refusals([MODEL], [found])] == ["dev.silver.orders"]
    (wanted,) = tolerant([MODEL], [found])
    assert (wanted.comment, wanted.columns) == ("theirs", MODEL.columns)
    assert restored(found).comment == "theirs"
    assert restored(found).columns == MODEL.columns
    accepted = taken_in(MODEL, found)
    assert [column.name for column in accepted.columns] == ["id", "hotfix"]
    assert accepted.comment == "a table"  # what is ignored is not accepted either

    followed = orders(Column("id", "bigint"), Column("hotfix", "int"), comment="mine")
    assert undone(followed, found) == ()
    assert tolerant([followed], [found]) == (followed,)
    assert list(refusals([followed], [found])) == []


def test_a_deleted_table_is_severe_and_stays_out_of_tolerance() -> None:
    (found,) = detect(ABSENT)
    assert found.details[0].finding.expected == "applied 2026-03-01 12:00:00 by ana@example.com"
    assert [refusal.table for refusal in refusals([MODEL], [found])] == ["dev.silver.orders"]
    assert tolerant([MODEL], [found]) == (MODEL,)


def test_only_an_unmanaged_table_that_nobody_knows_is_unmanaged() -> None:
    names = [QualifiedName("dev", "silver", name) for name in ("mine", "theirs")]
    audits = {names[1].key: Audit(created_at=datetime(2026, 1, 2, tzinfo=timezone.utc), created_by="charlie")}
    snapshot = CatalogState(tables={}, unasked=tuple(names), audits=audits)
    ((name, found),) = DriftDetector(DriftPolicy()).unmanaged(snapshot, {names[0].key}, now=LATER)
    assert name == names[1]
    assert found.finding.changed is not None
    assert (found.finding.changed.who, found.finding.kind) == ("charlie", DriftKind.UNMANAGED)


def test_the_order_is_compared_with_the_one_after_the_apply_and_not_with_the_definition() -> None:
    def state(*order: str) -> DeploymentState:
        return recorded(column_order=order)

    reversed_columns = observed(*reversed(MODEL.columns), comment="a table")
    assert kinds(detect(reversed_columns)) == []  # nobody noted an order
    assert kinds(detect(reversed_columns, state=state())) == ["column_order"]
    assert kinds(detect(reversed_columns, state=state("NAME", "ID"))) == []
    more = observed(Column("new", "int"), *MODEL.columns, comment="a table")
    assert kinds(detect(more, state=state())) == ["column_added"]


def test_an_order_that_is_enforced_is_undone_and_one_that_is_ignored_left_alone() -> None:
    reversed_columns = observed(*reversed(MODEL.columns), comment="a table")
    enforced, state = Policy(column_order=ColumnOrder.ENFORCE), recorded(column_order=())
    (found,) = detect(reversed_columns, state=state)
    assert undone(MODEL, found) == ()
    assert undone(MODEL, found, enforced) == found.details
    assert undone(replace(MODEL, columns=MODEL.columns[::-1]), found, enforced) == ()
    ignore = IgnoreEntry(resource="orders", fields=("column_order",), reason="known")
    (ignored,) = detect(reversed_columns, state=state, policy=DriftPolicy(ignores=(ignore,)))
    (wanted,) = tolerant([MODEL], [ignored], enforced)
    assert not TablePlanner(enforced).plan([wanted], catalog_of([MODEL], reversed_columns))
    assert TablePlanner(enforced).plan([MODEL], catalog_of([MODEL], reversed_columns))
    severe = DriftPolicy(severities=(SeverityRule(severity=Severity.HIGH),))
    (found,) = detect(reversed_columns, state=state, policy=severe)
    assert list(refusals([MODEL], [found])) == []
    assert "column order was applied as (id, name)" in str(next(refusals([MODEL], [found], enforced)))


@pytest.mark.parametrize("state", [recorded(column_order=()), recorded(column_order=("name", "id"))])
def test_moves_that_a_policy_enforces_are_drift_undone_or_pending(state: DeploymentState) -> None:
    found = observed(*reversed(MODEL.columns), comment="a table")
    detected = detect(found, state=state)
    evidence = Evidence(
        environment="test",
        checked_at=LATER,
        models=[MODEL],
        is_partial=False,
        state=state,
        observed=CatalogState(tables={ORDERS.key: found}),
        applied={ORDERS.key: MODEL},
        detected=detected,
        unreadable=(),
        unmanaged=(),
        policy=DriftPolicy(),
        plan_policy=Policy(column_order=ColumnOrder.ENFORCE),
    )
    report = drift_report(evidence)
    pending = [change.field for table in report.pending for change in table.changes]
    assert pending == ([] if detected else ["column id place"])
    assert any("--revert" in one.command for one in report.recommendations) == bool(detected)
    assert drift_report(replace(evidence, plan_policy=Policy())).pending == ()


def test_of_entries_that_overlap_the_first_that_has_not_expired_counts_and_none_is_called_idle() -> None:
    long_ago = IgnoreEntry(resource="*", fields=("*",), reason="old", expires=date(2026, 1, 1))
    narrow = IgnoreEntry(resource="table.dev.silver.orders", fields=("table_comment",), reason="narrow")
    wide = IgnoreEntry(resource="silver.*", fields=("*comment",), reason="wide")
    idle = IgnoreEntry(resource="silver.*", fields=("clustering",), reason="idle")
    policy = DriftPolicy(ignores=(long_ago, narrow, wide, idle))
    changed = observed(Column("id", "bigint"), Column("name", "string", comment="x"), comment="y")
    detected = detect(changed, policy=policy)
    report = drift_report(
        Evidence(
            environment="test",
            checked_at=LATER,
            models=[MODEL],
            is_partial=False,
            state=deployment_state(MODEL),
            observed=CatalogState(tables={ORDERS.key: changed}),
            applied={ORDERS.key: MODEL},
            detected=detected,
            unreadable=(),
            unmanaged=(),
            policy=policy,
        )
    )
    assert report.drifted == ()
    assert {(one.finding.field, one.reason) for one in report.ignored} == {
        ("column name comment", "wide"),
        ("table comment", "narrow"),
    }
    assert [(note.reason, note.problem) for note in report.policy_notes] == [
        ("old", "expired on 2026-01-01"),
        ("idle", "matches nothing"),
    ]
