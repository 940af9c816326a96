"""The documentation as a site, opened from files: each page in a real browser, without a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from delta_engine.cli.troubleshooting import troubleshooting_sections
from tests.browser.conftest import PHONE, violations
from tests.cases.documentation import DOCS, ROOT
from tests.proofs import IS_LONG

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = pytest.mark.skipif(
    find_spec("material") is None or find_spec("mermaidx") is None,
    reason="what builds the site is not installed: `make test` installs it, and so does scripts/docs.sh",
)

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
WHOLE = ("index.html", "tutorial.html", "concepts.html", "commands.html", "rules.html")
"""Pages that together have everything a page can have: axe looks at all of them, in both schemes. The other pages have
the same menus and colors: long proofs look at their articles."""

DECISION = "0026-local-tables-are-read-without-java.html"
"""The page that stands for all decisions: none has more than headings, paragraphs, lists and a table."""

GRAVE = ("serious", "critical")
"""Left out: `landmark-unique`, moderate, of the theme's nested menus, which the pages do not make."""

FAULTS_OF_A_PHONE = """() => {
  const all = (selector) => [...document.querySelectorAll(".md-content " + selector)];
  const color = (one) => getComputedStyle(one).color;
  const fault = (said, ones) => ones.map((one) => `${said}: ${one.textContent.slice(0, 60)}`);
  const withoutLink = (heading) => {
    const link = heading.querySelector(".headerlink"), height = heading.offsetHeight;
    link.style.display = "none";
    const less = heading.offsetHeight < height;
    link.style.display = "";
    return less;
  };
  const headings = all(":is(h1, h2, h3, h4):has(.headerlink)"), words = all("td code");
  const outputs = all(":is(.language-console, .language-text) code");
  const builtins = all(":is(.language-console, .language-sh) .nb");
  const isBroken = (code) => /^\\w+$/.test(code.textContent) && code.getClientRects().length > 1;
  return [
    ...fault("an empty line below", headings.filter(withoutLink)),
    ...fault("cut", outputs.filter((one) => one.scrollWidth > one.clientWidth)),
    ...fault("a broken word", words.filter(isBroken)),
    ...fault("a builtin", builtins.filter((one) => color(one) !== color(one.parentNode))),
    ...fault("narrow", all("td:nth-child(2):nth-last-child(n + 5)").filter((one) => one.offsetWidth < 150)),
  ];
}"""
OPEN_SHADOWS = """
const attach = Element.prototype.attachShadow;
Element.prototype.attachShadow = function () { return attach.call(this, {mode: "open"}); };
"""
"""The theme closes the roots of diagrams to scripts."""
FAULTS_OF_A_DIAGRAM = """(diagram) => {
  const svg = diagram.shadowRoot.querySelector("svg"), faults = [];
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  if (scale < 0.95) faults.push(`drawn at ${scale.toFixed(2)} of its size`);

  const boxes = [...svg.querySelectorAll(".node, .edgeLabel > .label")].filter((one) => one.textContent.trim());
  const places = boxes.map((one) => one.getBoundingClientRect());
  places.forEach((a, i) => places.slice(i + 1).forEach((b, j) => {
    if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
      faults.push(`${boxes[i].textContent} over ${boxes[i + 1 + j].textContent}`);
  }));

  const linear = (part) => part <= 10 ? part / 3294 : ((part / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = (color) => {
    const [red, green, blue] = color.match(/[\\d.]+/g).map(linear);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = luminance(getComputedStyle(document.body).backgroundColor);
  for (const one of svg.querySelectorAll("text:not(:has(tspan)), tspan, p, [id$='-arrowhead'] path")) {
    const color = luminance(getComputedStyle(one)[one.tagName === "P" ? "color" : "fill"]);
    const contrast = (Math.max(color, ground) + 0.05) / (Math.min(color, ground) + 0.05);
    if (contrast < 3) faults.push(`contrast ${contrast.toFixed(1)} of ${one.textContent || one.parentNode.id}`);
  }
  return faults;
}"""


def build(project: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)]
    silent = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=project, env=silent, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> list[Path]:
    """Return the pages, outside long proofs with one decision for all; 404.html is for servers alone."""
    paths = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    assert len(paths) > 50
    assert any('<div class="language-console ' in path.read_text("utf-8") for path in paths)
    return [path for path in paths if IS_LONG or path.parent.name != "decisions" or path.name == DECISION]


@pytest.fixture
def trouble() -> list[str]:
    return []


@pytest.fixture
def tab(browser: Browser, trouble: list[str]) -> Iterator[Page]:
    """Return a tab that notes every word on the console and every request to a host."""
    context = browser.new_context(viewport=DESKTOP, color_scheme="light")
    page = context.new_page()
    page.on("console", lambda message: trouble.append(f"{page.url}: console: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"{page.url}: error: {error}"))
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("file:", "data:", "blob:", "about:"))
            else trouble.append(f"{page.url}: request: {request.url}")
        ),
    )
    yield page
    context.close()


def overflow(page: Page) -> int:
    """Return how many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def widths(page: Page, scheme: Scheme, sizes: Sequence[ViewportSize]) -> Iterator[str]:
    page.emulate_media(color_scheme=scheme)
    for size in sizes:
        page.set_viewport_size(size)
        if (pixels := overflow(page)) > 0:
            yield f"{page.url}: {pixels} pixels too wide at {size['width']}, {scheme}"


def test_each_page_is_readable_everywhere(
    tab: Page, pages: list[Path], site: Path, trouble: list[str]
) -> None:
    for path in pages:
        tab.goto(path.as_uri())
        tab.add_style_tag(content="* {transition: none !important}")  # axe measures no color on its way
        is_whole = str(path.relative_to(site)) in WHOLE
        if "mermaid.min.js" in path.read_text("utf-8"):
            tab.locator("div.mermaid").first.wait_for()
        tab.set_viewport_size(PHONE)
        trouble += [f"{tab.url}: {fault}" for fault in tab.evaluate(FAULTS_OF_A_PHONE)]
        trouble += widths(tab, "dark", (PHONE, DESKTOP))
        broken = violations(tab, impacts=GRAVE) if is_whole else []
        trouble += widths(tab, "light", (PHONE, DESKTOP))
        if is_whole:
            broken += violations(tab, impacts=GRAVE)
        elif IS_LONG:
            broken += violations(tab, ".md-content", impacts=GRAVE)
        trouble += [f"{path.name}: {violation}" for violation in broken]
    assert trouble == []


def test_each_diagram_is_drawn(tab: Page, pages: list[Path], trouble: list[str]) -> None:
    count = 0
    for path in pages:
        if (diagrams := path.read_text("utf-8").count('<pre class="mermaid">')) == 0:
            continue
        tab.goto(path.as_uri())
        drawn = tab.locator("div.mermaid")
        drawn.nth(diagrams - 1).wait_for()
        heights = [drawn.nth(number).bounding_box() for number in range(diagrams)]
        assert all(box is not None and box["height"] > 30 for box in heights), path.name
        count += diagrams
    assert count >= 5
    assert trouble == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_diagrams_are_readable_on_a_phone(tab: Page, pages: list[Path], scheme: Scheme) -> None:
    tab.add_init_script(OPEN_SHADOWS)
    tab.set_viewport_size(PHONE)
    tab.emulate_media(color_scheme=scheme)
    faults = []
    for path in pages:
        if diagrams := path.read_text("utf-8").count('<pre class="mermaid">'):
            tab.goto(path.as_uri())
            drawn = tab.locator("div.mermaid")
            drawn.nth(diagrams - 1).wait_for()
            diagram_faults = [
                fault for diagram in drawn.all() for fault in diagram.evaluate(FAULTS_OF_A_DIAGRAM)
            ]
            faults += [f"{path.name}: {fault}" for fault in diagram_faults]
    assert faults == []


def test_the_search_finds_without_a_server(tab: Page, site: Path, trouble: list[str]) -> None:
    tab.goto((site / "index.html").as_uri())
    tab.locator("input.md-search__input").click()
    tab.keyboard.type("unreadable lock")
    result = tab.locator(".md-search-result__link").first
    result.wait_for()
    assert "troubleshooting.html" in str(result.get_attribute("href"))
    tab.add_style_tag(content="* {transition: none !important}")
    for scheme in SCHEMES:
        tab.emulate_media(color_scheme=scheme)
        trouble += [f"{scheme}: {violation}" for violation in violations(tab, ".md-search", impacts=GRAVE)]
    assert trouble == []


ANSWERS = {
    "install": {"install.html"},
    "first plan workspace": {"quick-start.html"},
    "undo release": {"undo.html"},
    "who changed a column": {"faq.html", "drift.html"},
    "cost of 3000 tables": {"faq.html", "scale.html"},
    "leave": {"faq.html", "security.html"},
    "stuck lock": {"faq.html", "troubleshooting.html", "deployment-state.html"},
    "NOT NULL with NULLs": {"faq.html", "changing-safely.html"},
    "mask function": {"faq.html", "governance.html"},
    "two teams": {"faq.html", "monorepo.html"},
    "CI without Spark": {"ci.html"},
    "what is sent where": {"faq.html", "security.html"},
}
"""What a stranger types into the search, and the pages of which one is the first result."""


def test_the_search_leads_a_stranger_to_the_answer(tab: Page, site: Path) -> None:
    first = {}
    for words in ANSWERS:
        tab.goto((site / "index.html").as_uri())
        tab.locator("input.md-search__input").click()
        tab.keyboard.type(words)
        result = tab.locator(".md-search-result__link").first
        result.wait_for()
        tab.wait_for_timeout(500)  # the search runs again for each letter
        first[words] = str(result.get_attribute("href")).split("?")[0].split("/")[-1]
    assert {words: page for words, page in first.items() if page not in ANSWERS[words]} == {}


def test_the_quick_start_prints_on_two_sheets(tab: Page, site: Path) -> None:
    tab.goto((site / "quick-start.html").as_uri())
    margin = "15mm"
    printed = tab.pdf(format="A4", margin={"top": margin, "right": margin, "bottom": margin, "left": margin})
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2


def test_a_reader_chooses_the_scheme(tab: Page, site: Path) -> None:
    tab.goto((site / "index.html").as_uri())
    for name in ("Switch to light mode", "Switch to dark mode"):
        tab.locator(f"label[title='{name}']:visible").click()
    assert tab.locator("body").get_attribute("data-md-color-scheme") == "slate"


def test_topics_of_errors_are_anchors(site: Path) -> None:
    page = (site / "troubleshooting.html").read_text("utf-8")
    topics = troubleshooting_sections((DOCS / "troubleshooting.md").read_text("utf-8"))
    assert [topic for topic in topics if f'id="{topic}"' not in page] == []


def test_dead_links_fail_the_build(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    hooks = str(ROOT / "scripts" / "site_hooks.py")
    config = (ROOT / "mkdocs.yml").read_text("utf-8").replace("scripts/site_hooks.py", hooks)
    (tmp_path / "mkdocs.yml").write_text(config, "utf-8")
    (tmp_path / "docs" / "orphan.md").write_text("# Of no menu\n", "utf-8")
    with (tmp_path / "docs" / "drift.md").open("a", encoding="utf-8") as page:
        page.write("[a](missing.md) [b](undo.md#not-there) [c](#nowhere)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    for said in ("missing.md", "undo.md#not-there", "#nowhere", "orphan.md"):
        assert said in done.stderr, done.stderr
