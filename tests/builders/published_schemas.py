"""The JSON schemas that `docs/schemas` publishes for reports and plan files."""

from __future__ import annotations

from dataclasses import fields

from delta_engine.config.json_schema import described_schema
from delta_engine.plan_files.document import SCHEMA_URI, PlanFile


def report_schema(report: type) -> str:
    defaults = {field.name: field.default for field in fields(report)}
    name, version = str(defaults["format"]).removeprefix("delta-engine/"), defaults["version"]
    uri, title = f"urn:delta-engine:{name}:v{version}", f"Delta Engine {name.replace('-', ' ')}"
    return described_schema(report, uri=uri, title=title)


def plan_file_schema() -> str:
    return described_schema(
        PlanFile, uri=SCHEMA_URI, title="Delta Engine plan file", renamed={"schema_uri": "$schema"}
    )
