"""Accepted drift waits for its model, and until then nothing protects less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_engine.errors import StatementError
from tests.projects.catalog_project import CatalogProject
from tests.projects.commandline import CommandLine

TABLE = "`dev`.`silver`.`orders`"
MAPPED = "properties: {delta.columnMapping.mode: name}"
TABLE_KEY = "table.dev.silver.orders"
ORDERS = f"name: orders, columns: [{{name: id, type: bigint}}, {{name: amount, type: int}}], {MAPPED}"
OTHERS = "name: others, columns: [{name: id, type: bigint}]"
BY_HAND = (f"ALTER TABLE {TABLE} RENAME COLUMN amount TO total", "DROP TABLE `dev`.`silver`.`others`")


@pytest.fixture
def project(project: CatalogProject) -> CatalogProject:
    """Return a project with a renamed column and a deleted table."""
    project.declare(ORDERS, OTHERS)
    project.sync()
    project.by_hand(*BY_HAND)
    return project


def accept(project: CatalogProject) -> str:
    done = project.run("drift --accept --yes")
    assert done.code == 0, done.stderr
    return done.stdout


def findings(project: CatalogProject) -> list[dict[str, Any]]:
    report = json.loads(project.run("drift --json").stdout)
    return [
        finding for resource in (*report["drifted"], *report["deleted"]) for finding in resource["findings"]
    ]


def test_an_edit_that_no_sync_has_applied_is_named_before_it_is_replaced(project: CatalogProject) -> None:
    project.declare(ORDERS + ", comment: The orders", OTHERS)
    project.by_hand(f"COMMENT ON TABLE {TABLE} IS 'ask Bob'")
    done = project.run("drift --accept --yes")
    assert done.code == 0, done.stderr
    (note,) = (line for line in " ".join(done.stderr.split()).split("note: ") if "no sync" in line)
    assert note.strip() == (
        "dev.silver.orders: the model declares table comment: 'The orders', which no sync has applied. "
        "Accepting the drift replaces it with: 'ask Bob'"
    )


def test_accepted_drift_that_no_model_takes_stays_as_protected_as_before(project: CatalogProject) -> None:
    before = project.models.read_text()
    accept(project)
    project.models.write_text(before)  # the pull request was rejected
    assert [(finding["kind"], finding["accepted"] is not None) for finding in findings(project)] == [
        ("column_renamed", True),
        ("table_deleted", True),
    ]
    text = project.run("drift").stdout
    assert text.count("; a sync whose models declare it ends the drift") == 2
    refused = project.run("sync --yes --allow drop_column")
    assert refused.code == 3
    assert "It was accepted by" in refused.stderr
    assert "renamed to 'total' outside the engine" in refused.stderr
    reverted = project.run("drift --revert --yes")
    assert reverted.code == 0, reverted.stderr
    assert project.drift() == {}
    assert {"id", "amount"} == {
        column.name for column in project.catalog.tables["dev.silver.orders"].state.columns
    }


def steps(project: CatalogProject) -> tuple[list[tuple[str, str]], dict[str, list[tuple[str, str]]]]:
    """Return what a report recommends, and the alternatives by resource, without ignored drift."""
    report = json.loads(project.run("drift --json").stdout)
    return (
        [(step["text"], step["command"]) for step in report["recommendations"]],
        {
            resource["resource"]: [
                (step["text"], step["command"])
                for step in resource["alternatives"]
                if not step["text"].startswith("Ignore")
            ]
            for resource in (*report["drifted"], *report["deleted"], *report["schemas"])
        },
    )


def test_accepted_drift_is_ended_by_a_sync_and_not_accepted_again(project: CatalogProject) -> None:
    accept(project)
    recommended, by_resource = steps(project)
    assert recommended[-1] == ("Or sync, which ends the accepted drift", "delta-engine -e dev sync")
    (revert, sync) = by_resource[TABLE_KEY]
    assert "--revert" in revert[1]
    assert sync == (
        "Sync, which ends the accepted drift: its model has it",
        "delta-engine -e dev sync -t dev.silver.orders",
    )
    assert "--accept" not in str((recommended, by_resource))
    done = project.run(sync[1].partition("-e dev ")[2] + " --yes")
    assert done.code == 0, done.stderr
    assert project.drift() == {}


def test_accepted_drift_that_no_model_has_waits_for_its_merge(project: CatalogProject) -> None:
    before = project.models.read_text()
    accept(project)
    project.models.write_text(before)
    recommended, by_resource = steps(project)
    merge = ("Merge the change of its model, and sync: the drift is accepted", "")
    assert [advice[-1] for advice in by_resource.values()] == [merge, merge]
    assert ("Or merge the changes of the models, and sync: the drift is accepted", "") in recommended
    assert "--accept" not in str((recommended, by_resource))


def test_new_drift_next_to_accepted_drift_can_be_accepted(project: CatalogProject) -> None:
    accept(project)
    project.by_hand(f"COMMENT ON TABLE {TABLE} IS 'x'")
    recommended, by_resource = steps(project)
    assert "delta-engine -e dev drift --accept" in [command for _, command in recommended]
    assert by_resource[TABLE_KEY][-1][1] == "delta-engine -e dev drift --accept -t dev.silver.orders"


def test_a_sync_of_the_merged_models_finishes_the_acceptance(project: CatalogProject) -> None:
    assert "It remains drift until a sync" in accept(project)
    assert not project.plan()["has_changes"]
    assert len(findings(project)) == 2 - 1  # the deleted table is not declared any more
    project.catalog.statements.clear()
    project.sync()
    assert project.catalog.statements == []
    assert findings(project) == []
    listed = project.run("state list").stdout
    assert "others" not in listed
    project.declare(ORDERS.replace("amount", "total"), OTHERS)
    project.sync()  # a table that comes back later is a new one
    assert project.drift() == {}


def test_a_column_that_is_renamed_again_after_an_acceptance_is_renamed_drift(project: CatalogProject) -> None:
    accept(project)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN total TO sum")
    (renamed,) = findings(project)
    assert (renamed["kind"], renamed["expected"], renamed["actual"]) == ("column_renamed", "total", "sum")


def test_a_column_that_is_renamed_again_before_the_sync_keeps_its_data(project: CatalogProject) -> None:
    accept(project)
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN total TO sum")
    refused = project.run("sync --yes --allow drop_column")
    assert refused.code == 3
    assert "it was renamed to 'sum' outside the engine" in refused.stderr
    accept(project)
    assert "{name: sum, type: int, renamed_from: [total, amount]}" in project.models.read_text()
    assert not project.plan()["has_changes"]


def test_drift_that_was_undone_by_hand_is_accepted_no_more(project: CatalogProject) -> None:
    before = project.models.read_text()
    accept(project)
    project.models.write_text(before)
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN total TO amount")
    project.run("state sync")
    project.by_hand(BY_HAND[0])
    (renamed,) = (finding for finding in findings(project) if finding["kind"] == "column_renamed")
    assert renamed["accepted"] is None


def test_a_replaced_table_is_taken_by_the_next_sync(project: CatalogProject) -> None:
    project.declare(ORDERS.replace("amount", "total"))
    create = f"CREATE TABLE {TABLE} (`id` BIGINT, `total` INT) USING DELTA"
    project.by_hand(f"DROP TABLE {TABLE}", f"{create} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    assert project.run("sync --yes").code == 3
    accept(project)
    project.sync()
    assert project.drift() == {}
    assert "accepted" not in project.run(f"state show {TABLE_KEY} --json").stdout


def test_a_replaced_table_stays_drift_after_a_revert(project: CatalogProject) -> None:
    create = f"CREATE TABLE {TABLE} (`id` BIGINT, `amount` INT) USING DELTA"
    project.by_hand(f"DROP TABLE {TABLE}", f"{create} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    assert project.run("drift --revert -t orders --yes").code == 0
    assert ("table_replaced", "table") in project.drift()[TABLE_KEY]


def test_no_sync_undoes_accepted_drift_whatever_its_severity(project: CatalogProject) -> None:
    before = project.models.read_text()
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN total TO amount", f"COMMENT ON TABLE {TABLE} IS 'x'")
    accept(project)
    project.models.write_text(before)
    project.declare(ORDERS)
    refused = project.run("sync --yes")
    assert refused.code == 3
    assert "table comment was '' and is 'x'. It was accepted by" in refused.stderr


def test_a_deployed_project_accepts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine
) -> None:
    folder = tmp_path / ".bundle" / "shop" / "prod" / "files"
    folder.mkdir(parents=True)
    deployed = CatalogProject(folder, monkeypatch, delta_engine)
    deployed.declare(OTHERS)
    deployed.sync()
    deployed.by_hand("COMMENT ON TABLE `dev`.`silver`.`others` IS 'x'")
    refused = deployed.run("drift --accept --yes")
    assert refused.code == 3
    assert "is deployed: its models are copies" in refused.stderr


def test_a_plan_says_which_drift_it_undoes_and_whose_it_is(project: CatalogProject) -> None:
    project.by_hand(f"COMMENT ON TABLE {TABLE} IS 'x'", user="kim")
    by = "undoes drift (low), by kim at 2026-01-01 00:"
    assert by in project.run("plan").stdout
    assert by in project.run("plan --markdown").stdout
    (table,) = (
        plan_of_table
        for plan_of_table in project.plan()["tables"]
        if plan_of_table["table"] == "dev.silver.orders"
    )
    (undone,) = (
        change["undoes_drift"]
        for action in table["actions"]
        for change in action["changes"]
        if change["subject"] == "table comment"
    )
    assert (undone["severity"], undone["by"]) == ("low", "kim")


@pytest.mark.parametrize(("refused_from", "code"), [("high", 0), ("medium", 0), ("low", 3)])
def test_the_policy_says_from_which_severity_drift_is_not_undone(
    project: CatalogProject, refused_from: str, code: int
) -> None:
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN total TO amount", f"COMMENT ON TABLE {TABLE} IS 'x'")
    project.declare(ORDERS)
    project.configure(f"drift_from: {refused_from}")
    assert project.run("sync --yes").code == code


def test_unmanaged_parts_follow_a_column_whose_new_name_is_accepted(project: CatalogProject) -> None:
    project.by_hand(
        "CREATE TABLE `dev`.`silver`.`things` (`id` BIGINT, `name` STRING COMMENT 'theirs') USING DELTA "
        "CLUSTER BY (`name`) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    table = "name: things, columns: [{name: id, type: bigint}, {name: NAME, type: string}]"
    project.declare(table.replace("NAME", "name"))
    project.sync()
    project.by_hand("ALTER TABLE `dev`.`silver`.`things` RENAME COLUMN name TO full_name")
    accept(project)
    assert "full_name" in project.models.read_text()
    project.sync()
    assert "table.dev.silver.things" not in project.drift()
    parts = [part["key"] for part in project.plan()["left_alone"]]
    assert {"column full_name comment", "clustering"} <= {*parts}


def test_drift_that_a_killed_run_of_rejected_models_explains_stays_protected(project: CatalogProject) -> None:
    before = project.models.read_text()
    accept(project)
    project.models.write_text(
        project.models.read_text().replace("name: orders,", "name: orders, comment: x,")
    )
    project.kill("sync --yes", "COMMENT ON TABLE")
    project.models.write_text(before)  # the pull request was rejected
    assert ("column_renamed", True) in [
        (finding["kind"], finding["accepted"] is not None) for finding in findings(project)
    ]
    refused = project.run("sync --yes --allow drop_column")
    assert refused.code == 3
    assert "renamed to 'total' outside the engine" in refused.stderr


def test_what_the_engine_applied_stays_its_own_when_its_column_is_renamed(project: CatalogProject) -> None:
    things, create = "`dev`.`silver`.`things`", "(`id` BIGINT, `x` INT COMMENT 'theirs') USING DELTA"
    project.by_hand(f"CREATE TABLE {things} {create} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    table = f"name: things, columns: [{{name: id, type: bigint}}, {{name: x, type: int}}], {MAPPED}"
    project.declare(table.replace("type: int}", "type: int, comment: ours}"))
    project.sync()
    project.declare(table)
    project.by_hand(f"ALTER TABLE {things} RENAME COLUMN `x` TO `n`")
    accept(project)
    assert "left_alone" not in project.plan()
    project.sync()
    assert {column.comment for column in project.catalog.tables["dev.silver.things"].state.columns} == {""}


def test_an_accepted_order_that_was_undone_by_hand_is_accepted_no_more(project: CatalogProject) -> None:
    move = f"ALTER TABLE {TABLE} ALTER COLUMN total"
    project.declare(ORDERS.replace("amount", "total"))
    project.sync("--allow drop_table")
    before = project.models.read_text()
    project.by_hand(f"{move} FIRST")
    accept(project)
    project.models.write_text(before)
    project.by_hand(f"{move} AFTER id")
    project.run("state sync")
    project.by_hand(f"{move} FIRST")
    (moved,) = findings(project)
    assert (moved["kind"], moved["accepted"]) == ("column_order", None)


def test_an_apply_keeps_the_acceptance_of_drift_that_it_leaves(project: CatalogProject) -> None:
    project.declare(ORDERS.replace("amount", "total"))
    project.sync()
    before = project.models.read_text()
    project.by_hand(f"ALTER TABLE {TABLE} ADD CONSTRAINT theirs CHECK (id > 0)")
    accept(project)
    project.models.write_text(before.replace("name: orders,", "name: orders, comment: new,"))
    project.sync()
    (check,) = findings(project)
    assert (check["kind"], check["accepted"]["by"]) == ("check", "ann@example.com")


def test_accepted_drift_is_explained_by_no_later_run(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.declare(ORDERS.replace("amount", "total"))
    project.sync()
    before, run = project.models.read_text(), project.catalog.run
    project.by_hand(f"COMMENT ON TABLE {TABLE} IS 'theirs'")
    accept(project)

    def refusing(sql: str) -> object:
        if sql.startswith("ALTER TABLE"):
            raise StatementError("no", sql=sql, error_class=None)
        return run(sql)

    edited = project.models.read_text()
    project.models.write_text(edited.replace("{name: id,", "{name: id, comment: key,"))
    with monkeypatch.context() as patch:
        patch.setattr(project.catalog, "run", refusing)
        assert project.run("sync --yes").code == 1
    project.models.write_text(before)
    (comment,) = findings(project)
    assert (comment["kind"], comment["accepted"] is not None) == ("table_comment", True)
    assert project.run("sync --yes").code == 3


def test_a_primary_key_of_others_that_a_plan_drops_is_undone_drift(project: CatalogProject) -> None:
    things = "name: things, columns: [{name: id, type: int, nullable: false}]"
    project.declare(things + ", primary_key: {name: ours, columns: [id]}")
    project.sync()
    table = "ALTER TABLE `dev`.`silver`.`things`"
    project.by_hand(f"{table} DROP CONSTRAINT `ours`", f"{table} ADD CONSTRAINT `theirs` PRIMARY KEY (`id`)")
    project.declare(things)
    project.configure("allow: [drop_constraint]")
    assert "primary key theirs: (id)  [breaks readers]  undoes drift (medium)" in project.run("plan").stdout


def test_reverted_drift_is_accepted_no_more(project: CatalogProject) -> None:
    project.declare(ORDERS.replace("amount", "total"))
    project.sync()
    check = f"ALTER TABLE {TABLE} ADD CONSTRAINT theirs CHECK (id > 0)"
    project.by_hand(check)
    accept(project)
    assert project.run("drift --revert --yes --allow drop_constraint").code == 0
    project.by_hand(check)
    (finding,) = findings(project)
    assert (finding["kind"], finding["accepted"]) == ("check", None)


def test_an_order_of_others_follows_a_column_whose_new_name_is_accepted(project: CatalogProject) -> None:
    project.by_hand(
        "CREATE TABLE `dev`.`silver`.`things` (`x` INT, `id` BIGINT) USING DELTA "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    project.declare("name: things, columns: [{name: id, type: bigint}, {name: x, type: int}]")
    project.sync()
    project.by_hand("ALTER TABLE `dev`.`silver`.`things` RENAME COLUMN x TO n")
    accept(project)
    project.sync()
    assert "table.dev.silver.things" not in project.drift()


def test_an_accepted_rename_is_a_rename_in_every_environment(project: CatalogProject) -> None:
    accept(project)
    assert "{name: total, type: int, renamed_from: amount}" in project.models.read_text()
    project.sync()
    assert project.drift() == {}
    assert "note" not in project.run("plan").stderr
    assert subjects(project.plan_elsewhere(created("amount"))) == {("column total", "amount", "total")}
    assert subjects(project.plan_elsewhere(created("total"))) == set()


def test_a_column_that_was_renamed_twice_is_renamed_from_either_name(project: CatalogProject) -> None:
    accept(project)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN total TO sum")
    accept(project)
    assert "renamed_from: [total, amount]" in project.models.read_text()
    project.sync()
    assert project.drift() == {}
    assert subjects(project.plan_elsewhere(created("amount"))) == {("column sum", "amount", "sum")}
    assert subjects(project.plan_elsewhere(created("total"))) == {("column sum", "total", "sum")}
    assert subjects(project.plan_elsewhere(created("sum"))) == set()


def test_a_column_that_was_renamed_back_is_renamed_back_in_every_environment(project: CatalogProject) -> None:
    accept(project)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN total TO amount")
    accept(project)
    assert "{name: amount, type: int, renamed_from: total}" in project.models.read_text()
    assert subjects(project.plan_elsewhere(created("total"))) == {("column amount", "total", "amount")}


def test_an_accepted_rename_keeps_former_names_that_the_model_has_got_since(project: CatalogProject) -> None:
    project.declare(ORDERS.replace("name: amount", "name: total, renamed_from: price"), OTHERS)
    accept(project)
    assert "renamed_from: [amount, price]" in project.models.read_text()


def test_an_ignored_rename_has_no_former_name(project: CatalogProject) -> None:
    entry = "{resource: orders, fields: [column amount], reason: Known}"
    (project.config.parent / "drift-policy.yml").write_text(f"ignore_drift: [{entry}]")
    accept(project)
    assert "renamed_from" not in project.models.read_text()


def test_a_rename_to_the_former_name_of_another_column_cannot_be_declared(project: CatalogProject) -> None:
    project.declare(ORDERS.replace("name: amount", "name: total, renamed_from: amount"))
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} RENAME COLUMN id TO amount")
    refused = project.run("drift --accept --yes")
    assert refused.code == 3
    assert "renamed from amount, which the model also declares" in refused.stderr


def created(column: str) -> str:
    """Return the statement that creates the table with another name of its second column."""
    properties = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    return f"CREATE TABLE {TABLE} (`id` BIGINT, `{column}` INT) USING DELTA {properties}"


def subjects(plan: Any) -> set[tuple[str, str, str]]:
    """Return the parts of tables that a plan changes, with both sides."""
    return {
        (change["subject"], change["observed"], change["desired"])
        for table in plan["tables"]
        for action in table["actions"]
        for change in action["changes"]
    }


def test_a_plan_offers_no_consent_that_accepted_drift_makes_useless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine
) -> None:
    project = CatalogProject(tmp_path, monkeypatch, delta_engine)
    project.declare(ORDERS)
    project.sync()
    project.by_hand(f"ALTER TABLE {TABLE} ADD COLUMNS (`extra` STRING)")
    assert "kind: drop_column" in project.run("plan").stdout
    assert project.run("drift --accept --yes").code == 0
    project.declare(ORDERS)
    planned = project.run("plan")
    assert "kind: drop_column" not in planned.stdout
    (refusal,) = [line for line in planned.stderr.splitlines() if line.startswith("refused: ")]
    assert refusal.endswith(
        "but its model does not declare it. Merge the change of the model, or revert the drift with "
        "`delta-engine -e dev drift --revert -t dev.silver.orders`."
    )
