"""Drift on the Unity Catalog in miniature: real SQL, and what its information_schema knows of people."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.execute.action_runner import ActionRunner
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.orchestrate.backend import databricks_backend
from delta_engine.orchestrate.importing import import_tables
from delta_engine.orchestrate.orchestrator import Orchestrator
from tests.builders import WORKED_MODEL
from tests.deployment_builders import deployment_over
from tests.integration.unity_catalog import MiniatureUnityCatalog

pytestmark = pytest.mark.integration


def test_drift_is_found_with_few_statements_and_the_last_writer_is_named_as_such(
    unity_catalog: MiniatureUnityCatalog, tmp_path: Path
) -> None:
    backend = databricks_backend(unity_catalog, parallelism=1)
    engine = Orchestrator(
        reader=backend.reader,
        action_runner=ActionRunner(unity_catalog, backend.addressing, backend.capabilities, parallelism=1),
        deployment=deployment_over(tmp_path),
        versions=backend.versions,
        history=backend.history,
    )
    clustered = Table("dev", "silver", "days", [Column("day", "date")], cluster_by=["day"])
    models = [WORKED_MODEL, clustered]
    engine.sync_tables(models)

    def findings() -> dict[str, tuple[str, str | None, str | None]]:
        report = engine.drift_report(models, environment="test")
        return {
            f"{resource.rsplit('.', 1)[1]} {one.field}": (
                one.severity.value,
                one.changed.who if one.changed else None,
                one.last_written.who if one.last_written else None,
            )
            for resource, one in report.findings()
        }

    unity_catalog.statements.clear()
    assert findings() == {}
    assert not [
        sql for sql in unity_catalog.statements if sql.startswith(("DESCRIBE HISTORY", "DESCRIBE DETAIL"))
    ]
    assert len(unity_catalog.statements) == 13 + 2  # the views, and each table

    unity_catalog.run("ALTER TABLE `dev`.`silver`.`orders` DROP CONSTRAINT `pk_dev_silver_orders__id`")
    unity_catalog.run("ALTER TABLE `dev`.`silver`.`days` CLUSTER BY NONE")
    unity_catalog.run("CREATE TABLE `dev`.`silver`.`stranger` (`a` int) USING delta")
    assert findings() == {
        "orders primary key pk_dev_silver_orders__id": ("medium", None, "bob"),
        "days clustering": ("medium", None, "bob"),
        "stranger table": ("low", "ann", None),
    }

    unity_catalog.run("DROP TABLE `dev`.`silver`.`days`")
    assert findings()["days table"] == ("high", None, None)


def test_a_schema_is_imported_with_a_listing_and_one_snapshot(unity_catalog: MiniatureUnityCatalog) -> None:
    backend = databricks_backend(unity_catalog, parallelism=1)
    for number in range(5):
        unity_catalog.run(
            f"CREATE TABLE `dev`.`silver`.`t{number}` (`Id` bigint NOT NULL, `x` decimal(18,2) COMMENT 'it\\'s', "
            f"CONSTRAINT `pk_dev_silver_t{number}__id` PRIMARY KEY (`Id`)) USING delta TBLPROPERTIES ('a' = 'b')"
        )
    unity_catalog.foreign_tables.append(("silver", "a_view", "VIEW"))
    unity_catalog.statements.clear()
    imported = import_tables(backend, "dev.silver")
    assert [str(table.qualified_name) for table in imported.tables] == [f"dev.silver.t{n}" for n in range(5)]
    assert imported.refusals == ()
    assert len(unity_catalog.statements) == 2 + 13 + 5
    first = imported.tables[0]
    assert first.primary_key is not None
    assert (first.primary_key.columns, first.primary_key.name) == (("Id",), None)
    engine = Orchestrator(
        reader=backend.reader,
        action_runner=ActionRunner(unity_catalog, backend.addressing, backend.capabilities, parallelism=1),
    )
    assert not engine.plan_tables(imported.tables)
    assert import_tables(backend, "dev.silver.t3").tables == (imported.tables[3],)
    assert QualifiedName("dev", "silver", "a_view") not in [one.qualified_name for one in imported.tables]
