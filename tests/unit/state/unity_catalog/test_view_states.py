"""Views in a snapshot: what they cost, and what is unreadable, in SQL and with a listing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from delta_engine.errors import CatalogReadError, RefusalGroup, StatementError
from delta_engine.models import Column, Schema, Securable, Table
from delta_engine.models.views import SchemaMode, View, ViewColumn, ViewName
from delta_engine.sql.views import sql_create_view, sql_set_view_column_comment
from delta_engine.state.catalog_reader import readable_snapshot, snapshot_with_former_names
from delta_engine.state.states import CatalogState
from delta_engine.state.unity_catalog_reader import UnityCatalogReader
from delta_engine.state.view_states import ABSENT_VIEW, view_state_of
from tests.fakes.faulty import Faulty
from tests.fakes.governance_api import as_table_info
from tests.fakes.unity_catalog import FakeUnityCatalog

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import TableInfo

TABLE = Table("dev", "silver", "t", [Column("id", "int", comment="the id"), Column("name", "string")])
REVENUE = View(
    "dev",
    "gold",
    "Revenue",
    "SELECT id, name AS customer FROM dev.silver.t",
    [ViewColumn("id", "the id", tags={"pii": "no"}), ViewColumn("customer", "it's")],
    schema_mode="type evolution",
    comment="Revenue",
    tags={"domain": "sales"},
    owner="ann@example.com",
    grants={"analysts": ["SELECT"]},
)
PLAIN = View("dev", "gold", "plain", "SELECT\t1 AS a,\n\n\n2 AS b")
OF_VIEWS = (".columns", ".table_tags", ".column_tags", ".table_privileges", ".views")
JSON = ("AS JSON",)


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    made = FakeUnityCatalog(schemas=["dev.gold", "dev.silver"])
    made.run("CREATE TABLE `dev`.`silver`.`t` (`id` INT COMMENT 'the id', `name` STRING) USING delta")
    for view in (REVENUE, PLAIN):
        made.run(sql_create_view(view))
    made.run("ALTER VIEW `dev`.`gold`.`revenue` SET TAGS ('domain' = 'sales')")
    made.run("ALTER TABLE `dev`.`gold`.`revenue` ALTER COLUMN `id` SET TAGS ('pii' = 'no')")
    made.run("GRANT SELECT ON VIEW `dev`.`gold`.`revenue` TO `analysts`")
    made.questions.clear()
    return made


@pytest.fixture
def runner(catalog: FakeUnityCatalog) -> Faulty:
    return Faulty(catalog)


class CatalogListing:
    """Lists the views of a fake catalog as databricks-sdk does."""

    def __init__(self, catalog: FakeUnityCatalog) -> None:
        self.catalog = catalog
        self.asked: list[tuple[str, str]] = []
        self.is_down = False

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterator[TableInfo]:
        from databricks.sdk.errors import PermissionDenied
        from databricks.sdk.service.catalog import TableInfo

        self.asked.append((catalog_name, schema_name))
        if self.is_down:
            raise PermissionDenied("no")
        for key, (view, is_owner) in self.catalog._shown_views().items():
            if key.startswith(f"{catalog_name}.{schema_name}."):
                yield TableInfo.from_dict({**as_table_info(view, is_owner=is_owner)})


def asked(catalog: FakeUnityCatalog, *words: str) -> list[str]:
    return [sql for sql in catalog.questions if any(word in sql for word in words)]


def views_in(runner: Faulty | FakeUnityCatalog, *models: Securable) -> CatalogState:
    return UnityCatalogReader(runner).snapshot(models)


def refusal(runner: Faulty, *models: Securable) -> str:
    with pytest.raises(CatalogReadError) as caught:
        views_in(runner, *models)
    return str(caught.value)


def error(error_class: str) -> StatementError:
    return StatementError("no", sql="", error_class=error_class)


def test_a_project_without_views_asks_no_question_about_them(catalog: FakeUnityCatalog) -> None:
    UnityCatalogReader(catalog).snapshot([TABLE, Schema("dev", "gold")])
    assert not asked(catalog, ".views", "gold`.`")
    assert len(asked(catalog, *JSON)) == 1


def test_views_cost_one_view_more_and_a_description_for_each_declared_mode(catalog: FakeUnityCatalog) -> None:
    reader = UnityCatalogReader(catalog)
    reader.snapshot([TABLE, Schema("dev", "gold")])
    before = len(catalog.questions)
    catalog.questions.clear()
    reader.snapshot([TABLE, Schema("dev", "gold"), REVENUE, PLAIN])
    assert len(asked(catalog, ".views")) == 1
    assert len(asked(catalog, *JSON)) == 2
    assert len(catalog.questions) == before + 2


def test_without_tables_only_the_views_about_views_are_asked(catalog: FakeUnityCatalog) -> None:
    views_in(catalog, PLAIN)
    of_views = [word for word in OF_VIEWS for _ in asked(catalog, f"information_schema{word}\n")]
    assert of_views == [*OF_VIEWS]
    assert not asked(catalog, ".table_constraints", ".row_filters", *JSON)


def test_a_missing_view_costs_nothing(catalog: FakeUnityCatalog) -> None:
    missing, elsewhere = View("dev", "gold", "no", "SELECT 1 AS a"), View("dev", "no", "v", "SELECT 1 AS a")
    state = views_in(catalog, missing, elsewhere)
    assert state.views == {missing.key: ABSENT_VIEW, elsewhere.key: ABSENT_VIEW}
    assert state.missing_schemas == {("dev", "no")}
    assert not asked(catalog, ".columns", ".views", *JSON)


@pytest.mark.parametrize("directly", [False, True])
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_view_is_read_as_it_was_made(catalog: FakeUnityCatalog, is_listed: bool, directly: bool) -> None:
    listing = CatalogListing(catalog) if is_listed else None
    reader = UnityCatalogReader(catalog, listing=listing)
    read = reader.snapshot_directly if directly else reader.snapshot
    views = read([TABLE, REVENUE, PLAIN]).views
    assert views[REVENUE.key] == view_state_of(REVENUE)
    plain = views[PLAIN.key]
    assert plain.query == (PLAIN.query if directly else "SELECT    1 AS a,\n2 AS b")
    assert plain.schema_mode is (SchemaMode.COMPENSATION if is_listed or directly else None)
    if listing is not None and not directly:
        assert sorted(listing.asked) == [("dev", "gold"), ("dev", "silver")]
        assert len(asked(catalog, *JSON)) == 1  # the table, which the listing lacks
    else:
        assert len(asked(catalog, *JSON)) == (3 if directly else 2)


def test_the_fake_catalog_reads_itself_as_the_reader_reads_it(catalog: FakeUnityCatalog) -> None:
    models = [REVENUE, PLAIN, View("dev", "gold", "no", "SELECT 1 AS a")]
    reader = UnityCatalogReader(catalog, listing=CatalogListing(catalog))
    assert catalog.snapshot(models).views == reader.snapshot(models).views


def test_a_listing_that_fails_is_replaced_by_descriptions(catalog: FakeUnityCatalog) -> None:
    listing = CatalogListing(catalog)
    listing.is_down = True
    state = UnityCatalogReader(catalog, listing=listing).snapshot([REVENUE])
    assert state.views[REVENUE.key] == view_state_of(REVENUE)


@pytest.mark.parametrize("is_listed", [False, True])
def test_the_query_of_another_owner_is_unknown_and_all_else_is_read(
    catalog: FakeUnityCatalog, is_listed: bool
) -> None:
    catalog.hides_queries, catalog.user = True, "eve"
    reader = UnityCatalogReader(catalog, listing=CatalogListing(catalog) if is_listed else None)
    plain = replace(REVENUE, schema_mode=None)
    state = reader.snapshot([plain]).views[plain.key]
    assert state == replace(view_state_of(REVENUE), query=None, schema_mode=state.schema_mode)


def test_an_old_runtime_reads_all_but_the_mode(catalog: FakeUnityCatalog) -> None:
    catalog.knows_json = False
    assert views_in(catalog, REVENUE).views[REVENUE.key] == replace(view_state_of(REVENUE), schema_mode=None)


def test_a_view_that_cannot_be_described_is_read_from_rows(runner: Faulty) -> None:
    runner.refused["AS JSON"] = error("INTERNAL_ERROR_VIEW")
    assert views_in(runner, REVENUE).views[REVENUE.key] == replace(view_state_of(REVENUE), schema_mode=None)


def test_a_view_that_just_changed_is_not_read_from_views_that_lag(runner: Faulty) -> None:
    for view in ("tables", "columns", "views"):
        runner.changed[f"information_schema.{view}\n"] = lambda rows: ()
    state = UnityCatalogReader(runner).snapshot_directly(
        [REVENUE, View("dev", "gold", "gone", "SELECT 1 AS a")]
    )
    assert state.views == {
        REVENUE.key: replace(view_state_of(REVENUE)),
        "dev.gold.gone": ABSENT_VIEW,
    }


def test_the_comment_of_a_column_is_that_of_the_view(catalog: FakeUnityCatalog) -> None:
    catalog.run(sql_set_view_column_comment(REVENUE.qualified_name, "id", "mine"))
    (column, _) = views_in(catalog, REVENUE).views[REVENUE.key].columns
    assert column == ViewColumn("id", "mine", tags={"pii": "no"})


def test_grants_that_the_views_hide_are_asked_for(catalog: FakeUnityCatalog, runner: Faulty) -> None:
    runner.changed[".table_privileges"] = lambda rows: ()
    assert views_in(runner, REVENUE).views[REVENUE.key].grants == {"analysts": ("SELECT",)}
    assert asked(catalog, "SHOW GRANTS") == ["SHOW GRANTS ON VIEW `dev`.`gold`.`revenue`"]


def test_a_table_where_a_view_is_declared_and_a_view_where_a_table_is_are_refused(
    catalog: FakeUnityCatalog, runner: Faulty
) -> None:
    of_table = View("dev", "silver", "t", "SELECT 1 AS a")
    assert refusal(runner, of_table) == (
        "view dev.silver.t: there is a table of this name (managed, DELTA). "
        "Rename the view in the model, or drop the table."
    )
    with pytest.raises(
        CatalogReadError, match=r"table dev\.gold\.plain: it exists, but it is a view, not a Delta"
    ):
        UnityCatalogReader(catalog).snapshot([Table("dev", "gold", "plain", [])])


@pytest.mark.parametrize("kind", ["MATERIALIZED_VIEW", "METRIC_VIEW"])
def test_other_views_stay_other_relations_and_are_refused_if_declared(runner: Faulty, kind: str) -> None:
    runner.changed[".tables\n"] = lambda rows: [
        {**row, "table_type": kind} if row["table_name"] == "plain" else row for row in rows
    ]
    word = kind.lower().replace("_", " ")
    assert refusal(runner, PLAIN).startswith(
        f"view dev.gold.plain: it is a {word}, which the engine does not manage"
    )
    listing = UnityCatalogReader(runner).relations_in("dev")
    assert listing.views == (ViewName("dev", "gold", "revenue"),)
    assert {str(name): other for name, other in listing.others.items()} == {"dev.gold.plain": word}


def test_an_unreadable_view_leaves_the_others(runner: Faulty) -> None:
    runner.changed["information_schema.columns\n"] = lambda rows: [
        row for row in rows if row["table_name"] != "plain"
    ]
    with pytest.raises(CatalogReadError, match=r"view dev\.gold\.plain: its columns are not visible to you"):
        views_in(runner, REVENUE, PLAIN)
    state, (unreadable,) = readable_snapshot(UnityCatalogReader(runner), [REVENUE, PLAIN])
    assert unreadable.securable == "view dev.gold.plain"
    assert [*state.views] == [REVENUE.key]


def test_a_lost_server_is_no_refusal_of_a_view(runner: Faulty) -> None:
    runner.refused["AS JSON"] = error("WAREHOUSE_UNREACHABLE")
    with pytest.raises(StatementError, match=r"reading view dev\.gold\.Revenue failed"):
        views_in(runner, REVENUE)


def test_a_view_is_found_under_its_former_name(catalog: FakeUnityCatalog) -> None:
    reader = UnityCatalogReader(catalog)
    renamed = replace(PLAIN, view_name="renamed", renamed_from=("never", "plain"))
    state = snapshot_with_former_names(reader, [renamed]).views[renamed.key]
    assert (state.exists, str(state.former_name)) == (True, "dev.gold.plain")
    absent = replace(PLAIN, view_name="absent", renamed_from=("never",))
    assert snapshot_with_former_names(reader, [absent]).views[absent.key] == ABSENT_VIEW


def test_the_views_of_schemas_are_read_whole_for_an_import(catalog: FakeUnityCatalog) -> None:
    reader = UnityCatalogReader(catalog)
    listing = reader.relations_in("dev")
    assert [str(name) for name in listing.views] == ["dev.gold.plain", "dev.gold.revenue"]
    state, refusals = reader.governed_in("dev", listing.schemas, listing.views)
    assert refusals == ()
    assert state.views[REVENUE.key] == view_state_of(REVENUE)
    assert state.views[PLAIN.key].schema_mode is SchemaMode.COMPENSATION
    catalog.questions.clear()
    reader.governed_in("dev", ["silver"], ())
    assert not asked(catalog, ".views", *JSON)


def test_rows_that_are_not_whole_refuse_their_view(runner: Faulty) -> None:
    runner.changed["information_schema.columns\n"] = lambda rows: [
        {**row, "column_name": None} for row in rows
    ]
    with pytest.raises(RefusalGroup, match="column_name is None"):
        views_in(runner, replace(REVENUE, schema_mode=None), PLAIN)
