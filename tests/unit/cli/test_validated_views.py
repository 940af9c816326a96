"""`validate` of views: bad queries are refused with file, line and fix, and odd but good ones are valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine.cli.terminal import ExitCode
from delta_engine.sql.function_bodies import MAX_BODY_BYTES
from tests.projects.commandline import CommandLine, Result

CONFIG = """\
environment: dev
backend: {type: databricks}
variables: {catalog: dev}
models: {yaml: ["conf/models/*.yml"]}
state_backend: {type: local}
"""

MODELS = """\
tables:
  - {catalog: "${catalog}", schema: silver, name: orders, columns: [{name: id, type: bigint}, {name: x, type: int}]}
views:
  - catalog: ${catalog}
    schema: gold
    name: revenue
    columns: [{name: id}]
    query_file: views/revenue.sql
"""

FROM = "FROM ${catalog}.silver.orders"


class Project:
    """A project in the current folder with a view whose query has a file."""

    def __init__(self, folder: Path, delta_engine: CommandLine) -> None:
        self.model_file = folder / "conf" / "models" / "gold.yml"
        self.query_file = folder / "conf" / "models" / "views" / "revenue.sql"
        self.query_file.parent.mkdir(parents=True)
        (folder / "conf" / "dev.yml").write_text(CONFIG)
        self.model_file.write_text(MODELS)
        self._delta_engine = delta_engine

    def validates(self, query: str | bytes, models: str = MODELS) -> Result:
        """Validate the project with a query."""
        self.query_file.write_bytes(query if isinstance(query, bytes) else query.encode())
        self.model_file.write_text(models)
        return self._delta_engine("-e", "dev", "validate")


@pytest.fixture
def project(tmp_path: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, delta_engine)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "its query is empty"),
        (" \n-- nothing\n;", "its query is empty"),
        ("SELECT 'id", "its query is not SQL: a string, a quoted name or a comment does not end"),
        (f"SELECT (id {FROM}", "its query has an unmatched parenthesis"),
        (f"SELECT id {FROM}; SELECT 1", "its query is two statements: a semicolon separates them"),
        ("DELETE FROM a.b.c", "its query is not a SELECT: it begins with DELETE"),
        (f"CREATE VIEW a AS SELECT id {FROM}", "its query begins with CREATE, which the engine writes"),
        ("version: 1.1\nsource: a.b.c\n", "its query is not a SELECT: it begins with version"),
        (f"WITH RECURSIVE t AS (SELECT 1 AS id) SELECT id {FROM}", "its query is recursive"),
        ("SELECT id FROM silver.orders", "its query reads silver.orders without a catalog"),
        ("SELECT id FROM ${catalgo}.silver.orders", "unknown variable 'catalgo'. Did you mean 'catalog'?"),
        (f"SELECT ${{catalog}} AS id {FROM}", "its query contains ${, which Spark reads as a variable"),
        (f"SELECT id, x AS ID {FROM}", "its query returns column 'id' twice"),
        (f"SELECT x {FROM}", "it documents column 'id', which its query does not return. Its columns are x."),
        (f"SELECT *, id {FROM}", "its query returns column 'id' twice, including those of *"),
        (
            f"SELECT\n  xx AS id {FROM}",
            "line 2 of views/revenue.sql names column 'xx', which dev.silver.orders does not have. "
            "Did you mean 'x'? Correct the name, or declare the column.",
        ),
        ("SELECT id FROM ${catalog}.gold.revenue", "it reads itself"),
        (f"SELECT '{'x' * MAX_BODY_BYTES}' AS id", "is larger than 1 MiB"),
        ("SELECT 'é' AS id".encode("latin-1"), "it is not UTF-8"),
        (f"SELECT id\0 {FROM}", "contains a NUL character"),
    ],
)
def test_bad_queries(project: Project, query: str | bytes, reason: str) -> None:
    refused = project.validates(query)
    assert refused.code == ExitCode.REFUSED
    assert reason in refused.stderr
    place = "views/revenue.sql:1" if isinstance(query, bytes) else "gold.yml:4"
    assert f"conf/models/{place}: " in refused.stderr


@pytest.mark.parametrize(
    "query",
    [
        f"-- ours\n\n\tSELECT\tid,\n\n\n\tx {FROM} -- all of them;\n;\n",
        f"\ufeffSELECT id\r\n{FROM}\r\n",
        f"SELECT id, '{'x' * (MAX_BODY_BYTES - 200)}' AS text {FROM}",
        f"SELECT id, 'a;${{b}}' AS text {FROM} /* ; ${{c}} */",
        f"WITH t AS (SELECT id {FROM}) FROM t SELECT id",
    ],
)
def test_odd_queries_are_valid(project: Project, query: str) -> None:
    valid = project.validates(query)
    assert valid.code == 0, valid.stderr
    assert valid.stdout == "dev: configuration and 2 models are valid\n"


@pytest.mark.parametrize(
    ("name", "query", "reason"),
    [
        (
            "big",
            "SELECT id FROM ${catalog}.gold.revenue",
            "dev.gold.big and dev.gold.revenue read each other",
        ),
        ("REVENUE", f"SELECT id {FROM}", "is declared"),
    ],
)
def test_bad_neighbours(project: Project, name: str, query: str, reason: str) -> None:
    more = f'  - {{catalog: "${{catalog}}", schema: gold, name: {name}, query: "{query}"}}\n'
    refused = project.validates("SELECT id FROM ${catalog}.gold.big", MODELS + more)
    assert refused.code == ExitCode.REFUSED
    assert reason in refused.stderr


def test_a_view_and_a_table_of_one_name_are_refused(project: Project) -> None:
    more = f'  - {{catalog: "${{catalog}}", schema: silver, name: Orders, query: "SELECT id {FROM}"}}\n'
    refused = project.validates(f"SELECT id {FROM}", MODELS + more)
    assert refused.code == ExitCode.REFUSED
    assert "a table has this name, and tables and views share a namespace" in refused.stderr


def test_comments_of_columns_that_the_platform_takes_away_are_refused(project: Project) -> None:
    evolving = MODELS.replace("{name: id}]\n", "{name: id, comment: It}]\n    schema_mode: evolution\n")
    refused = project.validates(f"SELECT id {FROM}", evolving)
    assert refused.code == ExitCode.REFUSED
    assert "its schema_mode is evolution: the platform replaces the comments" in refused.stderr
    assert "Write schema_mode: type evolution" in refused.stderr


def test_doubts_are_notes_and_stay_with_an_unchanged_project(project: Project) -> None:
    note = (
        "note: conf/models/gold.yml:4: view dev.gold.revenue: its query returns every column of dev.silver.orders "
        "by *: the view keeps the current columns of dev.silver.orders, and fails after a column is dropped or "
        "renamed. Write the columns, or schema_mode: evolution\n"
    )
    for _ in range(2):
        valid = project.validates(f"SELECT * {FROM}")
        assert valid.code == 0, valid.stderr
        assert valid.stderr == note
    assert project.validates(f"SELECT id {FROM}").stderr == ""


def test_files_elsewhere_are_refused(project: Project, tmp_path: Path) -> None:
    (tmp_path.parent / "outside.sql").write_text(f"SELECT id {FROM}")
    (tmp_path / "conf" / "models" / "views" / "link.sql").symlink_to(project.query_file)
    for written, reason in (
        ("views/missing.sql", "cannot be read: No such file or directory"),
        ("views/link.sql", "goes through a symbolic link: conf/models/views/link.sql"),
        ("../../../outside.sql", "is outside the project"),
    ):
        refused = project.validates(f"SELECT id {FROM}", MODELS.replace("views/revenue.sql", written))
        assert refused.code == ExitCode.REFUSED
        assert (
            f"conf/models/gold.yml:4: view dev.gold.revenue: query_file '{written}' {reason}"
            in refused.stderr
        )
