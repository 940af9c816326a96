"""The report of a conformance run as JSON, and the published schema of that."""

from __future__ import annotations

from typing import Final

from delta_engine.config.json_schema import described_schema
from delta_engine.report.conformance_report import ConformanceReport
from delta_engine.report.json_text import json_text

SCHEMA_URI: Final = "urn:delta-engine:conformance-report:v1"


def conformance_json(report: ConformanceReport) -> str:
    """Return the report as one indented JSON document."""
    return json_text(report)


def conformance_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/conformance-report-v1.json` holds."""
    return described_schema(ConformanceReport, uri=SCHEMA_URI, title="Delta Engine conformance report")
