"""What the site has besides docs/: pages of the repository's root, diagrams without a network, links between both.

mkdocs calls these functions (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT: Final = Path(__file__).parents[1]
MERMAID: Final = "assets/javascripts/mermaid.min.js"
DIAGRAMS: Final = "assets/diagrams.js"
"""How Mermaid draws: it is loaded between Mermaid and the theme's script."""
ROOT_PAGES: Final = {
    "README.md": "project/README.md",
    "CHANGELOG.md": "project/CHANGELOG.md",
    "CONTRIBUTING.md": "project/CONTRIBUTING.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
"""Pages of the repository outside docs/, and where the site has them."""
BOOSTS: Final = {"Start": 4, "Evaluate": 4, "Guides": 4, "Reference": 2}
"""How much more the search weighs a page of a part of the table of contents than one without a part."""
LAST: Final = 0.25
"""The same of pages for contributors: a user's words find the pages for users first."""

_LINK = re.compile(
    r"(?P<text>\[(?:[^\[\]]|\[[^\]]*\])*\])\((?![a-z]+:|#)(?P<path>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)"
)
_CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, and the script that draws diagrams."""
    for source, place in ROOT_PAGES.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text("utf-8")))
    files.append(File.generated(config, MERMAID, abs_src_path=str(_mermaid())))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Make links between files of the repository links between pages of the site, and rank the page in the search."""
    place = page.file.src_uri
    part = str(page.ancestors[-1].title) if page.ancestors else ""
    page.meta["search"] = {"boost": BOOSTS.get(part, LAST)}
    source = {at: path for path, at in ROOT_PAGES.items()}.get(place, f"docs/{place}")
    parts = _CODE.split(markdown)
    parts[::2] = [_LINK.sub(lambda link: _link(link, source, place), part) for part in parts[::2]]
    return "".join(parts)


def on_post_page(output: str, *, page: Page, **_: object) -> str:
    """Load the scripts that draw diagrams where there are some; otherwise the theme would fetch Mermaid."""
    if 'class="mermaid"' not in output:
        return output
    sources = (get_relative_url(script, page.url) for script in (MERMAID, DIAGRAMS))
    scripts = "".join(f'<script src="{source}"></script>' for source in sources)
    return output.replace("</head>", f"{scripts}</head>", 1)


def _link(link: re.Match[str], source: str, place: str) -> str:
    target = site_place(os.path.normpath(PurePosixPath(source).parent / link["path"]))
    if target is None:
        return link["text"][1:-1]
    relative = os.path.relpath(target, PurePosixPath(place).parent)
    return f"{link['text']}({relative}{link['anchor'] or ''})"


def site_place(path: str) -> str | None:
    """Return where the site has a file of the repository, or None if it has not; of a folder, its README."""
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    return ROOT_PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)


def _mermaid() -> Path:
    """Return Mermaid's script; the package ships it unchanged, among much that the site does not need."""
    module = find_spec("mermaidx")
    if module is None or module.origin is None:
        raise FileNotFoundError("mermaidx is not installed: `make docs` installs it")
    return Path(module.origin).parent / "assets" / "mermaid.js"
