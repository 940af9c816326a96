"""The published JSON schema of plan files, generated from the document's classes and their docstrings."""

from __future__ import annotations

from delta_engine.config.json_schema import described_schema
from delta_engine.plan_files.document import SCHEMA_URI, PlanFile


def plan_file_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/plan-file-v1.json` holds."""
    return described_schema(
        PlanFile, uri=SCHEMA_URI, title="Delta Engine plan file", renamed={"schema_uri": "$schema"}
    )
