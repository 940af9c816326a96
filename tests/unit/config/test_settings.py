"""An environment's configuration: what it may say, and one message with file and line for the rest."""

from pathlib import Path

import pytest

from delta_engine.actions.policy import Allowance, DestructiveKind
from delta_engine.config.conf_folder import environments
from delta_engine.config.settings import BackendType, SqlWarehouse, load_settings
from delta_engine.config.variables import secrets_in
from delta_engine.errors import ConfigError
from tests.unit.config.projects import CONFIG, Write, refusal, refused


def test_all_settings(write: Write, tmp_path: Path) -> None:
    write(
        "conf/dev.yml",
        """\
        environment: dev
        backend: {type: oss, names: catalog, warehouse: "w-${n}", spark: {spark.a: true, spark.b: "${n}"}}
        variables: {catalog: dev, n: 1.10}
        models: {yaml: ["${catalog}/*.yml"], python: ["a.b:c"]}
        policy: {allow: ["drop_column:silver.*"], create_schemas: true}
        apply: {parallelism: 8}
        defaults: {table_properties: {a.b: 7}}
        """,
    )
    settings = load_settings(tmp_path / "conf", "dev")
    assert settings.backend is BackendType.CATALOG
    assert settings.warehouse == tmp_path / "w-1.10"
    assert dict(settings.spark) == {"spark.a": "true", "spark.b": "1.10"}
    assert settings.yaml_models == ("dev/*.yml",)
    assert settings.python_models == ("a.b:c",)
    assert settings.policy.allow == (Allowance(DestructiveKind.DROP_COLUMN, "silver.*"),)
    assert settings.policy.create_schemas
    assert settings.parallelism == 8
    assert dict(settings.default_table_properties) == {"a.b": "7"}
    assert environments(tmp_path / "conf") == ["dev"]


def test_the_settings_of_a_sql_warehouse(write: Write, tmp_path: Path) -> None:
    write(
        "conf/dev.yml",
        """\
        environment: dev
        backend:
          type: databricks-warehouse
          warehouse_id: "${warehouse}"
          profile: dev
          statement_timeout_seconds: 600
        variables: {warehouse: a1b2}
        models: {yaml: ["*.yml"]}
        state_backend: {type: databricks, databricks: {schema: dev.delta_engine}}
        """,
    )
    settings = load_settings(tmp_path / "conf", "dev")
    assert settings.backend.is_databricks
    assert settings.sql_warehouse == SqlWarehouse(
        warehouse_id="a1b2", profile="dev", statement_timeout_seconds=600
    )


@pytest.mark.parametrize(("replace", "by", "message"), refused("configuration"))
def test_bad_configuration(write: Write, tmp_path: Path, replace: str, by: str, message: str) -> None:
    assert replace in CONFIG
    write("conf/dev.yml", CONFIG.replace(replace, by))
    assert refusal(tmp_path).startswith(message)


def test_an_environment_without_a_file(write: Write, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown environment 'dve': .* Did you mean 'dev'\?"):
        load_settings(tmp_path / "conf", "dve")
    with pytest.raises(
        ConfigError,
        match=r"in the project's folder, or .* --conf-dir\. `delta-engine init` creates a project\.",
    ):
        load_settings(tmp_path / "nope", "dev")


CATALOG = """\
backend:
  type: oss
  names: catalog
  spark:
    spark.sql.catalog.unity.uri: "https://${n}"
    spark.sql.catalog.unity.token: "Bearer ${env:UC_TOKEN}"
"""


def test_a_secret_of_a_catalog_stays_in_the_environment(write: Write, tmp_path: Path) -> None:
    write("conf/dev.yml", CONFIG.replace("backend: {type: oss}\n", CATALOG))
    spark = load_settings(tmp_path / "conf", "dev").spark
    assert spark == {
        "spark.sql.catalog.unity.uri": "https://7",
        "spark.sql.catalog.unity.token": "Bearer ${env:UC_TOKEN}",
    }
    assert secrets_in(spark, {"UC_TOKEN": "x"}) == {"spark.sql.catalog.unity.token": "Bearer x"}


@pytest.mark.parametrize("environ", [{}, {"UC_TOKEN": ""}])
def test_a_secret_that_is_not_set_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="the environment variable UC_TOKEN is not set"):
        secrets_in({"spark.sql.catalog.unity.token": "${env:UC_TOKEN}"}, environ)


def test_only_catalogs_take_secrets(write: Write, tmp_path: Path) -> None:
    other = CATALOG.replace("spark.sql.catalog.unity.token", "spark.hadoop.fs.s3a.secret.key")
    write("conf/dev.yml", CONFIG.replace("backend: {type: oss}\n", other))
    message = refusal(tmp_path)
    assert message.startswith("conf/dev.yml:7: unknown variable 'env:UC_TOKEN'")
