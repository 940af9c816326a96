"""The conformance report's page in a real browser."""

import pytest

from delta_engine.tools.conformance.page import conformance_html
from tests.browser.conftest import PHONE, Open, violations
from tests.builders.awkward_drift_reports import HOSTILE_TEXTS
from tests.builders.conformance_reports import report_saying

LONG = "a" * 400


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page: Open, scheme: str) -> None:
    assert violations(open_page(conformance_html(report_saying("words")), color_scheme=scheme)) == []


@pytest.mark.parametrize("text", [LONG, *HOSTILE_TEXTS])
def test_no_text_makes_the_page_wider_or_becomes_markup(open_page: Open, text: str) -> None:
    page = open_page(conformance_html(report_saying(text)), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator("script").count() == 0


def test_statements_close_and_open_from_the_keyboard(open_page: Open) -> None:
    page = open_page(conformance_html(report_saying("words")))
    opened = page.locator("details[open]")
    count = opened.count()
    opened.locator("> summary").first.focus()
    page.keyboard.press("Enter")
    assert opened.count() == count - 1
    page.keyboard.press("Enter")
    assert opened.count() == count
