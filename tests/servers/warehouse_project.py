"""A project that goes through the SQL warehouse of a workspace."""

import os
from pathlib import Path

import pytest

from tests.conftest import ORDERS
from tests.fakes.workspace import TOKEN, WAREHOUSE, FakeWorkspace

LOCAL_STATE = "{type: local, local: {path: state}}"
DATABRICKS_STATE = '{type: databricks, databricks: {schema: "dev.delta_engine"}}'

_CONFIG = """\
environment: {environment}
backend: {{type: databricks-warehouse, warehouse_id: {warehouse}, profile: ci}}
variables: {{catalog: dev}}
models: {{yaml: ["conf/models/*.yml"]}}
state_backend: {state}
policy: {{create_schemas: true}}
"""


def make_project(
    workspace: FakeWorkspace,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    environment: str = "dev",
    state: str = DATABRICKS_STATE,
) -> Path:
    """Return the folder of a project with one table, and work in it.

    Its login is a profile: nothing else of the environment's may count.
    """
    for name in [*os.environ]:
        if name.startswith("DATABRICKS_"):
            monkeypatch.delenv(name)
    (folder / "databrickscfg").write_text(f"[ci]\nhost = {workspace.host}\ntoken = {TOKEN}\n")
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(folder / "databrickscfg"))
    project = folder / "project"
    (project / "conf" / "models").mkdir(parents=True)
    config = _CONFIG.format(environment=environment, warehouse=WAREHOUSE, state=state)
    (project / "conf" / f"{environment}.yml").write_text(config)
    (project / "conf" / "models" / "orders.yml").write_text(ORDERS)
    monkeypatch.chdir(project)
    return project
