"""A configuration as YAML with the place of each value, and as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from delta_engine.config.configured_values import ConfiguredValue, Value
from delta_engine.config.yaml_text import one_line
from delta_engine.telemetry.visible import in_one_line, visible

_FORMAT: Final = "delta-engine/configuration"
_VERSION: Final = 1


def configuration_yaml(values: Sequence[ConfiguredValue]) -> str:
    """Return a configuration that loads as these values; a comment behind each says where it is from."""
    return visible("\n".join(_lines(values)))  # in double quotes, these escapes are YAML's own


def configuration_json(environment: str, values: Sequence[ConfiguredValue]) -> str:
    """Return a document of all values with their paths and origins."""
    document = {
        "format": _FORMAT,
        "version": _VERSION,
        "environment": environment,
        "values": [
            {
                "path": value.path,
                "value": value.value,
                "origin": {"file": value.origin.file, "line": value.origin.line} if value.origin else None,
            }
            for value in values
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _lines(values: Sequence[ConfiguredValue]) -> Iterator[str]:
    above: Sequence[str | int] = ()
    for value in values:
        *parents, last = value.path
        for depth, step in enumerate(parents):
            if parents[: depth + 1] != [*above[: depth + 1]]:
                yield f"{_indent(depth)}{_scalar(step)}:"
        above = value.path
        key = "-" if isinstance(last, int) else f"{_scalar(last)}:"
        origin = in_one_line(str(value.origin)) if value.origin else "default"
        yield f"{_indent(len(parents))}{key} {_scalar(value.spelled)}  # {origin}"


def _indent(depth: int) -> str:
    return "  " * depth


def _scalar(value: Value) -> str:
    return json.dumps(value) if value is None or isinstance(value, float) else one_line(value, in_flow=True)
