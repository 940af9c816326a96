"""Plans on their way through a file: what applies them, and what refuses them."""

import json
import os
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from delta_engine.backends.capabilities import in_catalogs
from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from tests.builders.models import observed
from tests.projects.commandline import Result
from tests.projects.plan_files import PlanProject

AGAIN = "Write it again and review it: `delta-engine -e local plan --out plan.json`."


@pytest.fixture
def project(plan_project: PlanProject) -> PlanProject:
    plan_project.declare(a="first", b="first")
    return plan_project


@pytest.fixture
def synced(project: PlanProject) -> PlanProject:
    """Two tables were applied, and one of them is to be changed."""
    project.sync()
    project.declare(a="second", b="first")
    return project


def test_a_plan_is_applied_as_it_is_in_the_file(project: PlanProject) -> None:
    assert project.plan().stderr == (
        "note: the plan is in plan.json: `delta-engine -e local apply plan.json`\n"
    )
    assert project.platform.statements == []
    statements = [statement.sql for statement in project.read().statements]

    applied = project.apply()
    assert (applied.code, applied.stdout.splitlines()[-1]) == (
        0,
        "applied: 2 tables, 2 statements; 2 verified",
    )
    assert project.platform.statements == statements
    assert project.run("plan", "--detailed-exitcode").code == 0


def test_tables_are_asked_in_order(project: PlanProject) -> None:
    """Whatever order Python gives to sets of their names."""
    project.declare(a="first", b="first", c="first", d="first", e="first", f="first", g="first")
    project.sync()
    project.declare(a="second", b="second", c="second", d="second", e="second", f="second", g="second")
    project.versions.asked.clear()
    project.plan()
    assert project.versions.asked
    for asked in project.versions.asked:
        assert asked == [f"dev.silver.{name}" for name in "abcdefg"]


def test_only_tables_whose_read_shows_no_id_are_asked_for_it(project: PlanProject) -> None:
    project.declare(a="first", b="first")
    project.sync()
    read = project.platform.states["dev.silver.a"]
    shown = replace(read, audit=replace(read.audit, table_id="the id of a"))
    project.platform.states["dev.silver.a"] = shown
    project.declare(a="second", b="second")
    project.versions.asked.clear()
    project.plan()
    assert project.versions.asked[-1] == ["dev.silver.b"]


def test_a_plan_that_was_applied_says_so(project: PlanProject) -> None:
    project.plan()
    project.apply()
    project.platform.statements.clear()

    again = project.apply()
    assert (again.code, again.stderr, project.platform.statements) == (0, "", [])
    assert again.stdout.startswith("local: this plan was already applied, by ")
    assert again.stdout.endswith(" UTC: nothing was run\n")
    project.declare(a="first", b="second")
    project.sync()
    assert project.apply().stdout == again.stdout  # also when others have come after it
    as_json = project.apply("--json")
    assert json.loads(as_json.stdout)["counts"]["statements"] == 0
    assert "already applied" in as_json.stderr


def test_of_two_applies_at_once_only_one_runs(synced: PlanProject) -> None:
    config = synced.folder / "conf" / "local.yml"
    impatient = "{path: state}, lock: {timeout_seconds: 0}"
    config.write_text(config.read_text().replace("{path: state}", impatient))
    synced.plan()
    run, others = synced.platform.run, list[Result]()

    def applying(sql: str) -> list[Row]:
        if sql.startswith("COMMENT ON TABLE") and not others:
            others.append(synced.apply())
        return list(run(sql))

    synced.platform.run = applying  # type: ignore[method-assign]  # for one run
    assert synced.apply().code == 0
    synced.platform.run = run  # type: ignore[method-assign]
    (other,) = others
    assert (other.code, "the environment is locked by ana" in other.stderr) == (4, True)
    assert len(synced.platform.statements) == 1
    assert "already applied" in synced.apply().stdout
    assert len(synced.platform.statements) == 1


def test_an_empty_plan_is_applied_once_too(project: PlanProject) -> None:
    project.sync()
    project.plan()
    first, second = project.apply(), project.apply()
    assert (first.code, first.stdout) == (0, "local: no changes (2 models)\n")
    assert (second.code, "already applied" in second.stdout) == (0, True)
    assert project.platform.statements == []


def test_json(project: PlanProject) -> None:
    document = json.loads(project.plan("--json").stdout)
    assert document["format"] == "delta-engine/plan"
    summary = json.loads(project.apply("--json").stdout)
    assert (summary["counts"]["created"], summary["counts"]["statements"]) == (2, 2)


Fault = Callable[[PlanProject], object]


@pytest.mark.parametrize(
    ("fault", "moves"),
    [
        (
            lambda project: project.platform.states.update({"dev.silver.a": observed(comment="by hand")}),
            ["table dev.silver.a was changed", "dev.silver.a, table comment: was 'first', is now 'by hand'"],
        ),
        (
            lambda project: project.platform.states.pop("dev.silver.a"),
            [
                "table dev.silver.a is gone",
                "dev.silver.a, no longer planned: ~ table comment: 'first' → 'second'",
                "dev.silver.a, planned now: create table",
            ],
        ),
        (
            lambda project: project.versions.recreate("dev.silver.a"),
            [
                "table dev.silver.a was dropped and created again "
                "(id id of dev.silver.a, now another id of dev.silver.a)"
            ],
        ),
        (
            lambda project: project.declare(a="third", b="first"),
            [
                "the model of dev.silver.a was changed",
                "dev.silver.a, table comment: would become 'third', not 'second'",
            ],
        ),
        (
            lambda project: project.declare(b="first"),
            [
                "the model of dev.silver.a is gone",
                "dev.silver.a, no longer planned: ~ table comment: 'first' → 'second'",
            ],
        ),
        (
            lambda project: project.configure("{create_schemas: true, tags: full, allow: [drop_column]}"),
            ['policy.allow: was [], is now ["drop_column"]', 'policy.tags: was "additive", is now "full"'],
        ),
        (
            lambda project: project.run("state", "rm", "table.dev.silver.a", "--yes"),
            ["the record of dev.silver.a is gone"],
        ),
    ],
    ids=lambda value: value[0].split(" (")[0] if isinstance(value, list) else "",
)
def test_what_moved_since_is_named(synced: PlanProject, fault: Fault, moves: list[str]) -> None:
    synced.plan()
    fault(synced)
    refused = synced.apply()
    assert (refused.code, synced.platform.statements) == (3, [])
    *lines, more = refused.stderr.splitlines()
    assert more == "more: delta-engine explain stale-plan"
    assert lines[0] == "refused: plan.json: the plan is stale. Since it was made:"
    assert [line.strip() for line in lines[1:-1]] == moves
    assert lines[-1] == f"Nothing was run. {AGAIN}"


def test_a_table_that_has_appeared(project: PlanProject) -> None:
    project.plan()
    project.platform.states["dev.silver.a"] = observed(comment="first")
    refused = project.apply()
    assert refused.code == 3
    assert "\n  table dev.silver.a is new\n" in refused.stderr


def test_a_table_that_was_to_be_dropped_and_is_gone(synced: PlanProject) -> None:
    synced.configure("{removed_tables: drop, allow: [drop_table]}")
    synced.declare(a="first")
    synced.plan()
    assert [statement.sql for statement in synced.read().statements] == ["DROP TABLE `dev`.`silver`.`b`"]
    dropped = synced.platform.states.pop("dev.silver.b")
    assert "\n  table dev.silver.b is gone\n" in synced.apply().stderr
    synced.platform.states["dev.silver.b"] = dropped
    synced.versions.recreate("dev.silver.b")
    assert "\n  dev.silver.b, no longer planned: drop table\n" in synced.apply().stderr


def test_drops_are_applied(synced: PlanProject) -> None:
    synced.configure("{removed_tables: drop, allow: [drop_table]}")
    synced.declare(a="first")
    synced.plan()
    assert synced.apply().code == 0
    assert set(synced.platform.states) == {"dev.silver.a"}


def test_rows_are_looked_at_again(synced: PlanProject) -> None:
    """What a plan endangers is judged by what is there when it is applied."""
    synced.declare(a="first", b="first", is_nullable=False)
    synced.plan()
    synced.platform.violations = 7
    refused = synced.apply()
    assert (refused.code, synced.platform.statements) == (3, [])
    assert "7 " in refused.stderr


def test_options_are_part_of_the_file(synced: PlanProject) -> None:
    synced.declare(a="second", b="second")
    synced.plan("-t", "a", "--allow", "drop_column:silver.a", "--no-preflight")
    assert synced.read().policy.allow == ("drop_column:silver.a",)
    assert synced.apply().code == 0
    assert [sql for sql in synced.platform.statements if "`b`" in sql] == []

    synced.plan("-t", "b", "--allow", "drop_column:silver.a", "--no-preflight")
    synced.platform.states["dev.silver.b"] = observed(comment="by hand")
    assert (
        "`delta-engine -e local plan -t b --allow drop_column:silver.a --no-preflight --out plan.json`"
        in synced.apply().stderr
    )


def test_a_refused_plan_is_not_written(synced: PlanProject) -> None:
    synced.configure("{removed_tables: drop}")
    synced.declare(a="first")
    refused = synced.run("plan", "--out", "plan.json", "--markdown")
    assert refused.code == 3
    assert "**Refused: nothing will be applied.**" in refused.stdout
    assert not synced.file.exists()


def test_secrets_never_get_into_a_file(project: PlanProject) -> None:
    project.declare(a="first", further=", properties: {my.token: s3cr3t}")
    refused = project.run("plan", "--out", "plan.json")
    assert refused.code == 3
    assert "property 'my.token' cannot be managed" in refused.stderr
    assert not project.file.exists()


def test_another_statement_is_refused_before_anything_runs(synced: PlanProject) -> None:
    synced.plan()
    file = synced.read()
    (statement,) = file.statements
    other = msgspec.structs.replace(statement, sql="DROP TABLE `dev`.`silver`.`b`")
    synced.forge(msgspec.structs.replace(file, statements=(other,)))
    refused = synced.apply()
    assert (refused.code, synced.platform.statements) == (3, [])
    assert (
        "the engine would run other statements now: statement 1 is, in the file: DROP TABLE" in refused.stderr
    )


def test_a_failed_apply_is_not_taken_for_an_applied_plan(synced: PlanProject) -> None:
    synced.declare(a="second", b="second")
    synced.plan()
    synced.platform.failing = "b"
    assert synced.apply().code == 5
    synced.platform.failing = None
    synced.platform.statements.clear()
    stale = synced.apply()
    assert (stale.code, synced.platform.statements) == (3, [])
    assert "the plan is stale: an apply of it by " in stale.stderr
    assert " did not get through, and what it did is kept. Since it was made:\n" in stale.stderr
    assert "\n  table dev.silver.a was changed\n" in stale.stderr
    synced.plan()
    assert synced.apply().code == 0
    assert len(synced.platform.statements) == 1


def test_a_killed_apply_names_what_it_had_done(synced: PlanProject) -> None:
    synced.declare(a="second", b="second")
    synced.plan()
    synced.kill("`b`", "apply", "plan.json", "--yes")
    stale = synced.apply()
    assert stale.code == 3
    assert "the plan is stale: an apply of it by " in stale.stderr
    assert "\n  table dev.silver.a was changed\n" in stale.stderr
    assert "\n  the record of dev.silver.a was changed\n" in stale.stderr
    assert "\n  the record of dev.silver.b was changed\n" in stale.stderr
    assert AGAIN in stale.stderr

    synced.plan()
    assert synced.apply().code == 0
    assert synced.run("plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["apply"], "Missing argument 'FILE'"),
        (
            ["apply", "none.json"],
            "refused: none.json: the plan file cannot be read: No such file or directory.",
        ),
        (["apply", "conf"], "refused: conf: the plan file cannot be read: Is a directory."),
        (["plan", "--json", "--markdown"], "Choose one"),
        (["plan", "--out", "conf"], "refused: conf: the plan file cannot be written: Is a directory."),
        (["plan", "--out", ""], "refused: .: the plan file cannot be written: Is a directory."),
        (
            ["plan", "--out", "conf/local.yml"],
            "refused: conf/local.yml: there is a file already, and it is no plan file. Name another file with --out.",
        ),
    ],
)
def test_wrong_use(project: PlanProject, arguments: list[str], message: str) -> None:
    result = project.run(*arguments)
    assert result.code == 3
    assert message in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def test_a_pipe_stays_one(project: PlanProject) -> None:
    os.mkfifo(project.file)
    refused = project.run("plan", "--out", "plan.json")
    assert refused.code == 3
    assert "plan.json: there is a file already, and it is no plan file." in refused.stderr
    assert project.file.is_fifo()


def test_a_link_leads_to_the_plan_file(project: PlanProject) -> None:
    target = project.folder / "kept" / "plan.json"
    project.file.symlink_to(target)
    project.plan()
    project.plan()
    assert project.file.is_symlink()
    assert target.is_file()
    assert project.apply().code == 0


def test_another_environment(project: PlanProject) -> None:
    project.configure(environment="prod")
    project.plan()
    refused = project.apply(environment="prod")
    assert refused.code == 3
    assert refused.stderr == (
        "refused: plan.json: the plan is for the environment 'local', not for 'prod'. Apply it with "
        "`delta-engine -e local apply plan.json`, or make a plan for prod.\n"
        "more: delta-engine explain unusable-plan-file\n"
    )


def test_a_run_that_verified_nothing_says_why(project: PlanProject) -> None:
    project.platform.second_look_error = StatementError(
        "java.lang.NoSuchFieldError: UNITY", sql="DESCRIBE", error_class=None
    )
    project.plan()
    applied = project.apply()
    assert (applied.code, applied.stdout.splitlines()[-1]) == (
        0,
        "applied: 2 tables, 2 statements; not verified: the second read after the apply failed: "
        "java.lang.NoSuchFieldError: UNITY",
    )


def test_a_run_whose_changes_do_not_show_yet_says_so(synced: PlanProject) -> None:
    synced.platform.shows = False
    synced.plan()
    applied = synced.apply()
    assert applied.stdout.splitlines()[-1] == (
        "applied: 1 table, 1 statement; not verified: immediately after the apply, the catalog did not show all "
        "of it yet"
    )


def test_what_the_opened_catalog_refuses_is_refused_in_the_plan(synced: PlanProject) -> None:
    models = synced.folder / "conf" / "models" / "tables.yml"
    models.write_text(models.read_text().replace("{name: id,", "{name: key, renamed_from: id,"))
    assert synced.plan().code == 0
    synced.capabilities = in_catalogs({"dev": "io.unitycatalog.spark.UCSingleCatalog"})
    refused = synced.run("plan")
    assert refused.code == 3
    assert "table dev.silver.a, column key: it would be renamed, which the backend" in refused.stderr
    assert "open-source Unity Catalog does not rename columns yet" in refused.stderr
