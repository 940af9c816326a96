"""Models of scripts declare exactly the tables that real Spark makes from the same scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from pyspark.sql import SparkSession

from delta_engine.models import Table
from delta_engine.orchestrate.backend import catalog_backend
from delta_engine.orchestrate.importing import import_tables
from delta_engine.tools.importers.catalog import Wanted
from delta_engine.tools.importers.sources import read_source
from delta_engine.tools.importers.variables import Variables
from tests.cases.script_collections import COLLECTIONS
from tests.projects.commandline import CommandLine

CATALOG = "spark_catalog"
CONFIG = """\
environment: local
backend: {type: oss, names: catalog, leave_out: [schema_metadata]}
variables: {catalog: spark_catalog}
models: {yaml: ["conf/models/**/*.yml"]}
"""
SCHEMAS = ("master", "shop", "sales", "iot", "web")


@pytest.fixture(autouse=True)
def schemas(spark: SparkSession) -> Iterator[None]:
    """Make Delta tables by default, as Databricks does; drop the schemas of the scripts afterwards."""
    spark.conf.set("spark.sql.sources.default", "delta")
    yield
    spark.conf.unset("spark.sql.sources.default")
    for schema in SCHEMAS:
        spark.sql(f"DROP SCHEMA IF EXISTS {CATALOG}.{schema} CASCADE")


def write(folder: Path) -> None:
    for collection, files in COLLECTIONS.items():
        for name, text in files.items():
            path = folder / collection / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


def statements(name: str, text: str) -> Iterator[str]:
    """Yield the statements of a file as its team runs them."""
    text = re.sub(r"\$\{[\w.]+\}", CATALOG, text)
    if name.endswith(".j2"):
        text = jinja2.Template(text).render(catalog=CATALOG)
    if text.startswith("-- Databricks notebook"):
        text = re.sub(r"^-- COMMAND -+$", ";", text, flags=re.M).replace(":catalog ||", f"'{CATALOG}' ||")
        text = re.sub(r"^--.*$", "", text, flags=re.M)
    yield from filter(str.strip, re.split(r";\s*$", text, flags=re.M))


def test_models_of_scripts_declare_the_tables_that_spark_makes(
    spark: SparkSession, tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "ddl")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "local.yml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    for files in COLLECTIONS.values():
        for name in sorted(files, key=lambda name: (len(re.findall(r"V\d\d", name)), name)):
            for statement in statements(name, files[name]):
                spark.sql(statement)

    variables = Variables({}, {"catalog": CATALOG})
    source = read_source([tmp_path / "ddl"], Wanted(), variables)
    assert not source.refusals, source.refusals
    declared = [variables.valued(model) for model in source.models if isinstance(model, Table)]
    backend = catalog_backend(spark)
    imported = {
        table.key: table
        for schema in SCHEMAS
        for table in import_tables(backend, f"{CATALOG}.{schema}").tables
    }
    assert sorted(model.key for model in declared) == sorted(imported)
    for model in declared:
        real = imported[model.key]
        assert model.columns == real.columns, model.key
        for fact in ("comment", "partitioned_by", "cluster_by", "checks"):
            assert getattr(model, fact) == getattr(real, fact), (model.key, fact)

    written = delta_engine("-e", "local", "import", "--from", "ddl", "--to", "conf/models", "--per", "table")
    assert written.code == 0, written.stderr
    assert "catalog: ${catalog}" in Path("conf/models/shop/orders.yml").read_text("utf-8")
    planned = delta_engine("-e", "local", "plan", "--detailed-exitcode")
    assert planned.code == 0, planned.stdout + planned.stderr
