"""Drift of columns that models rename, or that others renamed to what is there already: none of it is undone unseen."""

from __future__ import annotations

import json

import pytest

from tests.projects.catalog_project import CatalogProject

TABLE = "`dev`.`silver`.`orders`"
KEY = "table.dev.silver.orders"
MAPPED = "properties: {delta.columnMapping.mode: name}"


def orders(*columns: str) -> str:
    return f"name: orders, columns: [{{name: id, type: bigint}}, {', '.join(columns)}], {MAPPED}"


def names(project: CatalogProject) -> list[str]:
    return [column.name for column in project.catalog.tables["dev.silver.orders"].state.columns]


@pytest.mark.parametrize(
    ("rest", "statement", "field"),
    [
        ("comment: ours", "ALTER COLUMN a COMMENT 'theirs'", "column b comment"),
        ("mask: dev.silver.f", "ALTER COLUMN a SET MASK `dev`.`silver`.`g`", "column b mask"),
        ("nullable: false", "ALTER COLUMN a DROP NOT NULL", "column b nullability"),
        ("comment: ours", "DROP COLUMN a", "column b"),
    ],
)
def test_drift_of_a_column_that_the_model_renames_is_undone_drift(
    project: CatalogProject, rest: str, statement: str, field: str
) -> None:
    project.declare(orders(f"{{name: a, type: int, {rest}}}"))
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} {statement}")
    project.declare(orders(f"{{name: b, renamed_from: a, type: int, {rest}}}"))
    project.configure("drift_from: low")
    refused = project.run("sync --yes")
    assert (refused.code, "a sync would revert that" in refused.stderr) == (3, True)
    marked = [
        change["subject"]
        for action in project.plan()["tables"][0]["actions"]
        for change in action["changes"]
        if "undoes_drift" in change
    ]
    assert marked == [field]


@pytest.mark.parametrize(
    ("before", "by_hand", "after"),
    [
        ("{name: a, type: int}", "a TO theirs", "{name: b, renamed_from: a, type: int}"),
        (
            "{name: s, type: 'struct<a: int>'}",
            "s.a TO theirs",
            "{name: s, type: 'struct<b: int>', renamed_fields: {b: a}}",
        ),
    ],
    ids=["column", "field"],
)
def test_what_the_model_and_others_rename_differently_keeps_its_data(
    project: CatalogProject, before: str, by_hand: str, after: str
) -> None:
    project.declare(orders(before))
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN {by_hand}")
    project.declare(orders(after))
    refused = project.run("sync --yes --allow drop_column")
    assert refused.code == 3
    assert "theirs' outside the engine" in refused.stderr


def test_a_renamed_column_whose_former_name_exists_again_is_renamed(project: CatalogProject) -> None:
    project.declare(orders("{name: amount, type: int}"))
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN amount TO total")
    project.by_hand(f"ALTER TABLE {TABLE} ADD COLUMNS (amount INT)")  # a job that merges schemas
    assert ("column_renamed", "column amount") in project.drift()[KEY]
    assert project.run("sync --yes --allow drop_column").code == 3
    project.run("drift --revert --yes --allow drop_column")
    assert names(project) == ["id", "total", "amount"]


def test_columns_that_move_up_by_a_name_keep_their_data(project: CatalogProject) -> None:
    project.declare(orders("{name: a, type: int}", "{name: b, type: int}"))
    project.sync()
    for renamed in ("b TO c", "a TO b"):
        project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN {renamed}")
    assert {*project.drift()[KEY]} == {("column_renamed", "column a"), ("column_renamed", "column b")}
    assert project.run("sync --yes --allow drop_column").code == 3
    accepted = project.run("drift --accept --yes")
    assert accepted.code == 0, accepted.stderr
    project.sync()
    assert project.drift() == {}
    assert names(project) == ["id", "b", "c"]


def test_an_ignored_rename_stays_one_when_the_model_takes_another(project: CatalogProject) -> None:
    project.declare(orders("{name: a, type: int}", "{name: b, type: int}"))
    project.sync()
    for renamed in ("a TO x", "b TO y"):
        project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN {renamed}")
    entry = "{resource: orders, fields: [column a], reason: Known}"
    (project.config.parent / "drift-policy.yml").write_text(f"ignore_drift: [{entry}]")
    project.declare(orders("{name: a, type: int}", "{name: y, type: int}"))
    project.sync()
    assert project.drift() == {}
    assert "x" in names(project)


def test_an_ignored_replacement_stays_one_when_other_drift_is_undone(project: CatalogProject) -> None:
    project.declare(orders("{name: a, type: int}") + ", comment: ours")
    project.sync()
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    create = f"CREATE TABLE {TABLE} (`id` BIGINT, `a` INT) USING DELTA {mapped}"
    project.by_hand(f"DROP TABLE {TABLE}", create)
    policy = project.config.parent / "drift-policy.yml"
    policy.write_text("ignore_drift: [{resource: orders, fields: [table_replaced], reason: Known}]")
    project.sync()
    policy.unlink()
    assert project.drift() == {KEY: [("table_replaced", "table")]}


def test_an_unreadable_table_is_a_finding(project: CatalogProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.declare(orders("{name: a, type: int}"))
    project.sync()
    run = project.catalog.run

    def unreadable(sql: str) -> object:
        rows = run(sql)
        if "orders" not in sql or "AS JSON" not in sql:
            return rows
        return [
            {key: str(value).replace('"int"', '"interval"') for key, value in row.items()} for row in rows
        ]

    monkeypatch.setattr(project.catalog, "run", unreadable)
    (resource,) = json.loads(project.run("drift --json").stdout)["drifted"]
    assert [finding["kind"] for finding in resource["findings"]] == ["table_unreadable"]


@pytest.mark.parametrize(
    ("column", "name", "new"),
    [("{name: a, type: int}", "a", "n"), ("{name: s, type: 'struct<a: int>'}", "s.a", "s.n")],
    ids=["column", "field"],
)
def test_drift_beside_an_ignored_rename_is_no_pending_change(
    project: CatalogProject, column: str, name: str, new: str
) -> None:
    project.declare(orders(column).replace("mode: name", "mode: name, delta.enableTypeWidening: 'true'"))
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} ALTER COLUMN {name} TYPE BIGINT")
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN {name} TO n")
    entry = f"{{resource: orders, fields: [column {name}], reason: Known}}"
    (project.config.parent / "drift-policy.yml").write_text(f"ignore_drift: [{entry}]")
    assert project.drift() == {KEY: [("column_type", f"column {new} type")]}
    assert json.loads(project.run("drift --json").stdout)["pending"] == []


CASES = ("{name: customerid, type: int}", "{name: s, type: 'struct<zip: int>'}")


def test_another_case_of_a_name_is_listed_and_kept(project: CatalogProject) -> None:
    project.declare(orders(*CASES))
    project.sync()
    project.declare(orders("{name: customerId, type: int}", "{name: s, type: 'struct<Zip: int>'}"))
    plan = project.plan()
    assert not plan["has_changes"]
    assert {part["key"]: part["value"] for part in plan["left_alone"]} == {
        "case of column customerId": "customerid",
        "case of fields in column s": "struct<zip: int>",
    }
    assert project.drift() == {}


def test_another_order_of_fields_is_no_other_case(project: CatalogProject) -> None:
    project.declare(orders("{name: s, type: 'struct<a: int, n: int>'}"))
    project.sync()
    project.declare(orders("{name: s, type: 'struct<n: int, a: int>'}"))
    plan = project.plan()
    assert not plan["has_changes"]
    assert "left_alone" not in plan


def test_a_name_gets_another_case_by_two_renames(project: CatalogProject) -> None:
    project.declare(orders("{name: customerid, type: int}"))
    project.sync()
    project.declare(orders("{name: customerId, type: int, renamed_from: customerid}"))
    refused = project.run("validate")
    assert refused.code == 3
    assert "rename it to another name, sync every environment, and rename that one" in refused.stderr
    for renamed in ("name: client, renamed_from: customerid", "name: customerId, renamed_from: client"):
        project.declare(orders(f"{{{renamed}, type: int}}"))
        project.sync()
    assert names(project) == ["id", "customerId"]
    assert "left_alone" not in project.plan()
    assert project.drift() == {}
