"""The report as text and as JSON: exact texts, and lines that nothing can break out of."""

from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.actions.drift_policy import DriftKind, Severity
from delta_engine.drift.drift_report import DriftReport, PendingChange, PendingResource, ResourceDrift
from delta_engine.drift.drifted_resources import Attribution, Finding
from delta_engine.report.drift_text import drift_lines, drift_text
from delta_engine.report.json_documents import report_json
from tests.builders.awkward_drift_reports import hostile_report, huge_report
from tests.builders.drift_reports import CHECKED_AT, empty_report, full_report, schema_report
from tests.cases.golden_texts import assert_golden

ADDRESS = (
    "struct<`street`: string NOT NULL COMMENT 'a `road`', `the zip`: string, "
    "`geo`: struct<`lat`: double, `long`: double>>"
)

GOLDEN = Path(__file__).parents[2] / "golden_reports"


@pytest.mark.parametrize(
    ("name", "report"), [("full", full_report()), ("schemas", schema_report()), ("empty", empty_report())]
)
def test_the_exact_text_and_json(name: str, report: DriftReport, request: pytest.FixtureRequest) -> None:
    for suffix, text in (("txt", drift_text(report)), ("json", report_json(report) + "\n")):
        assert_golden(text, GOLDEN / f"{name}.{suffix}", request)


def test_hostile_texts_stay_in_their_lines() -> None:
    assert all(line.text.isprintable() for line in drift_lines(hostile_report()))


def test_a_long_report_has_numbers_and_what_is_severe() -> None:
    report = huge_report(tables=30, findings=4)
    whole = [line.text for line in drift_lines(report)]
    compact = [line.text for line in drift_lines(report, is_full=False)]
    severe = {resource.resource for resource in report.drifted if resource.severity is Severity.HIGH}
    assert len(compact) < len(whole)
    assert {text.split()[1] for text in compact if text.startswith("  ~ ")} == severe
    assert compact[-2:] == [
        "Compact form for more than 20 resources. --full shows everything.",
        whole[-1],
    ]
    assert [line.text for line in drift_lines(full_report(), is_full=False)] == [
        line.text for line in drift_lines(full_report())
    ]


def test_a_long_report_counts_views_as_views() -> None:
    report = huge_report(tables=30, findings=4)
    first, *others = report.drifted
    view = replace(first, resource=first.resource.replace("table.", "view."))
    lines = [line.text for line in drift_lines(replace(report, drifted=(view, *others)), is_full=False)]
    assert [line for line in lines if ": 1 view, 2" in line]


def test_lines_know_how_bad_what_they_say_is() -> None:
    severities = {line.severity for line in drift_lines(full_report())}
    assert Severity.HIGH in severities
    assert {line.severity for line in drift_lines(empty_report())} == {None}


def shown(kind: DriftKind, field: str, expected: str | None, actual: str | None) -> list[str]:
    """Return the lines of one finding, which are those of a pending change too."""
    finding = Finding(kind=kind, field=field, expected=expected, actual=actual, severity=Severity.LOW)
    table = ResourceDrift(resource="table.dev.silver.orders", findings=(finding,))
    change = PendingChange(
        field=field, observed=expected, desired=actual, is_rename=kind is DriftKind.COLUMN_RENAMED
    )
    pending = PendingResource(resource="table.dev.silver.lines", changes=(change,))
    report = DriftReport(environment="dev", checked_at=CHECKED_AT, drifted=(table,), pending=(pending,))
    lines = [line.text for line in drift_lines(report)]
    start, end = lines.index("  ~ table.dev.silver.orders") + 1, lines.index("      severity: low")
    part = lines[start:end]
    start = lines.index("  + table.dev.silver.lines") + 1
    assert lines[start : start + len(part)] == part
    return part


def test_a_long_type_has_a_line_per_field() -> None:
    assert shown(DriftKind.COLUMN_ADDED, "column address", None, f"{ADDRESS} NOT NULL 'Home'") == [
        "      column address: ADDED struct NOT NULL 'Home'",
        "      ├── + street string NOT NULL 'a `road`'",
        "      ├── + `the zip` string",
        "      └── + geo struct<lat: double, long: double>",
    ]
    assert shown(DriftKind.COLUMN_DROPPED, "column s.address", f"array<{ADDRESS}>", None)[:2] == [
        "      column s.address: REMOVED array<struct>",
        "      ├── - street string NOT NULL 'a `road`'",
    ]


def test_a_nested_type_that_changed_as_a_whole_shows_the_fields_that_differ() -> None:
    before, after = "struct<`a`: int, `b`: struct<`c`: int>>", "struct<`a`: bigint, `b`: struct<`d`: int>>"
    assert shown(DriftKind.COLUMN_TYPE, "column s type", before, after) == [
        "      column s type: changed",
        "      ├── ~ a int → bigint",
        "      └── ~ b",
        "          ├── + d int",
        "          └── - c int",
    ]


@pytest.mark.parametrize(
    ("expected", "actual", "text"),
    [
        ("struct<`a`: int>", "array<int>", "struct<a: int> → array<int>"),
        (None, "struct<`a`: int>", "ADDED struct<a: int>"),
        (None, "struct<`a`: nothing of Spark>", "ADDED struct<a: nothing of Spark>"),
        (None, "struct<" * 300, f"ADDED {('struct<' * 300)[:200]}…"),
        ("struct<a", "struct<", "struct<a → struct<"),
    ],
)
def test_other_values_stay_on_their_line(expected: str | None, actual: str | None, text: str) -> None:
    assert shown(DriftKind.COLUMN_TYPE, "column s type", expected, actual) == [f"      column s type: {text}"]


def test_a_rename_has_both_names() -> None:
    assert shown(DriftKind.COLUMN_RENAMED, "column mail", "mail", "email") == [
        "      column mail: RENAMED mail → email"
    ]


def test_an_author_without_a_time_is_shown_as_such() -> None:
    (drifted, *_) = full_report().drifted
    (finding, *_) = drifted.findings
    unknown = replace(finding, changed=Attribution(who="ana"), last_written=None)
    report = replace(full_report(), drifted=(replace(drifted, findings=(unknown,)),))
    assert "last_modified: time unknown, by ana\n" in drift_text(report)
