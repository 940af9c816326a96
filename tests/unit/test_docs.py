"""The documentation: its links lead somewhere, a newcomer finds every page, and the commands in it exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from delta_engine.cli.terminal import USAGE_ERROR
from scripts.generated_pages import generated_tables, with_tables
from tests.cases.documentation import DOCS, PAGES, ROOT
from tests.projects.commandline import parsed

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CUT = re.compile(r"^(?:(?: {4})* {1,3}(?:```|[-*+] |\d+[.)] )|(?<=\n\n)(?: {4})* {1,3}(?! )).*", re.MULTILINE)
"""A block in a list with an indentation that is no multiple of four: the site ends the list before it."""
UNNAMED_COLUMN = re.compile(r"^ *\|(?:.*\|)? *\|.*(?=\n *\| *-)", re.MULTILINE)
COMMAND = re.compile(r"^ *(?:\$ )?(delta-engine -?[a-z].*)$", re.MULTILINE)
PLACEHOLDER = re.compile(r"…|\.\.\.|\[|[A-Z]{3,}")


def anchors(page: Path) -> set[str]:
    """Return what can be linked to in a page, as GitHub names its headings."""
    headings = HEADING.findall(FENCED.sub("", page.read_text("utf-8")))
    plain = (re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def linked(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield where the links of a page lead: a file, and a place in it."""
    for target, anchor in LINK.findall(page.read_text("utf-8")):
        yield (page.parent / target).resolve() if target else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in linked(page):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{target.name}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_belongs_to_a_list_is_indented_by_four(page: Path) -> None:
    prose = FENCED.sub(lambda code: code[0].split("\n")[0], page.read_text("utf-8"))
    assert [match[0] for match in CUT.finditer(prose)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_columns_of_tables_have_names(page: Path) -> None:
    assert [match[0] for match in UNNAMED_COLUMN.finditer(page.read_text("utf-8"))] == []


@pytest.mark.parametrize("cut", ["1. a\n\n   b\n", "1. a\n   ```sh\n   b\n   ```\n", "- a\n  - b\n"])
def test_lists_that_the_site_would_cut_are_found(cut: str) -> None:
    assert CUT.search(cut)
    assert not CUT.search(re.sub("^ +", "    ", cut, flags=re.MULTILINE))


def pages_of(contents: object) -> Iterator[Path]:
    """Yield the pages of docs/ in a part of the site's table of contents."""
    if isinstance(contents, str):
        yield DOCS / contents
    elif isinstance(contents, list | dict):
        for part in contents.values() if isinstance(contents, dict) else contents:
            yield from pages_of(part)


def test_every_page_is_in_the_table_of_contents() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=yaml.BaseLoader)
    assert {*DOCS.rglob("*.md")} - {*pages_of(site["nav"])} == {*DOCS.glob("decisions/0*.md")}


def test_links_lead_from_the_readme_to_every_page() -> None:
    reached, to_read = {ROOT / "README.md"}, [ROOT / "README.md"]
    while to_read:
        targets = {target / "README.md" if target.is_dir() else target for target, _ in linked(to_read.pop())}
        pages = {target for target in targets if target.suffix == ".md"} - reached
        reached |= pages
        to_read += pages
    assert {*PAGES} - reached == set()


@pytest.mark.parametrize(("page", "tables"), generated_tables().items())
def test_tables_follow_from_the_code(page: str, tables: Mapping[str, str]) -> None:
    text = (DOCS / page).read_text("utf-8")
    assert with_tables(text, tables) == text, "run `make pages`"


def commands(page: Path) -> list[str]:
    """Return the commands in a page that are written out."""
    blocks = "\n".join(FENCED.findall(page.read_text("utf-8")))
    all_commands = (re.split(r" [>|] | && ", command)[0] for command in COMMAND.findall(blocks))
    return [command for command in all_commands if not PLACEHOLDER.search(command.split("#")[0])]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    for command in commands(page):
        try:
            parsed(command)
        except USAGE_ERROR as error:
            pytest.fail(f"{command}: {error}")


def test_commands_are_found() -> None:
    assert len(commands(ROOT / "README.md")) > 2
    assert sum(map(len, map(commands, PAGES))) > 30
