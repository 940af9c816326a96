"""The views that a plan breaks, by their definitions."""

from __future__ import annotations

import pytest

from delta_engine.errors import StatementError
from delta_engine.models import SchemaName
from delta_engine.sql.view_queries import LostRead, lost_reads
from tests.projects.catalog_project import CatalogProject

HOME = SchemaName("dev", "silver")
ORDERS, OLD = "dev.silver.orders", "dev.silver.old"
NOTE = LostRead(ORDERS, "note")
MAYBE = LostRead(ORDERS, "note", is_sure=False)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT note FROM orders", [NOTE]),
        ("SELECT `NOTE` FROM `dev`.`silver`.`ORDERS`", [NOTE]),
        ("SELECT o.note FROM silver.orders AS o JOIN other ON o.id = other.id", [NOTE]),
        ("SELECT note FROM orders JOIN other USING (id)", [MAYBE]),
        ("SELECT other.note FROM orders JOIN other USING (id)", []),
        ("WITH o AS (SELECT * FROM orders WHERE note IS NULL) SELECT id FROM o", [NOTE]),
        ("SELECT id FROM (SELECT id, note FROM orders)", [NOTE]),
        ("SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM other WHERE other.id = orders.note)", [NOTE]),
        ("SELECT id FROM orders UNION ALL SELECT note FROM orders", [NOTE]),
        ("SELECT note FROM gold.orders", []),
        ("SELECT id, 'note' FROM orders", []),
        ("SELECT id FROM old", [LostRead(OLD, None)]),
        ("WITH orders AS (SELECT 1 AS note) SELECT note FROM orders", []),
    ],
)
def test_what_a_view_reads(query: str, expected: list[LostRead]) -> None:
    assert lost_reads(query, HOME, {OLD}, {ORDERS: {"note"}}) == expected


@pytest.mark.parametrize("query", ["", "SELECT FROM WHERE", "DROP TABLE orders", "SELECT (" * 500])
def test_what_is_no_query(query: str) -> None:
    with pytest.raises(ValueError, match="sqlglot does not read it"):
        lost_reads(query, HOME, {OLD}, {ORDERS: {"note"}})


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    catalog_project.catalog.queries = {
        ("silver", "notes"): "SELECT note FROM orders",
        ("silver", "joined"): "SELECT note FROM orders JOIN other USING (id)",
        ("silver", "ids"): "SELECT id FROM orders",
        ("silver", "broken"): "SELECT ((note FROM orders",
        ("silver", "hidden"): None,
        ("others", "elsewhere"): "SELECT note FROM silver.orders",
    }
    return catalog_project


COLUMNS = "columns: [{name: id, type: int}, {name: note, type: string}]"


def test_the_plan_names_the_views_that_it_breaks(project: CatalogProject) -> None:
    project.declare(f"name: orders, {COLUMNS}")
    project.sync()
    assert not [sql for sql in project.catalog.questions if "information_schema.views" in sql]
    project.declare("name: orders, columns: [{name: id, type: int}]")
    shown = project.run("plan --allow drop_column").stderr
    assert "view dev.silver.notes breaks: it reads dev.silver.orders.note, which the plan drops" in shown
    assert (
        "view dev.silver.joined may break: it reads a column of this name, perhaps dev.silver.orders.note"
        in shown
    )
    assert "view dev.silver.broken may break: " in shown
    assert "1 view of the same schemas may break, too: you may not read their definitions" in shown
    assert "dev.silver.ids" not in shown
    assert len([sql for sql in project.catalog.questions if "information_schema.views" in sql]) == 1


def test_renames_break_views_too(project: CatalogProject) -> None:
    project.declare(f"name: orders, {COLUMNS}")
    project.sync()
    project.declare(
        f"name: sales, renamed_from: orders, {COLUMNS.replace('note,', 'words, renamed_from: note,')}"
    )
    shown = project.run("plan").stderr
    assert "view dev.silver.ids breaks: it reads dev.silver.orders, which the plan renames to sales" in shown
    assert "it reads dev.silver.orders.note, which the plan renames to words" in shown


def test_views_that_the_plan_drops_or_changes_as_well_are_not_named(catalog_project: CatalogProject) -> None:
    project, view = (
        catalog_project,
        "{catalog: dev, schema: silver, name: %s, query: 'SELECT %s FROM dev.silver.orders'}",
    )
    views = "views:\n" + "".join(f"  - {view % name}\n" for name in (("kept", "note AS n"), ("gone", "note")))
    project.declare(f"name: orders, {COLUMNS}", schemas=views)
    project.sync()
    project.configure("removed_views: drop")
    changed = f"views:\n  - {view % ('kept', 'id AS n')}\n"
    project.declare("name: orders, columns: [{name: id, type: int}]", schemas=changed)
    planned = project.run("plan --allow drop_column --allow drop_view")
    assert planned.code == 0, planned.stderr
    assert "breaks" not in planned.stderr


def test_views_of_others_are_named_in_all_schemas_of_the_project(catalog_project: CatalogProject) -> None:
    project = catalog_project
    project.catalog.queries = {("others", "elsewhere"): "SELECT note FROM silver.orders"}
    other = "  - {catalog: dev, schema: others, name: other, columns: [{name: id, type: int}]}\n"
    project.declare(f"name: orders, {COLUMNS}", schemas=other)
    project.sync()
    project.declare("name: orders, columns: [{name: id, type: int}]", schemas=other)
    shown = project.run("plan --allow drop_column").stderr
    assert "view dev.others.elsewhere breaks: it reads dev.silver.orders.note, which the plan drops" in shown


def test_views_of_others_are_named_in_a_schema_that_is_declared_without_objects(
    catalog_project: CatalogProject,
) -> None:
    project = catalog_project
    project.catalog.queries = {("others", "elsewhere"): "SELECT note FROM silver.orders"}
    schemas = "schemas:\n  - {catalog: dev, name: others}\n"
    project.declare(f"name: orders, {COLUMNS}", schemas=schemas)
    project.sync()
    project.declare("name: orders, columns: [{name: id, type: int}]", schemas=schemas)
    assert "view dev.others.elsewhere breaks" in project.run("plan --allow drop_column").stderr


def test_a_partial_run_names_views_of_others_in_schemas_that_it_leaves_out(
    catalog_project: CatalogProject,
) -> None:
    project = catalog_project
    project.catalog.queries = {("others", "elsewhere"): "SELECT note FROM silver.orders"}
    other = "  - {catalog: dev, schema: others, name: other, columns: [{name: id, type: int}]}\n"
    views = (
        "views:\n  - {catalog: dev, schema: others, name: ours, query: SELECT id FROM dev.silver.orders}\n"
    )
    project.declare(f"name: orders, {COLUMNS}", schemas=other + views)
    project.sync()
    project.declare("name: orders, columns: [{name: id, type: int}]", schemas=other + views)
    shown = project.run("plan --allow drop_column -t dev.silver.orders").stderr
    assert "view dev.others.elsewhere breaks: it reads dev.silver.orders.note, which the plan drops" in shown
    assert "dev.others.ours" not in shown


def test_a_function_is_dropped_together_with_the_view_that_calls_it(functions: CatalogProject) -> None:
    listed = "functions:\n  - {catalog: dev, schema: silver, name: show, returns: string, body: \"'y'\"}\n"
    view = "views:\n  - {catalog: dev, schema: silver, name: v, query: SELECT dev.silver.show() AS s}\n"
    functions.declare(f"name: orders, {COLUMNS}", schemas=listed + view)
    functions.sync("--allow drop_function")
    functions.configure("removed_functions: drop, removed_views: drop")
    functions.declare(f"name: orders, {COLUMNS}")
    functions.sync("--allow drop_function --allow drop_view")
    assert functions.catalog.statements[-2:] == [
        "DROP VIEW `dev`.`silver`.`v`",
        "DROP FUNCTION `dev`.`silver`.`show`",
    ]


@pytest.fixture
def functions(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project that drops a function."""
    listed = (
        "functions:\n  - {catalog: dev, schema: silver, name: hide, returns: string, body: \"'x'\"}\n"
        "  - {catalog: dev, schema: silver, name: show, returns: string, body: \"'y'\"}\n"
    )
    catalog_project.declare(f"name: orders, {COLUMNS}", schemas=listed)
    catalog_project.sync()
    catalog_project.declare(f"name: orders, {COLUMNS}", schemas=listed.rpartition("  - ")[0])
    catalog_project.configure("removed_functions: drop")
    return catalog_project


def test_a_function_that_a_view_calls_is_not_dropped(functions: CatalogProject) -> None:
    functions.catalog.queries = {
        ("silver", "names"): "SELECT dev.silver.show() AS name FROM orders",
        ("silver", "hidden"): None,
    }
    refused = functions.run("sync --yes --allow drop_function")
    assert refused.code == 3
    assert (
        "function dev.silver.show: it would be dropped, and view dev.silver.names calls it. "
        in refused.stderr
    )
    functions.catalog.queries = {("silver", "names"): "SELECT silver.hide() AS name FROM orders"}
    functions.sync("--allow drop_function")


def test_a_function_is_not_dropped_while_views_cannot_be_read(
    functions: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = functions.catalog.run

    def refusing(sql: str) -> object:
        if "`views`" in sql or ".views" in sql:
            raise StatementError("no", sql=sql, error_class=None)
        return run(sql)

    monkeypatch.setattr(type(functions.catalog), "run", lambda _catalog, sql: refusing(sql))
    refused = functions.run("sync --yes --allow drop_function")
    assert refused.code == 3
    assert "the views that may call it cannot be read: no. " in refused.stderr
