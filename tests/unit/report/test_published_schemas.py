"""The published schemas of the reports are the generated ones, and real reports fit them."""

import json
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator

from delta_engine.drift.drift_report import DriftReport
from delta_engine.report.json_documents import report_json
from delta_engine.report.run_report import RunReport
from delta_engine.tools.conformance.report import ConformanceReport
from delta_engine.tools.doctor.report import DoctorReport
from delta_engine.tools.lint.report import LintReport
from tests.builders.awkward_drift_reports import HOSTILE_TEXTS, hostile_report
from tests.builders.conformance_reports import report_saying
from tests.builders.drift_reports import empty_report, full_report, schema_report
from tests.builders.published_schemas import report_schema
from tests.cases.golden_texts import assert_golden

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"
REPORTS: dict[str, type] = {
    "conformance-report": ConformanceReport,
    "doctor-report": DoctorReport,
    "drift-report": DriftReport,
    "lint": LintReport,
    "run-report": RunReport,
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_published_schema_is_the_generated_one(name: str, request: pytest.FixtureRequest) -> None:
    path, schema = SCHEMAS / f"{name}-v1.json", report_schema(REPORTS[name]) + "\n"
    assert_golden(schema, path, request)
    Draft202012Validator.check_schema(json.loads(schema))


@pytest.mark.parametrize(
    "report",
    [
        empty_report(),
        full_report(),
        schema_report(),
        hostile_report(),
        *map(report_saying, ("plain", *HOSTILE_TEXTS)),
    ],
)
def test_a_report_fits_its_schema(report: DriftReport | ConformanceReport) -> None:
    validator = Draft202012Validator(json.loads(report_schema(type(report))))
    document = json.loads(report_json(report))
    validator.validate(document)
    assert validator.is_valid({**document, "of a newer minor": 1})
    assert not validator.is_valid({**document, "format": 1})


def test_json_is_read_back_as_it_was() -> None:
    report = report_saying("it's 東京")
    assert msgspec.json.decode(report_json(report), type=ConformanceReport) == report
