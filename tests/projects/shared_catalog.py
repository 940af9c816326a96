"""A repository with three projects, whose tables share the schemas of one Unity Catalog in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.commandline import CommandLine, Result

BASE: Final = """\
environment: dev
backend: {type: databricks}
variables: {catalog: dev}
models: {yaml: ["models/*.yml"]}
state_backend: {type: local}
"""

OWNS: Final = {
    "sales": ["silver.sales_*", "gold.sales_*", "silver.customers", "dev.gold.revenue*"],
    "stock": ["silver.stock_*", "gold.stock_*", "silver.warehouses", "dev.gold.supply*"],
    "web": ["silver.web_*", "gold.web_*", "silver.sessions", "dev.gold.clicks*"],
}

CUSTOMERS: Final = "schema: silver, name: customers, columns: [{name: id, type: int, nullable: false}]"
KEYED_CUSTOMERS: Final = f"{CUSTOMERS}, primary_key: [id]"
OF_CUSTOMERS: Final = (
    "foreign_keys: [{name: of_customer, columns: [id], references: customers, referenced_columns: [id]}]"
)
WEB_ORDERS: Final = f"schema: silver, name: web_orders, columns: [{{name: id, type: int}}], {OF_CUSTOMERS}"


def table(name: str, schema: str = "silver") -> str:
    """Return the declaration of a table with one column."""
    return f"schema: {schema}, name: {name}, columns: [{{name: id, type: int}}]"


class SharedCatalog:
    """Runs commands in the repository, and statements of other principals in the catalog."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> None:
        self.catalog = FakeUnityCatalog(schemas=("dev.silver", "dev.gold"))
        self._delta_engine = delta_engine
        delta_engine.reach(lambda: self.catalog)
        self.write("base/dev.yml", BASE)
        for team in OWNS:
            self.configure(team)
            self.declare(team, table(f"{team}_orders"), table(f"{team}_totals", "gold"))

    def write(self, name: str, text: str) -> None:
        """Write a file of the repository."""
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def configure(self, team: str, more: str = "", owns: list[str] | None = None) -> None:
        """Write the configuration of a project."""
        text = f"extends: ../../../base/dev.yml\nowns: {json.dumps(owns or OWNS[team])}\n{more}"
        self.write(f"teams/{team}/conf/dev.yml", text)

    def declare(self, team: str, *tables: str) -> None:
        """Declare the tables of a project, each given as the rest of a YAML mapping."""
        entries = "".join(f"  - {{catalog: dev, {table}}}\n" for table in tables)
        self.write(f"teams/{team}/models/tables.yml", f"tables:\n{entries or '  []'}")

    def run(self, team: str, command: str) -> Result:
        """Run a command in one project, or in those that a pattern names."""
        return self._delta_engine("-e", "dev", "-p", f"teams/{team}", *command.split())

    def check(self) -> Result:
        """Check the projects against each other."""
        return self._delta_engine("projects", "check")

    def sync(self, team: str, options: str = "") -> None:
        """Sync a project, which has to succeed."""
        done = self.run(team, f"sync --yes {options}")
        assert done.code == 0, done.stderr

    def documents(self, command: str) -> list[dict[str, Any]]:
        """Return what a command prints as JSON in all projects."""
        document: dict[str, Any] = json.loads(self.run("*", f"{command} --json").stdout)
        projects: list[dict[str, Any]] = document["projects"]
        return projects

    def serial(self, team: str) -> int:
        """Return the serial of a project's deployment state."""
        path = Path("teams", team, ".delta-engine", "state", "dev.state.json")
        document_serial: int = json.loads(path.read_text())["serial"]
        return document_serial
