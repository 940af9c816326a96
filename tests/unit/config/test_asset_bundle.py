"""A bundle that creates another volume than the configuration names is refused, with both files and lines."""

from collections.abc import Callable
from pathlib import Path

import pytest

from delta_engine.errors import ConfigError
from delta_engine.orchestrate.project import load_project
from delta_engine.orchestrate.validation_cache import valid_models
from tests.unit.config.projects import MODELS

CONF = """\
environment: prod
backend: {type: databricks}
variables: {catalog: retail}
models: {yaml: ["conf/models/*.yml"]}
state_backend:
  type: databricks
  databricks: {schema: "${catalog}.delta_engine"}
"""

ROOT = """\
bundle: {name: tables}
include: [bundle/*.yml, resources/*.yml]
targets:
  dev: {mode: development}
  prod:
    variables:
      state_catalog: retail
"""

VARIABLES = """\
variables:
  state_catalog: {default: dev}
  state_schema: {default: delta_engine}
"""

VOLUME = """\
resources:
  volumes:
    deployment_state:
      catalog_name: ${var.state_catalog}
      schema_name: ${var.state_schema}
      name: deployment_state
"""

FILES = {
    "conf/prod.yml": CONF,
    "conf/models/orders.yml": MODELS,
    "databricks.yml": ROOT,
    "bundle/variables.yml": VARIABLES,
    "resources/volume.yml": VOLUME,
}

Project = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a function that writes a project, with other files in place of some, and works in it."""
    monkeypatch.chdir(tmp_path)

    def write(others: dict[str, str] | None = None) -> Path:
        for name, text in (FILES | (others or {})).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Path("conf")

    return write


def test_a_bundle_that_creates_the_named_volume_is_accepted(project: Project) -> None:
    assert load_project(project(), "prod").settings.environment == "prod"


def test_the_job_reads_the_deployed_files_by_their_absolute_path(project: Project) -> None:
    conf = project({"conf/prod.yml": CONF.replace("catalog: retail", "catalog: sales")}).absolute()
    with pytest.raises(ConfigError, match=rf"{conf.parent}/databricks\.yml:7"):
        load_project(conf, "prod")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "databricks.yml",
            ROOT.replace("state_catalog: retail", "state_catalog: stage"),
            "conf/prod.yml:7: the deployment state is in retail.delta_engine.deployment_state, but the bundle's target "
            "prod creates stage.delta_engine.deployment_state (databricks.yml:7). Write the same catalog in both "
            "files.",
        ),
        (
            "databricks.yml",
            ROOT.replace("      state_catalog: retail\n", "      state_schema: other\n"),
            "conf/prod.yml:7: the deployment state is in retail.delta_engine.deployment_state, but the bundle's target "
            "prod creates dev.other.deployment_state (bundle/variables.yml:2). Write the same catalog in both files.",
        ),
        (
            "bundle/variables.yml",
            VARIABLES.replace("default: delta_engine", 'default: "${bundle.name}_${bundle.target}"'),
            "conf/prod.yml:7: the deployment state is in retail.delta_engine.deployment_state, but the bundle's target "
            "prod creates retail.tables_prod.deployment_state (databricks.yml:1). Write the same schema in both files.",
        ),
        (
            "resources/volume.yml",
            VOLUME.replace("name: deployment_state", "name: state"),
            "conf/prod.yml:7: the deployment state is in retail.delta_engine.deployment_state, but the bundle's target "
            "prod creates retail.delta_engine.state (resources/volume.yml:6). Write the same volume in both files.",
        ),
    ],
)
def test_another_volume_is_refused_with_both_places(
    project: Project, file: str, text: str, message: str
) -> None:
    conf = project({file: text})
    for check in (load_project, valid_models):
        with pytest.raises(ConfigError) as caught:
            check(conf, "prod")
        assert str(caught.value) == message


@pytest.mark.parametrize("variables", [VARIABLES, VARIABLES.replace("{default: delta_engine}", "{}")])
def test_a_variable_of_the_shell_decides_as_in_a_deployment(
    project: Project, monkeypatch: pytest.MonkeyPatch, variables: str
) -> None:
    conf = project({"bundle/variables.yml": variables})
    monkeypatch.setenv("BUNDLE_VAR_state_schema", "other")
    with pytest.raises(ConfigError) as caught:
        load_project(conf, "prod")
    assert str(caught.value) == (
        "conf/prod.yml:7: the deployment state is in retail.delta_engine.deployment_state, but the bundle's target "
        "prod creates retail.other.deployment_state (BUNDLE_VAR_state_schema). Set BUNDLE_VAR_state_schema to "
        "delta_engine, or unset it."
    )
    monkeypatch.setenv("BUNDLE_VAR_state_schema", "delta_engine")
    project({"bundle/variables.yml": VARIABLES.replace("default: delta_engine", "default: other")})
    load_project(conf, "prod")


def test_a_remembered_verdict_does_not_hide_it(project: Project) -> None:
    conf = project()
    valid_models(conf, "prod")
    project({"databricks.yml": ROOT.replace("state_catalog: retail", "state_catalog: stage")})
    with pytest.raises(ConfigError, match=r"databricks\.yml:7"):
        valid_models(conf, "prod")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("databricks.yml", ROOT.replace("prod:", "production:"), id="no target of that name"),
        pytest.param("databricks.yml", "targets: [", id="no YAML"),
        pytest.param("databricks.yml", "[]", id="no mapping"),
        pytest.param("bundle/variables.yml", "", id="a variable without a value"),
        pytest.param(
            "bundle/variables.yml",
            VARIABLES.replace("default: delta_engine", "lookup: {metastore: main}"),
            id="a lookup",
        ),
        pytest.param(
            "bundle/variables.yml",
            VARIABLES.replace("default: delta_engine", "default: '${var.state_schema}'"),
            id="a circle",
        ),
        pytest.param(
            "resources/volume.yml", VOLUME.replace("deployment_state:", "other:"), id="no such volume"
        ),
    ],
)
def test_what_the_engine_cannot_resolve_is_left_to_the_cli(project: Project, file: str, text: str) -> None:
    sales = CONF.replace("catalog: retail", "catalog: sales")
    conf = project({"conf/prod.yml": sales})
    with pytest.raises(ConfigError, match="Write the same catalog"):
        load_project(conf, "prod")
    project({"conf/prod.yml": sales, file: text})
    load_project(conf, "prod")


@pytest.mark.parametrize("pattern", ["resources/**.yml", "."])
def test_a_pattern_that_python_refuses_is_left_to_the_cli(project: Project, pattern: str) -> None:
    load_project(project({"databricks.yml": ROOT.replace("bundle/*.yml", pattern)}), "prod")


def test_a_deployment_state_elsewhere_is_not_compared(project: Project) -> None:
    conf = project({"conf/prod.yml": f"{CONF.split('state_backend')[0]}state_backend: {{type: local}}\n"})
    load_project(conf, "prod")
