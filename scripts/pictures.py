"""Makes the pictures of the documentation from runs of the command line: `make pictures`.

The commands run on the tests' double of Unity Catalog, so they need no workspace. Texts become SVG with light and dark
colours, pages PNG in both. All are readable at 390 px.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final, Literal, NamedTuple

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser, ViewportSize, sync_playwright
from rich.text import Text

from scripts.drawings import COLUMNS, WIDTH, Step, concept_svg, sequence_svg, terminal_svg
from tests.fakes.conformance_platform import ConformancePlatform
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.projects.commandline import CommandLine

IMAGES: Final = Path(__file__).parents[1] / "docs" / "images"

CONFIGURATION: Final = """environment: dev
backend: {type: databricks}
state_backend: {type: local, local: {path: state}}
variables: {catalog: dev}
models: {yaml: ["conf/models/*.yml"]}
policy: {create_schemas: true, allow: [backfill_column]}
apply: {parallelism: 1}
"""
MODELS: Final = """tables:
  - catalog: ${catalog}
    schema: sales
    name: customers
    comment: One row per customer
    columns:
      - {name: id, type: bigint, nullable: false, comment: Customer ID}
      - {name: email, type: string, tags: {pii: email}}
    primary_key: [id]
  - catalog: ${catalog}
    schema: sales
    name: orders
    comment: One row per order
    columns:
      - {name: id, type: bigint, nullable: false, comment: Order ID}
      - {name: customer_id, type: bigint}
      - {name: amount, type: "decimal(10,2)", comment: Order total}
      - {name: coupon, type: string}
    primary_key: [id]
    foreign_keys: [{columns: [customer_id], references: customers}]
    checks: {positive: amount > 0}
"""
CHANGES: Final = (
    ("Order total", "Total in euros"),
    ("      - {name: coupon, type: string}\n", "      - {name: placed, type: date}\n"),
)
CONVERSION: Final = (
    "      - {name: coupon, type: string}\n",
    '      - {name: coupon, type: bigint, using: "cast(coupon as bigint)"}\n',
)
BY_HAND: Final = (
    "COMMENT ON TABLE `dev`.`sales`.`orders` IS 'do not touch'",
    "ALTER TABLE `dev`.`sales`.`customers` ADD COLUMNS (`hotfix` INT)",
    "ALTER TABLE `dev`.`sales`.`orders` DROP CONSTRAINT `positive`",
    "CREATE TABLE `dev`.`sales`.`scratch` (`a` INT) USING delta",
)

_STEPS: Final = (
    (r"ADD COLUMNS \(`(?P<what>delta_engine_new_\w+)`", "1 · expand", "ADD COLUMN {what}", "old values"),
    (r"^UPDATE .* SET `delta_engine_new", "2 · fill", "UPDATE … SET … = CAST(…)", "old values"),
    (
        r"^SELECT CASE WHEN count_if\(`delta_engine_new",
        "3 · verify",
        "count rows without a value",
        "old values",
    ),
    (
        r"RENAME COLUMN `coupon` TO `(?P<what>\w+)`",
        "4 · swap",
        "RENAME COLUMN coupon TO …_old_…",
        "a short error",
    ),
    (
        r"RENAME COLUMN `delta_engine_new\w+` TO `(?P<what>\w+)`",
        "5 · swap",
        "RENAME COLUMN …_new_… TO {what}",
        "new values",
    ),
    (r"^UPDATE .* SET `coupon`", "6 · fill again", "rows that writers added meanwhile", "new values"),
    (
        r"DROP COLUMNS? \(?`(?P<what>delta_engine_old_\w+)`",
        "7 · contract",
        "DROP COLUMN {what}",
        "new values",
    ),
)
"""How each kind of statement of a conversion is told, in the order in which the plan has them."""

_COMMENT_PAGE: Final = Path(__file__).with_name("comment.html")
"""A page with the look of a comment on a code host."""


class Page(NamedTuple):
    """A page to make a picture of: its first element there, and how much is shown."""

    name: str
    path: Path
    begins_with: str
    height: int


def main() -> int:
    """Make all pictures."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("there is no Chromium: `sh scripts/browser.sh` installs it on Debian", file=sys.stderr)
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        project = Project(patch)
        pages = list(project.pages())
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for page in pages:
                _photograph(browser, page)
            browser.close()
    return 0


class Project:
    """A project on the double of a workspace, and what its commands print."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._output = io.StringIO()
        self.platform = ConformancePlatform(FakeUnityCatalog(["dev.bronze"]))
        self._command_line = CommandLine(patch, _Captured(self._output))  # type: ignore[arg-type]
        self._command_line.reach(lambda: self.platform)
        patch.setenv("COLUMNS", str(COLUMNS))
        Path("conf/models").mkdir(parents=True)
        Path("conf/dev.yml").write_text(CONFIGURATION)
        self.declare(MODELS)

    def declare(self, models: str) -> None:
        """Write the models."""
        Path("conf/models/sales.yml").write_text(models)

    def run(self, *arguments: str, is_coloured: bool = False) -> str:
        """Return what a command prints on both streams, in order."""
        with (
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(self._output),
            redirect_stderr(self._output),
        ):
            if is_coloured:
                patch.setenv("FORCE_COLOR", "1")
                patch.setenv("TERM", "xterm")
            result = self._command_line("-e", "dev", *arguments)
        return result.stdout

    def pages(self) -> Iterator[Page]:
        """Draw the pictures of texts, and yield the pages."""
        _write(
            "concept.svg", concept_svg(title="How models, catalog and state become a plan, and a plan a sync")
        )
        self.run("sync", "--yes")
        changed = MODELS
        for before, after in CHANGES:
            changed = changed.replace(before, after)
        self.declare(changed)
        shown = _without_status(Text.from_ansi(self.run("plan", is_coloured=True).rstrip()))
        title = "A plan in a terminal: changes with their hazards, and a refusal with its fix"
        _write("plan-terminal.svg", terminal_svg("delta-engine -e dev plan", shown, title=title))
        comment = self.run("plan", "--markdown", "--allow", "drop_column")
        yield Page("plan-comment", _comment_page(comment), "section", 700)
        self.declare(MODELS.replace(*CONVERSION))
        statements = self.run("plan", "--sql")
        title = "The statements of a data change in their order, and what readers see"
        _write("data-change.svg", sequence_svg(list(_steps(statements)), title=title))
        self.declare(MODELS)
        self.run("docs", "--out", "site")
        yield Page("table-site", next(Path("site").rglob("orders.html")), "main", 700)
        for sql in BY_HAND:
            self.platform.run(sql)
        self.run("drift", "--format", "html", "--out", "drift.html")
        yield Page("drift-report", Path("drift.html"), "#drifted", 700)


def _without_status(output: Text) -> Text:
    """Return what stays on a terminal: not what it showed while the command was starting and reading."""
    lines = (line for line in output.split("\n") if not line.plain.endswith(" …"))
    return Text("\n").join(lines)


class _Output(NamedTuple):
    out: str
    err: str


class _Captured:
    """What the command line asks of pytest: the output since the last question."""

    def __init__(self, output: io.StringIO) -> None:
        self._output = output

    def readouterr(self) -> _Output:
        text = self._output.getvalue()
        self._output.seek(0)
        self._output.truncate()
        return _Output(text, "")


def _steps(statements: str) -> Iterator[Step]:
    """Yield the steps of a plan; ValueError if it lacks one."""
    place = 0
    lines = statements.splitlines()
    for pattern, name, statement, readers in _STEPS:
        matches = ((number, re.search(pattern, line)) for number, line in enumerate(lines[place:], place))
        found = next(((number, match) for number, match in matches if match), None)
        if found is None:
            raise ValueError(f"the plan has no statement for {name}:\n{statements}")
        place = found[0] + 1
        yield Step(name, statement.format(**found[1].groupdict()), readers)


def _comment_page(comment: str) -> Path:
    """Return a page that shows a comment as a code host does."""
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(comment)
    for sign, tag in (("+", "ins"), ("-", "del"), ("!", "b")):
        line = rf'(?m)^(<pre><code class="language-diff">)?({re.escape(sign)}.*)$'
        html = re.sub(line, rf"\1<{tag}>\2</{tag}>", html)
    page = Path("comment.html")
    page.write_text(_COMMENT_PAGE.read_text("utf-8").replace("<!-- comment -->", html), "utf-8")
    return page


def _write(name: str, text: str) -> None:
    (IMAGES / name).write_text(text, "utf-8")
    print(f"docs/images/{name}")


def _photograph(browser: Browser, page: Page) -> None:
    """Write a part of a page as a light and a dark picture."""
    schemes: dict[str, Literal["light", "dark"]] = {
        f"{page.name}.png": "light",
        f"{page.name}-dark.png": "dark",
    }
    for file, scheme in schemes.items():
        size: ViewportSize = {"width": WIDTH, "height": page.height}
        tab = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=2)
        tab.goto(page.path.resolve().as_uri())
        tab.locator(page.begins_with).first.evaluate("element => window.scrollTo(0, element.offsetTop - 12)")
        tab.screenshot(path=str(IMAGES / file))
        tab.close()
        print(f"docs/images/{file}")


if __name__ == "__main__":
    os.environ.pop("NO_COLOR", None)
    sys.exit(main())
