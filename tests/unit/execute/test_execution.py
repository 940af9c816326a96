"""The action runner and the orchestrator, over recording and failing runners."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.actions import (
    SAFE,
    Align,
    AlignTable,
    Create,
    CreateTable,
    DropTable,
    Phase,
    TablePlan,
)
from delta_engine.aspects.aspect import EntryChange
from delta_engine.aspects.column_comments import ColumnComment, SetColumnComments
from delta_engine.aspects.column_order import MoveColumn
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.grants import GrantPrivileges, RevokePrivileges
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.aspects.primary_key import PrimaryKeyAdd, PrimaryKeyDrop
from delta_engine.aspects.table_comment import SetSchemaComment, SetTableComment
from delta_engine.aspects.table_features import EnableTableFeature
from delta_engine.aspects.table_properties import SetTableProperties
from delta_engine.backends.addressing import PathAddressing
from delta_engine.backends.cancellation import StoppedError
from delta_engine.backends.capabilities import OPEN_SOURCE
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.compile.compiler import compile_plan
from delta_engine.errors import InvalidModelError, RefusalGroup, StatementError, UnsafePlanError
from delta_engine.execute.action_runner import ActionRunner, ApplyFailedError
from delta_engine.execute.outcomes import AnyOutcome, OnOutcome, OutcomeKind, of_schemas
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    Parameter,
    PolicyFilter,
    PolicyScope,
    QualifiedName,
    Schema,
    SchemaName,
    Table,
)
from delta_engine.models.types import AtomicType
from delta_engine.state.function_states import function_state_of
from delta_engine.state.states import ABSENT, TableState
from tests.builders.engines import engine_on, runner_on
from tests.builders.models import ORDERS, WORKED_MODEL, catalog_of, observed, orders
from tests.fakes.fixed_reader import FixedReader
from tests.fakes.planning import compiled, statements_of
from tests.fakes.recorded_catalog import Answer, RecordedRunner
from tests.fakes.recording_sql_runner import FailingSqlRunner, RecordingSqlRunner


def comment_on(name: str, *texts: str) -> AlignTable:
    return AlignTable(
        QualifiedName("dev", "silver", name),
        (SetTableComment(texts[-1], ""), SetColumnComments((ColumnComment("id", texts[0], ""),))),
    )


def run(
    plan: TablePlan, runner: SqlRunner, parallelism: int = 4, on_outcome: OnOutcome = lambda _outcome: None
) -> tuple[AnyOutcome, ...]:
    engine = runner_on(runner, parallelism=parallelism)
    return engine.apply(engine.compile(plan), on_outcome)


def failure(plan: TablePlan, runner: SqlRunner) -> StatementError:
    with pytest.raises(ApplyFailedError) as caught:
        run(plan, runner)
    (outcome,) = caught.value.outcomes
    assert outcome.failure is not None
    return outcome.failure


def test_a_statement_carries_the_actions_of_its_phase() -> None:
    align = comment_on("t", "column", "table")
    (step,) = compiled(TablePlan((align,))).steps
    assert [(statement.phase, statement.actions, statement.hazards) for statement in step.statements] == [
        (Phase.SET_COLUMN_COMMENTS, align.of_type(SetColumnComments), SAFE),
        (Phase.SET_TABLE_COMMENT, align.of_type(SetTableComment), SAFE),
    ]


NO = "The platform says no."
UNSEEN = (
    "the table exists: the plan was applied before, another principal just created it, or {} cannot see it. "
    f"Plan again; if the plan still creates it, ask for BROWSE and SELECT on it. The platform says: {NO}"
)
FAILED_QUESTION = StatementError("no", sql="SELECT", error_class="TABLE_OR_VIEW_ALREADY_EXISTS")


@pytest.mark.parametrize(
    ("condition", "user", "message"),
    [
        ("TABLE_OR_VIEW_ALREADY_EXISTS", [{"current_user()": "ann"}], UNSEEN.format("ann")),
        ("DELTA_TABLE_ALREADY_EXISTS", [], UNSEEN.format("the current user")),
        ("TABLE_OR_VIEW_ALREADY_EXISTS", FAILED_QUESTION, UNSEEN.format("the current user")),
        ("PARSE_SYNTAX_ERROR", [], NO),
    ],
)
def test_a_table_that_is_there_and_was_not_seen(condition: str, user: Answer, message: str) -> None:
    runner = RecordedRunner(
        {}, {"CREATE": StatementError(NO, sql="", error_class=condition), "current_user": user}
    )
    failed = failure(TablePlan((CreateTable(WORKED_MODEL),)), runner)
    assert (str(failed), failed.error_class) == (message, condition)


MASK = Function("dev", "g", "mask", "string", "x", [Parameter("x", "string")])
POLICY = AbacPolicy("p", PolicyScope("schema", "dev.g"), PolicyFilter("dev.g.mask", ["x"]), to=["hr"])


@pytest.mark.parametrize(
    ("model", "condition", "fix"),
    [
        (MASK, "ROUTINE_ALREADY_EXISTS", "GRANT MANAGE ON FUNCTION `dev`.`g`.`mask` TO `ann`"),
        (POLICY, "POLICY_ALREADY_EXISTS", "GRANT MANAGE ON SCHEMA `dev`.`g` TO `ann`"),
    ],
)
def test_another_securable_that_is_there_and_was_not_seen(
    model: Function | AbacPolicy, condition: str, fix: str
) -> None:
    no, user = StatementError(NO, sql="", error_class=condition), [{"current_user()": "ann"}]
    failed = failure(TablePlan((Create(model),)), RecordedRunner({}, {"CREATE": no, "current_user": user}))
    kind = model.qualified_name.kind
    assert str(failed) == (
        f"the {kind} exists: the plan was applied before, another principal just created it, or ann cannot "
        f"see it. Plan again; if the plan still creates it, its owner has to run {fix}. The platform says: {NO}"
    )


@pytest.mark.parametrize(("principal", "is_sent"), [("Ann", False), ("bob", True), (None, True)])
def test_a_replaced_function_is_given_back_to_another_owner_alone(
    principal: str | None, is_sent: bool
) -> None:
    replaced = ReplaceFunction(MASK, replace(function_state_of(MASK), body="y", owner="ann"), ("body",))
    runner = RecordingSqlRunner()
    engine = runner_on(runner)
    engine.apply(TablePlan((Align(MASK.qualified_name, (replaced,)),)), principal=principal)
    assert ("ALTER FUNCTION `dev`.`g`.`mask` OWNER TO `ann`" in runner.statements) is is_sent
    assert runner.statements[0].startswith("CREATE OR REPLACE FUNCTION")


def test_statements_follow_the_phases() -> None:
    plan = TablePlan((comment_on("t", "column", "table"),))
    assert list(compile_plan(plan, PathAddressing(Path("/w")), OPEN_SOURCE).sql()) == [
        "ALTER TABLE delta.`/w/dev/silver/t` ALTER COLUMN `id` COMMENT 'column'",
        "COMMENT ON TABLE delta.`/w/dev/silver/t` IS 'table'",
    ]


def test_a_schema_by_path_needs_no_statement() -> None:
    plan = TablePlan((Create(Schema("dev", "silver")),))
    runner = ActionRunner(RecordingSqlRunner(), PathAddressing(Path("/w")), OPEN_SOURCE)
    (outcome,) = runner.apply(runner.compile(plan))
    assert (str(outcome.name), outcome.kind, outcome.statements) == ("dev.silver", OutcomeKind.CREATED, 0)


def test_one_failure_stops_neither_the_others_nor_goes_unseen() -> None:
    plan = TablePlan(tuple(comment_on(name, name, name) for name in "abc"))
    runner = FailingSqlRunner("IS 'b'")
    with pytest.raises(ApplyFailedError) as caught:
        run(plan, runner)
    error = caught.value
    assert [(str(o.name), o.kind, o.statements) for o in error.outcomes] == [
        ("dev.silver.a", OutcomeKind.CHANGED, 2),
        ("dev.silver.b", OutcomeKind.FAILED, 1),
        ("dev.silver.c", OutcomeKind.CHANGED, 2),
    ]
    assert error.is_applied_in_part
    assert str(error) == (
        "1 of 3 tables failed:\n"
        "table dev.silver.b: no (after 1 statement, in: COMMENT ON TABLE `dev`.`silver`.`b` IS 'b')"
    )


@pytest.mark.parametrize(
    ("text", "schemas"), [("CREATE TABLE", ()), ("CREATE SCHEMA", (Create(Schema("dev", "silver")),))]
)
def test_a_run_in_which_nothing_worked_is_not_partial(text: str, schemas: tuple[Create[Schema], ...]) -> None:
    runner = FailingSqlRunner(text)
    with pytest.raises(ApplyFailedError) as caught:
        run(
            TablePlan(
                (
                    CreateTable(orders()),
                    *schemas,
                )
            ),
            runner,
        )
    assert runner.statements == []  # a schema that cannot be created stops its tables
    assert not caught.value.is_applied_in_part


def test_a_key_that_cannot_be_dropped_says_what_may_not_have_been_seen() -> None:
    align = AlignTable(ORDERS, (PrimaryKeyDrop("pk", ("id",)), PrimaryKeyAdd("pk_2", ("id",))))
    failed = failure(TablePlan((align,)), FailingSqlRunner("DROP CONSTRAINT"))
    assert failed.message == (
        "no A foreign key that was not visible when the catalog was read may reference primary key pk: of a table in "
        "another catalog, or of a table that the current user may not see; SELECT constraint_catalog, "
        "constraint_schema, "
        "constraint_name FROM system.information_schema.referential_constraints WHERE unique_constraint_name = 'pk' "
        "shows the visible ones of all catalogs. Drop it first, or keep the primary key as it is."
    )
    with pytest.raises(ApplyFailedError, match=r"dev.silver.orders: no \(after 1 statement"):
        run(TablePlan((align,)), FailingSqlRunner("ADD CONSTRAINT"))


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
    failed = failure(TablePlan((align,)), Failing())
    assert ("A foreign key that was not visible" in failed.message) is is_told


HANDED_OVER = Align(
    SchemaName("dev", "silver"),
    (
        ChangeOwner("bob", "ann"),
        RevokePrivileges("ann", ("SELECT",)),
        GrantPrivileges("jo", ("USE SCHEMA",)),
        SetSchemaComment("new", ""),
    ),
)


def test_schemas_are_given_away_after_all_tables() -> None:
    runner, outcomes = RecordingSqlRunner(), list[AnyOutcome]()
    plan = TablePlan(
        (
            CreateTable(orders()),
            HANDED_OVER,
            DropTable(QualifiedName("dev", "silver", "old"), 0),
        )
    )
    run(plan, runner, on_outcome=outcomes.append)
    assert [sql.split(" (")[0] for sql in runner.statements] == [
        "COMMENT ON SCHEMA `dev`.`silver` IS 'new'",
        "GRANT USE SCHEMA ON SCHEMA `dev`.`silver` TO `jo`",
        "CREATE TABLE `dev`.`silver`.`orders`",
        "DROP TABLE `dev`.`silver`.`old`",
        "REVOKE SELECT ON SCHEMA `dev`.`silver` FROM `ann`",
        "ALTER SCHEMA `dev`.`silver` OWNER TO `bob`",
    ]
    (schema,) = of_schemas(outcomes)
    assert (schema.kind, schema.statements) == (OutcomeKind.CHANGED, 4)
    assert statements_of(plan) == runner.statements


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
def test_a_schema_whose_owner_cannot_be_set_fails(refused: str, statements: int, message: str) -> None:
    runner = FailingSqlRunner(refused)
    plan = TablePlan(
        (
            CreateTable(orders()),
            HANDED_OVER,
        )
    )
    with pytest.raises(ApplyFailedError, match=r"^1 of 1 schemas") as caught:
        run(plan, runner)
    assert f"schema dev.silver: {message}" in str(caught.value)
    assert len(runner.statements) == statements


def test_the_rights_on_a_schema_stay_if_a_function_fails() -> None:
    runner = FailingSqlRunner("CREATE FUNCTION")
    hide = Function("dev", "gov", "hide", "string", "'***'")
    with pytest.raises(ApplyFailedError) as caught:
        run(TablePlan((Create(hide), HANDED_OVER)), runner)
    reason = "its rights change after all functions and policies, and function dev.gov.hide is not done"
    assert reason in str(caught.value)
    assert [sql for sql in runner.statements if "OWNER TO" in sql or "REVOKE" in sql] == []


def test_tables_are_applied_at_the_same_time() -> None:
    meeting = threading.Barrier(4, timeout=10)

    class MeetingRunner(RecordingSqlRunner):
        def run(self, sql: str) -> Sequence[Row]:
            meeting.wait()  # passes only when four statements are under way at once
            return super().run(sql)

    creates = tuple(CreateTable(orders(name=f"t{n}")) for n in range(4))
    assert len(run(TablePlan(creates), MeetingRunner(), parallelism=4)) == 4


def test_a_check_that_raises_ends_the_apply_before_the_statement() -> None:
    class LockLost(Exception):
        pass

    runner, checks = RecordingSqlRunner(), list[int]()

    def check() -> None:
        checks.append(len(runner.statements))
        if len(checks) == 3:
            raise LockLost

    plan = compiled(TablePlan(tuple(comment_on(name, name, name) for name in "ab")))
    with pytest.raises(LockLost):
        runner_on(runner).apply(plan, check=check)
    assert checks == [0, 1, 2]
    assert len(runner.statements) == 2


def test_an_interrupt_starts_no_further_tables() -> None:
    runner = RecordingSqlRunner()
    plan = TablePlan(tuple(CreateTable(orders(name=f"t{n}")) for n in range(200)))

    def interrupt(_outcome: AnyOutcome) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, runner, 1, interrupt)
    assert len(runner.statements) < 200


@pytest.mark.parametrize(
    ("model", "state", "error"),
    [
        (Table("dev", "silver", "orders", []), ABSENT, InvalidModelError),
        (orders(Column("b", "int")), observed(), UnsafePlanError),
    ],
)
def test_sync_refuses_before_anything_runs(model: Table, state: TableState, error: type[Exception]) -> None:
    runner = RecordingSqlRunner()
    engine = engine_on(FixedReader(catalog_of([model], state)), runner)
    with pytest.raises(error):
        engine.sync_tables([model])
    assert runner.statements == []


def test_planning_collects_all_refusals_of_models() -> None:
    bad = [Table("dev", "silver", name, []) for name in "ab"]
    engine = engine_on(FixedReader(catalog_of(bad, ABSENT, ABSENT)), RecordingSqlRunner())
    with pytest.raises(RefusalGroup) as caught:
        engine.plan_tables(bad)
    assert len(caught.value.refusals) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: AlignTable(ORDERS, ()),
        lambda: SetTableComment("a", "a"),
        lambda: SetColumnComments(()),
        lambda: SetColumnComments((ColumnComment("id", "a", "a"),)),
        lambda: SetTableProperties(()),
        lambda: EntryChange("k", "a", "a"),
        lambda: EnableTableFeature("k", "a", "a"),
        lambda: ColumnTypeChange("id", AtomicType("int"), AtomicType("int")),
        lambda: ColumnRename("ID", "id"),
        lambda: MoveColumn("a", None, None),
    ],
)
def test_an_action_that_would_do_nothing_cannot_be_made(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"already|at least one"):
        make()


def test_the_parts_of_an_alignment_are_its_phases() -> None:
    align = comment_on("t", "column", "table")
    assert align.in_phase(Phase.SET_TABLE_COMMENT) == (SetTableComment("table", ""),)
    assert align.in_phase(Phase.ADD_COLUMNS) == ()
