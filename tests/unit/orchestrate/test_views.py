"""A table and views over it through whole commands, from a fresh project to an imported one."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from delta_engine.backends.sql_runner import Row
from tests.builders.viewed_project import (
    DROPPED,
    DROPPED_COLUMN,
    EXPAND_THEN_CONTRACT,
    NEW_COLUMN,
    PROFIT,
    QUERY,
    RENAMED,
    STEPS,
    TABLE,
    VIEWS,
    Models,
    write_viewed_models,
)
from tests.builders.worlds import Kill
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.audit import AuditLog
from tests.projects.catalog_project import CatalogProject, emptied, require_nothing_to_do
from tests.projects.commandline import CommandLine

VIEW, READER = "dev.gold.revenue", "dev.gold.top_customers"
CONSENTS = "--allow drop_column --allow drop_table --allow drop_view"
REMOVES = "removed_tables: drop, removed_views: drop"
OTHER_QUERY = "SELECT customer_id, max(amount) AS revenue FROM dev.silver.orders GROUP BY customer_id"


@pytest.fixture
def project(catalog_project: CatalogProject) -> CatalogProject:
    return declared(catalog_project)


def declared(project: CatalogProject) -> CatalogProject:
    project.catalog.schemas.pop("dev.silver", None)
    project.configure(REMOVES)
    declare(project, Models())
    return project


def declare(project: CatalogProject, models: Models) -> None:
    write_viewed_models(project.models.parent, models)


def require_everything(catalog: FakeUnityCatalog, views: str = VIEWS) -> None:
    """Check that both views work, and have all comments, tags and rights that the models give them."""
    assert catalog.failing_views() == {}
    view, reader = catalog.user_views[VIEW], catalog.user_views[READER]
    comment = "The buyer" if "The buyer" in views else "The customer"
    assert [(column.name, column.comment, dict(column.tags)) for column in view.columns] == [
        ("customer_id", comment, {"pii": "no"}),
        ("revenue", "", {}),
    ]
    assert (view.comment, dict(view.tags)) == ("Revenue per customer", {"domain": "sales"})
    assert view.grants == {"analysts": ("SELECT",)}
    assert [(column.name, column.comment) for column in reader.columns] == [
        ("customer_id", "A good customer")
    ]


def watch(catalog: FakeUnityCatalog, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """Note each statement after which a view fails, with the views that do."""
    run, broken = catalog.run, []

    def watching(sql: str) -> Sequence[Row]:
        changed = len(catalog.statements)
        rows = run(sql)
        if len(catalog.statements) > changed and (failing := catalog.failing_views()):
            broken.append((sql, failing))
        return rows

    monkeypatch.setattr(catalog, "run", watching)
    return broken


def verbs(statements: Sequence[str]) -> list[str]:
    return [" ".join(sql.split()[:2]) for sql in statements]


def test_one_sync_makes_the_table_and_then_the_views(project: CatalogProject) -> None:
    project.sync()
    assert verbs([sql for sql in project.catalog.statements if sql.startswith("CREATE")]) == [
        "CREATE SCHEMA",
        "CREATE SCHEMA",
        "CREATE TABLE",
        "CREATE VIEW",
        "CREATE VIEW",
    ]
    require_everything(project.catalog)
    require_nothing_to_do(project)


@pytest.mark.parametrize("step", STEPS)
def test_views_change_together_with_their_table_and_always_work(
    project: CatalogProject, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.sync()
    declare(project, STEPS[step])
    with monkeypatch.context() as patched:
        broken = watch(project.catalog, patched)
        project.sync(CONSENTS)
    assert broken == []
    require_everything(project.catalog)
    require_nothing_to_do(project)


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=[] if step == "entangled" else pytest.mark.long) for step in STEPS]
)
def test_a_run_that_is_killed_between_any_two_statements_is_no_drift_and_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine, step: str
) -> None:
    for place in count(1):
        project = declared(CatalogProject(tmp_path / f"killed at {place}", monkeypatch, delta_engine))
        project.sync()
        declare(project, STEPS[step])
        if not is_killed(project, monkeypatch, place, f"sync --yes {CONSENTS}"):
            break
        assert project.drift() == {}, place
        project.sync(CONSENTS)
        require_everything(project.catalog)
        require_nothing_to_do(project)
    assert place > 3


def test_a_first_run_that_is_killed_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine
) -> None:
    for place in count(1):
        project = declared(CatalogProject(tmp_path / f"killed at {place}", monkeypatch, delta_engine))
        if not is_killed(project, monkeypatch, place, "sync --yes"):
            break
        assert project.drift() == {}, place
        project.sync()
        require_everything(project.catalog)
        require_nothing_to_do(project)
    assert place > 5


def is_killed(project: CatalogProject, monkeypatch: pytest.MonkeyPatch, place: int, command: str) -> bool:
    """Run a command that is killed before the statement at a place, and say whether there was one."""
    catalog = project.catalog
    run, first = catalog.run, len(catalog.statements)

    def killed(sql: str) -> Sequence[Row]:
        if len(catalog.statements) - first >= place and not sql.startswith(("SELECT", "SHOW", "DESCRIBE")):
            raise Kill
        return run(sql)

    with monkeypatch.context() as patched:
        patched.setattr(catalog, "run", killed)
        try:
            done = project.run(command)
        except Kill:
            return True
    assert done.code == 0, done.stderr
    return False


def test_a_change_that_breaks_a_view_is_refused_with_its_file_and_line(project: CatalogProject) -> None:
    project.sync()
    declare(project, Models(table=RENAMED.table))
    refused = project.run(f"plan {CONSENTS}")
    text = " ".join(refused.stderr.split())
    assert refused.code == 3, refused.stdout
    assert VIEW in text
    assert "viewed.yml:2" in text
    assert "customer_id" in text


def test_a_partial_run_breaks_no_recorded_view_that_it_leaves_out(project: CatalogProject) -> None:
    project.sync()
    declare(project, RENAMED)
    refused = project.run("plan -t dev.silver.orders")
    text = " ".join(refused.stderr.split())
    assert refused.code == 3, refused.stdout
    assert f"view {VIEW}: it reads dev.silver.orders.customer_id, which the plan drops or renames" in text
    assert "Also select the view" in text
    project.sync("-t dev.silver.orders -t dev.gold.revenue")
    require_everything(project.catalog)
    require_nothing_to_do(project)


def test_a_view_that_is_no_longer_declared_and_stays_may_be_read(project: CatalogProject) -> None:
    project.sync()
    project.configure("removed_views: keep")
    declare(project, Models(views="views:\n" + VIEWS[VIEWS.index("  - catalog", 20) :]))
    kept = project.run("plan")
    assert kept.code == 0, kept.stderr
    assert f"kept: view {VIEW} is no longer declared" in kept.stdout


def test_another_query_with_a_star_keeps_what_others_set_on_its_columns(project: CatalogProject) -> None:
    star = VIEWS.replace("query_file: views/revenue.sql", "query: SELECT * FROM ${catalog}.silver.orders")
    star = star[: star.index("    columns:")] + "    schema_mode: type evolution\n"
    declare(project, Models(views=star))
    project.sync()
    project.by_hand(
        f"COMMENT ON COLUMN {VIEW}.id IS 'theirs'",
        f"ALTER TABLE {VIEW} ALTER COLUMN id SET TAGS ('pii' = 'no')",
    )
    declare(project, Models(views=star.replace("silver.orders", "silver.orders WHERE amount > 1")))
    project.sync()
    column = project.catalog.user_views[VIEW].columns[0]
    assert (column.name, column.comment, dict(column.tags)) == ("id", "theirs", {"pii": "no"})


@pytest.mark.parametrize("query", [QUERY, "SELECT *, id AS revenue FROM ${catalog}.silver.orders"])
def test_a_wider_type_under_a_bound_view_is_refused(project: CatalogProject, query: str) -> None:
    narrow = Models().table.replace("amount, type: bigint", "amount, type: int")
    bound = VIEWS.replace("type evolution", "binding")
    declare(project, Models(narrow, query, bound))
    project.sync()
    declare(project, Models(query=query, views=bound))
    refused = project.run("plan")
    assert refused.code == 3, refused.stdout
    message = " ".join(refused.stderr.split())
    assert f"view {VIEW}: its schema_mode is binding, so it fails after dev.silver.orders.amount" in message
    assert "Write schema_mode: type evolution" in message
    declare(project, Models(query=query))
    project.sync()
    require_nothing_to_do(project)


def test_a_wider_type_under_a_bound_view_that_a_partial_run_leaves_out_is_refused(
    project: CatalogProject,
) -> None:
    bound = VIEWS.replace("type evolution", "binding")
    declare(project, Models(Models().table.replace("amount, type: bigint", "amount, type: int"), views=bound))
    project.sync()
    declare(project, Models(views=bound))
    refused = project.run("plan -t dev.silver.orders")
    assert refused.code == 3, refused.stdout
    assert f"view {VIEW}: its schema_mode is binding" in " ".join(refused.stderr.split())
    assert "Also select the view." in refused.stderr


@pytest.mark.parametrize("mode", ["", "    schema_mode: compensation\n"])
def test_a_wider_type_under_a_view_that_casts_it_back_is_noted(project: CatalogProject, mode: str) -> None:
    views = VIEWS.replace("    schema_mode: type evolution\n", mode)
    declare(project, Models(Models().table.replace("amount, type: bigint", "amount, type: int"), views=views))
    project.sync()
    declare(project, Models(views=views))
    note = f"note: view {VIEW} returns dev.silver.orders.amount, whose type the plan widens, and keeps the types of its"
    planned = project.run("plan")
    assert planned.code == 0, planned.stderr
    assert planned.stderr.count("keeps the types") == 1
    assert note in " ".join(planned.stderr.split())
    declare(project, Models(query=QUERY.replace("sum(amount)", "CAST(amount AS int)"), views=views))
    assert "keeps the types" not in project.run("plan").stderr
    declare(project, Models())
    assert "keeps the types" not in project.run("plan").stderr


@pytest.mark.parametrize("changed", [RENAMED.table, TABLE.replace(DROPPED_COLUMN, "")])
def test_a_bound_star_over_columns_that_go_is_refused_with_what_helps(
    project: CatalogProject, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = VIEWS.index("    columns:")
    head = VIEWS[:start].replace(
        "query_file: views/revenue.sql", "query: SELECT * FROM ${catalog}.silver.orders"
    )
    declare(project, Models(views=head))
    project.sync()
    declare(project, Models(changed, views=head))
    refused = project.run(f"plan {CONSENTS}")
    text = " ".join(refused.stderr.split())
    assert refused.code == 3, refused.stdout
    assert "by *, which the plan drops or renames" in text
    assert "Replace * with the columns, or write schema_mode: evolution" in text
    declare(project, Models(changed, views=f"{head}    schema_mode: evolution\n"))
    with monkeypatch.context() as patched:
        broken = watch(project.catalog, patched)
        project.sync(CONSENTS)
    assert broken == []
    require_nothing_to_do(project)
    declare(project, Models(views=f"{head}    schema_mode: type evolution\n"))
    with monkeypatch.context() as patched:
        broken = watch(project.catalog, patched)
        project.sync(CONSENTS)
    assert broken == []
    require_nothing_to_do(project)


def test_a_conversion_under_a_view_is_refused_and_works_in_another_column(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.sync()
    text = "type: string, using: cast(amount AS STRING)}"
    declare(project, Models(TABLE.replace("amount, type: bigint}", f"amount, {text}")))
    refused = project.run("plan")
    message = " ".join(refused.stderr.split())
    assert refused.code == 3, refused.stdout
    assert f"view {VIEW}: it reads dev.silver.orders.amount, which the plan converts" in message
    assert "Write the new values to another column" in message
    added = f"      - {{name: amount_text, {text}\n"
    query = QUERY.replace("sum(amount)", "max(amount_text)")
    with monkeypatch.context() as patched:
        broken = watch(project.catalog, patched)
        for table in (
            TABLE + added,
            TABLE.replace(DROPPED_COLUMN, added.replace(", using: cast(amount AS STRING)", "")),
        ):
            declare(project, Models(table, query))
            project.sync(f"{CONSENTS} --allow backfill_column")
    assert broken == []
    require_everything(project.catalog)
    require_nothing_to_do(project)


def test_what_no_order_can_do_is_refused_and_works_in_steps(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(project, PROFIT)
    project.sync()
    declare(project, Models())
    refused = project.run(f"plan {CONSENTS}")
    assert (refused.code, "Expand, then contract" in refused.stderr) == (3, True)
    with monkeypatch.context() as patched:
        broken = watch(project.catalog, patched)
        for models in EXPAND_THEN_CONTRACT:
            declare(project, models)
            project.sync(CONSENTS)
    assert broken == []
    require_everything(project.catalog)
    require_nothing_to_do(project)


def test_a_documented_column_that_the_query_does_not_have_is_refused(project: CatalogProject) -> None:
    declare(project, Models(query=QUERY.replace("AS revenue", "AS profit")))
    refused = project.run("sync --yes")
    assert refused.code == 3
    assert "revenue" in refused.stderr
    assert project.catalog.statements == []


def test_each_part_that_is_changed_by_hand_is_drift_and_reverted(project: CatalogProject) -> None:
    project.sync()
    project.by_hand(
        f"ALTER VIEW {VIEW} AS {OTHER_QUERY}",
        f"ALTER VIEW {VIEW} WITH SCHEMA BINDING",
        f"COMMENT ON TABLE {VIEW} IS 'Other'",
        f"COMMENT ON COLUMN {VIEW}.customer_id IS 'By hand'",
        f"ALTER VIEW {VIEW} SET TAGS ('domain' = 'other')",
        f"ALTER TABLE {VIEW} ALTER COLUMN customer_id SET TAGS ('pii' = 'yes')",
        f"REVOKE SELECT ON VIEW {VIEW} FROM `analysts`",
        f"GRANT SELECT ON VIEW {VIEW} TO `others`",
    )
    assert sorted(project.drift()[f"view.{VIEW}"]) == sorted(
        [
            ("view_query", "query"),
            ("view_mode", "schema mode"),
            ("view_comment", "view comment"),
            ("view_column_comment", "column customer_id comment"),
            ("view_tag", "tag domain"),
            ("view_column_tag", "column customer_id tag pii"),
            ("view_grant", "grant SELECT to analysts"),
        ]
    )
    text = project.run("drift").stdout
    assert "query" in text
    assert "by jo" in text
    reverted = project.run("drift --revert --yes")
    assert reverted.code == 0, reverted.stderr
    require_nothing_to_do(project)
    view = project.catalog.user_views[VIEW]
    assert view.grants == {"analysts": ("SELECT",), "others": ("SELECT",)}
    project.by_hand(f"REVOKE SELECT ON VIEW {VIEW} FROM `others`")
    require_everything(project.catalog)


def test_the_audit_log_tells_who_dropped_a_view_and_changed_rights_and_tags(project: CatalogProject) -> None:
    project.sync()
    project.catalog.audit_log = AuditLog()
    project.by_hand(f"DROP VIEW {READER}")
    project.by_hand(f"REVOKE SELECT ON VIEW {VIEW} FROM `analysts`", user="kim")
    project.by_hand(f"ALTER VIEW {VIEW} SET TAGS ('domain' = 'other')", user="lee")
    project.by_hand(f"ALTER TABLE {VIEW} ALTER COLUMN customer_id SET TAGS ('pii' = 'yes')", user="max")
    report = json.loads(project.run("drift --json").stdout)
    authors = {
        finding["kind"]: finding["changed"] and finding["changed"]["who"]
        for part in (*report["drifted"], *report["deleted"])
        for finding in part["findings"]
    }
    assert authors == {
        "view_deleted": "jo",
        "view_grant": "kim",
        "view_tag": "lee",
        "view_column_tag": "max",
    }


def test_an_owner_that_is_changed_by_hand_is_drift_and_reverted(project: CatalogProject) -> None:
    declare(project, Models(views=VIEWS.replace("    tags: {domain", "    owner: data\n    tags: {domain")))
    project.sync()
    project.by_hand(f"ALTER VIEW {VIEW} OWNER TO `jo`")
    assert project.drift() == {f"view.{VIEW}": [("view_owner", "owner")]}
    assert project.run("drift --revert --yes").code == 0
    assert project.catalog.user_views[VIEW].owner == "data"
    require_nothing_to_do(project)


def test_a_deleted_view_is_drift_and_comes_back_whole(project: CatalogProject) -> None:
    project.sync()
    project.by_hand(f"DROP VIEW {VIEW}")
    assert project.drift() == {f"view.{VIEW}": [("view_deleted", "view")]}
    assert project.run("drift --revert --yes").code == 0
    require_everything(project.catalog)
    require_nothing_to_do(project)


def test_a_view_that_is_created_again_by_hand_gets_back_what_it_lost(project: CatalogProject) -> None:
    project.sync()
    project.by_hand(f"CREATE OR REPLACE VIEW {VIEW} AS {OTHER_QUERY}")
    kinds = {kind for kind, _ in project.drift()[f"view.{VIEW}"]}
    assert {"view_query", "view_comment", "view_tag", "view_grant", "view_column_tag"} <= kinds
    assert project.run("drift --revert --yes").code == 0
    require_everything(project.catalog)
    require_nothing_to_do(project)


def test_a_table_in_place_of_a_view_stops_a_sync_with_its_name(project: CatalogProject) -> None:
    project.sync()
    project.by_hand(f"DROP VIEW {READER}", f"CREATE TABLE {READER} (customer_id bigint) USING DELTA")
    assert project.drift() == {f"view.{READER}": [("view_deleted", "view")]}
    ran = len(project.catalog.statements)
    refused = project.run("drift --revert --yes")
    assert refused.code == 3, refused.stdout + refused.stderr
    text = " ".join(refused.stderr.split())
    assert READER in text
    assert "table" in text
    assert len(project.catalog.statements) == ran
    accepted = project.run(f"drift --accept --yes -t {READER}")
    assert accepted.code == 0, accepted.stderr
    assert "top_customers" not in (project.models.parent / "viewed.yml").read_text()
    require_nothing_to_do(project)


def test_a_hidden_query_is_said_once_and_never_replaced(project: CatalogProject) -> None:
    project.sync()
    project.catalog.hides_queries = True
    views = project.catalog.user_views
    views[VIEW] = replace(views[VIEW], owner="jo")
    require_nothing_to_do(project)
    shown = project.run("drift").stdout
    assert len(re.findall(rf"{VIEW}.*query", shown)) == 1, shown
    project.by_hand(f"ALTER VIEW {VIEW} AS {OTHER_QUERY}", f"COMMENT ON TABLE {VIEW} IS 'Other'")
    kinds = [kind for kind, _ in project.drift()[f"view.{VIEW}"]]
    assert "view_comment" in kinds
    assert "view_query" not in kinds
    assert project.run("drift --revert --yes").code == 0
    view = project.catalog.user_views[VIEW]
    assert (view.query, view.comment) == (OTHER_QUERY, "Revenue per customer")


def test_a_hidden_query_is_not_replaced_when_a_project_adopts_the_view(project: CatalogProject) -> None:
    project.sync()
    views = project.catalog.user_views
    views[VIEW] = replace(views[VIEW], owner="jo", query=OTHER_QUERY)
    project.catalog.hides_queries = True
    shutil.rmtree(project.config.parent.parent / ".delta-engine")
    ran = len(project.catalog.statements)
    project.sync()
    assert project.catalog.statements[ran:] == []
    assert project.catalog.user_views[VIEW].query == OTHER_QUERY


def hide_query(project: CatalogProject) -> None:
    """Give the view another owner, so that the platform hides its query from the engine."""
    views = project.catalog.user_views
    views[VIEW] = replace(views[VIEW], owner="jo")
    project.catalog.hides_queries = True


@pytest.mark.parametrize("step", ["column renamed", "column dropped", "all at once"])
def test_a_view_with_a_hidden_query_changes_in_an_order_in_which_it_always_works(
    project: CatalogProject, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.sync()
    hide_query(project)
    declare(project, STEPS[step])
    with monkeypatch.context() as patched:
        broken = watch(project.catalog, patched)
        project.sync(CONSENTS)
    assert broken == []
    require_everything(project.catalog)
    require_nothing_to_do(project)


def test_a_hidden_query_that_a_killed_run_may_have_set_is_set_back(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.sync()
    before = project.catalog.user_views[VIEW].query
    hide_query(project)
    declare(project, Models(query=OTHER_QUERY))
    assert is_killed(project, monkeypatch, 1, "sync --yes")
    assert project.catalog.user_views[VIEW].query == OTHER_QUERY
    declare(project, Models())
    project.sync()
    assert project.catalog.user_views[VIEW].query == before
    require_everything(project.catalog)
    require_nothing_to_do(project)


def test_another_hidden_query_clears_no_comment_of_a_column_that_it_lacks(project: CatalogProject) -> None:
    views = VIEWS[: VIEWS.index("  - catalog", 20)]
    declare(project, Models(views=views))
    project.sync()
    hide_query(project)
    query = "SELECT customer_id AS buyer, 1 AS revenue FROM ${catalog}.silver.orders"
    declare(project, Models(query=query, views=views.replace("name: customer_id", "name: buyer")))
    project.sync()
    assert [column.name for column in project.catalog.user_views[VIEW].columns] == ["buyer", "revenue"]
    require_nothing_to_do(project)


@pytest.mark.parametrize(
    "step",
    [
        "entangled",
        pytest.param("column renamed", marks=pytest.mark.long),
        pytest.param("all at once", marks=pytest.mark.long),
    ],
)
def test_a_killed_run_over_a_hidden_query_is_continued_in_an_order_in_which_the_view_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine, step: str
) -> None:
    for place in count(1):
        project = declared(CatalogProject(tmp_path / f"killed at {place}", monkeypatch, delta_engine))
        project.sync()
        hide_query(project)
        declare(project, STEPS[step])
        with monkeypatch.context() as patched:
            broken = watch(project.catalog, patched)
            if not is_killed(project, monkeypatch, place, f"sync --yes {CONSENTS}"):
                break
            project.sync(CONSENTS)
        assert broken == [], place
        require_everything(project.catalog)
        require_nothing_to_do(project)
    assert place > 3


def test_a_partial_run_breaks_no_view_with_a_hidden_query_that_it_leaves_out(project: CatalogProject) -> None:
    project.sync()
    hide_query(project)
    declare(project, RENAMED)
    refused = project.run("plan -t dev.silver.orders")
    assert refused.code == 3, refused.stdout
    assert f"view {VIEW}: it reads dev.silver.orders.customer_id" in " ".join(refused.stderr.split())


def test_accepted_drift_goes_into_the_model_and_the_file_of_the_query(project: CatalogProject) -> None:
    project.sync()
    project.by_hand(
        f"ALTER VIEW {VIEW} AS {OTHER_QUERY}",
        f"COMMENT ON COLUMN {VIEW}.customer_id IS 'By hand'",
        f"COMMENT ON TABLE {VIEW} IS 'Other'",
        f"ALTER TABLE {VIEW} ALTER COLUMN customer_id SET TAGS ('pii' = 'yes')",
        f"ALTER VIEW {VIEW} SET TAGS ('domain' = 'sales')",
        f"GRANT SELECT ON VIEW {VIEW} TO `analysts`",
        f"ALTER VIEW {READER} AS SELECT customer_id FROM dev.gold.revenue",
        f"COMMENT ON COLUMN {READER}.customer_id IS 'A good customer'",
    )
    accepted = project.run("drift --accept --yes")
    assert accepted.code == 0, accepted.stderr
    models = project.config.parent / "models"
    assert (models / "views" / "revenue.sql").read_text().strip() == OTHER_QUERY.replace(
        "dev.", "${catalog}."
    )
    written = (models / "viewed.yml").read_text()
    assert "comment: By hand" in written
    assert "comment: Other" in written
    assert "WHERE revenue > 100" not in written
    project.sync()
    require_nothing_to_do(project)
    assert project.catalog.user_views[VIEW].comment == "Other"


def test_an_undo_brings_back_the_query_and_the_table_of_before(project: CatalogProject) -> None:
    project.sync()
    before = project.catalog.user_views[VIEW].query
    declare(project, RENAMED)
    project.sync()
    undone = project.run("undo --yes")
    assert undone.code == 0, undone.stderr
    assert project.catalog.user_views[VIEW].query == before
    require_everything(project.catalog)
    declare(project, Models())
    require_nothing_to_do(project)


def test_an_undo_of_a_view_alone_leaves_the_rest_of_the_run(project: CatalogProject) -> None:
    project.sync()
    before = project.catalog.user_views[VIEW].query
    declare(project, Models(query=OTHER_QUERY, views=VIEWS.replace("A good customer", "Another")))
    project.sync()
    undone = project.run("undo --yes -t revenue")
    assert undone.code == 0, undone.stderr
    assert project.catalog.user_views[VIEW].query == before
    assert project.catalog.user_views[READER].columns[0].comment == "Another"


def test_an_undo_of_a_new_view_drops_it_with_consent(project: CatalogProject) -> None:
    declare(project, Models(views=VIEWS[: VIEWS.index("  - catalog", 20)]))
    project.sync()
    declare(project, Models())
    project.sync()
    assert project.run("undo --yes").code == 3
    undone = project.run("undo --yes --allow drop_view")
    assert undone.code == 0, undone.stderr
    assert sorted(project.catalog.user_views) == [VIEW]


def test_an_undo_restores_a_table_and_drops_the_view_that_its_run_created(project: CatalogProject) -> None:
    declare(project, Models(views=VIEWS[: VIEWS.index("  - catalog", 20)]))
    project.sync()
    declare(project, DROPPED)
    project.sync("--allow drop_column")
    ran = len(project.catalog.statements)
    undone = project.run("undo --yes --allow drop_view")
    assert undone.code == 0, undone.stderr
    assert "RESTORE TABLE `dev`.`silver`.`orders` TO VERSION AS OF 0" in project.catalog.statements[ran:]
    assert sorted(project.catalog.user_views) == [VIEW]
    assert project.catalog.failing_views() == {}


def test_what_exists_is_imported_into_an_empty_project_with_nothing_to_plan(project: CatalogProject) -> None:
    project.sync()
    conf = emptied(project)
    done = project.run("import dev --to conf/models/imported.yml")
    assert done.code == 0, done.stderr
    imported = (conf / "models" / "imported.yml").read_text()
    assert "name: top_customers" in imported
    assert "schema_mode: type evolution" in imported
    require_nothing_to_do(project)
    ran = len(project.catalog.statements)
    project.sync()
    assert len(project.catalog.statements) == ran
    require_nothing_to_do(project)


def test_a_project_that_adopts_what_exists_changes_nothing(project: CatalogProject) -> None:
    project.sync()
    shutil.rmtree(project.config.parent.parent / ".delta-engine")
    ran = len(project.catalog.statements)
    project.sync()
    assert len(project.catalog.statements) == ran
    require_nothing_to_do(project)


def test_adopted_views_record_the_views_that_they_read(project: CatalogProject) -> None:
    project.sync()
    shutil.rmtree(project.config.parent.parent / ".delta-engine")
    second = VIEWS.index("  - catalog", VIEWS.index("  - catalog") + 1)
    first = VIEWS.index("  - catalog")
    declare(project, Models(views=VIEWS[:first] + VIEWS[second:] + VIEWS[first:second]))
    project.sync()
    document = json.loads(project.run("state show --json").stdout)
    assert document["governance"][f"view.{READER}"]["dependencies"] == ["schema.dev.gold", f"view.{VIEW}"]


def test_a_plan_says_what_a_star_means_for_views_that_it_creates_or_changes(project: CatalogProject) -> None:
    star = "its query returns every column of dev.silver.orders by *"
    stars = Models(query="SELECT *, id AS revenue FROM ${catalog}.silver.orders")
    declare(project, stars)
    assert f"view {VIEW}: {star}" in project.run("plan").stderr
    project.sync()
    declare(project, Models(stars.table, stars.query, VIEWS.replace("Revenue per customer", "Other")))
    assert star not in project.run("plan").stderr
    declare(project, Models(query=stars.query.replace("id AS", "amount AS")))
    assert f"view {VIEW}: {star}" in project.run("plan").stderr


def test_white_space_that_the_server_changes_makes_no_plan_and_no_drift(project: CatalogProject) -> None:
    """The catalog shows other white space from the first moment; a view that was altered is shown in it, too."""
    project.sync()
    require_nothing_to_do(project)
    declare(project, Models(query=QUERY.replace("\n\n", "\n").replace("\t", "        ")))
    require_nothing_to_do(project)
    declare(project, Models(query=QUERY.replace("sum", "min")))
    project.sync()
    require_nothing_to_do(project)


def test_what_is_no_longer_declared_stays_unless_the_policy_drops_it_with_consent(
    project: CatalogProject,
) -> None:
    project.sync()
    project.configure("removed_views: keep")
    declare(project, Models(views=""))
    kept = project.run("plan")
    assert kept.code == 0, kept.stderr
    assert f"view {VIEW}" in kept.stdout + kept.stderr
    project.configure(REMOVES)
    assert project.run("sync --yes").code == 3
    assert sorted(project.catalog.user_views) == [VIEW, READER]
    ran = len(project.catalog.statements)
    project.sync("--allow drop_view")
    assert project.catalog.statements[ran:] == [
        "DROP VIEW `dev`.`gold`.`top_customers`",
        "DROP VIEW `dev`.`gold`.`revenue`",
    ]
    require_nothing_to_do(project)


def test_a_view_that_no_model_declares_is_reported(project: CatalogProject) -> None:
    project.sync()
    project.by_hand("CREATE VIEW dev.gold.mine AS SELECT id FROM dev.silver.orders")
    report = json.loads(project.run("drift --json").stdout)
    assert [resource["resource"] for resource in report["unmanaged"]] == ["view.dev.gold.mine"]
    command = "import dev.gold.mine --to conf/models/gold.mine.yml"
    assert f"delta-engine -e dev {command}" in project.run("drift").stdout
    assert project.run(command).code == 0
    assert project.run("plan --detailed-exitcode").code == 0


def test_a_renamed_view_keeps_its_rights(project: CatalogProject) -> None:
    project.sync()
    views = VIEWS.replace("name: revenue\n", "name: income\n    renamed_from: revenue\n")
    declare(project, Models(views=views.replace("gold.revenue WHERE", "gold.income WHERE")))
    project.sync()
    assert sorted(project.catalog.user_views) == ["dev.gold.income", READER]
    assert project.catalog.user_views["dev.gold.income"].grants == {"analysts": ("SELECT",)}
    assert not [sql for sql in project.catalog.statements if sql.startswith("DROP")]
    require_nothing_to_do(project)


RENAMED_VIEW = Models(
    views=VIEWS.replace("name: revenue\n", "name: income\n    renamed_from: revenue\n")
    .replace("gold.revenue WHERE", "gold.income WHERE")
    .replace("domain: sales", "domain: money")
)
RENAMES_BACK = "ALTER VIEW `dev`.`gold`.`income` RENAME TO `dev`.`gold`.`revenue`"


def test_an_undo_gives_a_renamed_view_its_former_name(project: CatalogProject) -> None:
    project.sync()
    declare(project, RENAMED_VIEW)
    project.sync()
    ran = len(project.catalog.statements)
    undone = project.run("undo --yes")
    assert undone.code == 0, undone.stderr
    assert RENAMES_BACK in project.catalog.statements[ran:]
    assert sorted(project.catalog.user_views) == [VIEW, READER]
    require_everything(project.catalog)
    assert "view.dev.gold.income" not in project.run("state list").stdout
    declare(project, Models())
    require_nothing_to_do(project)
    again = project.run("undo --yes")  # of the undo
    assert again.code == 0, again.stderr
    assert sorted(project.catalog.user_views) == ["dev.gold.income", READER]
    declare(project, RENAMED_VIEW)
    require_nothing_to_do(project)


def test_an_undo_gives_a_view_its_name_that_a_killed_run_renamed(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.sync()
    declare(project, RENAMED_VIEW)
    assert is_killed(project, monkeypatch, 1, "sync --yes")
    assert sorted(project.catalog.user_views) == ["dev.gold.income", READER]
    project.sync()
    require_nothing_to_do(project)
    undone = project.run("undo --yes")
    assert undone.code == 0, undone.stderr
    assert sorted(project.catalog.user_views) == [VIEW, READER]
    require_everything(project.catalog)
    declare(project, Models())
    require_nothing_to_do(project)


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("commands", [["sync"], ["undo"], ["state sync", "undo"]])
def test_a_killed_undo_of_a_renamed_view_is_no_drift_and_is_continued(
    project: CatalogProject, monkeypatch: pytest.MonkeyPatch, commands: Sequence[str], place: int
) -> None:
    project.sync()
    declare(project, RENAMED_VIEW)
    project.sync()
    assert is_killed(project, monkeypatch, place, "undo --yes")
    assert VIEW in project.catalog.user_views
    for command in commands:
        assert project.drift() == {}
        done = project.run(command if command == "state sync" else f"{command} --yes")
        assert done.code == 0, done.stderr
    is_undone = commands[-1] == "undo"
    name = VIEW if is_undone else "dev.gold.income"
    assert sorted(project.catalog.user_views) == [name, READER]
    assert project.catalog.user_views[name].grants == {"analysts": ("SELECT",)}
    declare(project, Models() if is_undone else RENAMED_VIEW)
    require_nothing_to_do(project)


@pytest.mark.parametrize("is_done", [True, False])
def test_both_records_of_a_view_that_a_killed_undo_was_renaming_are_forgotten(
    project: CatalogProject, is_done: bool
) -> None:
    project.sync()
    declare(project, RENAMED_VIEW)
    project.sync()
    project.kill("undo --yes", RENAMES_BACK, is_done=is_done)
    removed = project.run("state rm view.dev.gold.income --yes")
    assert removed.stdout == f"- view.dev.gold.income\n- view.{VIEW}\nforgot 2 resources\n"
    project.sync()
    assert sorted(project.catalog.user_views) == ["dev.gold.income", READER]
    assert project.catalog.user_views["dev.gold.income"].grants == {"analysts": ("SELECT",)}
    require_nothing_to_do(project)


def test_the_undo_of_an_older_engine_s_rename_says_how_to_rename_back(project: CatalogProject) -> None:
    project.sync()
    declare(project, RENAMED_VIEW)
    project.sync()
    document = next((project.config.parent.parent / ".delta-engine" / "state").glob("*.state.json"))
    text = document.read_text()
    assert '"former": "dev.gold.revenue"' in text
    document.write_text(re.sub(r',\s*"former": "dev.gold.revenue"', "", text))
    refused = project.run("undo --yes")
    assert refused.code == 3
    assert "view dev.gold.income: no run had recorded it under this name before" in refused.stderr
    assert "If the run renamed it, rename it back in its model, and sync" in refused.stderr


def test_a_reviewed_plan_is_applied_and_a_stale_one_refused(project: CatalogProject) -> None:
    project.sync()
    declare(project, DROPPED)
    planned = project.run(f"plan --out plan.json {CONSENTS}")
    assert planned.code == 0, planned.stderr
    applied = project.run("apply plan.json --yes")
    assert applied.code == 0, applied.stderr
    require_everything(project.catalog)
    require_nothing_to_do(project)
    declare(project, Models(DROPPED.table, DROPPED.query.replace("count(id)", "max(id)")))
    assert project.run("plan --out plan.json").code == 0
    project.by_hand(f"ALTER VIEW {VIEW} AS SELECT customer_id, 1 AS revenue FROM dev.silver.orders")
    stale = project.run("apply plan.json --yes")
    assert stale.code == 3
    assert "the plan is stale" in stale.stderr


def test_the_state_has_views_and_what_they_read(project: CatalogProject) -> None:
    project.sync()
    assert f"view.{VIEW}" in project.run("state list").stdout
    document = json.loads(project.run("state show --json").stdout)
    record = document["governance"][f"view.{VIEW}"]
    assert record["metadata"]["declared"]["query"].startswith("SELECT\n\tcustomer_id")
    assert record["dependencies"] == ["schema.dev.gold", "table.dev.silver.orders"]
    assert document["governance"][f"view.{READER}"]["dependencies"] == ["schema.dev.gold", f"view.{VIEW}"]
    removed = project.run(f"state rm view.{VIEW} --yes")
    assert removed.code == 0, removed.stderr
    assert f"view.{VIEW}" not in project.run("state list").stdout
    project.sync()
    assert f"view.{VIEW}" in project.run("state list").stdout
    require_nothing_to_do(project)


def test_a_project_without_views_asks_nothing_about_them(project: CatalogProject) -> None:
    declare(project, Models(views=""))
    project.sync()
    require_nothing_to_do(project)
    assert not [sql for sql in project.catalog.questions if "view_definition" in sql]


@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_documented_column_that_came_after_the_star_is_returned(
    project: CatalogProject, is_hidden: bool
) -> None:
    star = VIEWS.replace("query_file: views/revenue.sql", "query: SELECT * FROM ${catalog}.silver.orders")
    star = star[: star.index("    columns:")] + "    schema_mode: type evolution\n"
    declare(project, Models(views=star))
    project.sync()
    if is_hidden:
        hide_query(project)
    documented = star + "    columns: [{name: discount, comment: The discount}]\n"
    declare(project, Models(TABLE + NEW_COLUMN, views=documented))
    planned = project.run("plan")
    assert planned.code == 0, planned.stderr
    assert "+ columns of *: discount" in planned.stdout
    project.sync()
    column = project.catalog.user_views[VIEW].columns[-1]
    assert (column.name, column.comment) == ("discount", "The discount")
    require_nothing_to_do(project)


def test_a_report_says_what_becomes_of_a_view_that_is_to_be_renamed(project: CatalogProject) -> None:
    """The record has the former name: it says that the engine may clear the comment."""
    project.sync()
    views = VIEWS.replace("name: revenue\n", "name: income\n    renamed_from: revenue\n")
    declare(project, Models(views=views.replace("    comment: Revenue per customer\n", "")))
    report = json.loads(project.run("drift --json").stdout)
    (pending,) = report["pending"]
    assert pending["resource"] == "view.dev.gold.income"
    assert [(change["field"], change["observed"], change["desired"]) for change in pending["changes"]] == [
        ("view name", "dev.gold.revenue", "dev.gold.income"),
        ("view comment", "'Revenue per customer'", "''"),
    ]
