"""The drift report as JSON, and the published schema of that."""

from __future__ import annotations

import json
from typing import Final

import msgspec

from delta_engine.drift.drift_report import DriftReport
from delta_engine.json_schema import described_schema

SCHEMA_URI: Final = "urn:delta-engine:drift-report:v1"


def drift_json(report: DriftReport) -> str:
    """Return the report as one indented JSON document."""
    document = json.dumps(msgspec.to_builtins(report), indent=2, ensure_ascii=False)
    # half a surrogate pair fits into no file; JSON can still spell it
    return document.encode("utf-8", "backslashreplace").decode("utf-8")


def drift_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/drift-report-v1.json` holds."""
    return described_schema(DriftReport, uri=SCHEMA_URI, title="Delta Engine drift report")
