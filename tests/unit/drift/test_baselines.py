"""What a table looked like after an apply, or when it was adopted, is what drift is measured against."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_engine.errors import StatementError
from tests.projects.catalog_project import CatalogProject

TABLE = "`dev`.`silver`.`orders`"
PLAIN = "name: orders, columns: [{name: id, type: bigint}]"
ORDERS = "table.dev.silver.orders"


def test_an_adopted_table_that_was_replaced_is_drift(project: CatalogProject) -> None:
    create = f"CREATE TABLE {TABLE} (`id` BIGINT) USING DELTA"
    project.by_hand(create)
    project.declare(PLAIN)
    project.sync()
    assert project.drift() == {}
    project.by_hand(f"DROP TABLE {TABLE}", create)
    assert project.drift() == {ORDERS: [("table_replaced", "table")]}


def test_a_drop_and_an_add_on_an_adopted_table_are_told_from_a_rename(project: CatalogProject) -> None:
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    project.by_hand(f"CREATE TABLE {TABLE} (`id` INT, `a` INT) USING DELTA {mapped}")
    project.declare("name: orders, columns: [{name: id, type: int}, {name: a, type: int}]")
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} DROP COLUMN `a`", f"ALTER TABLE {TABLE} ADD COLUMNS (`b` INT)")
    report = project.run("drift").stdout
    assert "--revert -t dev.silver.orders --allow drop_column" in report
    done = project.run("drift --revert --allow drop_column --yes")
    assert done.code == 0, done.stderr
    assert project.drift() == {}
    assert [column.name for column in project.catalog.tables["dev.silver.orders"].state.columns] == [
        "id",
        "a",
    ]


LATER = {
    "table comment": f"COMMENT ON TABLE {TABLE} IS 'Later'",
    "column id comment": f"ALTER TABLE {TABLE} ALTER COLUMN id COMMENT 'Later'",
    "clustering": f"ALTER TABLE {TABLE} CLUSTER BY (id)",
    "column id default": f"ALTER TABLE {TABLE} ALTER COLUMN id SET DEFAULT 7",
}
"""Statements that set a value of which a table has one, by the field of a report."""

WITH_DEFAULTS = f"{PLAIN}, properties: {{delta.feature.allowColumnDefaults: supported}}"


@pytest.mark.parametrize("field", LATER)
def test_a_value_that_was_set_later_is_drift_and_a_sync_clears_it(
    project: CatalogProject, field: str
) -> None:
    project.declare(WITH_DEFAULTS)
    project.sync()
    project.by_hand(LATER[field])
    assert [field_found for _, field_found in project.drift()[ORDERS]] == [field]
    assert "left_alone" not in project.plan()
    project.sync()
    assert project.drift() == {}
    assert not project.plan()["has_changes"]


@pytest.mark.parametrize("field", LATER)
def test_a_value_that_was_there_before_is_kept_and_no_drift(project: CatalogProject, field: str) -> None:
    feature = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    project.by_hand(f"CREATE TABLE {TABLE} (`id` BIGINT) USING DELTA {feature}", LATER[field])
    project.declare(PLAIN)
    project.sync()
    project.sync()
    assert project.drift() == {}
    plan = project.plan()
    assert not plan["has_changes"]
    assert field in [part["key"] for part in plan["left_alone"]]


def test_a_revert_brings_back_unmanaged_parts_that_are_gone(project: CatalogProject) -> None:
    check = f"ALTER TABLE {TABLE} ADD CONSTRAINT positive CHECK (id > 0)"
    project.by_hand(f"CREATE TABLE {TABLE} (`id` BIGINT) USING DELTA", check)
    project.declare(PLAIN)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} DROP CONSTRAINT positive")
    assert project.drift() == {}
    project.by_hand(f"COMMENT ON TABLE {TABLE} IS 'x'")
    done = project.run("drift --revert --yes")
    assert done.code == 0, done.stderr
    state = project.catalog.tables["dev.silver.orders"].state
    assert (state.table_comment, [check.name for check in state.checks]) == ("", ["positive"])


def test_an_adopted_table_of_format_1_gets_a_version_with_the_next_sync(project: CatalogProject) -> None:
    create = f"CREATE TABLE {TABLE} (`id` BIGINT) USING DELTA"
    project.by_hand(create)
    project.declare(PLAIN)
    project.sync()
    path = Path(".delta-engine/state/dev.state.json")
    document = json.loads(path.read_text())
    metadata = document["resources"][ORDERS]["metadata"]
    for key in ("delta_table_id", "delta_version", "full_ownership"):
        del metadata[key]
    path.write_text(json.dumps(document))
    project.sync()
    project.by_hand(f"DROP TABLE {TABLE}", create)
    assert project.drift() == {ORDERS: [("table_replaced", "table")]}


def test_what_was_there_before_a_policy_became_full_is_no_drift(project: CatalogProject) -> None:
    project.declare(PLAIN)
    project.sync()
    tagged = f"ALTER TABLE {TABLE} SET TAGS ('theirs' = 'x')"
    project.by_hand(tagged)
    project.configure("tags: full")
    assert project.drift() == {}
    report = json.loads(project.run("drift --json").stdout)
    assert [
        (resource["resource"], [part["field"] for part in resource["changes"]])
        for resource in report["pending"]
    ] == [(ORDERS, ["tag theirs"])]
    project.sync()
    project.by_hand(tagged)
    assert project.drift() == {ORDERS: [("table_tag", "tag theirs")]}


def test_moved_columns_stay_drift_whatever_else_is_applied(project: CatalogProject) -> None:
    def declared(comment: str) -> str:
        return f"name: orders, comment: {comment}, columns: [{{name: id, type: int}}, {{name: a, type: int}}]"

    project.declare(declared("one"))
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} ALTER COLUMN a FIRST")
    order = {ORDERS: [("column_order", "column order")]}
    assert project.drift() == order
    project.declare(declared("two"))
    project.sync()
    assert project.drift() == order


def test_an_order_of_columns_that_is_kept_is_listed(project: CatalogProject) -> None:
    project.by_hand(f"CREATE TABLE {TABLE} (`a` INT, `id` BIGINT) USING DELTA")
    project.declare("name: orders, columns: [{name: id, type: bigint}, {name: a, type: int}]")
    kept = "unmanaged: dev.silver.orders: column order\n"
    assert kept in project.run("plan --full").stdout
    assert kept in project.run("sync --yes --full").stdout
    assert project.plan()["left_alone"] == [
        {"table": "dev.silver.orders", "key": "column order", "value": "(a, id)"}
    ]
    assert "· table.dev.silver.orders: column order = '(a, id)'" in project.run("drift").stdout
    assert project.drift() == {}
    project.configure("column_order: enforce")
    assert "left_alone" not in project.plan()


def test_a_model_that_does_not_manage_columns_has_no_order_of_columns(project: CatalogProject) -> None:
    project.by_hand(f"CREATE TABLE {TABLE} (`a` INT, `id` BIGINT) USING DELTA")
    columns = "columns: [{name: id, type: bigint, comment: Key}, {name: a, type: int}]"
    project.declare(f"name: orders, manages: [comments], {columns}")
    assert project.plan().get("left_alone", []) == []
    project.sync()
    assert project.drift() == {}


def test_what_the_engine_or_the_platform_sets_is_not_listed_as_unmanaged(project: CatalogProject) -> None:
    project.declare("name: orders, columns: [{name: id, type: int}, {name: old, type: int}]")
    project.sync()
    project.declare("name: orders, columns: [{name: id, type: bigint}, {name: new, type: int, default: '1'}]")
    project.sync("--allow drop_column")
    switched = {"delta.columnMapping.mode", "delta.enableTypeWidening", "delta.feature.allowColumnDefaults"}
    assert switched <= project.catalog.tables["dev.silver.orders"].state.table_properties.keys()
    platform = ("pipelines.pipelineId", "pipeline_internal.catalogType", "delta.parquet.compression.codec")
    project.by_hand(*(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('{key}' = 'x')" for key in platform))
    assert "unmanaged" not in project.run("plan --full").stdout
    assert "left_alone" not in project.plan()
    project.by_hand(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('pipelines.reset.allowed' = 'false')")
    listed = "unmanaged: dev.silver.orders: pipelines.reset.allowed\n"
    assert listed in project.run("plan --full").stdout


SCHEMA = "schemas:\n  - {catalog: dev, name: silver, comment: Clean}\n"


def test_a_revert_of_some_tables_includes_their_schemas(project: CatalogProject) -> None:
    others = "name: others, columns: [{name: id, type: bigint}]"
    project.declare(PLAIN, others, schemas=SCHEMA)
    project.sync()
    project.by_hand("COMMENT ON SCHEMA `dev`.`silver` IS 'Dirty'", f"COMMENT ON TABLE {TABLE} IS 'Dirty'")
    done = project.run("drift --revert -t others --yes")
    assert done.code == 0, done.stderr
    assert project.catalog.schemas["dev.silver"].comment == "Clean"
    assert project.drift() == {ORDERS: [("table_comment", "table comment")]}


def test_a_record_names_the_tables_that_its_foreign_keys_reference(project: CatalogProject) -> None:
    parent = "name: NAME, columns: [{name: id, type: bigint, nullable: false}], primary_key: [id]"
    child = (
        "name: lines, columns: [{name: order_id, type: bigint}], "
        "foreign_keys: [{columns: [order_id], references: NAME}]"
    )
    project.declare(parent.replace("NAME", "orders"), child.replace("NAME", "orders"))
    project.sync()

    def dependencies() -> list[str]:
        state = json.loads(project.run("state show --json").stdout)
        keys: list[str] = state["resources"]["table.dev.silver.lines"]["dependencies"]
        return keys

    assert dependencies() == ["schema.dev.silver", ORDERS]
    project.declare(
        f"{parent.replace('NAME', 'sales')}, renamed_from: orders", child.replace("NAME", "sales")
    )
    assert "      table name: RENAMED dev.silver.orders → dev.silver.sales\n" in project.run("drift").stdout
    project.sync()
    assert dependencies() == ["schema.dev.silver", "table.dev.silver.sales"]
    changes = project.run("state diff").stdout
    assert "name: dev.silver.orders → dev.silver.sales" in changes
    assert "- table.dev.silver.orders" not in changes


def test_a_dropped_column_is_one_finding_and_no_pending_change(project: CatalogProject) -> None:
    project.declare("name: orders, columns: [{name: id, type: int}, {name: a, type: int, default: '1'}]")
    project.sync()
    project.by_hand(
        f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        f"ALTER TABLE {TABLE} DROP COLUMN a",
    )
    project.declare("name: orders, columns: [{name: id, type: int}, {name: a, type: int, comment: new}]")
    report = json.loads(project.run("drift --json").stdout)
    assert project.drift() == {ORDERS: [("column_dropped", "column a")]}
    assert report["pending"] == []


def test_drift_that_a_new_value_of_the_model_overwrites_is_undone_as_well(project: CatalogProject) -> None:
    project.declare(f"{PLAIN}, comment: one")
    project.sync()
    project.by_hand(f"COMMENT ON TABLE {TABLE} IS 'theirs'", user="kim")
    project.declare(f"{PLAIN}, comment: two")
    assert "undoes drift (low), by kim" in project.run("plan").stdout
    project.configure("drift_from: low")
    assert project.run("sync --yes").code == 3
    project.declare(f"{PLAIN}, comment: theirs")
    project.sync()
    assert project.drift() == {}


@pytest.mark.parametrize("existing", [(), (LATER["table comment"],)], ids=["plain", "with others' parts"])
def test_what_others_said_of_a_column_before_the_model_took_it_over_is_kept(
    project: CatalogProject, existing: tuple[str, ...]
) -> None:
    project.by_hand(f"CREATE TABLE {TABLE} (`id` BIGINT) USING DELTA", *existing)
    project.declare(PLAIN)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} ADD COLUMNS (`n` INT COMMENT 'theirs')")
    project.declare("name: orders, columns: [{name: id, type: bigint}, {name: n, type: int}]")
    project.sync()
    assert project.drift() == {}
    plan = project.plan()
    assert not plan["has_changes"]
    assert "column n comment" in [part["key"] for part in plan["left_alone"]]


def test_a_revert_after_a_failed_run_leaves_the_baseline_as_it_was(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = project.catalog.run

    def refusing(sql: str) -> object:
        if sql.startswith("ALTER TABLE"):
            raise StatementError("no", sql=sql, error_class=None)
        return run(sql)

    project.by_hand(f"CREATE TABLE {TABLE} (`id` BIGINT COMMENT 'theirs') USING DELTA")
    project.declare(PLAIN)
    project.sync()
    project.declare(PLAIN.replace("bigint}", "bigint, comment: ours}"))
    with monkeypatch.context() as patch:
        patch.setattr(project.catalog, "run", refusing)
        assert project.run("sync --yes").code != 0
    project.by_hand(f"COMMENT ON TABLE {TABLE} IS 'later'")
    project.declare(PLAIN)
    assert project.run("drift --revert --yes").code == 0
    assert project.drift() == {}


@pytest.mark.parametrize("kind", ["tags", "grants"])
def test_a_revert_under_a_policy_that_became_full_keeps_what_was_there(
    project: CatalogProject, kind: str
) -> None:
    project.declare(f"{PLAIN}, comment: ours")
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} SET TAGS ('a' = 'b')", f"GRANT SELECT ON TABLE {TABLE} TO `us`")
    project.configure(f"{kind}: full")
    project.by_hand(f"COMMENT ON TABLE {TABLE} IS 'theirs'")
    assert project.drift() == {ORDERS: [("table_comment", "table comment")]}
    assert project.run("drift --revert --yes").code == 0
    table = project.catalog.tables["dev.silver.orders"].state
    assert (table.table_comment, table.tags, table.grants) == ("ours", {"a": "b"}, {"us": ("SELECT",)})
    project.by_hand(f"ALTER TABLE {TABLE} SET TAGS ('c' = 'd')", f"GRANT MODIFY ON TABLE {TABLE} TO `us`")
    assert project.drift() == {}
    project.sync()
    assert not getattr(project.catalog.tables["dev.silver.orders"].state, kind)


def test_a_retired_table_is_no_ignored_drift(project: CatalogProject) -> None:
    others = "name: others, columns: [{name: id, type: bigint}]"
    project.declare(PLAIN, others)
    project.sync()
    project.declare(others)
    project.by_hand(f"DROP TABLE {TABLE}")
    entry = "{resource: '*', fields: [table_deleted], reason: known}"
    (project.config.parent / "drift-policy.yml").write_text(f"ignore_drift: [{entry}]")
    assert json.loads(project.run("drift --json").stdout)["ignored"] == []


def test_a_table_whose_version_could_not_be_read_gets_it_with_the_next_sync(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, run = f"CREATE TABLE {TABLE} (`id` BIGINT) USING DELTA", project.catalog.run

    def refusing(sql: str) -> object:
        if sql.startswith("DESCRIBE HISTORY"):
            raise StatementError("no", sql=sql, error_class=None)
        return run(sql)

    project.by_hand(create)
    project.declare(PLAIN)
    with monkeypatch.context() as patch:
        patch.setattr(project.catalog, "run", refusing)
        project.sync()
    project.sync()
    project.by_hand(f"DROP TABLE {TABLE}", create)
    assert project.drift() == {ORDERS: [("table_replaced", "table")]}


def test_a_replaced_table_that_a_sync_takes_is_a_warning(project: CatalogProject) -> None:
    project.configure("drift: revert")
    project.declare(PLAIN)
    project.sync()
    project.by_hand(f"DROP TABLE {TABLE}", f"CREATE TABLE {TABLE} (`id` BIGINT) USING DELTA")
    done = project.run("sync --yes")
    assert (done.code, "dev.silver.orders was replaced outside the engine" in done.stderr) == (0, True)
    assert project.drift() == {}


def test_drift_that_ignored_drift_keeps_is_not_refused(project: CatalogProject) -> None:
    project.configure("drift_from: medium, allow: [drop_column]")
    mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    project.by_hand(f"CREATE TABLE {TABLE} (`x` INT, `y` INT) USING DELTA CLUSTER BY (`x`) {mapped}")
    project.declare("name: orders, columns: [{name: x, type: int}, {name: y, type: int}]")
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} ADD COLUMNS (`n` INT)", f"ALTER TABLE {TABLE} CLUSTER BY (`n`)")
    entry = "{resource: '*', fields: [column n], reason: known}"
    (project.config.parent / "drift-policy.yml").write_text(f"ignore_drift: [{entry}]")
    assert json.loads(project.run("drift --json").stdout)["pending"] == []
    project.sync()
    assert project.catalog.tables["dev.silver.orders"].state.cluster_by == ("n",)


def test_a_revert_under_a_policy_that_became_full_keeps_the_tags_of_schemas(project: CatalogProject) -> None:
    schemas = "schemas: [{catalog: dev, name: silver, comment: ours}]"
    project.declare(PLAIN, schemas=schemas)
    project.sync()
    project.by_hand(
        "COMMENT ON SCHEMA `dev`.`silver` IS 'x'", "ALTER SCHEMA `dev`.`silver` SET TAGS ('a' = 'b')"
    )
    project.configure("tags: full")
    assert project.run("drift --revert --yes").code == 0
    assert project.drift() == {}
    assert project.catalog.schemas["dev.silver"].tags == {"a": "b"}
