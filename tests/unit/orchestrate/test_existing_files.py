"""An external table that was dropped leaves its files: the next sync takes them, or is refused with the difference."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from delta_engine.errors import StatementError
from tests.projects.catalog_project import CatalogProject

LOCATION = "s3://bucket/orders"
TABLE = "`dev`.`silver`.`orders`"
ID = "columns: [{name: id, type: bigint, nullable: false}]"
COLUMNS = "columns: [{name: id, type: bigint, nullable: false}, {name: amount, type: int, comment: in euros}]"
PROPERTIES = (
    "properties: {kept: for a year}, checks: {positive: amount > 0}, cluster_by: [id], comment: Orders"
)
RIGHTS = "primary_key: [id], grants: {readers: [SELECT]}"
ORDERS = f"name: orders, location: {LOCATION}, {COLUMNS}, {PROPERTIES}, {RIGHTS}"
REGISTERED = f"CREATE TABLE {TABLE}\nUSING delta\nLOCATION '{LOCATION}'"
QUESTION = f"DESCRIBE TABLE EXTENDED delta.`{LOCATION}` AS JSON"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    """Return a project whose external table was dropped by hand."""
    catalog_project.declare(ORDERS)
    catalog_project.sync()
    catalog_project.by_hand(f"DROP TABLE {TABLE}")
    catalog_project.catalog.statements.clear()
    catalog_project.catalog.questions.clear()
    return catalog_project


def recommended(project: CatalogProject) -> str:
    """Return the text of the first recommendation of a drift report."""
    text: str = json.loads(project.run("drift --json").stdout)["recommendations"][0]["text"]
    return text


def forget(project: CatalogProject) -> None:
    """Remove the record of the table, so that its model is a new one."""
    done = project.run("state rm table.dev.silver.orders --yes")
    assert done.code == 0, done.stderr


def refused(project: CatalogProject) -> str:
    """Return the refusal of a sync, which has run no statement."""
    done = project.run("sync --yes")
    assert done.code == 3, done.stdout
    assert project.catalog.statements == []
    return " ".join(done.stderr.split())


def test_a_revert_takes_the_files_of_a_dropped_table(project: CatalogProject) -> None:
    report = project.run("drift").stdout
    assert "Create it again, with the files at its location" in report
    done = project.run("drift --revert --yes")
    assert done.code == 0, done.stderr
    assert f"+ dev.silver.orders  adopts the Delta table at {LOCATION}, with its rows" in done.stdout
    assert project.catalog.statements[0] == REGISTERED
    assert [sql.split(" ")[0:4] for sql in project.catalog.statements[1:]] == [
        ["ALTER", "TABLE", TABLE, "ADD"],
        ["GRANT", "SELECT", "ON", "TABLE"],
    ]
    assert project.drift() == {}
    assert not project.plan()["has_changes"]


@pytest.mark.parametrize("knows_json", [True, False])
def test_a_new_model_takes_the_files_at_its_location(project: CatalogProject, knows_json: bool) -> None:
    project.catalog.knows_json = knows_json
    forget(project)
    (table,) = project.plan()["tables"]
    assert (table["change"], table["takes_files_at"]) == ("create", LOCATION)
    project.sync()
    assert project.catalog.statements[0] == REGISTERED
    assert not project.plan()["has_changes"]


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        ("type: int,", "type: bigint,", "column amount type is int, the model has bigint"),
        ("in euros}", "in cents}", "column amount comment is 'in euros', the model has 'in cents'"),
        ("amount > 0", "amount > 1", "check positive is ( amount > 0 ), the model has amount > 1"),
        ("for a year", "for a day", "property kept is 'for a year', the model has 'for a day'"),
        ("cluster_by: [id]", "cluster_by: [amount]", "clustering is (id), the model has (amount)"),
        ("comment: Orders", "comment: All", "table comment is 'Orders', the model has 'All'"),
        (", nullable: false", "", "column id nullability is NOT NULL, the model has NULL"),
        ("in euros}]", "in euros}, {name: extra, type: int}]", "column extra is absent, the model has int"),
        (
            ", {name: amount, type: int, comment: in euros}]",
            "]",
            "column amount is int 'in euros', the model has none",
        ),
    ],
)
def test_files_that_differ_from_the_model_are_refused(
    project: CatalogProject, before: str, after: str, difference: str
) -> None:
    model = ORDERS.replace("primary_key: [id], ", "")
    if "name: amount" in before:
        model = model.replace("checks: {positive: amount > 0}, ", "")
    forget(project)
    project.declare(model.replace(before, after))
    refusal = refused(project)
    assert f"a Delta table lies at its location {LOCATION}, and it differs: " in refusal
    assert difference in refusal
    assert (
        "Declare the table as it exists there, and change it with a later sync. Or move the files away."
        in refusal
    )


@pytest.mark.parametrize(
    ("protection", "named"),
    [
        ("row_filter: {function: dev.silver.mine, columns: [id]}", "a row filter"),
        ("tags: {pii: yes}", "tags, which policies may depend on"),
    ],
)
def test_files_of_a_protected_table_are_not_taken(
    project: CatalogProject, protection: str, named: str
) -> None:
    forget(project)
    files = project.catalog.files[LOCATION]
    project.catalog.files[LOCATION] = replace(files, checks=(), table_properties={"kept": "for a year"})
    project.declare(f"{ORDERS.replace('checks: {positive: amount > 0}, ', '')}, {protection}")
    refusal = refused(project)
    assert f"and the model has {named}: the rows would be visible until it is set" in refusal
    assert f"on its schema: CREATE TABLE {TABLE} USING delta LOCATION '{LOCATION}'. Then sync" in refusal


def test_only_missing_tables_with_a_location_cost_a_statement(project: CatalogProject) -> None:
    project.declare(ORDERS, "name: plain, columns: [{name: id, type: bigint}]")
    project.plan()
    assert [question for question in project.catalog.questions if "delta.`" in question] == [QUESTION]
    project.run("drift --revert --yes")
    project.catalog.questions.clear()
    project.plan()
    assert [question for question in project.catalog.questions if "delta.`" in question] == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            StatementError("no READ FILES", sql="", error_class="INSUFFICIENT_PERMISSIONS"),
            "no READ FILES. If",
        ),
        (StatementError("not now", sql="", error_class="TEMPORARILY_UNAVAILABLE"), "not now. If"),
        (ConnectionResetError("lost"), "lost. If"),
    ],
)
def test_a_location_that_cannot_be_read_is_named(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    run = project.catalog.run

    def refusing(sql: str) -> object:
        if "delta.`" in sql:
            raise error
        return run(sql)

    monkeypatch.setattr(project.catalog, "run", refusing)
    shown = project.run("plan").stderr
    assert recommended(project) == (
        "Create the deleted tables again, with the files at their locations, if there are any: "
        "the locations cannot be read"
    )
    project.declare(f"{ORDERS}, tags: {{domain: sales}}")
    message = refused(project)
    assert "cannot be read, and the model has tags, which policies may depend on" in message
    assert message.partition(" Ask for READ FILES")[0].endswith(f"{reason.partition('.')[0]}.")
    assert f"dev.silver.orders: its location {LOCATION} cannot be read: {reason}" in " ".join(shown.split())
    is_forbidden = isinstance(error, StatementError) and error.error_class == "INSUFFICIENT_PERMISSIONS"
    assert ("Ask for READ FILES on the external location." in " ".join(shown.split())) is is_forbidden


def test_an_empty_location_is_a_new_table(project: CatalogProject) -> None:
    project.catalog.files.clear()
    advice = recommended(project)
    assert advice == (
        "Create the deleted tables again, without their data, because no Delta table lies at their locations"
    )
    done = project.run("drift --revert --yes")
    assert done.code == 0, done.stderr
    assert project.catalog.statements[0].startswith(f"CREATE TABLE {TABLE} (\n")
    assert "takes the Delta table" not in done.stdout


def test_recommendations_count_tables_with_and_without_data(project: CatalogProject) -> None:
    plain = "name: plain, columns: [{name: id, type: bigint}]"
    project.declare(ORDERS, plain, f"name: empty, location: 's3://bucket/empty', {ID}")
    project.run("drift --revert --yes")
    project.sync()
    project.by_hand(*(f"DROP TABLE `dev`.`silver`.`{table}`" for table in ("orders", "plain", "empty")))
    del project.catalog.files["s3://bucket/empty"]
    assert recommended(project) == (
        "Create the deleted tables again, 1 with the files at their locations; 1 without their data; "
        "1 without their data, because no Delta table lies at their locations"
    )


def test_an_empty_description_refuses_the_table(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = project.catalog.run
    monkeypatch.setattr(project.catalog, "run", lambda sql: () if "delta.`" in sql else run(sql))
    refusal = refused(project)
    assert (
        "table dev.silver.orders: the platform returned an empty description. Run the command again."
        in refusal
    )


def test_foreign_keys_between_registered_tables_come_after_their_primary_keys(
    project: CatalogProject,
) -> None:
    parent = f"name: customers, location: 's3://bucket/customers', {ID}, primary_key: [id]"
    key = "foreign_keys: [{columns: [id], references: customers}]"
    models = (parent, f"name: a_child, location: 's3://bucket/child', {ID}, {key}")
    project.declare(*models)
    project.sync("--allow drop_table")
    project.by_hand("DROP TABLE `dev`.`silver`.`a_child`", "DROP TABLE `dev`.`silver`.`customers`")
    project.catalog.statements.clear()
    assert project.run("drift --revert --yes").code == 0
    assert not project.plan()["has_changes"]
    statements = project.catalog.statements
    assert sum(sql.startswith("CREATE TABLE") for sql in statements) == 2
    first, second = (sql for sql in statements if " ADD CONSTRAINT " in sql)
    assert "PRIMARY KEY" in first
    assert "FOREIGN KEY" in second
