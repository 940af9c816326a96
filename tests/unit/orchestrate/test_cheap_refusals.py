"""What refuses a plan without a question to its tables is told first; the tables are asked only if nothing does."""

from __future__ import annotations

import pytest

from tests.fakes.unity_catalog.policies import Policy
from tests.projects.catalog_project import CatalogProject

ID = "{name: id, type: bigint, nullable: false}"
BEFORE = f"name: orders, columns: [{ID}, {{name: note, type: string}}, {{name: old, type: string}}]"
FILLED = f"name: orders, columns: [{ID}, {{name: note, type: string, nullable: false, using: \"'none'\"}}]"
TIGHTENED = f"name: orders, columns: [{ID}, {{name: note, type: string, nullable: false}}]"
ALLOWED = "--allow backfill_column --allow drop_column"
OF_TABLES = ("DESCRIBE DETAIL", "DESCRIBE HISTORY", "SHOW EFFECTIVE", "count(", "count_if(", "sum(", "AS OF")
"""What the questions about costs, policies and rows contain."""


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project whose table is synced."""
    catalog_project.declare(BEFORE)
    catalog_project.sync()
    return catalog_project


def asked(project: CatalogProject, command: str, code: int = 3) -> list[str]:
    """Return the questions to tables that a command asks."""
    project.catalog.questions.clear()
    result = project.run(command)
    assert result.code == code, result.stdout + result.stderr
    return [
        sql
        for sql in project.catalog.questions
        if any(words in sql for words in OF_TABLES) and "FROM system." not in sql
    ]


@pytest.mark.parametrize("command", ["plan", "sync --yes"])
@pytest.mark.parametrize("model", [FILLED, TIGHTENED])
def test_a_plan_without_consent_asks_its_tables_nothing(
    project: CatalogProject, command: str, model: str
) -> None:
    project.declare(model)
    assert not asked(project, command)
    assert asked(project, f"{command} {ALLOWED}", code=0)


def test_every_cheap_refusal_is_listed(project: CatalogProject) -> None:
    project.declare(FILLED)
    refused = project.run("plan").stderr
    assert "column note: columns (note) would get values in existing rows" in refused
    assert "column old: columns (old) are not in the model and would be dropped" in refused


def test_a_plan_that_policies_refuse_counts_no_rows(project: CatalogProject) -> None:
    project.catalog.policies = [Policy(name="mine", securable="dev")]
    project.declare(FILLED)
    assert any("SHOW EFFECTIVE" in sql for sql in asked(project, f"plan {ALLOWED}"))
    assert "counting rows" not in project.run(f"plan {ALLOWED}").stderr


def test_a_limit_of_rewrites_is_judged_by_costs(project: CatalogProject) -> None:
    run = project.catalog.run
    unknown = "SELECT count(*) AS files"
    object.__setattr__(project.catalog, "run", lambda sql: [] if sql.startswith(unknown) else run(sql))
    project.configure("max_rewrite_bytes: 1")
    project.declare(FILLED)
    assert "max_rewrite_bytes" not in project.run("plan").stderr
    assert "Raise policy.max_rewrite_bytes" in project.run(f"plan {ALLOWED}").stderr


def test_a_default_beside_not_null_is_offered_as_the_value_of_former_rows(project: CatalogProject) -> None:
    run = project.catalog.run
    counts = [{"violations_0": "2"}]
    object.__setattr__(project.catalog, "run", lambda sql: counts if "AS violations_0" in sql else run(sql))
    project.declare(TIGHTENED.replace("nullable: false}]", "nullable: false, default: \"'none'\"}]"))
    refused = " ".join(project.run(f"plan {ALLOWED}").stderr.split())
    assert "NULL in 2 rows: a default fills only rows that are written later." in refused
    assert "(using: \"coalesce(`note`, 'none')\")" in refused
    assert "SET `note` = 'none' WHERE `note` IS NULL" in refused


def test_a_stale_plan_asks_for_no_rows(project: CatalogProject) -> None:
    project.declare(FILLED)
    assert project.run(f"plan {ALLOWED} --out plan.json").code == 0
    project.by_hand("ALTER TABLE dev.silver.orders ALTER COLUMN note COMMENT 'x'")
    questions = asked(project, "apply plan.json --yes")
    assert not [sql for sql in questions if "count(" in sql or "sum(" in sql or "EFFECTIVE" in sql]


@pytest.mark.parametrize("options", ["--yes", "--dry-run --skip-refused"])
def test_equal_refusals_of_an_undo_are_one_with_a_count(project: CatalogProject, options: str) -> None:
    project.configure("removed_tables: drop, allow: [drop_table]")
    tables = [f"name: t{number}, columns: [{ID}]" for number in range(12)]
    project.declare(BEFORE, *tables)
    project.sync()
    project.declare(BEFORE.replace("old, type: string", "old, type: string, comment: Old"))
    project.sync()
    refused = project.run(f"undo {options}").stderr
    assert "12 tables: the run dropped it, or its record was removed. UNDROP TABLE <table> brings" in refused
    assert refused.count("the run dropped it") == 1
