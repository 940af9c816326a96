"""`drift --accept` of views: what others changed goes into the model, or into the file of a query."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.commandline import CommandLine, Result

CONFIG = """\
environment: dev
backend: {type: databricks}
variables: {catalog: dev, raw: raw}
models: {yaml: ["conf/models/*.yml"]}
state_backend: {type: local}
"""

MODELS = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    columns:
      - {name: id, type: bigint, comment: The order}
      - {name: amount, type: bigint}
  - catalog: ${raw}
    schema: silver
    name: rates
    columns:
      - {name: rate, type: bigint}
views:
  - catalog: ${catalog}
    schema: gold
    name: revenue   # in euros
    comment: Revenue
    query_file: views/revenue.sql
    columns:
      - {name: id, comment: Also the order}
      - {name: amount, tags: {pii: "no"}}
    grants: {analysts: [SELECT]}
  - catalog: ${catalog}
    schema: gold
    name: big
    query: SELECT id, rate FROM ${catalog}.silver.orders CROSS JOIN ${raw}.silver.rates
"""

QUERY = "SELECT id, amount\nFROM ${catalog}.silver.orders\n"


class Workspace:
    """A project in the current folder whose views are in the catalog."""

    def __init__(self, folder: Path, delta_engine: CommandLine) -> None:
        self.catalog = FakeUnityCatalog(schemas=("dev.silver", "dev.gold", "raw.silver"))
        self.model_file = folder / "conf" / "models" / "gold.yml"
        self.query_file = folder / "conf" / "models" / "views" / "revenue.sql"
        self.query_file.parent.mkdir(parents=True)
        self.query_file.write_text(QUERY)
        self.model_file.write_text(MODELS)
        (folder / "conf" / "dev.yml").write_text(CONFIG)
        self._delta_engine = delta_engine
        delta_engine.reach(lambda: self.catalog)

    def runs(self, command: str) -> Result:
        return self._delta_engine("-e", "dev", *command.split())

    def accepts(self, *statements: str) -> None:
        """Change the catalog by hand, take the changes into the models, and verify that nothing is left."""
        for statement in statements:
            self.catalog.run(statement)
        accepted = self.runs("drift --accept -y")
        assert accepted.code == 0, accepted.stderr
        plan = self.runs("plan")
        assert plan.code == 0, plan.stderr
        assert "no changes" in plan.stdout
        assert self.runs("sync -y").code == 0
        assert "no drift" in self.runs("drift").stdout


@pytest.fixture
def workspace(tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(tmp_path)
    workspace = Workspace(tmp_path, delta_engine)
    synced = workspace.runs("sync -y")
    assert synced.code == 0, synced.stderr
    assert "no changes" in workspace.runs("plan").stdout
    return workspace


def test_a_query_goes_into_its_file_and_keeps_its_variables(workspace: Workspace) -> None:
    workspace.accepts(
        "ALTER VIEW dev.gold.revenue AS SELECT id, amount * 2 AS amount FROM dev.silver.orders",
        "COMMENT ON COLUMN dev.gold.revenue.id IS 'Also the order'",
        "ALTER TABLE dev.gold.revenue ALTER COLUMN amount SET TAGS ('pii' = 'no')",
    )
    assert (
        workspace.query_file.read_text() == "SELECT id, amount * 2 AS amount FROM ${catalog}.silver.orders\n"
    )
    assert workspace.model_file.read_text() == MODELS


def test_an_inline_query_goes_into_the_model_and_keeps_its_variables(workspace: Workspace) -> None:
    workspace.accepts(
        "ALTER VIEW dev.gold.big AS SELECT id, rate + 1 AS rate\nFROM dev.silver.orders\nCROSS JOIN raw.silver.rates"
    )
    lines = (
        "|-",
        "SELECT id, rate + 1 AS rate",
        "FROM ${catalog}.silver.orders",
        "CROSS JOIN ${raw}.silver.rates",
    )
    written = "\n      ".join(lines)
    assert workspace.model_file.read_text().endswith(f"    query: {written}\n")


def test_comments_tags_and_grants_go_into_the_model(workspace: Workspace) -> None:
    workspace.accepts(
        "COMMENT ON TABLE dev.gold.revenue IS 'By hand'",
        "COMMENT ON COLUMN dev.gold.revenue.id IS 'The same order'",
        "ALTER TABLE dev.gold.revenue ALTER COLUMN amount SET TAGS ('pii' = 'yes')",
        "REVOKE SELECT ON VIEW dev.gold.revenue FROM `analysts`",
    )
    written = MODELS.replace("comment: Revenue", "comment: By hand").replace("Also the", "The same")
    written = written.replace('pii: "no"', 'pii: "yes"').replace("    grants: {analysts: [SELECT]}\n", "")
    assert workspace.model_file.read_text() == written


def test_a_deleted_view_leaves_the_models_and_its_query_stays(workspace: Workspace) -> None:
    workspace.accepts("DROP VIEW dev.gold.big")
    assert (
        workspace.model_file.read_text()
        == MODELS.partition("  - catalog: ${catalog}\n    schema: gold\n    name: big")[0]
    )
    workspace.catalog.run("DROP VIEW dev.gold.revenue")
    refused = workspace.runs("drift --accept -y")
    assert "a comment would be lost" in refused.stderr
    assert workspace.query_file.read_text() == QUERY
