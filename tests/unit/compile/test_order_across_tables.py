"""Which table comes first, what waits for what, and what becomes of those who wait for a failed one."""

import time
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_engine.actions import Align, AlignTable, Create, CreateTable, DropTable, TablePlan
from delta_engine.aspects.check_constraints import CheckAdd
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.aspects.primary_key import PrimaryKeyAdd, PrimaryKeyDrop
from delta_engine.aspects.table_comment import SetSchemaComment, SetTableComment
from delta_engine.aspects.table_names import RenameTable
from delta_engine.compile.compiled_plan import Round, Step
from delta_engine.compile.ordering import in_order
from delta_engine.compile.planner import TablePlanner
from delta_engine.execute.action_runner import ApplyFailedError
from delta_engine.execute.outcomes import AnyOutcome, OutcomeKind, TableOutcome, of_tables
from delta_engine.models import CheckConstraint, Column, ForeignKey, QualifiedName, Schema, SchemaName, Table
from delta_engine.state.states import ABSENT, CatalogState
from delta_engine.validation.validator import PlanValidator
from tests.builders.engines import runner_on
from tests.fakes.planning import compiled, statements_of
from tests.fakes.recording_sql_runner import FailingSqlRunner

ID = Column("id", "bigint", is_nullable=False)
MANY = 5_000
FEW_SECONDS = 30.0
"""Far more than it takes; what is quadratic or recursive takes more, or fails."""


def table(name: str, *parents: str) -> Table:
    """Return a table with a primary key, and a foreign key to each parent."""
    return Table(
        "dev",
        "silver",
        name,
        [ID, *(Column(f"{parent}_id", "bigint") for parent in parents)],
        primary_key=["id"],
        foreign_keys=[ForeignKey([f"{parent}_id"], parent) for parent in parents],
    )


def creation(*models: Table) -> TablePlan:
    return TablePlanner().plan(
        models, CatalogState(tables={model.qualified_name.key: ABSENT for model in models})
    )


def run(plan: TablePlan, text: str = "\0", parallelism: int = 4) -> tuple[list[str], list[TableOutcome]]:
    runner = FailingSqlRunner(text)
    outcomes: list[AnyOutcome] = []
    engine = runner_on(runner, parallelism=parallelism)
    with suppress(ApplyFailedError):
        engine.apply(compiled(plan), outcomes.append)
    return runner.statements, list(of_tables(outcomes))


def steps_of(plan: TablePlan) -> tuple[Step, ...]:
    return compiled(plan).steps


def created(statements: Sequence[str]) -> list[str]:
    return [sql.split("`")[5] for sql in statements if sql.startswith("CREATE TABLE")]


@pytest.mark.parametrize("is_closed", [False, True])
def test_5000_tables_in_a_row_or_in_a_circle(is_closed: bool) -> None:
    models = [table(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(MANY)]
    if is_closed:
        models[0] = table("t0", f"t{MANY - 1}")
    began = time.monotonic()
    assert not list(PlanValidator().model_violations(models))
    statements, outcomes = run(creation(*models))
    assert time.monotonic() - began < FEW_SECONDS
    assert created(statements) == [f"t{n}" for n in range(MANY)]
    late = [sql for sql in statements if sql.startswith("ALTER")]
    assert len(late) == is_closed
    assert sum("FOREIGN KEY" in sql for sql in statements) == MANY - 1 + is_closed
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.CREATED}
    assert sum(outcome.statements for outcome in outcomes) == len(statements)


def test_5000_tables_without_keys_are_fast_as_well() -> None:
    began = time.monotonic()
    statements, _ = run(creation(*(table(f"t{n}") for n in range(MANY))))
    assert len(statements) == MANY
    assert time.monotonic() - began < FEW_SECONDS


@given(st.dictionaries(st.integers(0, 12), st.frozensets(st.integers(0, 12), max_size=4), max_size=12))
def test_every_order_is_valid_and_defers_only_what_is_in_a_circle(graph: dict[int, frozenset[int]]) -> None:
    needs = {
        str(key): frozenset(str(table) for table in needed if table in graph and table != key)
        for key, needed in graph.items()
    }
    order, without = in_order(needs)
    assert sorted(order) == sorted(needs)
    for place, key in enumerate(order):
        assert needs[key] - without[key] <= {*order[:place]}
        assert not without[key] & {*order[:place]}
    if not _has_circle(needs):
        assert not any(without.values())


def _has_circle(needs: dict[str, frozenset[str]]) -> bool:
    left = dict(needs)
    while free := [key for key, needed in left.items() if not needed & left.keys()]:
        for key in free:
            del left[key]
    return bool(left)


def test_a_failed_parent_fails_its_dependants_alone_and_they_say_why() -> None:
    plan = creation(table("a"), table("b", "a"), table("c", "b"), table("d"))
    statements, outcomes = run(plan, "CREATE TABLE `dev`.`silver`.`a`")
    assert created(statements) == ["d"]
    failed = {str(outcome.name): outcome.failure.message for outcome in outcomes if outcome.failure}
    assert failed == {
        "dev.silver.a": "no",
        "dev.silver.b": "it depends on table dev.silver.a, which failed",
        "dev.silver.c": "it depends on table dev.silver.b, which failed",
    }


def test_keys_of_a_circle_wait_for_both_tables() -> None:
    plan = creation(table("a", "b"), table("b", "a"))
    statements, outcomes = run(plan, "CREATE TABLE `dev`.`silver`.`b`")
    assert created(statements) == ["a"]
    (a,) = (outcome for outcome in outcomes if outcome.name.table == "a")
    assert a.kind is OutcomeKind.FAILED
    assert a.statements == 1
    assert a.failure is not None
    assert a.failure.message == "it depends on table dev.silver.b, which failed"


def test_foreign_keys_go_before_everything_and_come_after_everything() -> None:
    key = ForeignKey(["p_id"], "dev.silver.p", ["id"], "fk")
    p, z = QualifiedName("dev", "silver", "p"), QualifiedName("dev", "silver", "z")
    plan = TablePlan(
        (
            AlignTable(p, (PrimaryKeyDrop("pk", ("id",)), PrimaryKeyAdd("pk2", ("id",)))),
            AlignTable(z, (SetTableComment("new", ""), ForeignKeyDrop(key), ForeignKeyAdd(key))),
            DropTable(QualifiedName("dev", "silver", "gone"), 0),
        )
    )
    for parallelism in (1, 4):
        statements, _ = run(plan, parallelism=parallelism)
        words = [" ".join(sql.split()[:5]).replace("`dev`.`silver`.", "") for sql in statements]
        assert words[0] == "ALTER TABLE `z` DROP CONSTRAINT"
        assert words[-2:] == ["ALTER TABLE `z` ADD CONSTRAINT", "DROP TABLE `gone`"]
        assert words.index("ALTER TABLE `p` DROP CONSTRAINT") < words.index("ALTER TABLE `p` ADD CONSTRAINT")
    steps = compiled(plan).steps
    assert statements_of(plan) == run(plan, parallelism=1)[0]
    assert [str(step.name)[-1] for step in steps for _ in step.statements] == ["z", "p", "p", "z", "z", "e"]
    blocked = run(plan, "DROP CONSTRAINT `fk`")[1]
    assert {str(outcome.name): outcome.kind for outcome in blocked} == {
        "dev.silver.p": OutcomeKind.FAILED,
        "dev.silver.z": OutcomeKind.FAILED,
        "dev.silver.gone": OutcomeKind.DROPPED,
    }


def test_a_table_without_keys_is_one_step_whatever_is_done_to_it() -> None:
    checked = Table("dev", "silver", "t", [ID], checks=[CheckConstraint("positive", "id > 0")])
    (step,) = compiled(creation(checked)).steps
    assert [type(statement.actions[0]) for statement in step.statements] == [CreateTable, CheckAdd]


def test_the_script_is_the_same_whatever_the_order_of_the_models() -> None:
    models = [table("a", "c", "b"), table("b", "a"), table("c"), table("d", "d", "a")]
    assert compiled(creation(*models)) == compiled(creation(*reversed(models)))


def test_a_foreign_key_goes_before_its_parent_is_renamed_and_changed() -> None:
    """Whatever the parallelism: its parent's former name is the one that the key has."""
    key = ForeignKey(["p_id"], "dev.silver.former", ["id"], "fk")
    former, p = QualifiedName("dev", "silver", "former"), QualifiedName("dev", "silver", "p")
    z = QualifiedName("dev", "silver", "z")
    drop = PrimaryKeyDrop("pk", ("id",))
    first, second = steps_of(
        TablePlan(
            (
                AlignTable(p, (RenameTable(p, former), drop)),
                AlignTable(z, (ForeignKeyDrop(key),)),
            )
        )
    )
    assert (first.name, second.name) == (z, p)
    assert second.after == (0,)


def test_a_name_is_free_before_another_table_takes_it() -> None:
    a, b = QualifiedName("dev", "silver", "a"), QualifiedName("dev", "silver", "b")
    steps = steps_of(
        TablePlan(
            (
                AlignTable(a, (PrimaryKeyDrop("x", ("id",)), PrimaryKeyAdd("Y", ("id",)))),
                AlignTable(b, (PrimaryKeyDrop("y", ("id",)), PrimaryKeyAdd("X", ("id",)))),
            )
        )
    )
    assert [(str(step.name)[-1], step.after) for step in steps] == [
        ("a", ()),
        ("b", ()),
        ("a", (0, 1)),
        ("b", (0, 1)),
    ]


def test_a_table_is_given_away_when_nobody_comes_to_reference_it_any_more() -> None:
    key = ForeignKey(["p_id"], "dev.silver.p", ["id"], "fk")
    p, z = QualifiedName("dev", "silver", "p"), QualifiedName("dev", "silver", "z")
    given_away = AlignTable(p, (SetTableComment("new", ""), ChangeOwner("bob", "ann")))
    plan = TablePlan(
        (
            given_away,
            AlignTable(z, (ForeignKeyAdd(key),)),
        )
    )
    statements, _ = run(plan)
    assert [sql.split("` ")[-2].split("`")[-1] for sql in statements][-1] == "p"
    assert statements[-1].endswith("OWNER TO `bob`")
    withheld, outcomes = run(plan, "ADD CONSTRAINT")
    assert not any("OWNER TO" in sql for sql in withheld)
    assert {outcome.name.table: outcome.kind for outcome in outcomes} == {
        "p": OutcomeKind.FAILED,
        "z": OutcomeKind.FAILED,
    }
    (alone,) = steps_of(TablePlan((given_away,)))
    assert [statement.actions[0] for statement in alone.statements] == list(given_away.actions)


def test_tables_that_go_do_so_after_the_tables_that_reference_them_and_after_all_others() -> None:
    parent, child = QualifiedName("dev", "silver", "a"), QualifiedName("dev", "silver", "b")
    plan = TablePlan(
        (
            *creation(table("z")).create_tables,
            DropTable(parent, 1, references=(child,)),
            DropTable(child, 1, references=(parent, child)),
        )
    )
    steps = steps_of(plan)
    assert [(str(step.name)[-1], step.after, step.round) for step in steps] == [
        ("z", (), Round.CHANGES),
        ("a", (), Round.DROPS),
        ("b", (1,), Round.DROPS),
    ]
    statements, outcomes = run(plan)
    assert [sql.split("`")[5] for sql in statements] == ["z", "a", "b"]
    assert [outcome.kind for outcome in outcomes][1:] == [OutcomeKind.DROPPED] * 2


def test_a_table_waits_for_its_schema_alone_and_the_schema_s_rights_stay_until_the_end() -> None:
    elsewhere = Table("dev", "gold", "t", [ID])
    plan = TablePlan(
        (
            CreateTable(elsewhere),
            CreateTable(table("t")),
            Create(Schema("dev", "silver")),
            Align(SchemaName("dev", "Silver"), (SetSchemaComment("new", ""), ChangeOwner("bob", "ann"))),
        )
    )
    steps = steps_of(plan)
    assert [(str(step.name), step.after, step.round, len(step.statements)) for step in steps] == [
        ("dev.silver", (), Round.CHANGES, 2),
        ("dev.gold.t", (), Round.CHANGES, 1),
        ("dev.silver.t", (0,), Round.CHANGES, 1),
        ("dev.silver", (), Round.SCHEMA_RIGHTS, 1),
    ]
    statements, outcomes = run(plan, "CREATE SCHEMA")
    assert created(statements) == ["t"]
    failed = {str(outcome.name): outcome.failure.message for outcome in outcomes if outcome.failure}
    assert failed == {"dev.silver.t": "it depends on schema dev.silver, which failed"}
