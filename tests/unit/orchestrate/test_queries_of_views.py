"""What plans say of queries of views before anything runs: the platform analyses those whose tables do not change."""

from __future__ import annotations

import pytest

from tests.builders.viewed_project import NEW_COLUMN, TABLE, Models, write_viewed_models
from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import Result

REMOVES = "removed_tables: drop, removed_views: drop"
NEW_VIEW = """\
  - catalog: ${{catalog}}
    schema: gold
    name: latest
    columns: [{{name: id}}]
    query: {query}
"""
FROM = "FROM ${catalog}.silver.orders"
LOCATION = "conf/models/viewed.yml:2: view dev.gold.latest"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    """A project whose table exists."""
    catalog_project.configure(REMOVES)
    declare(catalog_project, Models(views=""))
    catalog_project.sync()
    catalog_project.by_hand(
        "CREATE TABLE dev.others.rates (currency string, rate int) USING DELTA",
        "CREATE VIEW dev.others.evolving WITH SCHEMA EVOLUTION AS SELECT * FROM dev.silver.orders",
    )
    return catalog_project


def declare(project: CatalogProject, models: Models) -> None:
    write_viewed_models(project.models.parent, models)


def plan(project: CatalogProject, query: str, table: str = TABLE, *more: str) -> Result:
    """Plan a new view with a query."""
    views = "".join(("views:\n", NEW_VIEW.format(query=query), *more))
    declare(project, Models(table=table, views=views))
    return project.run("plan")


def described(project: CatalogProject) -> list[str]:
    return [sql for sql in project.catalog.questions if sql.startswith("DESCRIBE QUERY")]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT id FROM ${catalog}.silver.ordes",
            "its query cannot run: there is no table or view dev.silver.ordes",
        ),
        ("SELECT nope AS id FROM ${catalog}.others.rates", "its query cannot run: Column 'nope'"),
        (f"SELECT ${{catalog}}.silver.f(id) AS id {FROM}", "its query cannot run: there is no function"),
        (
            "SELECT * FROM ${catalog}.others.rates",
            "it documents column 'id', which its query does not return",
        ),
        (
            "SELECT *, rate AS id, id AS rate FROM ${catalog}.others.rates JOIN ${catalog}.silver.orders",
            "its query returns column 'rate' twice",
        ),
    ],
)
def test_a_query_that_the_platform_does_not_take_is_refused_before_anything_runs(
    project: CatalogProject, query: str, reason: str
) -> None:
    ran = len(project.catalog.statements)
    refused = plan(project, query)
    assert refused.code == 3, refused.stdout
    text = " ".join(refused.stderr.split())
    assert f"{LOCATION}: {reason}" in text
    assert len(described(project)) == 1
    synced = project.run("sync --yes")
    assert synced.code == 3
    assert len(project.catalog.statements) == ran


def test_a_query_that_the_platform_takes_costs_one_question_and_no_more_than_once(
    project: CatalogProject,
) -> None:
    assert plan(project, f"SELECT id {FROM}").code == 0
    assert described(project) == ["DESCRIBE QUERY SELECT id FROM dev.silver.orders"]
    project.sync()
    asked = len(described(project))
    assert project.run("plan --detailed-exitcode").code == 0
    assert len(described(project)) == asked
    declare(project, Models(views="views:\n" + NEW_VIEW.format(query=f"SELECT amount AS id {FROM}")))
    assert project.run("plan").code == 0
    assert len(described(project)) == asked + 1


@pytest.mark.parametrize(
    "text",
    [
        f"\ufeffSELECT\r\n\tid\r\n\r\n{FROM}\r\n",
        f"-- first\n\n\tSELECT id {FROM} -- the last; one\n;\n/* end */\n",
        f"SELECT id, '{'x' * 1_000_000}' AS text {FROM};\n\n\n",
        f"SELECT id, 'a;\t\r\n-- b' AS `odd ``name` {FROM}",
    ],
)
def test_odd_texts_of_queries_are_set_once_and_are_no_drift(project: CatalogProject, text: str) -> None:
    views = "views:\n" + NEW_VIEW.format(query="").replace("query:", "query_file: views/latest.sql")
    declare(project, Models(views=views))
    (project.models.parent / "views" / "latest.sql").write_bytes(text.encode())
    project.sync()
    planned = project.run("plan --detailed-exitcode")
    assert planned.code == 0, planned.stdout + planned.stderr
    assert project.drift() == {}


@pytest.mark.parametrize(
    ("query", "table", "more"),
    [
        (f"SELECT discount AS id {FROM}", TABLE + NEW_COLUMN, ()),
        (
            "SELECT id FROM ${catalog}.gold.new",
            TABLE,
            ("  - {catalog: dev, schema: gold, name: new, query: SELECT id FROM dev.silver.orders}\n",),
        ),
        ("SELECT id FROM ${catalog}.silver.items", TABLE + TABLE[7:].replace("orders", "items"), ()),
    ],
)
def test_a_query_of_what_the_plan_changes_is_not_asked_for(
    project: CatalogProject, query: str, table: str, more: tuple[str, ...]
) -> None:
    planned = plan(project, query, table, *more)
    assert planned.code == 0, planned.stderr
    assert not [sql for sql in described(project) if "orders" not in sql]
    project.sync()


def test_a_view_of_others_that_the_plan_may_change_is_a_warning(project: CatalogProject) -> None:
    """It evolves with the table, so that the query is good after the plan."""
    planned = plan(project, "SELECT discount AS id FROM ${catalog}.others.evolving", TABLE + NEW_COLUMN)
    assert planned.code == 0, planned.stderr
    warning = "note: view dev.gold.latest: its query may fail: Column 'discount'"
    assert warning in " ".join(planned.stderr.split())
    project.sync()


def test_a_platform_that_does_not_answer_is_a_warning(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.catalog.refuses_analysis = "PERMISSION_DENIED"
    planned = plan(project, f"SELECT id {FROM}")
    assert planned.code == 0, planned.stderr
    assert "view dev.gold.latest: its query could not be analysed: " in " ".join(planned.stderr.split())


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (TABLE.replace("orders", "items"), "it reads dev.silver.orders, which the plan drops"),
        (
            TABLE.replace("name: orders", "name: items\n    renamed_from: orders"),
            "it reads dev.silver.orders, which the plan renames to dev.silver.items",
        ),
    ],
)
def test_a_new_query_of_what_the_plan_drops_is_refused(
    project: CatalogProject, table: str, reason: str
) -> None:
    refused = plan(project, f"SELECT id {FROM}", table)
    assert refused.code == 3, refused.stdout
    assert f"{LOCATION}: {reason}" in " ".join(refused.stderr.split())
