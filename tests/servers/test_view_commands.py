"""A table and views over it in a workspace over HTTP: made, changed, watched, accepted, undone and imported."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders.viewed_project import ALL_AT_ONCE, VIEWS, Models, write_viewed_models
from tests.fakes.governance_api import TABLES
from tests.fakes.warehouse_sql import WarehouseSql
from tests.fakes.workspace import FakeWorkspace
from tests.projects.commandline import CommandLine
from tests.servers.warehouse_project import (
    author_of,
    findings_by_kind,
    require_imported_models,
    require_nothing_to_do,
)

VIEW, READER = "dev.gold.revenue", "dev.gold.top_customers"
OTHER_QUERY = "SELECT customer_id, max(amount) AS revenue FROM dev.silver.orders GROUP BY customer_id"


@pytest.fixture
def project(empty_project: Path) -> Path:
    write_viewed_models(empty_project / "conf" / "models")
    return empty_project


def require_everything(sql: WarehouseSql) -> None:
    assert sql.catalog.failing_views() == {}
    view = sql.catalog.user_views[VIEW]
    assert [(column.name, column.comment, dict(column.tags)) for column in view.columns] == [
        ("customer_id", "The customer", {"pii": "no"}),
        ("revenue", "", {}),
    ]
    assert (view.comment, dict(view.tags)) == ("Revenue per customer", {"domain": "sales"})
    assert view.grants == {"analysts": ("SELECT",)}
    assert sql.catalog.user_views[READER].columns[0].comment == "A good customer"


def test_one_sync_makes_everything_and_leaves_nothing(
    project: Path, workspace: FakeWorkspace, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    made = delta_engine("-e", "dev", "sync", "--yes")
    assert made.code == 0, made.stderr
    require_everything(sql)
    require_nothing_to_do(delta_engine)
    if workspace.governance is not None:
        assert TABLES in workspace.governance.requests
    else:
        assert [text for text in sql.statements if "view_definition" in text]


def test_views_are_changed_watched_accepted_undone_and_imported(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    before = sql.catalog.user_views[VIEW].query
    models = project / "conf" / "models"
    write_viewed_models(models, ALL_AT_ONCE)
    refused = delta_engine("-e", "dev", "sync", "--yes")
    assert (refused.code, "drop_column" in refused.stderr) == (3, True)
    changed = delta_engine("-e", "dev", "sync", "--yes", "--allow", "drop_column")
    assert changed.code == 0, changed.stderr
    require_everything(sql)
    require_nothing_to_do(delta_engine)

    undone = delta_engine("-e", "dev", "undo", "--yes", "--allow", "drop_column")
    assert undone.code == 0, undone.stderr
    assert sql.catalog.user_views[VIEW].query == before
    write_viewed_models(models)
    require_everything(sql)
    require_nothing_to_do(delta_engine)

    sql.catalog.by_hand(
        f"ALTER VIEW {VIEW} AS {OTHER_QUERY}",
        f"REVOKE SELECT ON VIEW {VIEW} FROM `analysts`",
        f"DROP VIEW {READER}",
    )
    findings = findings_by_kind(delta_engine)
    assert {"view_query", "view_grant", "view_deleted"} <= {*findings}
    assert author_of(findings["view_query"]) == "jo"
    reverted = delta_engine("-e", "dev", "drift", "--revert", "--yes")
    assert reverted.code == 0, reverted.stderr
    require_everything(sql)
    require_nothing_to_do(delta_engine)

    sql.catalog.by_hand(f"ALTER VIEW {READER} AS SELECT customer_id FROM dev.gold.revenue")
    sql.catalog.by_hand(f"COMMENT ON COLUMN {READER}.customer_id IS 'A good customer'")
    accepted = delta_engine("-e", "dev", "drift", "--accept", "--yes")
    assert accepted.code == 0, accepted.stderr
    assert "WHERE revenue > 100" not in (models / "viewed.yml").read_text()
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    require_nothing_to_do(delta_engine)

    require_imported_models(project, sql, delta_engine, "silver", "gold")


def test_a_hidden_query_is_managed_in_its_other_parts(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    sql.catalog.hides_queries = True
    sql.catalog.user_views[VIEW] = replace(sql.catalog.user_views[VIEW], owner="jo", comment="Other")
    report = json.loads(delta_engine("-e", "dev", "drift", "--json").stdout)
    assert [finding["kind"] for finding in report["drifted"][0]["findings"]] == ["view_comment"]
    reverted = delta_engine("-e", "dev", "drift", "--revert", "--yes")
    assert reverted.code == 0, reverted.stderr
    require_everything(sql)
    require_nothing_to_do(delta_engine)


def test_what_is_no_longer_declared_stays_or_is_dropped_with_consent(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine
) -> None:
    assert delta_engine("-e", "dev", "sync", "--yes").code == 0
    write_viewed_models(project / "conf" / "models", Models(views=""))
    kept = delta_engine("-e", "dev", "plan")
    assert f"kept: view {VIEW} is no longer declared" in kept.stdout
    conf = project / "conf" / "dev.yml"
    settings = "removed_views: drop, create_schemas: true"
    conf.write_text(conf.read_text().replace("create_schemas: true", settings))
    refused = delta_engine("-e", "dev", "sync", "--yes")
    assert (refused.code, "drop_view" in refused.stderr) == (3, True)
    write_viewed_models(project / "conf" / "models", Models(views=VIEWS[: VIEWS.index("  - catalog", 20)]))
    dropped = delta_engine("-e", "dev", "sync", "--yes", "--allow=drop_view")
    assert dropped.code == 0, dropped.stderr
    assert sorted(sql.catalog.user_views) == [VIEW]
    require_nothing_to_do(delta_engine)
