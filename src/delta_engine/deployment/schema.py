"""The published JSON schema of the deployment state, generated from the document's classes."""

from __future__ import annotations

import json

from delta_engine.deployment.document import SCHEMA_URI, DeploymentState
from delta_engine.deployment.open_struct import json_schema


def published_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/deployment-state-v1.json` holds."""
    schema = json_schema(DeploymentState, **{"$id": SCHEMA_URI, "title": "Delta Engine deployment state"})
    return json.dumps(schema, indent=2, ensure_ascii=False)
