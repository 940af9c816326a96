"""Reads a bundle as the Databricks CLI does: includes merged, a target laid over, references and presets filled in.

It judges nothing: what cannot be filled in stays, for `bundle_checks` to find.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.bundle.schedules import apply_presets

REFERENCE = re.compile(r"\$\{([^}]+)\}")
USER = (
    "11111111-2222-3333-4444-555555555555"  # a service principal deploys: its application id, no mail address
)
HOST = "https://workspace.example.com"
COMMIT = "0123abc"


def load(root: Path) -> dict[str, Any]:
    """Return databricks.yml with its included files merged in."""
    bundle = read(root / "databricks.yml")
    for pattern in bundle["include"]:
        for path in sorted(root.glob(pattern)):
            _merge(bundle, {key: value for key, value in read(path).items() if key != "include"})
    return bundle


def read(path: Path) -> dict[str, Any]:
    """Return one YAML document; a key that is there twice is an error."""
    return deepcopy(_parsed(path.read_text("utf-8")))


@cache
def _parsed(text: str) -> dict[str, Any]:
    """Return the data of a text; copies of the bundle differ in one file."""
    document: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return document


def deployed(
    bundle: Mapping[str, Any], target: str, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the bundle for one target with its references and presets filled in; unknown references stay.

    Args:
        given: values of variables that take precedence over those of the target.
    """
    merged = deepcopy(dict(bundle))
    settings = merged.pop("targets")[target]
    variables = merged.pop("variables", {})
    values = {name: variable.get("default") for name, variable in variables.items()}
    values |= {**settings.pop("variables", {}), **(given or {})}
    _merge(merged, settings)
    root_path = merged.get("workspace", {}).get("root_path", "")
    references = {f"var.{name}": value for name, value in values.items()} | {
        "bundle.name": merged["bundle"]["name"],
        "bundle.target": target,
        "bundle.git.commit": COMMIT,
        "workspace.host": HOST,
        "workspace.current_user.userName": USER,
        "workspace.root_path": root_path,
        "workspace.file_path": f"{root_path}/files",
    }
    for kind, resources in merged.get("resources", {}).items():
        references |= {f"resources.{kind}.{name}.id": f"<id of {name}>" for name in resources}
    filled: dict[str, Any] = _fill(merged, references)
    apply_presets(filled)
    return filled


def texts(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from texts(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from texts(item, f"{place}[{position}]")
    elif isinstance(value, str):
        yield place, value


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _fill(value: Any, references: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _fill(item, references) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, references) for item in value]
    if isinstance(value, str):
        whole = REFERENCE.fullmatch(value)
        if whole:
            return _look_up(whole, references)
        return REFERENCE.sub(lambda part: str(_look_up(part, references)), value)
    return value


def _look_up(reference: re.Match[str], references: Mapping[str, Any]) -> Any:
    name = reference[1]
    if name not in references:
        return reference[0]
    # Without itself: a variable that refers back to itself stays, instead of never ending.
    return _fill(references[name], {key: value for key, value in references.items() if key != name})
