"""Generates JSON schemas of classes, with descriptions from their docstrings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from inspect import cleandoc
from types import MappingProxyType
from typing import Any

import msgspec

_ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n        .+)*)", re.MULTILINE)


def described_schema(
    shape: type, *, uri: str, title: str, renamed: Mapping[str, str] | None = None, hidden: str = ""
) -> str:
    """Return a class's schema as indented JSON, open for fields of newer minor versions.

    `uri` is the schema's `$id`. `renamed` maps attributes to other names in the document. No document has the
    `hidden` field.
    """
    (reference,), components = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    for component in components.values():
        component.pop("additionalProperties", None)
        properties = component.get("properties", {})
        properties.pop(hidden, None)
        describe(component, renamed or {})
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": uri,
        "title": title,
        **reference,
        "$defs": components,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False)


def describe(component: dict[str, Any], renamed: Mapping[str, str] = MappingProxyType({})) -> None:
    """Distribute a class's docstring: its summary to the schema, each argument's line to the property."""
    properties = component.get("properties", {})
    summary, _, arguments = cleandoc(component.get("description", "")).partition("Args:")
    component["description"] = summary.strip()
    for name, text in _ARGUMENT.findall(arguments):
        field = properties.get(renamed.get(name, name))
        if field is not None:
            field["description"] = " ".join(text.split())
