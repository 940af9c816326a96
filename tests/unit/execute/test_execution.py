"""Executors, the action runner and the orchestrator, over recording and failing runners."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from delta_engine.actions import (
    AlignSchema,
    AlignTable,
    CreateSchema,
    CreateTable,
    DropTable,
    Phase,
    TablePlan,
)
from delta_engine.aspects.column_comments import ColumnComment, SetColumnComments
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.grants import GrantPrivileges, RevokePrivileges
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.aspects.primary_key import PrimaryKeyAdd, PrimaryKeyDrop
from delta_engine.aspects.schema_comment import SetSchemaComment
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.table_features import EnableTableFeature
from delta_engine.aspects.table_properties import PropertyChange, SetTableProperties
from delta_engine.backends.addressing import CatalogAddressing, PathAddressing
from delta_engine.backends.cancellation import StoppedError
from delta_engine.backends.capabilities import DATABRICKS, OPEN_SOURCE
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import InvalidModelError, RefusalGroup, StatementError, UnsafePlanError
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError, OutcomeKind, TableOutcome
from delta_engine.execute.align_executor import AlignExecutor
from delta_engine.execute.create_executor import CreateExecutor
from delta_engine.execute.ddl import DeltaDDL, InterruptedStatementsError
from delta_engine.execute.recording_sql_runner import RecordingSqlRunner
from delta_engine.execute.schema_executor import SchemaOutcome
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.models.types import AtomicType
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.state.states import ABSENT, TableState
from tests.builders import ORDERS, WORKED_MODEL, WORKED_STATE, catalog_of, observed, orders
from tests.fixed_reader import FixedReader
from tests.recorded_catalog import RecordedRunner


class FailingSqlRunner(RecordingSqlRunner):
    """Refuses every statement that holds a given text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def run(self, sql: str) -> Sequence[Row]:
        if self._text in sql:
            raise StatementError("no", sql=sql, error_class="SOME_CLASS")
        return super().run(sql)


def comment_on(name: str, *texts: str) -> AlignTable:
    """Return an alignment that sets a column's comment and then the table's."""
    return AlignTable(
        QualifiedName("dev", "silver", name),
        (
            SetTableComment(texts[-1], ""),
            SetColumnComments((ColumnComment("id", texts[0], ""),)),
        ),
    )


def run(plan: TablePlan, runner: RecordingSqlRunner, parallelism: int = 4) -> tuple[TableOutcome, ...]:
    """Apply a plan on Databricks' terms."""
    return ActionRunner(runner, CatalogAddressing(), DATABRICKS, parallelism=parallelism).apply(plan)


def test_ddl_runs_statements_and_passes_over_none() -> None:
    runner = RecordingSqlRunner()
    assert DeltaDDL(runner)._run(None) == 0
    assert DeltaDDL(runner).run(["a", None, "b"]) == 2
    assert runner.statements == ["a", "b"]


def test_ddl_says_where_it_was_interrupted() -> None:
    with pytest.raises(InterruptedStatementsError) as caught:
        DeltaDDL(FailingSqlRunner("c")).run(["a", "b", "c", "d"])
    error = caught.value
    assert (error.statements_done, error.sql, error.error_class) == (2, "c", "SOME_CLASS")


def test_the_create_executor_takes_one_statement() -> None:
    runner = RecordingSqlRunner()
    executor = CreateExecutor(DeltaDDL(runner), CatalogAddressing(), DATABRICKS)
    assert executor.apply(CreateTable(WORKED_MODEL)) == 1
    assert len(runner.statements) == 1


@pytest.mark.parametrize(
    ("condition", "user", "message"),
    [
        (
            "TABLE_OR_VIEW_ALREADY_EXISTS",
            [{"current_user()": "ann"}],
            "it was absent or not visible to ann when the catalog was read, and it is there. Ask for BROWSE and "
            "SELECT on it, or run again if somebody has just made it. The platform says no.",
        ),
        (
            "DELTA_TABLE_ALREADY_EXISTS",
            [],
            "it was absent or not visible to whoever runs this when the catalog was read, and it is there. Ask for "
            "BROWSE and SELECT on it, or run again if somebody has just made it. The platform says no.",
        ),
        ("PARSE_SYNTAX_ERROR", [], "The platform says no."),
    ],
)
def test_a_table_that_is_there_and_was_not_seen(condition: str, user: list[Row], message: str) -> None:
    refused = StatementError("The platform says no.", sql="CREATE", error_class=condition)
    runner = RecordedRunner({}, {"CREATE": refused, "current_user": user})
    with pytest.raises(InterruptedStatementsError) as caught:
        CreateExecutor(DeltaDDL(runner), CatalogAddressing(), DATABRICKS).apply(CreateTable(WORKED_MODEL))
    assert (str(caught.value), caught.value.error_class) == (message, condition)


def test_who_runs_it_is_not_worth_another_error() -> None:
    refused = StatementError("no", sql="CREATE", error_class="TABLE_OR_VIEW_ALREADY_EXISTS")
    runner = RecordedRunner({}, {"CREATE": refused, "current_user": refused})
    with pytest.raises(InterruptedStatementsError, match="not visible to whoever runs this"):
        CreateExecutor(DeltaDDL(runner), CatalogAddressing(), DATABRICKS).apply(CreateTable(WORKED_MODEL))


def test_the_align_executor_follows_the_phases() -> None:
    runner = RecordingSqlRunner()
    executor = AlignExecutor(DeltaDDL(runner), PathAddressing(Path("/w")), OPEN_SOURCE)
    assert executor.apply(comment_on("t", "column", "table")) == 2
    assert runner.statements == [
        "ALTER TABLE delta.`/w/dev/silver/t` ALTER COLUMN `id` COMMENT 'column'",
        "COMMENT ON TABLE delta.`/w/dev/silver/t` IS 'table'",
    ]


def test_schemas_come_before_tables() -> None:
    runner = RecordingSqlRunner()
    plan = TablePlan((CreateTable(orders()),), (), (CreateSchema("Dev", "silver"),))
    run(plan, runner)
    assert [sql.split(" (")[0] for sql in runner.statements] == [
        "CREATE SCHEMA `dev`.`silver`",
        "CREATE TABLE `dev`.`silver`.`orders`",
    ]


def test_a_schema_by_path_needs_no_statement() -> None:
    assert PathAddressing(Path("/w")).create_schema("dev", "silver") is None


def test_one_failure_stops_neither_the_others_nor_goes_unseen() -> None:
    plan = TablePlan(align_tables=tuple(comment_on(name, name, name) for name in "abc"))
    runner = FailingSqlRunner("IS 'b'")
    with pytest.raises(ApplyFailedError) as caught:
        run(plan, runner)
    error = caught.value
    assert [(str(o.table), o.kind, o.statements) for o in error.outcomes] == [
        ("dev.silver.a", OutcomeKind.CHANGED, 2),
        ("dev.silver.b", OutcomeKind.FAILED, 1),
        ("dev.silver.c", OutcomeKind.CHANGED, 2),
    ]
    assert error.is_partial
    assert str(error) == (
        "1 of 3 tables failed:\n"
        "table dev.silver.b: no (after 1 statements, in: COMMENT ON TABLE `dev`.`silver`.`b` IS 'b')"
    )


def test_a_run_in_which_nothing_worked_is_not_partial() -> None:
    with pytest.raises(ApplyFailedError) as caught:
        run(TablePlan((CreateTable(orders()),)), FailingSqlRunner("CREATE"))
    assert not caught.value.is_partial


def test_a_schema_that_cannot_be_created_stops_its_tables() -> None:
    runner = FailingSqlRunner("CREATE SCHEMA")
    plan = TablePlan((CreateTable(orders()),), (), (CreateSchema("dev", "silver"),))
    with pytest.raises(ApplyFailedError) as caught:
        run(plan, runner)
    assert runner.statements == []
    assert not caught.value.is_partial


def test_a_key_that_cannot_be_dropped_says_what_may_not_have_been_seen() -> None:
    align = AlignTable(ORDERS, (PrimaryKeyDrop("pk", ("id",)), PrimaryKeyAdd("pk_2", ("id",))))
    with pytest.raises(ApplyFailedError) as caught:
        run(TablePlan(align_tables=(align,)), FailingSqlRunner("DROP CONSTRAINT"))
    (outcome,) = caught.value.outcomes
    assert outcome.failure is not None
    assert outcome.failure.message == (
        "no If it is that a foreign key references primary key pk: none was seen when the catalog was read. It belongs "
        "to a table of another catalog, or to one that whoever runs this may not see; SELECT constraint_catalog, "
        "constraint_schema, constraint_name FROM system.information_schema.referential_constraints "
        "WHERE unique_constraint_name = 'pk' shows those of all catalogs that you may see. Drop it first, or leave the "
        "primary key as it is."
    )
    with pytest.raises(ApplyFailedError, match=r"dev.silver.orders: no \(after 1 statements"):
        run(TablePlan(align_tables=(align,)), FailingSqlRunner("ADD CONSTRAINT"))


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        (StatementError("no", sql="DROP", error_class=None), True),
        (StatementError("gone", sql="DROP", error_class=None, is_outcome_unknown=True), False),
        (StoppedError("DROP"), False),
    ],
)
def test_only_a_refused_drop_says_what_may_not_have_been_seen(error: StatementError, is_told: bool) -> None:
    class Failing:
        def run(self, sql: str) -> Sequence[Row]:
            if "DROP CONSTRAINT" in sql:
                error.sql = sql
                raise error
            return ()

    align = AlignTable(ORDERS, (PrimaryKeyDrop("pk", ("id",)),))
    with pytest.raises(InterruptedStatementsError) as caught:
        AlignExecutor(DeltaDDL(Failing()), CatalogAddressing(), DATABRICKS).apply(align)
    assert ("a foreign key references" in str(caught.value)) is is_told


GIVEN_AWAY = AlignSchema(
    "dev",
    "silver",
    (
        ChangeOwner("bob", "ann"),
        RevokePrivileges("ann", ("SELECT",)),
        GrantPrivileges("jo", ("USE SCHEMA",)),
        SetSchemaComment("new", ""),
    ),
)


def test_schemas_are_given_away_after_all_tables() -> None:
    runner, told = RecordingSqlRunner(), list[SchemaOutcome]()
    plan = TablePlan(
        (CreateTable(orders()),),
        align_schemas=(GIVEN_AWAY,),
        drop_tables=(DropTable(QualifiedName("dev", "silver", "old"), 0),),
    )
    engine = ActionRunner(runner, CatalogAddressing(), DATABRICKS)
    engine.apply(plan, on_schema=told.append)
    assert [sql.split(" (")[0] for sql in runner.statements] == [
        "COMMENT ON SCHEMA `dev`.`silver` IS 'new'",
        "GRANT USE SCHEMA ON SCHEMA `dev`.`silver` TO `jo`",
        "CREATE TABLE `dev`.`silver`.`orders`",
        "DROP TABLE `dev`.`silver`.`old`",
        "REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `ann`",
        "ALTER SCHEMA `dev`.`silver` OWNER TO `bob`",
    ]
    assert [(one.kind, one.statements) for one in told] == [(OutcomeKind.CHANGED, 4)]
    assert [line.sql for line in engine.script(plan)] == runner.statements


@pytest.mark.parametrize(
    ("refused", "statements", "message"),
    [
        (
            "CREATE TABLE",
            2,
            "its owner changes and its privileges are revoked after all tables, and table dev.silver.orders is not "
            "done (after 2 statements)",
        ),
        ("OWNER TO", 4, "no (after 3 statements, in: ALTER SCHEMA `dev`.`silver` OWNER TO `bob`)"),
    ],
)
def test_a_schema_that_is_not_given_away_is_said_to_have_failed(
    refused: str, statements: int, message: str
) -> None:
    runner = FailingSqlRunner(refused)
    plan = TablePlan((CreateTable(orders()),), align_schemas=(GIVEN_AWAY,))
    with pytest.raises(ApplyFailedError, match=r"^1 of 1 schemas") as caught:
        run(plan, runner)
    assert f"schema dev.silver: {message}" in str(caught.value)
    assert len(runner.statements) == statements


def test_tables_are_applied_at_the_same_time() -> None:
    meeting = threading.Barrier(4, timeout=10)

    class MeetingRunner(RecordingSqlRunner):
        def run(self, sql: str) -> Sequence[Row]:
            meeting.wait()  # passes only when four statements are under way at once
            return super().run(sql)

    creates = tuple(CreateTable(orders(name=f"t{n}")) for n in range(4))
    assert len(run(TablePlan(creates), MeetingRunner(), parallelism=4)) == 4


def test_an_interrupt_starts_no_further_tables() -> None:
    runner = RecordingSqlRunner()
    plan = TablePlan(tuple(CreateTable(orders(name=f"t{n}")) for n in range(200)))

    def interrupt(_outcome: TableOutcome) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ActionRunner(runner, CatalogAddressing(), DATABRICKS, parallelism=1).apply(plan, interrupt)
    assert len(runner.statements) < 200


def test_sync_reads_plans_and_applies() -> None:
    runner = RecordingSqlRunner()
    engine = Orchestrator(
        reader=FixedReader(catalog_of([WORKED_MODEL], WORKED_STATE)),
        action_runner=ActionRunner(runner, CatalogAddressing(), DATABRICKS),
    )
    (outcome,) = engine.sync_tables([WORKED_MODEL])
    assert (outcome.kind, outcome.statements) == (OutcomeKind.CHANGED, 6)
    assert len(runner.statements) == 6


@pytest.mark.parametrize(
    ("model", "state", "error"),
    [
        (Table("dev", "silver", "orders", []), ABSENT, InvalidModelError),
        (orders(Column("b", "int")), observed(), UnsafePlanError),
    ],
)
def test_sync_refuses_before_anything_runs(model: Table, state: TableState, error: type[Exception]) -> None:
    runner = RecordingSqlRunner()
    engine = Orchestrator(
        reader=FixedReader(catalog_of([model], state)),
        action_runner=ActionRunner(runner, CatalogAddressing(), DATABRICKS),
    )
    with pytest.raises(error):
        engine.sync_tables([model])
    assert runner.statements == []


def test_planning_collects_all_refusals_of_models() -> None:
    bad = [Table("dev", "silver", name, []) for name in "ab"]
    engine = Orchestrator(
        reader=FixedReader(catalog_of(bad, ABSENT, ABSENT)),
        action_runner=ActionRunner(RecordingSqlRunner(), CatalogAddressing(), DATABRICKS),
    )
    with pytest.raises(RefusalGroup) as caught:
        engine.plan_tables(bad)
    assert len(caught.value.refusals) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: AlignTable(ORDERS, ()),
        lambda: SetTableComment("a", "a"),
        lambda: SetColumnComments(()),
        lambda: ColumnComment("id", "a", "a"),
        lambda: SetTableProperties(()),
        lambda: PropertyChange("k", "a", "a"),
        lambda: EnableTableFeature("k", "a", "a"),
        lambda: ColumnTypeChange("id", AtomicType("int"), AtomicType("int")),
    ],
)
def test_an_action_that_would_do_nothing_cannot_be_made(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"already|at least one"):
        make()


def test_the_parts_of_an_alignment_are_its_phases() -> None:
    align = comment_on("t", "column", "table")
    assert align.in_phase(Phase.SET_TABLE_COMMENT) == (SetTableComment("table", ""),)
    assert align.of_type(SetTableComment) == (SetTableComment("table", ""),)
    assert align.in_phase(Phase.ADD_COLUMNS) == ()
