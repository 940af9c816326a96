"""A project in the current folder, whose tables are in a Unity Catalog in memory."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.config.consents import REASON_TO_WRITE
from delta_engine.state.principals import Permissions
from tests.builders.worlds import Kill
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.commandline import CommandLine, Result

CONFIG = """\
environment: dev
backend: {type: databricks}
variables: {catalog: dev}
models: {yaml: ["conf/models/*.yml"]}
state_backend: {type: local}
policy: {create_schemas: true}
"""


class CatalogProject:
    """Runs commands in a project, and statements of others in its catalog."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, delta_engine: CommandLine) -> None:
        self.catalog = FakeUnityCatalog(schemas=("dev.silver", "dev.others"))
        self.catalog.catalogs["dev"] = Permissions(owner=self.catalog.user)
        self._delta_engine = delta_engine
        delta_engine.reach(lambda: self.catalog)
        self.models = folder / "conf" / "models" / "tables.yml"
        self.config = folder / "conf" / "dev.yml"
        self.models.parent.mkdir(parents=True)
        self.config.write_text(CONFIG)
        monkeypatch.chdir(folder)

    def configure(self, policy: str) -> None:
        """Set keys of the policy."""
        self.config.write_text(CONFIG.replace("create_schemas: true", f"create_schemas: true, {policy}"))

    def paste(self, file: str, entry: str) -> None:
        """Add a suggested entry to a file of the project, with a reason."""
        with (self.config.parent.parent / file).open("a") as opened:
            opened.write(entry.replace(REASON_TO_WRITE, "known"))

    def declare(self, *tables: str, schemas: str = "") -> None:
        """Declare tables of dev.silver, each given as the rest of a YAML mapping, and schemas."""
        entries = "".join(f"  - {{catalog: dev, schema: silver, {table}}}\n" for table in tables)
        self.models.write_text(f"tables:\n{entries or '  []'}{schemas}")

    def by_hand(self, *statements: str, user: str = "jo") -> None:
        """Run statements of another principal."""
        self.catalog.by_hand(*statements, user=user)

    def run(self, command: str) -> Result:
        """Run a command for dev."""
        return self._delta_engine("-e", "dev", *command.split())

    def kill(self, command: str, statement: str, *, is_done: bool = False) -> None:
        """Kill a command at the first statement that begins in a certain way, before or after it is done."""
        run = self.catalog.run

        def killing(sql: str) -> Sequence[Row]:
            if not sql.startswith(statement):
                return run(sql)
            if is_done:
                run(sql)
            raise Kill

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(self.catalog, "run", killing)
            with pytest.raises(Kill):
                self.run(command)

    def sync(self, options: str = "") -> None:
        """Sync, which has to succeed."""
        done = self.run(f"sync --yes {options}")
        assert done.code == 0, done.stderr

    def drift(self) -> dict[str, list[tuple[str, str]]]:
        """Return kind and field of every drift, by resource."""
        report = json.loads(self.run("drift --json").stdout)
        parts = (*report["drifted"], *report["deleted"], *report["schemas"])
        return {
            part["resource"]: [(finding["kind"], finding["field"]) for finding in part["findings"]]
            for part in parts
        }

    def plan(self) -> Any:
        """Return the plan as JSON."""
        return json.loads(self.run("plan --json").stdout)

    def plan_elsewhere(self, *tables: str) -> Any:
        """Return the plan of another environment as JSON, whose catalog has some tables; each is a CREATE TABLE."""
        here, self.catalog = self.catalog, FakeUnityCatalog(schemas=("dev.silver",))
        try:
            for sql in tables:
                self.catalog.run(sql)
            config = self.config.with_name("prod.yml")
            config.write_text(self.config.read_text().replace("environment: dev", "environment: prod"))
            done = self._delta_engine("-e", "prod", "plan", "--json")
            assert done.code == 0, done.stderr
            return json.loads(done.stdout)
        finally:
            self.catalog = here


def emptied(project: CatalogProject) -> Path:
    """Remove a project's models and what it recorded; return its configuration folder."""
    conf = project.config.parent
    shutil.rmtree(conf.parent / ".delta-engine")
    shutil.rmtree(conf / "models")
    (conf / "models").mkdir()
    return conf


def require_nothing_to_do(project: CatalogProject) -> None:
    """Require that a plan has no changes, and that nothing drifted."""
    planned = project.run("plan --detailed-exitcode")
    assert planned.code == 0, planned.stdout + planned.stderr
    assert project.drift() == {}
