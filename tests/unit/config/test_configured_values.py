"""The values of a configuration for people: what holds, where it is from, and no secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.config.configured_values import ConfiguredValue, configured_values
from delta_engine.config.yaml_documents import DocumentPath
from delta_engine.errors import ConfigError
from tests.unit.config.projects import CONFIG, Write


def shown(project: Path) -> dict[DocumentPath, ConfiguredValue]:
    return {configured.path: configured for configured in configured_values(project / "conf", "dev")}


def origins(project: Path) -> dict[DocumentPath, str]:
    return {path: str(configured.origin or "default") for path, configured in shown(project).items()}


def test_every_value_names_the_nearest_file_that_says_it(write: Write, tmp_path: Path) -> None:
    write("base/dev.yml", CONFIG + "policy:\n  allow: []\n  rules: []\napply: {<<: {parallelism: 2}}\n")
    write(
        "conf/dev.yml", "extends: ../base/dev.yml\nvariables:\n  n: 8\npolicy:\n  allow:\n  - drop_column\n"
    )
    origins_by_path = origins(tmp_path)
    assert origins_by_path["environment",] == "base/dev.yml:1"
    assert origins_by_path["variables", "catalog"] == "base/dev.yml:3"
    assert origins_by_path["variables", "n"] == "conf/dev.yml:3"
    assert origins_by_path["policy", "allow", 0] == "conf/dev.yml:6"
    assert origins_by_path["policy", "rules"] == "base/dev.yml:8"
    assert origins_by_path["apply", "parallelism"] == "base/dev.yml:9"
    assert origins_by_path["apply", "history_table"] == "default"
    assert origins_by_path["state_backend", "local", "path"] == "default"
    assert ("extends",) not in origins_by_path


def test_bases_outside_the_project_are_relative_to_it(write: Write, tmp_path: Path) -> None:
    write("shared/dev.yml", CONFIG)
    write("project/conf/dev.yml", "extends: ../../shared/dev.yml\n")
    (value, *_) = configured_values(tmp_path / "project" / "conf", "dev")
    assert (value.path, str(value.origin)) == (("environment",), "../shared/dev.yml:1")


def test_variables_are_filled_in_and_texts_stay_as_they_are_written(write: Write, tmp_path: Path) -> None:
    write(
        "conf/dev.yml",
        CONFIG.replace("n: 7", 'n: 1.10, x: "${n}"')
        + 'defaults: {table_properties: {a: "${catalog}", b: "$${c}", c: true}}\n',
    )
    values = shown(tmp_path)
    properties = [configured for configured in values.values() if configured.path[0] == "defaults"]
    assert [configured.value for configured in properties] == ["dev", "${c}", "true"]
    assert [configured.spelled for configured in properties] == ["dev", "$${c}", "true"]
    assert values["variables", "n"].value == "1.10"
    assert values["variables", "x"].value == values["variables", "x"].spelled == "${n}"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("spark.hadoop.fs.s3a.secret.key", "abc", "***"),
        ("spark.hadoop.fs.s3a.access.key", "a b", "***"),
        ("spark.a", "https://me:hunter2@host/x", "https://me:***@host/x"),
        ("spark.a", "-Dpassword=hunter2 -Dx=y", "-Dpassword=*** -Dx=y"),
        ("spark.a", "${token}", "***"),
        ("spark.a", "x ${n}", "x 7"),
        ("spark.sql.catalog.unity.token", "${env:UC_TOKEN}", "${env:UC_TOKEN}"),
        ("spark.sql.catalog.unity.token", "Bearer ${env:UC_TOKEN}", "Bearer ${env:UC_TOKEN}"),
        ("spark.sql.catalog.unity.token", "hunter2-${env:UC_TOKEN}", "***"),
        ("spark.sql.catalog.unity.token", "Bearer hunter2", "***"),
        ("spark.sql.catalog.unity.uri", "$${env:X}", "${env:X}"),
    ],
)
def test_secrets_are_hidden(write: Write, tmp_path: Path, key: str, text: str, value: str) -> None:
    backend = f'backend: {{type: oss, names: catalog, spark: {{{key}: "{text}"}}}}'
    write(
        "conf/dev.yml",
        CONFIG.replace("backend: {type: oss}", backend).replace("n: 7", "n: 7, token: hunter2"),
    )
    values = shown(tmp_path)
    assert values["backend", "spark", key].value == value
    assert values["variables", "token"].value == "***"
    assert "hunter2" not in str(values)


def test_a_broken_configuration_is_refused(write: Write, tmp_path: Path) -> None:
    write("conf/dev.yml", CONFIG + "policy: {allow: [drop_colum]}\n")
    with pytest.raises(ConfigError, match="'drop_colum' is not one of"):
        shown(tmp_path)
