"""Models of contracts and of a dbt manifest declare exactly the tables that were made by hand as these promise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_engine.models import Table
from delta_engine.orchestrate.backend import catalog_backend
from delta_engine.orchestrate.importing import import_tables
from delta_engine.tools.importers.catalog import Wanted
from delta_engine.tools.importers.sources import read_source
from delta_engine.tools.importers.variables import Variables
from tests.cases.contract_collections import CONTRACTS, MADE_BY_DBT, MANIFEST
from tests.integration.test_import_of_scripts import CATALOG, CONFIG
from tests.projects.commandline import CommandLine

FACTS = ("columns", "comment", "partitioned_by", "checks", "primary_key", "foreign_keys")
MANAGED_BESIDE_DBT = ("comment", "checks")


class Project:
    """An empty project, whose catalog is Spark's session catalog."""

    def __init__(self, spark: SparkSession, folder: Path, delta_engine: CommandLine) -> None:
        self._spark = spark
        self._delta_engine = delta_engine
        (folder / "conf").mkdir()
        (folder / "conf" / "local.yml").write_text(
            f"{CONFIG}state_backend: {{type: local}}\npolicy: {{create_schemas: true}}\n"
        )

    def tables(self, schemas: Iterable[str]) -> Mapping[str, Table]:
        """Return what Spark has."""
        backend = catalog_backend(self._spark)
        imported = (import_tables(backend, f"{CATALOG}.{schema}").tables for schema in schemas)
        return {table.key: table for tables in imported for table in tables}

    def run(self, *arguments: str) -> str:
        """Run a command that has to succeed; return what it prints."""
        done = self._delta_engine("-e", "local", *arguments)
        assert done.code == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def project(
    spark: SparkSession, tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    before = {row.namespace for row in spark.sql("SHOW SCHEMAS").collect()}
    yield Project(spark, tmp_path, delta_engine)
    for row in spark.sql("SHOW SCHEMAS").collect():
        if row.namespace not in before:
            spark.sql(f"DROP SCHEMA {CATALOG}.{row.namespace} CASCADE")


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_declares_the_tables_that_it_promises(
    name: str, spark: SparkSession, project: Project
) -> None:
    contract, ddl = CONTRACTS[name]
    Path("contract.odcs.yaml").write_text(contract, "utf-8")
    for statement in ddl:
        spark.sql(statement)
    source = read_source(
        [Path("contract.odcs.yaml")], Wanted(environment="local", with_checks=True), Variables({}, {})
    )
    assert not source.refusals, source.refusals
    declared = [model for model in source.models if isinstance(model, Table)]
    made = project.tables({model.schema_name for model in declared})
    assert sorted(model.key for model in declared) == sorted(made)

    project.run("import", "--from", "contract.odcs.yaml", "--checks", "--to", "conf/models/contract.yml")
    project.run("plan", "--detailed-exitcode")  # is empty

    for table in made:
        spark.sql(f"DROP TABLE {table}")
    project.run("sync", "--yes")
    synced = project.tables({model.schema_name for model in declared})
    for model in declared:
        for fact in FACTS:
            assert getattr(synced[model.key], fact) == getattr(made[model.key], fact), (model.key, fact)
        assert [column.data_type for column in model.columns] == [
            column.data_type for column in made[model.key].columns
        ]


def test_a_manifest_declares_what_dbt_made(spark: SparkSession, project: Project) -> None:
    Path("manifest.json").write_text(json.dumps(MANIFEST), "utf-8")
    for statement in MADE_BY_DBT:
        spark.sql(statement)
    source = read_source([Path("manifest.json")], Wanted(), Variables({}, {}))
    assert not source.refusals, source.refusals
    by_name = {model.table_name: model for model in source.models if isinstance(model, Table)}
    totals, payments = by_name.pop("totals"), by_name.pop("payments_v2")
    assert not by_name
    made = project.tables(("gold", "raw"))
    assert payments.columns == made[payments.key].columns
    assert [column.data_type for column in totals.columns] == [
        column.data_type for column in made[totals.key].columns
    ]
    for fact in MANAGED_BESIDE_DBT:
        assert getattr(totals, fact) == getattr(made[totals.key], fact)

    project.run("import", "--from", "manifest.json", "--to", "conf/models/dbt.yml")
    project.run("plan", "--detailed-exitcode")  # is empty
    spark.sql(f"DROP TABLE {payments.key}")
    project.run("sync", "--yes")
    assert project.tables(("raw",))[payments.key].columns == payments.columns
