"""The reports of a conformance run: the page is well-formed, self-contained and safe, the JSON fits its schema."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from delta_engine.report.conformance_report import (
    CheckStatus,
    CleanUpReport,
    ConformanceReport,
    RunOutcome,
)
from delta_engine.report.json_documents import report_json, report_schema
from delta_engine.report.pages import conformance_html
from tests.awkward_drift_reports import HOSTILE_TEXTS
from tests.conformance_reports import report_saying

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "conformance-report-v1.json"

_VOID = ("meta", "link")


class WellFormed(HTMLParser):
    """Notes elements, attributes and texts, and that every element is closed where it should be."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_says_everything() -> None:
    text = WellFormed(conformance_html(report_saying("the platform's <words>"))).text
    for said in (
        "Something differs, was refused or was not reached",
        "1 different. 1 skipped. 1 not supported here.",
        "2026-01-02 03:04:05 UTC",
        "62 s, 3 statements",
        "does not hold",
        "Left behind",
        "Of other runs",
        "leaves the files of an external table",
        "Every refusal",
        "Other statements",
        "Read again once, because it did not agree.",
        "SetTableTags",
    ):
        assert said in text
    found = text.count("the platform's <words>")
    assert found >= 20


def test_what_failed_comes_first_and_is_open() -> None:
    report = report_saying("x")
    agreed = replace(report.groups[0], name="an agreed group", status=CheckStatus.AGREED, steps=())
    html = conformance_html(replace(report, groups=(agreed, *report.groups)))
    assert html.index("<h3>tags</h3>") < html.index("<h3>an agreed group</h3>")
    assert "<details open><summary>1 statement</summary>" in html


def test_the_same_report_is_the_same_page() -> None:
    assert conformance_html(report_saying("x")) == conformance_html(report_saying("x"))


@pytest.mark.parametrize("outcome", RunOutcome)
def test_every_outcome_has_a_page(outcome: RunOutcome) -> None:
    empty = replace(report_saying("x"), outcome=outcome, groups=(), probes=(), statements=())
    text = WellFormed(conformance_html(replace(empty, clean_up=CleanUpReport()))).text
    assert "Every refusal" not in text
    assert "Left behind" not in text


@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, "<script>alert(1)</script>", "</pre></style><img src=x>"])
def test_no_text_becomes_markup(text: str) -> None:
    page = WellFormed(conformance_html(report_saying(text)))
    assert page.elements == WellFormed(conformance_html(report_saying("harmless"))).elements


def test_the_page_needs_nothing_from_elsewhere() -> None:
    html = conformance_html(report_saying("https://example.com/x.js"))
    page = WellFormed(html)
    for name, value in page.attributes:
        if name in ("href", "src", "action", "srcset", "data", "poster"):
            assert value.startswith(("#", "data:")), (name, value)
        assert not name.startswith("on")
    assert "script" not in {element for element, _ in page.elements}
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    policy = dict(page.attributes)["content"]
    assert "http" not in policy


def test_what_cannot_be_seen_is_spelled_out() -> None:
    html = conformance_html(report_saying("a\u202eb\x00c\ud800"))
    assert "a\\u202eb\\u0000c\\ud800" in html
    html.encode("utf-8")


def test_the_published_schema_is_the_generated_one_and_fits(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite-golden"):
        SCHEMA.write_text(report_schema(ConformanceReport) + "\n", encoding="utf-8")
    assert SCHEMA.read_text("utf-8") == report_schema(ConformanceReport) + "\n"
    schema: dict[str, Any] = json.loads(report_schema(ConformanceReport))
    for text in ("plain", *HOSTILE_TEXTS):
        jsonschema.validate(json.loads(report_json(report_saying(text))), schema)
    lacking = json.loads(report_json(report_saying("x")))
    del lacking["run_id"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(lacking, schema)


def test_the_json_is_read_back_as_it_was() -> None:
    report = report_saying("it's 東京")
    assert msgspec.json.decode(report_json(report), type=ConformanceReport) == report
