"""Plan files after changes to other tables: only what a plan touches makes it stale."""

from dataclasses import replace
from datetime import timedelta
from shutil import rmtree

import pytest

from delta_engine.state.audits import Audit
from tests.projects.commandline import Result
from tests.projects.plan_files import NOON, PlanProject

STALE = "refused: plan.json: the plan is stale. Since it was made:"
MORE = "more: delta-engine explain stale-plan"


@pytest.fixture
def project(plan_project: PlanProject) -> PlanProject:
    plan_project.declare(a="first", b="first")
    return plan_project


@pytest.fixture
def planned(project: PlanProject) -> PlanProject:
    """Two tables were applied, and a plan file changes one of them."""
    project.sync()
    project.declare(a="second", b="first")
    project.plan()
    return project


def kill_sync_of(project: PlanProject, table: str) -> None:
    """Kill a sync of one table at its first statement."""
    project.kill(f"`{table}`", "sync", "-t", table, "--yes")


def assert_applied(project: PlanProject) -> None:
    """Apply the file; require that its statements ran, and no others."""
    project.platform.statements.clear()
    reviewed = [statement.sql for statement in project.read().statements]
    applied = project.apply()
    assert (applied.code, project.platform.statements) == (0, reviewed), applied.stderr
    assert "this plan was already applied" in project.apply().stdout


def moves_in(refused: Result) -> list[str]:
    assert (refused.code, STALE in refused.stderr) == (3, True), refused.stderr
    lines = refused.stderr.partition(f"{STALE}\n")[2].splitlines()
    return [line.strip() for line in lines[: lines.index(MORE) - 1]]


def test_an_apply_of_another_model_leaves_a_plan_of_one_table_valid(project: PlanProject) -> None:
    project.sync()
    project.declare(a="second", b="second")
    project.plan("-t", "a")
    assert project.run("sync", "-t", "b", "--yes").code == 0
    assert_applied(project)


def test_a_table_of_another_checkout_leaves_a_plan_valid(planned: PlanProject) -> None:
    planned.declare(a="first", b="first", c="new")
    planned.sync()
    planned.declare(a="second", b="first")
    assert_applied(planned)


def test_a_first_plan_stays_valid_after_the_first_apply_of_another_table(project: PlanProject) -> None:
    project.plan("-t", "a")
    assert project.run("sync", "-t", "b", "--yes").code == 0
    assert_applied(project)


def test_a_killed_run_on_another_table_leaves_a_plan_valid(project: PlanProject) -> None:
    project.sync()
    project.declare(a="second", b="second")
    project.plan("-t", "a")
    kill_sync_of(project, "b")
    assert_applied(project)


def test_models_of_other_tables_may_move_without_a_statement(planned: PlanProject) -> None:
    planned.declare(a="second")  # policy.removed_tables keeps the other one
    assert_applied(planned)


def test_another_model_that_was_applied_meanwhile_is_not_reverted(planned: PlanProject) -> None:
    planned.declare(a="first", b="second")
    planned.sync()
    planned.declare(a="second", b="first")
    assert moves_in(planned.apply()) == ["dev.silver.b, planned now: ~ table comment: 'second' → 'first'"]
    assert planned.platform.statements == []


def test_a_change_elsewhere_that_the_plan_has_now_is_named(planned: PlanProject) -> None:
    planned.declare(a="second", b="second")
    assert moves_in(planned.apply()) == ["dev.silver.b, planned now: ~ table comment: 'first' → 'second'"]


def test_a_table_elsewhere_that_the_plan_creates_now_is_named(planned: PlanProject) -> None:
    planned.declare(a="second", b="first", c="new")
    assert moves_in(planned.apply()) == ["dev.silver.c, planned now: create table"]


def test_all_moves_are_named_by_table(planned: PlanProject) -> None:
    planned.declare(a="third", b="second")
    assert moves_in(planned.apply()) == [
        "the model of dev.silver.a was changed",
        "dev.silver.a, table comment: would become 'third', not 'second'",
        "dev.silver.b, planned now: ~ table comment: 'first' → 'second'",
    ]


def test_a_killed_run_on_a_touched_table_makes_a_plan_stale(planned: PlanProject) -> None:
    kill_sync_of(planned, "a")
    assert moves_in(planned.apply()) == ["the record of dev.silver.a was changed"]


def test_drift_in_another_part_of_a_touched_table_makes_a_plan_stale(planned: PlanProject) -> None:
    states = planned.platform.states
    states["dev.silver.a"] = replace(states["dev.silver.a"], tags={"theirs": "1"})
    assert moves_in(planned.apply()) == ["table dev.silver.a was changed"]


def test_a_model_that_takes_an_unmanaged_part_makes_a_plan_stale(planned: PlanProject) -> None:
    """The statements stay the same, and the apply would record the part as the engine's."""
    states = planned.platform.states
    states["dev.silver.a"] = replace(states["dev.silver.a"], tags={"theirs": "1"})
    planned.plan()
    planned.declare(a="second", b="first", further=", tags: {theirs: '1'}")
    states["dev.silver.b"] = replace(states["dev.silver.b"], tags={"theirs": "1"})
    assert moves_in(planned.apply()) == ["the model of dev.silver.a was changed"]


def test_a_narrower_policy_makes_a_plan_stale_that_needs_no_consent(project: PlanProject) -> None:
    project.configure("{create_schemas: true, allow: [drop_column]}")
    project.sync()
    project.declare(a="second", b="first")
    project.plan()
    project.configure()
    assert moves_in(project.apply()) == ['policy.allow: was ["drop_column"], is now []']


def test_a_record_that_was_forgotten_makes_a_plan_stale(planned: PlanProject) -> None:
    assert planned.run("state", "rm", "table.dev.silver.a", "--yes").code == 0
    assert moves_in(planned.apply()) == ["the record of dev.silver.a is gone"]


def test_an_apply_that_was_taken_back_makes_a_plan_stale(planned: PlanProject) -> None:
    """Otherwise a plan file could be applied twice, once the deployment state has forgotten it."""
    for comment in ("third", "first"):
        planned.declare(a=comment, b="first")
        planned.sync()
    planned.declare(a="second", b="first")
    assert moves_in(planned.apply()) == ["the record of dev.silver.a was changed"]


def test_another_deployment_state_makes_a_plan_stale(planned: PlanProject) -> None:
    rmtree(planned.folder / "state")
    gone = moves_in(planned.apply())[0]
    assert gone.startswith("the deployment state was exchanged: its id was ")
    assert gone.endswith(", is now absent")


REFERENCING = """\
tables:
  - {catalog: dev, schema: silver, name: p, columns: [{name: id, type: bigint, nullable: false}], primary_key: [id]}
  - {catalog: dev, schema: silver, name: a, comment: COMMENT, columns: [{name: id, type: bigint}],
     foreign_keys: [{columns: [id], references: p}]}
  - {catalog: dev, schema: silver, name: b, columns: [{name: id, type: bigint}]}
"""


@pytest.mark.parametrize(
    ("changed", "replaced", "is_stale"), [("a", "p", True), ("p", "a", True), ("a", "b", False)]
)
def test_a_table_that_a_key_connects_counts(
    project: PlanProject, changed: str, replaced: str, is_stale: bool
) -> None:
    models = project.folder / "conf" / "models" / "tables.yml"
    models.write_text(REFERENCING)
    project.sync()
    states = project.platform.states
    for key, state in states.items():
        states[key] = replace(state, audit=Audit(created_at=NOON - timedelta(days=1)))
    models.write_text(REFERENCING.replace(f"name: {changed},", f"name: {changed}, tags: {{k: v}},"))
    project.plan()
    project.versions.recreate(f"dev.silver.{replaced}")
    if is_stale:
        (move,) = moves_in(project.apply())
        assert move.startswith(f"table dev.silver.{replaced} was dropped and created again (created ")
    else:
        assert_applied(project)


def test_a_change_by_hand_elsewhere_leaves_a_plan_valid_unless_it_would_be_undone(
    planned: PlanProject,
) -> None:
    states = planned.platform.states
    state = states["dev.silver.b"]
    states["dev.silver.b"] = replace(state, table_comment="by hand")
    assert moves_in(planned.apply()) == ["dev.silver.b, planned now: ~ table comment: 'by hand' → 'first'"]
    states["dev.silver.b"] = replace(state, tags={"theirs": "1"})
    assert_applied(planned)
