"""A project that goes through the SQL warehouse of a workspace."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ORDERS
from tests.fakes.warehouse_sql import WarehouseSql
from tests.fakes.workspace import TOKEN, WAREHOUSE, FakeWorkspace
from tests.projects.commandline import CommandLine

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


def require_nothing_to_do(delta_engine: CommandLine) -> None:
    """Require an empty plan and no drift."""
    planned = delta_engine("-e", "dev", "plan", "--detailed-exitcode")
    assert planned.code == 0, planned.stdout + planned.stderr
    drift = delta_engine("-e", "dev", "drift")
    assert drift.code == 0, drift.stdout + drift.stderr


def findings_by_kind(delta_engine: CommandLine) -> Mapping[str, Any]:
    """Return a finding of each kind that a drift report has."""
    report = json.loads(delta_engine("-e", "dev", "drift", "--json").stdout)
    return {
        finding["kind"]: finding
        for part in (*report["drifted"], *report["deleted"])
        for finding in part["findings"]
    }


def author_of(finding: Mapping[str, Any]) -> str:
    """Return who changed what a finding is about, or last wrote it."""
    author: Mapping[str, str] = finding["changed"] or finding["last_written"]
    return author["who"]


def require_imported_models(
    project: Path, sql: WarehouseSql, delta_engine: CommandLine, *schemas: str
) -> None:
    """Let imports write the models of a new deployment; require that a sync has nothing to do and runs no statement."""
    for file in (project / "conf" / "models").glob("*.yml"):
        file.unlink()
    conf = project / "conf" / "dev.yml"
    conf.write_text(conf.read_text().replace(DATABRICKS_STATE, LOCAL_STATE))
    for schema in schemas:
        done = delta_engine("-e", "dev", "import", f"dev.{schema}", "--to", f"conf/models/{schema}.yml")
        assert done.code == 0, done.stderr
    ran = len(sql.catalog.statements)
    require_nothing_to_do(delta_engine)
    assert len(sql.catalog.statements) == ran
