"""The published JSON schema of the deployment state, generated from the document's classes and their docstrings."""

from __future__ import annotations

from delta_engine.config.json_schema import described_schema
from delta_engine.deployment.document import SCHEMA_URI, DeploymentState
from delta_engine.models.open_struct import UNKNOWN_KEY


def published_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/deployment-state-v1.json` holds."""
    return described_schema(
        DeploymentState,
        uri=SCHEMA_URI,
        title="Delta Engine deployment state",
        renamed={"schema_uri": "$schema"},
        hidden=UNKNOWN_KEY,
    )
