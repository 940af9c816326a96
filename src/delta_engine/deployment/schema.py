"""The published JSON schema of the deployment state, generated from the document's classes and their docstrings."""

from __future__ import annotations

import json
import re
from inspect import cleandoc
from typing import Any

import msgspec

from delta_engine.deployment.document import SCHEMA_URI, DeploymentState
from delta_engine.deployment.open_struct import UNKNOWN_KEY

_ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n        .+)*)", re.MULTILINE)


def published_schema() -> str:
    """Return the schema as indented JSON: what `docs/schemas/deployment-state-v1.json` holds.

    It is open, as a newer minor may add fields.
    """
    (reference,), components = msgspec.json.schema_components(
        [DeploymentState], ref_template="#/$defs/{name}"
    )
    for component in components.values():
        component.pop("additionalProperties", None)
        properties = component.get("properties", {})
        properties.pop(UNKNOWN_KEY, None)
        _describe(component, properties)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_URI,
        "title": "Delta Engine deployment state",
        **reference,
        "$defs": components,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False)


def _describe(component: dict[str, Any], properties: dict[str, dict[str, Any]]) -> None:
    """Turn a class's docstring into descriptions: its first line, and that of each argument for its field."""
    summary, _, arguments = cleandoc(component.get("description", "")).partition("Args:")
    component["description"] = summary.strip()
    for name, text in _ARGUMENT.findall(arguments):
        field = properties.get("$schema" if name == "schema_uri" else name)
        if field is not None:
            field["description"] = " ".join(text.split())
