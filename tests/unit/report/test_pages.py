"""The reports' pages without a browser: well-formed, self-contained, same bytes, and no text that becomes markup."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.actions import AlignTable, CreateTable, DropTable, TablePlan
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.report.json_documents import report_json
from delta_engine.report.notebook_html import plan_html
from delta_engine.report.pages import drift_html
from delta_engine.report.plan_tree import plan_branches
from delta_engine.tools.conformance.page import conformance_html
from delta_engine.tools.conformance.report import CheckStatus, CleanUpReport, RunOutcome
from tests.builders import awkward_drift_reports, conformance_reports
from tests.builders.awkward_drift_reports import HOSTILE_TEXTS, hostile_report
from tests.builders.drift_reports import empty_report, full_report, past_runs, schema_report
from tests.cases.golden_texts import assert_golden
from tests.cases.parsed_pages import Page

GOLDEN_REPORTS = Path(__file__).parents[2] / "golden_reports"

PAGES: dict[str, Callable[[str], str]] = {
    "drift": lambda text: drift_html(awkward_drift_reports.report_saying(text)),
    "conformance": lambda text: conformance_html(conformance_reports.report_saying(text)),
}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("text", [*HOSTILE_TEXTS, "<script>alert(1)</script>", "</pre></style><img src=x>"])
def test_no_text_becomes_markup(page: str, text: str) -> None:
    assert Page(PAGES[page](text)).structure == Page(PAGES[page]("harmless")).structure


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=60).filter(lambda text: "." not in text))
def test_no_random_text_becomes_markup(text: str) -> None:
    assert Page(PAGES["drift"](text)).structure == Page(PAGES["drift"]("harmless")).structure


@pytest.mark.parametrize("page", PAGES)
def test_what_cannot_be_seen_is_spelled_out(page: str) -> None:
    html = PAGES[page]("a\u202eb\x00c\ud800")
    assert "a\\u202eb\\u0000c\\ud800" in html
    html.encode("utf-8")


@pytest.mark.parametrize(
    "html",
    [
        drift_html(full_report(), past_runs()),
        drift_html(hostile_report(), past_runs()),
        PAGES["conformance"]("https://example.com/x.js"),
    ],
)
def test_a_page_needs_nothing_from_elsewhere(html: str) -> None:
    page = Page(html)
    for name, value in page.attributes:
        if name in ("href", "src", "action", "srcset", "data", "poster"):
            assert value.startswith(("#", "data:")), (name, value)
        assert not name.startswith("on")
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert "http" not in dict(page.attributes)["content"]


def test_the_exact_drift_page(request: pytest.FixtureRequest) -> None:
    html = drift_html(full_report(), past_runs())
    assert_golden(html, GOLDEN_REPORTS / "full.html", request)
    assert drift_html(full_report(), tuple(reversed(past_runs()))) == html


def test_sections_without_findings_are_left_out() -> None:
    assert 'id="schemas"' not in drift_html(full_report(), past_runs())
    assert "No drift" in drift_html(empty_report())
    assert "no earlier report" in drift_html(empty_report())


def test_schemas_have_a_section_of_their_own() -> None:
    html = drift_html(schema_report())
    assert 'id="schemas"' in html
    assert '<span class="path">prod.</span>silver' in html
    assert 'data-status="schemas" data-kind="schema_grant"' in html
    assert 'value="schemas">Schemas</button>' in html


def test_the_exact_conformance_report(request: pytest.FixtureRequest) -> None:
    report = conformance_reports.report_saying("as the platform says it")
    assert_golden(conformance_html(report), GOLDEN_REPORTS / "conformance.html", request)
    assert_golden(report_json(report), GOLDEN_REPORTS / "conformance.json", request)


def test_the_conformance_page_has_everything() -> None:
    text = Page(PAGES["conformance"]("the platform's <words>")).text
    for words in (
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
        "Read again once, because it differed.",
        "SetTableTags",
    ):
        assert words in text
    assert text.count("the platform's <words>") >= 20
    assert "script" not in {element for element, _ in Page(PAGES["conformance"]("x")).elements}
    assert PAGES["conformance"]("x") == PAGES["conformance"]("x")


def test_failed_groups_come_first_and_are_open() -> None:
    report = conformance_reports.report_saying("x")
    agreed = replace(report.groups[0], name="an agreed group", status=CheckStatus.AGREED, steps=())
    html = conformance_html(replace(report, groups=(agreed, *report.groups)))
    assert html.index("<h3>tags</h3>") < html.index("<h3>an agreed group</h3>")
    assert "<details open><summary>1 statement</summary>" in html


@pytest.mark.parametrize("outcome", RunOutcome)
def test_every_outcome_has_a_page(outcome: RunOutcome) -> None:
    report = conformance_reports.report_saying("x")
    empty = replace(report, outcome=outcome, groups=(), probes=(), statements=(), clean_up=CleanUpReport())
    text = Page(conformance_html(empty)).text
    assert "Every refusal" not in text
    assert "Left behind" not in text


def test_the_page_of_a_plan_is_the_terminals_tree() -> None:
    hostile = "</li><script>alert(1)</script>&amp;"
    columns = (Column("id", "bigint", comment=hostile), Column("at", "timestamp"))
    comment = SetTableComment(desired="who buys", observed=hostile)
    plan = TablePlan(
        (
            CreateTable(Table("dev", "silver", "orders", columns)),
            AlignTable(QualifiedName("dev", "silver", "customers"), (comment,)),
            DropTable(QualifiedName("dev", "silver", "gone"), 7),
        )
    )
    page = Page(plan_html(PlannedRun(plan=plan), environment="dev"))
    assert {tag for tag, _ in page.elements} == {"style", "div", "p", "b", "details", "summary", "ul", "li"}
    branches = list(plan_branches(plan))
    assert len(branches) == 3
    for branch in (*branches, *(leaf for parent in branches for leaf in parent.leaves)):
        assert f"{branch.sign.value} {branch.text}" in page.text
    assert Page(plan_html(PlannedRun(), environment="a<b")).text.endswith("a<b: no changes")


def test_a_long_type_has_a_line_per_field() -> None:
    fields = ", ".join(f"`field_{number}`: int" for number in range(6))
    report = full_report()
    finding = replace(report.drifted[0].findings[0], expected=None, actual=f"struct<{fields}> NOT NULL")
    report = replace(report, drifted=(replace(report.drifted[0], findings=(finding,)),))
    html = drift_html(report)
    assert "struct&lt;\n  field_0: int,\n  field_1: int,\n" in html
    assert "  field_5: int\n&gt; NOT NULL" in html
