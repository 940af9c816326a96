"""Every command of the documentation runs, over Unity Catalog in memory, in a project like those of the pages.

The tutorial's commands run on real Delta: see tests/integration/test_tutorial.py.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from delta_engine.cli.terminal import ExitCode
from delta_engine.config.settings import Settings
from delta_engine.orchestrate.backend import Backend, databricks_backend
from tests.cases.documentation import DOCS, PAGES, Block, blocks, console_steps, simple_commands
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.catalog_project import CONFIG
from tests.projects.commandline import CommandLine

CATALOGS: Final = {"dev": "dev", "stage": "stage", "prod": "prod", "local": "dev", "scratch": "ddl_scratch"}
"""The catalogs of the environments that pages name."""

TEAM: Final = Path("teams", "sales")
MODELS: Final = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    comment: Orders
    columns: [{name: id, type: bigint, nullable: false}, {name: amount, type: int}]
    primary_key: [id]
  - {catalog: "${catalog}", schema: silver, name: customers, columns: [{name: id, type: bigint}]}
"""
NOT_HERE: Final = {
    "doctor": "it examines a login and a workspace: tests/servers run it against a double",
    "fmt -": "it formats what it is given: tests/unit/cli/test_fmt_command.py",
    "--from": "it reads the files of a page: tests/unit/cli/test_import_from.py",
    "contract ": "its tables are those of a page: tests/unit/cli/test_import_from.py",
    "--changed-since": "it needs a branch of git: tests/unit/orchestrate/test_projects.py",
    "state start-over": "it needs a lost document: tests/unit/cli/test_state_commands.py",
    "state migrate": "it needs a document of an older format: tests/unit/cli/test_state_commands.py",
}
"""Parts of the commands that do not run here, with the reason."""


def commands(block: Block) -> Iterator[list[str]]:
    """Yield the arguments of the engine's commands in a block."""
    if block.language == "sh":
        command_lines = list(simple_commands(block))
    elif block.language == "console":
        command_lines = [shlex.split(command) for command, _ in console_steps(block)]
    else:
        return
    for program, *arguments in command_lines:
        if program == "delta-engine" and not any(part in shlex.join(arguments) for part in NOT_HERE):
            yield arguments


BLOCKS = [
    block for page in PAGES if page.name != "tutorial.md" for block in blocks(page) if any(commands(block))
]


class Catalogs:
    """The catalogs that commands reach: the laptop of `local` has one of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        schemas = [f"{catalog}.{schema}" for catalog in CATALOGS.values() for schema in ("silver", "sales")]
        self.laptop, self.workspace = (FakeUnityCatalog(schemas=schemas) for _ in range(2))
        for module in ("commands", "state_commands", "docs_site"):
            monkeypatch.setattr(f"delta_engine.cli.{module}.open_backend", self._opened)

    def _opened(self, settings: Settings, **_options: object) -> Backend:
        is_local = settings.environment == "local"
        return databricks_backend(self.laptop if is_local else self.workspace)

    def repeat(self, others: Catalogs) -> None:
        """Run the statements that other catalogs have run."""
        for mine, theirs in ((self.laptop, others.laptop), (self.workspace, others.workspace)):
            for sql in theirs.statements:
                mine.run(sql)


@dataclass(frozen=True, kw_only=True)
class Example:
    """A project whose environments were synced three times.

    Args:
        words: what stands for words of the pages that differ from run to run.
    """

    folder: Path
    catalogs: Catalogs
    words: Mapping[str, str]


def declare(folder: Path, text: str, *, owns: str = "silver.*") -> None:
    """Write the models and the configurations of a project."""
    (folder / "conf" / "models").mkdir(parents=True, exist_ok=True)
    for environment, catalog in CATALOGS.items():
        config = CONFIG.replace("environment: dev", f"environment: {environment}")
        config = config.replace("catalog: dev", f"catalog: {catalog}")
        (folder / "conf" / f"{environment}.yml").write_text(f"{config}owns: ['{owns}']\n")
    (folder / "conf" / "models" / "orders.yml").write_text(text)


@pytest.fixture(scope="module")
def prepared() -> list[Example]:
    """Return a list for the example, which the first test makes."""
    return []


@pytest.fixture
def example(
    prepared: list[Example],
    delta_engine: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
) -> Example:
    """Work in a copy of the example."""
    if not prepared:
        prepared.append(made(delta_engine, monkeypatch, tmp_path_factory.mktemp("example")))
    (original,) = prepared
    shutil.copytree(original.folder, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    Catalogs(monkeypatch).repeat(original.catalogs)
    return original


def made(delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Example:
    catalogs = Catalogs(monkeypatch)
    monkeypatch.chdir(folder)
    declare(folder / TEAM, MODELS.replace("silver", "sales"), owns="sales.*")
    for comment in ("Orders", "Orders of the shop", "Orders, a row each"):
        declare(folder, MODELS.replace("Orders", comment))
        for environment in CATALOGS:
            done = delta_engine("-e", environment, "sync", "--yes")
            assert done.code == ExitCode.DONE, done.stderr
    for catalog in sorted({*CATALOGS.values()}):
        catalogs.workspace.run(f"CREATE TABLE `{catalog}`.`silver`.`scratch` (`id` bigint) USING delta")
    record = json.loads(delta_engine("-e", "prod", "state", "show", "prod.silver.orders", "--json").stdout)
    words = {"3f2ac1": record["metadata"]["change"]["run"], "7": "1"}
    return Example(folder=folder, catalogs=catalogs, words=words)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_every_command_runs(block: Block, example: Example, delta_engine: CommandLine) -> None:
    for arguments in commands(block):
        run(delta_engine, [example.words.get(word, word) for word in arguments], block.place)


def run(delta_engine: CommandLine, arguments: Sequence[str], place: str) -> None:
    """Run a command, and before it what the page says that another run has done: `plan --out`."""
    if "apply" in arguments and not Path(file := arguments[arguments.index("apply") + 1]).exists():
        run(delta_engine, [*arguments[: arguments.index("apply")], "plan", "--out", file], place)
    done = delta_engine(*arguments)
    asks = "Without a terminal, the command cannot ask" in done.stderr
    asks |= " declared already (" in done.stderr  # `import`: the example declares the tables of the pages
    assert done.code == ExitCode.DONE or asks, f"{place}: {shlex.join(arguments)}: {done.stderr}"


def test_the_quick_start_needs_one_file_and_changes_nothing(
    delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    catalogs = Catalogs(monkeypatch)
    catalogs.workspace.run("CREATE TABLE `dev`.`silver`.`orders` (`id` bigint COMMENT 'Order') USING delta")
    before = [*catalogs.workspace.statements]
    page = [*blocks(DOCS / "quick-start.md")]
    (file,) = (block for block in page if block.title)
    Path("conf").mkdir()
    Path(file.title).write_text(file.text)
    printed = [delta_engine(*arguments) for block in page for arguments in commands(block)]
    assert [done.code for done in printed] == [ExitCode.DONE] * 3, [done.stderr for done in printed]
    assert "dev: no changes (1 model)" in printed[1].stdout
    model = Path("conf/models/silver/orders.yml")
    model.write_text(model.read_text().replace("Order", "Order number"))
    (plan,) = (block.text for block in page if block.language == "text")
    assert delta_engine("-e", "dev", "plan").stdout == plan
    assert catalogs.workspace.statements == before
