"""Real headless Chromium, once for the run; without it these tests say loudly that they are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request, ViewportSize

Open = Callable[..., "Page"]
IMPACTS = ("minor", "moderate", "serious", "critical")
"""How grave axe calls what it finds."""
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    paths = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    chromium = next((path for path in paths if path), None)
    if chromium is None:
        pytest.skip(
            "there is no Chromium: the report's page was NOT tested. `sh scripts/browser.sh` installs it"
        )
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()


@pytest.fixture
def open_file(browser: Browser) -> Iterator[Open]:
    """Return what opens a file, and fails the test for any word on its console or any request."""
    trouble: list[str] = []
    contexts = []

    def refuse(dialog: Dialog) -> None:
        trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def note_request(request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            trouble.append(f"request: {request.url}")

    def opened(path: Path, **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("dialog", refuse)
        page.on("request", note_request)
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert trouble == []


@pytest.fixture
def open_page(open_file: Open, tmp_path: Path) -> Open:
    """Return what opens a page's text, as `open_file` opens a file."""
    numbers = count(1)

    def opened(html: str, **options: Any) -> Page:
        path = tmp_path / f"report-{next(numbers)}.html"
        path.write_text(html, encoding="utf-8")
        return open_file(path, **options)

    return opened


def violations(page: Page, part: str | None = None, *, impacts: Collection[str] = IMPACTS) -> list[str]:
    """Return what axe finds in a page, or in a part of it that a selector names."""
    from axe_playwright_python.sync_playwright import Axe

    # axe would fetch linked style sheets once more, which a page's policy forbids; the browser has applied them
    options = {"preload": False, "resultTypes": ["violations"]}
    grave = [
        violation
        for violation in Axe().run(page, part, options).response["violations"]
        if violation["impact"] in impacts
    ]
    return [f"{violation['id']}: {node['html'][:120]}" for violation in grave for node in violation["nodes"]]
