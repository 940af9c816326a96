"""Missing tables and schemas that may be hidden: a catalog shows a principal only what it has privileges on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from delta_engine.backends.capabilities import (
    DATABRICKS,
    DATABRICKS_SPARK,
    OPEN_SOURCE,
    OPEN_SOURCE_CATALOG,
    Visibility,
)
from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import StatementError
from delta_engine.orchestrate.backend import Backend, databricks_backend
from delta_engine.state.principals import Permissions
from tests.projects.catalog_project import CatalogProject

ORDERS, LINES = (
    "name: orders, columns: [{name: id, type: bigint}]",
    "name: lines, columns: [{name: id, type: bigint}]",
)
ANN, BOSS = "ann@example.com", "boss"
SEES_ALL: Mapping[str, tuple[str, ...]] = {
    "an owner of the schema": ("ALTER SCHEMA `dev`.`silver` OWNER TO `ann@example.com`",),
    "an owner by group": ("ALTER SCHEMA `dev`.`silver` OWNER TO `team`",),
    "a reader of the schema": ("GRANT SELECT ON SCHEMA `dev`.`silver` TO `ann@example.com`",),
    "a reader by group": ("GRANT SELECT ON SCHEMA `dev`.`silver` TO `team`",),
}
ALL_RIGHTS = ("SELECT on schema dev.silver", "USE SCHEMA on schema dev.silver", "USE CATALOG on catalog dev")


@pytest.fixture
def project(project: CatalogProject) -> CatalogProject:
    """Return a synced project whose principal may see its tables, and owns neither schema nor catalog."""
    project.declare(ORDERS, LINES)
    project.sync()
    project.catalog.hides = True
    project.catalog.groups = {"team"}
    project.catalog.catalogs["dev"] = Permissions(owner=BOSS, grants={"team": ("USE CATALOG",)})
    project.by_hand(
        "ALTER SCHEMA `dev`.`silver` OWNER TO `boss`", "GRANT USE SCHEMA ON SCHEMA `dev`.`silver` TO `team`"
    )
    return project


def hide(project: CatalogProject, table: str) -> None:
    """Let another principal take a table over."""
    project.by_hand(f"ALTER TABLE `dev`.`silver`.`{table}` OWNER TO `boss`")


def report(project: CatalogProject) -> Any:
    return json.loads(project.run("drift --json").stdout)


def absence(project: CatalogProject) -> Any:
    ((finding,),) = (resource["findings"] for resource in report(project)["deleted"])
    return finding["absence"]


def test_a_hidden_table_is_not_taken_for_deleted(project: CatalogProject) -> None:
    hide(project, "orders")
    text = project.run("drift").stdout
    assert "table: DELETED, or hidden from you (applied " in text
    reason = f"{ANN} is not known to own schema dev.silver or to have SELECT on it"
    assert f"      rights: {reason}\n" in text
    lacking = ["SELECT on schema dev.silver"]
    assert absence(project) == {"may_be_hidden": True, "reason": reason, "lacking": lacking}
    assert report(project)["recommendations"] == []
    assert report(project)["notes"][-2:] == [
        "dev.silver.orders may be hidden from you. Ask for SELECT on schema dev.silver, and run the command again",
        "What is gone: remove its model and run `delta-engine -e dev state rm`, or create it again with "
        "`delta-engine -e dev drift --revert -t TABLE`. `delta-engine -e dev drift --accept` keeps its model",
    ]
    page = project.run("drift --format html").stdout
    assert f"It is gone, or hidden from you. Rights: {reason}." in page


def test_the_deletion_of_a_hidden_table_is_never_accepted(project: CatalogProject) -> None:
    hide(project, "orders")
    before = project.models.read_text()
    for selection in ("", " -t silver.orders"):
        done = project.run(f"drift --accept --yes{selection}")
        assert (done.code, project.models.read_text()) == (0, before)
        assert "note: dev.silver.orders may be hidden from you. Ask for SELECT on schema" in done.stderr
        assert "dev: 0 tables to accept" in done.stderr + done.stdout
    project.by_hand("COMMENT ON TABLE `dev`.`silver`.`lines` IS 'theirs'")
    (advice, *_) = [
        recommendation
        for recommendation in report(project)["recommendations"]
        if "--accept" in recommendation["command"]
    ]
    assert project.run(advice["command"].removeprefix("delta-engine -e dev ") + " --yes").code == 0
    assert ("name: orders" in project.models.read_text(), "theirs" in project.models.read_text()) == (
        True,
        True,
    )


def test_a_sync_that_would_create_a_hidden_table_says_so(project: CatalogProject) -> None:
    hide(project, "orders")
    refused = project.run("sync --yes")
    assert refused.code == 3
    assert (
        "and is gone, or hidden from you (ann@example.com is not known to own schema dev.silver"
        in refused.stderr
    )
    assert "--accept" not in refused.stderr


@pytest.mark.parametrize("right", SEES_ALL)
def test_a_table_is_deleted_where_rights_would_show_it(project: CatalogProject, right: str) -> None:
    project.by_hand("DROP TABLE `dev`.`silver`.`orders`", *SEES_ALL[right])
    who = "owns schema dev.silver, or has SELECT on it, and may use it and its catalog"
    assert absence(project) == {"may_be_hidden": False, "reason": f"{ANN} {who}", "lacking": []}
    text = project.run("drift").stdout
    assert "table: DELETED (applied " in text
    assert f"      rights: {ANN} {who}\n" in text
    assert project.run("drift --accept --yes").code == 0
    assert "name: orders" not in project.models.read_text()


def assert_kept(project: CatalogProject, lacking: str) -> None:
    """Assert that both tables may be hidden for lack of a right, and that accepting keeps their models."""
    before = project.models.read_text()
    absences = [finding["absence"] for table in report(project)["deleted"] for finding in table["findings"]]
    assert [(absence["may_be_hidden"], absence["lacking"]) for absence in absences] == [(True, [lacking])] * 2
    tables = "dev.silver.lines, dev.silver.orders"
    note = f"{tables} may be hidden from you. Ask for {lacking}, and run the command again"
    assert note in report(project)["notes"]
    assert project.run("drift --accept --yes").code == 0
    assert project.models.read_text() == before


@pytest.mark.parametrize("right", SEES_ALL)
def test_rights_in_a_catalog_that_a_principal_may_not_use_prove_no_deletion(
    project: CatalogProject, right: str
) -> None:
    project.by_hand(*SEES_ALL[right])
    project.catalog.catalogs["dev"] = Permissions(owner=BOSS)
    assert_kept(project, "USE CATALOG on catalog dev")


def test_select_on_a_schema_that_a_principal_may_not_use_proves_no_deletion(project: CatalogProject) -> None:
    project.by_hand(
        "GRANT SELECT ON SCHEMA `dev`.`silver` TO `team`",
        "REVOKE USE SCHEMA ON SCHEMA `dev`.`silver` FROM `team`",
    )
    assert_kept(project, "USE SCHEMA on schema dev.silver")


def test_an_owner_of_the_catalog_sees_everything(project: CatalogProject) -> None:
    project.catalog.catalogs["dev"] = Permissions(owner="team")
    project.by_hand("DROP TABLE `dev`.`silver`.`orders`")
    assert absence(project)["may_be_hidden"] is False


def test_a_hidden_schema_hides_its_tables(project: CatalogProject) -> None:
    project.declare(
        ORDERS,
        LINES,
        schemas="schemas:\n  - {catalog: dev, schema: silver, name: silver}\n".replace(
            "schema: silver, ", ""
        ),
    )
    project.sync()
    project.by_hand("REVOKE USE SCHEMA ON SCHEMA `dev`.`silver` FROM `team`")
    for table in ("orders", "lines"):
        hide(project, table)
    drift_report_json = report(project)
    assert {
        resource["resource"] for resource in (*drift_report_json["schemas"], *drift_report_json["deleted"])
    } == {*("schema.dev.silver", "table.dev.silver.orders", "table.dev.silver.lines")}
    hidden = [
        resource["findings"][0]["absence"]["may_be_hidden"]
        for resource in (*drift_report_json["schemas"], *drift_report_json["deleted"])
    ]
    assert (hidden, drift_report_json["recommendations"]) == ([True] * 3, [])
    right = "USE SCHEMA on catalog dev"
    assert (
        f"dev.silver may be hidden from you. Ask for {right}, and run the command again"
        in drift_report_json["notes"]
    )
    before = project.models.read_text()
    assert project.run("drift --accept --yes").code == 0
    assert project.models.read_text() == before


REFUSED: Mapping[str, StatementError | list[Row]] = {
    "refused": StatementError("no rights", sql="x", error_class="INSUFFICIENT_PERMISSIONS"),
    "throttled": StatementError("too many", sql="x", error_class="TOO_MANY_REQUESTS"),
    "lost": StatementError("no answer came", sql="x", error_class=None, is_outcome_unknown=True),
    "empty": [],
    "missing": [{"who": None}],
}


@pytest.mark.parametrize("failure", REFUSED)
def test_without_an_answer_about_rights_a_table_may_be_hidden(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    answer = REFUSED[failure]

    class Silent:
        def run(self, sql: str) -> Any:
            if "is_account_group_member" in sql or "catalog_privileges" in sql or "current_user" in sql:
                if isinstance(answer, StatementError):
                    raise answer
                return answer
            return project.catalog.run(sql)

    runner: SqlRunner = Silent()
    monkeypatch.setattr("delta_engine.cli.commands.open_backend", lambda *_, **__: databricks_backend(runner))
    project.by_hand("DROP TABLE `dev`.`silver`.`orders`", *SEES_ALL["an owner of the schema"])
    why = (
        answer.first_line
        if isinstance(answer, StatementError)
        else "the platform does not name the principal"
    )
    assert absence(project) == {
        "may_be_hidden": True,
        "reason": f"your rights cannot be read: {why}",
        "lacking": list(ALL_RIGHTS),
    }


def on(visibility: Visibility, project: CatalogProject) -> Backend:
    """Return a backend without rights, of a visibility."""
    backend = databricks_backend(project.catalog)
    return replace(
        backend, principals=None, capabilities=replace(backend.capabilities, visibility=visibility)
    )


@pytest.mark.parametrize(
    ("visibility", "is_accepted"), [(Visibility.UNKNOWN, False), (Visibility.WHOLE, True)]
)
def test_a_platform_without_rights(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch, visibility: Visibility, *, is_accepted: bool
) -> None:
    monkeypatch.setattr("delta_engine.cli.commands.open_backend", lambda *_, **__: on(visibility, project))
    project.by_hand("DROP TABLE `dev`.`silver`.`orders`")
    assert absence(project) == (
        None
        if is_accepted
        else {
            "may_be_hidden": True,
            "reason": "the catalog does not show what you may see",
            "lacking": list(ALL_RIGHTS),
        }
    )
    assert project.run("drift --accept --yes").code == 0
    assert ("name: orders" not in project.models.read_text()) is is_accepted


def test_only_missing_tables_that_are_declared_cost_a_statement(project: CatalogProject) -> None:
    def asked() -> int:
        project.catalog.questions.clear()
        report(project)
        return len([sql for sql in project.catalog.questions if "current_user" in sql])

    project.by_hand("COMMENT ON TABLE `dev`.`silver`.`lines` IS 'theirs'")
    assert asked() == 0
    project.by_hand("DROP TABLE `dev`.`silver`.`orders`", "DROP TABLE `dev`.`silver`.`lines`")
    assert asked() == 2  # the principal, and the holders of the catalog: for any number of tables
    project.declare(LINES)
    project.by_hand("CREATE TABLE `dev`.`silver`.`lines` (`id` BIGINT) USING DELTA", user=ANN)
    assert asked() == 0


def test_a_revert_leaves_out_what_may_be_hidden(project: CatalogProject) -> None:
    schemas = "schemas:\n  - {catalog: dev, name: silver, comment: ours}\n"
    project.by_hand("ALTER SCHEMA `dev`.`silver` OWNER TO `ann@example.com`", user=BOSS)
    project.declare(ORDERS, LINES, schemas=schemas)
    project.sync()
    hide(project, "orders")
    project.by_hand("COMMENT ON SCHEMA `dev`.`silver` IS 'theirs'", user=ANN)
    project.by_hand("ALTER SCHEMA `dev`.`silver` OWNER TO `boss`", user=ANN)
    (advice, *_) = report(project)["recommendations"]
    assert advice["command"] == "delta-engine -e dev drift --revert"
    (revert, *_) = report(project)["schemas"][0]["alternatives"]
    assert (revert["text"], revert["command"]) == (
        "Revert it to what was applied",
        "delta-engine -e dev drift --revert -t 'dev.silver.*'",
    )
    project.catalog.statements.clear()
    done = project.run("drift --revert --yes")
    assert (done.code, project.catalog.statements) == (0, ["COMMENT ON SCHEMA `dev`.`silver` IS 'ours'"])
    assert "note: dev.silver.orders may be hidden from you. Ask for SELECT on schema" in done.stderr


def test_a_revert_of_a_named_table_creates_it_again(project: CatalogProject) -> None:
    project.by_hand("DROP TABLE `dev`.`silver`.`orders`")
    assert project.run("drift --revert --yes").code == 0
    assert "dev.silver.orders" not in project.catalog.tables
    done = project.run("drift --revert --yes -t silver.orders")
    assert (done.code, "dev.silver.orders" in project.catalog.tables) == (0, True)


def test_each_backend_says_what_it_hides() -> None:
    visibilities = [
        capabilities.visibility
        for capabilities in (DATABRICKS, DATABRICKS_SPARK, OPEN_SOURCE_CATALOG, OPEN_SOURCE)
    ]
    assert visibilities == [Visibility.BY_RIGHTS, Visibility.BY_RIGHTS, Visibility.UNKNOWN, Visibility.WHOLE]
