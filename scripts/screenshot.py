"""Makes a picture of a page in headless Chromium: `python scripts/screenshot.py PAGE.html PICTURE.png`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1280, 1900


def main(page: Path, picture: Path, width: int = WIDTH, height: int = HEIGHT) -> int:
    """Open a page, and write its top as a picture."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("there is no Chromium: `sh scripts/browser.sh` installs it on Debian", file=sys.stderr)
        return 1
    picture.parent.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.goto(page.resolve().as_uri())
        tab.screenshot(path=str(picture))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
