"""Whole runs on Databricks: from models to statements, and back through the views and descriptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.deployment.deployment import Deployment
from delta_engine.errors import CatalogReadError
from delta_engine.models import CheckConstraint, Column, PrimaryKey, Table
from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.importing import import_tables
from delta_engine.orchestrate.orchestrator import Orchestrator
from delta_engine.ownership.recorded import Status
from tests.builders import engines
from tests.builders.deployment import FACTS, deployment_over, recorded_table
from tests.builders.models import WORKED_MODEL, orders
from tests.fakes.unity_catalog import FakeUnityCatalog

KEY = "table.dev.silver.orders"


@pytest.fixture
def catalog() -> FakeUnityCatalog:
    return FakeUnityCatalog()


def engine_over(catalog: FakeUnityCatalog, deployment: Deployment | None = None) -> Orchestrator:
    backend = databricks_backend(catalog, parallelism=1)
    return engines.engine_over(backend, deployment, parallelism=1, with_histories=True)


def test_the_worked_example_converges(catalog: FakeUnityCatalog) -> None:
    """The design guide's example (§12): an existing table gets a column, NOT NULL, a key and comments."""
    catalog.run("CREATE TABLE dev.silver.orders (id BIGINT, created_ts TIMESTAMP) USING delta")
    engine = engine_over(catalog)
    (outcome,) = engine.sync_tables([WORKED_MODEL])
    assert outcome.statements == 6
    assert not engine.plan_tables([WORKED_MODEL])
    state = databricks_backend(catalog).reader.snapshot([WORKED_MODEL]).tables["dev.silver.orders"]
    assert (state.columns, state.table_comment) == (WORKED_MODEL.columns, "Orders table")
    assert state.primary_key == PrimaryKey(("id",), "pk_dev_silver_orders__id")


def test_texts_in_expressions_keep_their_meaning(catalog: FakeUnityCatalog) -> None:
    """Delta's parser of CHECK takes a doubled quote for two literals, and does not know raw literals."""
    model = Table(
        "dev",
        "silver",
        "quoted",
        [
            Column("status", "string", default="'it''s'"),
            Column("shout", "string", generated_as="concat(status, r'\\', \"it's\")"),
        ],
        checks=[CheckConstraint("known", "status IN ('new', 'it''s', '${x}')")],
    )
    engine = engine_over(catalog)
    engine.sync_tables([model])
    state = databricks_backend(catalog).reader.snapshot([model]).tables["dev.silver.quoted"]
    assert [check.expression for check in state.checks] == [r"( status IN ('new', 'it\'s', '$\{x}') )"]
    assert state.columns[0].default == r"( 'it\'s' )"
    assert state.columns[1].generated_as == r"CONCAT(status, '\\', 'it\'s')"
    assert not engine.plan_tables([model])


def test_a_check_that_delta_split_is_made_again(catalog: FakeUnityCatalog) -> None:
    model = Table(
        "dev",
        "silver",
        "quoted",
        [Column("status", "string")],
        checks=[CheckConstraint("known", "status <> 'it''s'")],
    )
    catalog.run("CREATE TABLE dev.silver.quoted (status STRING) USING delta")
    catalog.run("ALTER TABLE dev.silver.quoted ADD CONSTRAINT known CHECK (status <> 'it''s')")
    engine = engine_over(catalog)
    assert engine.plan_tables([model])
    engine.sync_tables([model])
    assert catalog.statements[-1].endswith(r"CHECK (status <> 'it\'s')")
    assert not engine.plan_tables([model])


def test_drift_costs_few_statements_and_names_its_author(catalog: FakeUnityCatalog, tmp_path: Path) -> None:
    engine = engine_over(catalog, deployment_over(tmp_path))
    models = [WORKED_MODEL, Table("dev", "silver", "days", [Column("day", "date")], cluster_by=["day"])]
    engine.sync_tables(models)

    def findings() -> dict[str, tuple[str, str | None]]:
        all_findings = report_drift(engine, models).findings()
        return {
            f"{resource.rsplit('.', 1)[1]} {finding.field}": (
                finding.severity.value,
                finding.changed.who if finding.changed else None,
            )
            for resource, finding in all_findings
        }

    catalog.questions.clear()
    assert findings() == {}
    assert len(catalog.questions) == 13 + 2  # the views, and each table

    catalog.user = "bob"
    catalog.run("ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `pk_dev_silver_orders__id`")
    catalog.run("ALTER TABLE `dev`.`silver`.`days` CLUSTER BY NONE")
    catalog.run("CREATE TABLE `dev`.`silver`.`stranger` (`a` int) USING delta")
    assert findings() == {
        "orders primary key pk_dev_silver_orders__id": ("medium", None),
        "days clustering": ("medium", "bob"),
        "stranger table": ("low", "bob"),
    }
    catalog.run("DROP TABLE `dev`.`silver`.`days`")
    assert findings()["days table"] == ("high", None)


def test_a_schema_is_imported_with_a_listing_and_one_snapshot(catalog: FakeUnityCatalog) -> None:
    for number in range(5):
        catalog.run(
            f"CREATE TABLE `dev`.`silver`.`t{number}` (`Id` bigint NOT NULL, `x` decimal(18,2) COMMENT 'it\\'s', "
            f"CONSTRAINT `pk_dev_silver_t{number}__id` PRIMARY KEY (`Id`)) USING delta TBLPROPERTIES ('a' = 'b')"
        )
    backend = databricks_backend(catalog, parallelism=1)
    imported = import_tables(backend, "dev.silver")
    assert [str(table.qualified_name) for table in imported.tables] == [f"dev.silver.t{n}" for n in range(5)]
    assert imported.refusals == ()
    of_functions_and_policies = 3 + 1  # views, and the policies of the schema
    assert len(catalog.questions) == 2 + 13 + 5 + of_functions_and_policies
    assert imported.tables[0].primary_key == PrimaryKey(["Id"])
    assert not engine_over(catalog).plan_tables(imported.tables)
    assert import_tables(backend, "dev.silver.t3").tables == (imported.tables[3],)


def test_recording_an_unchanged_run_asks_nothing(catalog: FakeUnityCatalog, tmp_path: Path) -> None:
    deployment = deployment_over(tmp_path)
    engine = engine_over(catalog, deployment)
    engine.sync_tables([WORKED_MODEL])
    first = deployment.peek()
    assert first is not None
    resource = first.state.resources[KEY]
    assert (resource.status, resource.deployed_by) == (Status.HEALTHY, FACTS.who)
    metadata = recorded_table(first.state, KEY)
    version = (metadata.delta_table_id, metadata.delta_version)
    assert version == ("id of dev.silver.orders", 0)

    catalog.questions.clear()
    engine.sync_tables([WORKED_MODEL])
    assert len(catalog.questions) == 13 + 1
    assert deployment.peek() == first

    catalog.run("CREATE TABLE dev.silver.temp (id INT) USING delta")
    engine.sync_tables([orders(*WORKED_MODEL.columns, comment="new", primary_key=["id"])])
    again = deployment.peek()
    assert again is not None
    assert again.state.resources["table.dev.silver.temp"].status is Status.UNMANAGED
    assert recorded_table(again.state, KEY).delta_version == 2
    assert not any(sql.startswith("DESCRIBE DETAIL") for sql in catalog.questions)


def test_keys_are_compared_without_case(catalog: FakeUnityCatalog) -> None:
    """`key_column_usage` lowers names: the reader joins without case, so that nothing is planned."""
    columns = [Column("B", "int", is_nullable=False), Column("a", "int", is_nullable=False)]
    model = orders(*columns, primary_key=PrimaryKey(["B", "a"], "my_key"))
    engine_over(catalog).sync_tables([model])
    state = databricks_backend(catalog).reader.snapshot([model]).tables["dev.silver.orders"]
    assert state.primary_key == PrimaryKey(("B", "a"), "my_key")
    assert not engine_over(catalog).plan_tables([model])


def test_a_catalog_that_does_not_exist(catalog: FakeUnityCatalog) -> None:
    with pytest.raises(CatalogReadError, match="catalog 'nowhere'"):
        engine_over(catalog).plan_tables([Table("nowhere", "silver", "t", [Column("id", "int")])])


def test_a_key_of_a_table_that_it_made_is_reordered_without_a_deployment_state(
    catalog: FakeUnityCatalog,
) -> None:
    engine = engine_over(catalog)
    columns = [Column(name, "int", is_nullable=False) for name in ("a", "b")]
    engine.sync_tables([Table("dev", "silver", "pairs", columns, primary_key=["a", "b"])])
    engine.sync_tables([Table("dev", "silver", "pairs", columns, primary_key=["b", "a"])])
    key = catalog.tables["dev.silver.pairs"].state.primary_key
    assert key is not None
    assert key.columns == ("b", "a")
