"""`import` of whole catalogs into a folder: what it writes, skips, reports, and continues after a kill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from delta_engine.backends.sql_runner import Row
from delta_engine.cli.terminal import ExitCode
from delta_engine.config.whole_files import create_atomically
from delta_engine.deployment.local_files import only_writer
from delta_engine.errors import StatementError
from delta_engine.orchestrate import import_folder
from tests.builders.worlds import Kill
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.commandline import CommandLine, Result

CONFIG = """\
environment: dev
backend: {type: databricks}
variables: {catalog: dev}
models: {yaml: ["conf/models/**/*.yml"]}
state_backend: {type: databricks, databricks: {schema: dev.ops}}
apply: {history_table: dev.ops.run_history}
"""

TABLES = (
    "CREATE TABLE dev.sales.customers (id BIGINT NOT NULL, CONSTRAINT pk_dev_sales_customers__id PRIMARY KEY (id)) "
    "USING delta COMMENT 'Every ${customer}'",
    "CREATE TABLE dev.sales.orders (id BIGINT NOT NULL, customer BIGINT, boss BIGINT, day DATE, "
    "CONSTRAINT pk_dev_sales_orders__id PRIMARY KEY (id)) USING delta",
    "CREATE TABLE dev.web.days (day DATE NOT NULL, CONSTRAINT own PRIMARY KEY (day)) USING delta",
    "CREATE TABLE dev.web.tmp_clicks (id BIGINT) USING delta",
    "CREATE TABLE dev.ops.deployment_heads (environment STRING) USING delta",
    "CREATE TABLE dev.ops.run_history (id BIGINT) USING delta",
    "ALTER TABLE dev.sales.orders ADD CONSTRAINT fk_dev_sales_orders__customer__customers FOREIGN KEY (customer) "
    "REFERENCES dev.sales.customers (id)",
    "ALTER TABLE dev.sales.orders ADD CONSTRAINT to_days FOREIGN KEY (day) REFERENCES dev.web.days (day)",
    "COMMENT ON SCHEMA dev.sales IS 'What is sold'",
)


class Workspace:
    """A project in the current folder, and its catalog, which also has a view and tables that cannot be read."""

    def __init__(self, folder: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.catalog = FakeUnityCatalog(schemas=("dev.sales", "dev.web", "dev.ops", "dev.empty"))
        self.views: list[str] = []
        self.unreadable: set[str] = set()
        self.failing: set[str] = set()
        self.statements: list[str] = []
        self._delta_engine = delta_engine
        for sql in TABLES:
            self.catalog.run(sql)
        delta_engine.reach(lambda: self)
        (folder / "conf").mkdir()
        (folder / "conf" / "dev.yml").write_text(CONFIG)
        monkeypatch.chdir(folder)

    def run(self, sql: str) -> Sequence[Row]:
        self.statements.append(sql)
        if sql.startswith("DESCRIBE") and any(f"`{name}`" in sql for name in self.failing):
            raise StatementError("a damaged log", sql=sql, error_class="DELTA_FAILED_READ_FILE")
        rows = [*self.catalog.run(sql)]
        if "information_schema.tables" in sql and rows:
            view = {"table_type": "MATERIALIZED_VIEW", "data_source_format": None, "table_name": None}
            rows += [{**rows[0], **view, "table_name": name} for name in self.views]
        if "information_schema.columns" in sql:
            return [row for row in rows if row["table_name"] not in self.unreadable]
        return rows

    def imports(self, *options: str, to: str = "conf/models") -> Result:
        return self._delta_engine("-e", "dev", "import", "dev", "--to", to, *options)

    def dev(self, command: str) -> Result:
        return self._delta_engine("-e", "dev", *command.split())

    def files(self, folder: str = "conf/models") -> dict[str, str]:
        paths = (path for path in (self.folder / folder).rglob("*") if path.is_file())
        return {path.relative_to(self.folder / folder).as_posix(): path.read_text("utf-8") for path in paths}


@pytest.fixture
def workspace(delta_engine: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return Workspace(tmp_path, delta_engine, monkeypatch)


ORDERS = """\
# yaml-language-server: $schema=../../schemas/model.json
tables:
  - catalog: ${catalog}
    schema: sales
    name: orders
    columns:
      - {name: id, type: bigint, nullable: false}
      - {name: customer, type: bigint}
      - {name: boss, type: bigint}
      - {name: day, type: date}
    primary_key: [id]
    foreign_keys:
      - {columns: [customer], references: customers}
      - {name: to_days, columns: [day], references: web.days}
"""


def test_a_catalog_becomes_a_file_per_table(workspace: Workspace) -> None:
    done = workspace.imports("--per", "table")
    assert done.code == 0, done.stderr
    assert done.stdout == ""
    files = workspace.files()
    assert sorted(files) == [
        "sales.yml",
        "sales/customers.yml",
        "sales/orders.yml",
        "web/days.yml",
        "web/tmp_clicks.yml",
    ]
    assert files["sales/orders.yml"] == ORDERS
    assert files["sales.yml"].partition("\n")[2] == (
        "schemas:\n  - catalog: ${catalog}\n    name: sales\n    comment: What is sold\n"
    )
    for line in (
        "reading 1 to 4 of 4 tables …\n",
        "written: 4 tables of 4 in conf/models\n",
        "note: left out, the engine's own: dev.ops.deployment_heads, dev.ops.run_history\n",
        "note: 4 models written to 5 files in conf/models\n",
        "note: next: `delta-engine -e dev plan` has no changes for them\n",
    ):
        assert line in done.stderr
    assert workspace.dev("validate").stdout == "dev: configuration and 4 models are valid\n"


@pytest.mark.parametrize("per", ["table", "schema"])
def test_a_plan_over_what_was_written_has_no_changes(workspace: Workspace, per: str) -> None:
    config = workspace.folder / "conf" / "dev.yml"
    config.write_text(CONFIG.replace("{type: databricks, databricks: {schema: dev.ops}}", "{type: local}"))
    assert workspace.imports("--per", per).code == 0
    planned = workspace.dev("plan --detailed-exitcode")
    adopted, _, rest = planned.stdout.partition("\n")
    assert (planned.code, rest) == (0, "dev: no changes (5 models)\n"), planned.stderr
    assert adopted.startswith("adopts: 5 tables as found; ")


def test_a_catalog_becomes_a_file_per_schema(workspace: Workspace) -> None:
    assert workspace.imports("--per", "schema", "--exclude", "ops").code == 0
    files = workspace.files()
    assert sorted(files) == ["sales.yml", "web.yml"]
    assert files["sales.yml"].count("    name: ") == 3  # the schema and two tables
    assert workspace.dev("validate").stdout == "dev: configuration and 4 models are valid\n"


def test_a_catalog_goes_to_one_file_or_to_stdout(workspace: Workspace) -> None:
    printed = workspace.dev("import dev --exclude web")
    assert printed.code == 0
    assert "    name: orders\n" in printed.stdout
    assert "web.days" in printed.stdout
    assert "referenced_columns: [day]" in printed.stdout  # no model declares days
    assert workspace.imports(to="models.py").code == 0
    assert workspace.files("")["models.py"].count("Table(") == 4
    folder = workspace.imports(to="conf")
    assert folder.code == ExitCode.REFUSED
    assert "conf is a folder. Add --per table or --per schema" in folder.stderr


def test_schemas_and_tables_are_left_out(workspace: Workspace) -> None:
    workspace.views = ["v_orders", "v_days"]
    done = workspace.imports(
        "--per", "table", "--exclude", "SALES", "--exclude", "web.tmp_*", "--exclude", "no*"
    )
    assert done.code == 0
    assert sorted(workspace.files()) == ["web/days.yml"]
    notes = "dev.sales.customers, dev.sales.orders, dev.web.tmp_clicks"
    assert f"note: left out, excluded (--exclude): {notes}\n" in done.stderr
    assert "note: --exclude no* matches nothing in dev\n" in done.stderr
    assert "information_schema" not in done.stderr


def test_materialized_views_are_left_out_with_a_note(workspace: Workspace) -> None:
    workspace.views = [f"v_{number}" for number in range(12)]
    done = workspace.imports("--per", "table")
    assert done.code == 0
    assert "note: left out, no Delta tables: " in done.stderr
    assert "v_0 (materialized view), " in done.stderr
    assert ", and 2 more\n" in done.stderr


def test_a_table_that_cannot_be_read_stops_no_other(workspace: Workspace) -> None:
    workspace.unreadable = {"customers"}
    done = workspace.imports("--per", "table")
    assert done.code == ExitCode.PARTIAL
    assert "note: left out: table dev.sales.customers: " in done.stderr
    files = workspace.files()
    assert "sales/customers.yml" not in files
    assert "references: customers, referenced_columns: [id]" in files["sales/orders.yml"]
    assert workspace.dev("validate").code == 0
    again = workspace.imports("--per", "table")
    assert again.code == ExitCode.PARTIAL
    assert workspace.files() == files
    workspace.unreadable = set()
    assert workspace.imports("--per", "table").code == 0
    assert "sales/customers.yml" in workspace.files()
    alone = workspace.dev("import dev.sales")
    assert (alone.code, alone.stderr) == (0, "")


def test_a_statement_that_fails_for_one_table_stops_no_other(workspace: Workspace) -> None:
    workspace.failing = {"customers", "days"}
    done = workspace.imports("--per", "table")
    assert done.code == ExitCode.PARTIAL
    for name in ("sales.customers", "web.days"):
        assert f"note: left out: table dev.{name}: it cannot be read: a damaged log." in done.stderr
    assert sorted(workspace.files()) == ["sales.yml", "sales/orders.yml", "web/tmp_clicks.yml"]
    assert (
        "{columns: [customer], references: customers, referenced_columns: [id]}"
        in (workspace.files()["sales/orders.yml"])
    )


def test_if_every_table_fails_the_first_ones_end_it(workspace: Workspace) -> None:
    workspace.failing = {f"t{number}" for number in range(40)}
    for name in sorted(workspace.failing):
        workspace.catalog.run(f"CREATE TABLE dev.empty.{name} (a INT) USING delta")
    workspace.statements.clear()
    failed = workspace.imports("--per", "table", "--exclude", "sales", "--exclude", "web")
    assert failed.code == ExitCode.FAILED
    assert "a damaged log" in failed.stderr
    assert len([sql for sql in workspace.statements if "information_schema.tables" in sql]) < 25


def test_nothing_that_can_be_read_is_refused(workspace: Workspace) -> None:
    workspace.unreadable = {"customers", "orders", "days", "tmp_clicks"}
    refused = workspace.imports("--per", "table")
    assert refused.code == ExitCode.REFUSED
    assert workspace.files() == {}


@pytest.mark.parametrize("per", ["table", "schema"])
@pytest.mark.parametrize("batch", [1, 1000])
def test_a_killed_import_continues(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, per: str, batch: int
) -> None:
    """The files are those of an import that was never killed, whatever was written before."""
    monkeypatch.setattr(import_folder, "_BATCH", batch)
    assert workspace.imports("--per", per, to="whole").code == 0
    whole = {name: text.partition("\n")[2] for name, text in workspace.files("whole").items()}
    for after in range(len(whole)):
        left = iter(range(after))

        def create_some(path: Path, data: bytes, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                path.with_name(".delta-engine-1-0.tmp").write_bytes(data[:20])
                raise Kill
            create_atomically(path, data)

        target = f"conf/models/{after}"
        with monkeypatch.context() as patched:
            patched.setattr(import_folder, "create_atomically", create_some)
            with pytest.raises(Kill):
                workspace.imports("--per", per, to=target)
        kept = {name for name in workspace.files(target) if name.endswith(".yml")}
        assert len(kept) == after
        stamps = {name: (workspace.folder / target / name).stat().st_mtime_ns for name in kept}
        done = workspace.imports("--per", per, to=target)
        assert done.code == 0, done.stderr
        assert {name: text.partition("\n")[2] for name, text in workspace.files(target).items()} == whole
        for name, stamp in stamps.items():
            assert (workspace.folder / target / name).stat().st_mtime_ns == stamp
        for path in sorted((workspace.folder / target).rglob("*.yml")):
            path.unlink()


def test_a_second_import_reads_no_table_and_writes_nothing(workspace: Workspace) -> None:
    assert workspace.imports("--per", "table").code == 0
    files = workspace.files()
    workspace.statements.clear()
    again = workspace.imports("--per", "table")
    assert again.code == 0
    assert "note: 4 resources declared already, and not imported again\n" in again.stderr
    assert "written" not in again.stderr
    assert workspace.files() == files
    reads = [
        sql for sql in workspace.statements if "SHOW POLICIES" not in sql
    ]  # one for each of four schemas
    assert len(reads) == 6  # the schemas, two views, and three of functions


def test_tables_that_the_project_declares_elsewhere_are_not_imported_again(workspace: Workspace) -> None:
    models = workspace.folder / "conf" / "models"
    models.mkdir()
    models.joinpath("mine.yml").write_text(
        "tables:\n  - {catalog: dev, schema: sales, name: customers, "
        "columns: [{name: id, type: bigint, nullable: false}], primary_key: [id]}\n"
    )
    assert workspace.imports("--per", "table").code == 0
    files = workspace.files()
    assert "sales/customers.yml" not in files
    assert files["sales/orders.yml"] == ORDERS
    assert workspace.dev("validate").code == 0


def test_one_file_has_no_second_model_of_a_table(workspace: Workspace) -> None:
    assert workspace.imports("--per", "table", "--exclude", "web").code == 0
    refused = workspace.dev("import dev.sales.orders --to conf/models/new.yml")
    assert refused.code == ExitCode.REFUSED
    assert refused.stderr.startswith(
        "refused: dev.sales.orders is declared already (conf/models/sales/orders.yml:3). A table has one model. "
        "Leave out --to to print what exists, or take changes into the model with "
        "`delta-engine -e dev drift --accept`.\n"
    )
    refused = workspace.dev("import dev.sales --to conf/models/new.yml")
    assert refused.stderr.startswith(
        "refused: all 2 tables of dev.sales are declared already (the first in conf/models/sales/"
    )
    assert "new.yml" not in workspace.files()
    assert "name: orders" in workspace.dev("import dev.sales.orders").stdout
    rest = workspace.imports(to="conf/models/new.yml")
    assert "note: 2 resources declared already, and not imported again\n" in rest.stderr
    assert "sales" not in workspace.files()["new.yml"]
    assert workspace.dev("validate").stdout == "dev: configuration and 4 models are valid\n"


@pytest.mark.parametrize("kind", ["file", "folder", "broken link"])
def test_what_is_in_the_way_is_kept_and_reported(workspace: Workspace, kind: str) -> None:
    place = workspace.folder / "out" / "sales" / "orders.yml"
    place.parent.mkdir(parents=True)
    if kind == "file":
        place.write_text("tables: []\n")
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("nowhere")
    done = workspace.imports("--per", "table", to="out")
    assert done.code == ExitCode.PARTIAL
    assert (
        "note: left out: out/sales/orders.yml exists, and does not declare dev.sales.orders. Importing never "
        "overwrites models: move the file away, or declare them in it.\n"
    ) in done.stderr
    assert "sales/customers.yml" in workspace.files("out")
    assert place.is_symlink() == (kind == "broken link")
    assert 'note: next: add "out/**/*.yml" to models.yaml (conf/dev.yml:4)' in done.stderr


def test_two_imports_at_once_are_refused(workspace: Workspace) -> None:
    (workspace.folder / "out").mkdir()
    with only_writer(workspace.folder / "out"):
        refused = workspace.imports("--per", "table", to="out")
    assert refused.code == ExitCode.REFUSED
    assert "another command is writing to out" in refused.stderr
    assert workspace.files("out") == {}


def test_an_interrupt_says_how_to_continue(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(import_folder, "create_atomically", interrupted)
    stopped = workspace.imports("--per", "table")
    assert stopped.code == ExitCode.INTERRUPTED
    assert "stopped: complete files in conf/models stay, and the same command continues" in stopped.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dev", "--per", "table"], "--per writes files into a folder. Name it with --to DIR"),
        (["dev", "--per", "column", "--to", "x"], "'column' is unknown. Use one of: table, schema"),
        (["dev", "--per", "table", "--to", "x", "--format", "python"], "--per writes YAML"),
        (["nowhere"], "nowhere has no Delta tables, or none that you may see"),
        (["dev.empty"], "dev.empty has no Delta tables"),
        (["dev", "--exclude", "*"], "dev has no Delta tables to import"),
        (["a.b.c.d"], "'a.b.c.d' names no table, schema or catalog"),
        ([""], "'' names no table, schema or catalog"),
    ],
)
def test_refusals(
    workspace: Workspace, delta_engine: CommandLine, arguments: list[str], message: str
) -> None:
    refused = delta_engine("-e", "dev", "import", *arguments)
    assert refused.code == ExitCode.REFUSED, refused.stderr
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("orders", "orders"),
        ("ünï-1", "ünï-1"),
        ("../up", "%2E%2E%2Fup"),
        (".hidden", "%2Ehidden"),
        ("a b*", "a%20b%2A"),
    ],
)
def test_names_are_safe_as_files(name: str, stem: str) -> None:
    assert import_folder._stem(name) == stem


def test_long_names_stay_different() -> None:
    stem, other = (import_folder._stem("ü" * 254 + letter) for letter in "ab")
    assert stem != other
    assert len(f"{stem}.yml".encode()) < 255
