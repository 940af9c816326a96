"""The report's page without a browser: self-contained, the same bytes, and no text that becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.drift.drift_report import DriftReport
from delta_engine.report.pages import drift_html
from tests.awkward_drift_reports import HOSTILE_TEXTS, hostile_report, report_saying
from tests.drift_reports import empty_report, full_report, past_runs, schema_report

GOLDEN = Path(__file__).parents[2] / "golden_reports" / "full.html"


class Structure(HTMLParser):
    """Notes the elements with their attributes' names, and the texts between them."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_exact_page(request: pytest.FixtureRequest) -> None:
    found = drift_html(full_report(), past_runs())
    if request.config.getoption("--rewrite-golden"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert GOLDEN.read_text("utf-8") == found
    assert drift_html(full_report(), tuple(reversed(past_runs()))) == found


def test_every_section_is_there() -> None:
    html = drift_html(full_report(), past_runs())
    for name in (
        "drifted",
        "deleted",
        "unmanaged",
        "pending",
        "left-alone",
        "unfinished",
        "ignored",
        "policy-notes",
    ):
        assert f'<section id="{name}"' in html
    assert "No drift" in drift_html(empty_report())
    assert "no earlier report" in drift_html(empty_report())


def test_schemas_have_a_section_of_their_own() -> None:
    html = drift_html(schema_report())
    assert 'id="schemas"' in html
    assert '<span class="path">prod.</span>silver' in html
    assert 'data-status="schemas" data-kind="schema_grant"' in html
    assert 'value="schemas">Schemas</button>' in html
    assert 'id="schemas"' not in drift_html(full_report())


@pytest.mark.parametrize("report", [full_report(), hostile_report()])
def test_the_page_needs_nothing_from_elsewhere(report: DriftReport) -> None:
    structure = Structure(drift_html(report, past_runs()))
    for name, value in structure.attributes:
        if name in ("href", "src", "action", "srcset", "data", "poster"):
            assert value.startswith(("#", "data:")), (name, value)
    style = re.search(r"<style>(.*?)</style>", drift_html(full_report()), re.DOTALL)
    assert style
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    policy = dict(structure.attributes)["content"]
    assert "http" not in policy


def harmless_structure() -> list[tuple[str, tuple[str, ...]]]:
    return Structure(drift_html(report_saying("harmless"))).elements


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_no_text_becomes_markup(text: str) -> None:
    structure = Structure(drift_html(report_saying(text)))
    # a marked part or a left-out one is markup of ours, and depends on the text
    ours = ("del", "ins", "em")
    found = [element for element in structure.elements if element[0] not in ours]
    assert found == [element for element in harmless_structure() if element[0] not in ours]


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=60).filter(lambda text: "." not in text))
def test_no_random_text_becomes_markup(text: str) -> None:
    structure = Structure(drift_html(report_saying(text)))
    ours = ("del", "ins", "em")
    found = [element for element in structure.elements if element[0] not in ours]
    assert found == [element for element in harmless_structure() if element[0] not in ours]


def test_what_cannot_be_seen_is_spelled_out() -> None:
    html = drift_html(report_saying("a\u202eb\x00c\ud800"))
    assert "a\\u202eb\\u0000c\\ud800" in html
    html.encode("utf-8")
