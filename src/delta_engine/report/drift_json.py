"""The drift report as JSON, and the published schema of that."""

from __future__ import annotations

from typing import Final

from delta_engine.config.json_schema import described_schema
from delta_engine.drift.drift_report import DriftReport
from delta_engine.report.json_text import json_text

SCHEMA_URI: Final = "urn:delta-engine:drift-report:v1"


def drift_json(report: DriftReport) -> str:
    """Return the report as one indented JSON document."""
    return json_text(report)


def drift_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/drift-report-v1.json` holds."""
    return described_schema(DriftReport, uri=SCHEMA_URI, title="Delta Engine drift report")
