"""The report as text and as JSON: exact texts, and lines that nothing can break out of."""

from pathlib import Path

import pytest

from delta_engine.actions.drift_policy import Severity
from delta_engine.drift.drift_report import DriftReport
from delta_engine.report.drift_text import drift_lines, drift_text
from delta_engine.report.json_documents import report_json
from tests.builders.awkward_drift_reports import hostile_report, huge_report
from tests.builders.drift_reports import empty_report, full_report, schema_report
from tests.cases.golden_texts import assert_golden

GOLDEN = Path(__file__).parents[2] / "golden_reports"


@pytest.mark.parametrize(
    ("name", "report"), [("full", full_report()), ("schemas", schema_report()), ("empty", empty_report())]
)
def test_the_exact_text_and_json(name: str, report: DriftReport, request: pytest.FixtureRequest) -> None:
    for suffix, found in (("txt", drift_text(report)), ("json", report_json(report) + "\n")):
        assert_golden(found, GOLDEN / f"{name}.{suffix}", request)


def test_hostile_texts_stay_in_their_lines() -> None:
    assert all(line.text.isprintable() for line in drift_lines(hostile_report()))


def test_a_long_report_has_numbers_and_what_is_severe() -> None:
    report = huge_report(tables=30, findings=4)
    whole = [line.text for line in drift_lines(report)]
    compact = [line.text for line in drift_lines(report, is_full=False)]
    severe = {one.resource for one in report.drifted if one.severity is Severity.HIGH}
    assert len(compact) < len(whole)
    assert {text.split()[1] for text in compact if text.startswith("  ~ ")} == severe
    assert compact[-2:] == [
        "Compact, because of more than 20 tables and schemas: --full shows everything.",
        whole[-1],
    ]
    assert [line.text for line in drift_lines(full_report(), is_full=False)] == [
        line.text for line in drift_lines(full_report())
    ]


def test_lines_know_how_bad_what_they_say_is() -> None:
    severities = {line.severity for line in drift_lines(full_report())}
    assert Severity.HIGH in severities
    assert {line.severity for line in drift_lines(empty_report())} == {None}
