"""`import` of views: their queries get files beside the models, and the plan after it is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.cli.terminal import ExitCode
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.commandline import CommandLine, Result
from tests.unit.cli.test_import_of_governance import CONFIG

STATEMENTS = """\
CREATE TABLE dev.silver.orders (id BIGINT COMMENT 'The order', amount BIGINT COMMENT 'In euros', customer STRING)
    USING delta;
CREATE VIEW dev.gold.revenue (id COMMENT 'Also the order', amount, customer) WITH SCHEMA TYPE EVOLUTION
    COMMENT 'Revenue' AS
SELECT id,
  amount, customer
FROM dev.silver.orders;
CREATE VIEW dev.gold.big WITH SCHEMA EVOLUTION AS SELECT * FROM dev.gold.revenue WHERE amount > 1000;
ALTER VIEW dev.gold.revenue SET TAGS ('domain' = 'sales');
ALTER TABLE dev.gold.revenue ALTER COLUMN customer SET TAGS ('pii' = 'no');
ALTER TABLE dev.gold.big ALTER COLUMN id SET TAGS ('pii' = 'no')
"""

WRITTEN = """\
views:
  - catalog: ${catalog}
    schema: gold
    name: big
    query_file: views/gold.big.sql
    schema_mode: evolution
    columns:
      - {name: id, tags: {pii: "no"}}

  - catalog: ${catalog}
    schema: gold
    name: revenue
    comment: Revenue
    query_file: views/gold.revenue.sql
    schema_mode: type evolution
    columns:
      - {name: id, comment: Also the order}
      - {name: customer, tags: {pii: "no"}}
    tags:
      domain: sales
"""

QUERY = """\
SELECT id,
  amount, customer
FROM ${catalog}.silver.orders
"""


class Workspace:
    """An empty project in the current folder, and a catalog with two views of a table."""

    def __init__(self, delta_engine: CommandLine) -> None:
        self.catalog = FakeUnityCatalog(schemas=("dev.silver", "dev.gold"))
        for statement in STATEMENTS.split(";\n"):
            self.catalog.run(statement)
        self._delta_engine = delta_engine
        delta_engine.reach(lambda: self.catalog)

    def runs(self, *arguments: str) -> Result:
        return self._delta_engine("-e", "dev", *arguments)


@pytest.fixture
def workspace(tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "dev.yml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return Workspace(delta_engine)


@pytest.mark.parametrize(
    "options",
    [
        ["--to", "conf/models/all.yml"],
        ["--to", "conf/models", "--per", "table"],
        ["--to", "conf/models", "--per", "schema"],
    ],
)
def test_a_plan_after_an_import_is_empty(workspace: Workspace, tmp_path: Path, options: list[str]) -> None:
    models = tmp_path / "conf" / "models"
    done = workspace.runs("import", "dev", *options)
    assert done.code == 0, done.stderr
    assert "3 models written to" in done.stderr
    again = workspace.runs("import", "dev.gold", *options)
    assert "note: 2 resources declared already" in again.stderr or "--per" not in options
    text = "".join(path.read_text() for path in sorted(models.rglob("*.yml")))
    assert WRITTEN in text
    assert (models / "views" / "gold.revenue.sql").read_text() == QUERY
    plan = workspace.runs("plan")
    assert plan.code == 0, plan.stderr
    assert "no changes" in plan.stdout
    assert workspace.runs("sync", "-y").code == 0
    assert "no drift" in workspace.runs("drift").stdout
    files = {path: path.read_bytes() for path in models.rglob("*.*")}
    again = workspace.runs("import", "dev", *options)
    assert {path: path.read_bytes() for path in models.rglob("*.*")} == files
    assert again.code in (0, ExitCode.REFUSED)


def test_the_progress_of_an_import_counts_tables_alone(workspace: Workspace) -> None:
    workspace.catalog.run("CREATE VIEW dev.silver.copy AS SELECT id FROM dev.silver.orders")
    done = workspace.runs("import", "dev.silver", "--to", "conf/models", "--per", "schema")
    assert "written: 1 table of 1 in conf/models\n" in done.stderr
    assert "2 models written to 1 file in conf/models" in done.stderr


def test_views_alone_have_inline_queries_on_the_terminal(workspace: Workspace) -> None:
    done = workspace.runs("import", "dev.gold")
    assert done.code == 0, done.stderr
    query = "    query: |-\n      SELECT id,\n        amount, customer\n      FROM ${catalog}.silver.orders\n"
    assert query in done.stdout


def test_comments_of_tables_that_are_not_read_are_written(workspace: Workspace) -> None:
    """A comment that is written too often makes no plan; one that is not written would be lost elsewhere."""
    done = workspace.runs("import", "dev.gold")
    assert "      - {name: amount, comment: In euros}\n" in done.stdout


def test_python_models_have_them_too(workspace: Workspace, tmp_path: Path) -> None:
    done = workspace.runs("import", "dev", "--to", "models/imported.py")
    assert done.code == 0, done.stderr
    text = (tmp_path / "models" / "imported.py").read_text()
    assert 'ViewColumn(name="id", comment="Also the order"),' in text
    assert 'ViewColumn(name="customer", tags={"pii": "no"}),' in text
    assert 'query_file="views/gold.revenue.sql"' in text
    (tmp_path / "conf" / "dev.yml").write_text(
        CONFIG.replace("{yaml: [", "{python: [models.imported:tables], yaml: [")
    )
    (tmp_path / "conf" / "models").mkdir()
    (tmp_path / "conf" / "models" / "none.yml").write_text("tables: []\n")
    assert "no changes" in workspace.runs("plan").stdout


def test_hidden_queries_and_excluded_views_are_left_out_with_a_note(
    workspace: Workspace, tmp_path: Path
) -> None:
    excluded = workspace.runs("import", "dev", "--exclude", "gold.b*")
    assert "note: left out, excluded (--exclude): dev.gold.big\n" in excluded.stderr
    workspace.catalog.hides_queries, workspace.catalog.knows_json = True, False
    workspace.catalog.user = "another"
    hidden = workspace.runs("import", "dev", "--to", "conf/models/all.yml")
    assert hidden.code == 0, hidden.stderr
    assert "left out: view dev.gold.revenue: its query is hidden from you" in hidden.stderr
    assert "revenue" not in (tmp_path / "conf" / "models" / "all.yml").read_text()


def test_a_view_that_no_model_can_declare_is_reported(workspace: Workspace) -> None:
    workspace.catalog.run("CREATE VIEW dev.gold.`a b` AS SELECT id FROM dev.silver.orders")
    done = workspace.runs("import", "dev.gold")
    assert done.code == ExitCode.PARTIAL
    assert "view dev.gold.a b: its name 'a b' " in done.stderr


def test_the_file_of_a_query_is_never_overwritten(workspace: Workspace, tmp_path: Path) -> None:
    other = tmp_path / "conf" / "models" / "views" / "gold.revenue.sql"
    other.parent.mkdir(parents=True)
    other.write_text("SELECT 1 AS a\n")
    refused = workspace.runs("import", "dev", "--to", "conf/models/all.yml")
    assert refused.code == ExitCode.REFUSED
    assert "gold.revenue.sql exists, with another query than dev.gold.revenue" in refused.stderr
    assert [path for path in (tmp_path / "conf" / "models").rglob("*.*") if path.is_file()] == [other]
    by_schema = workspace.runs("import", "dev", "--to", "conf/models", "--per", "schema")
    assert by_schema.code == ExitCode.PARTIAL
    assert other.read_text() == "SELECT 1 AS a\n"
    assert [path.name for path in (tmp_path / "conf" / "models").glob("*.yml")] == ["silver.yml"]


def test_a_single_view_is_imported(workspace: Workspace) -> None:
    done = workspace.runs("import", "dev.gold.big")
    assert done.code == 0, done.stderr
    assert "    query: SELECT * FROM ${catalog}.gold.revenue WHERE amount > 1000\n" in done.stdout
    assert "    schema_mode: evolution\n" in done.stdout
    missing = workspace.runs("import", "dev.gold.nothing")
    assert missing.code == ExitCode.REFUSED
    assert workspace.runs("import", "dev.gold.big", "--to", "conf/models/big.yml").code == 0
    again = workspace.runs("import", "dev.gold.big", "--to", "conf/models/again.yml")
    assert again.code == ExitCode.REFUSED
    assert "dev.gold.big is declared already (conf/models/big.yml:3)" in again.stderr
