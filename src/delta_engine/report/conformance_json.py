"""The report of a conformance run as JSON, and the published schema of that."""

from __future__ import annotations

import json
from typing import Final

import msgspec

from delta_engine.json_schema import described_schema
from delta_engine.report.conformance_report import ConformanceReport

SCHEMA_URI: Final = "urn:delta-engine:conformance-report:v1"


def conformance_json(report: ConformanceReport) -> str:
    """Return the report as one indented JSON document."""
    document = json.dumps(msgspec.to_builtins(report), indent=2, ensure_ascii=False)
    # half a surrogate pair fits into no file; JSON can still spell it
    return document.encode("utf-8", "backslashreplace").decode("utf-8")


def conformance_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/conformance-report-v1.json` holds."""
    return described_schema(ConformanceReport, uri=SCHEMA_URI, title="Delta Engine conformance report")
