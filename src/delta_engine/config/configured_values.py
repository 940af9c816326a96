"""The values of a configuration as they hold, for people: merged, with variables and defaults, without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from delta_engine.config.settings import (
    Configuration,
    filled_in,
    load_settings,
    read_configuration,
    takes_secrets,
)
from delta_engine.config.state_backend import LocalBackend
from delta_engine.config.variables import escaped, escaped_but_secrets
from delta_engine.config.yaml_documents import Document, DocumentPath
from delta_engine.errors import SourceLocation
from delta_engine.telemetry.logs import HIDDEN, redacted

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"

_TEXTS: Final = frozenset({("variables",), ("backend", "spark"), ("defaults", "table_properties")})
"""The mappings whose values are texts, however they are written."""

_UNWRITTEN: Final = object()

_REFERENCE = re.compile(r"(?:\w+ )?\$\{env:\w+\}").fullmatch
"""Matches a reference to an environment variable, also behind a word such as `Bearer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredValue:
    """A value of a configuration: a scalar, an item of a list, or an empty list or mapping.

    Args:
        value: the value as it holds, variables filled in and secrets hidden.
        spelled: the value as a configuration spells it.
        origin: the place that says it, relative to the project; None for a default.
    """

    path: DocumentPath
    value: Value
    spelled: Value
    origin: SourceLocation | None


def configured_values(conf_dir: Path, environment: str) -> tuple[ConfiguredValue, ...]:
    """Return the values of an environment's configuration, in the order of the documentation.

    Raises:
        ConfigError, RefusalGroup: `load_settings` refuses the configuration.
    """
    settings = load_settings(conf_dir, environment)
    document = read_configuration(conf_dir, environment)
    variables = {
        name: _without_secret(("variables", name), text) for name, text in settings.variables.items()
    }
    document = filled_in(document, variables)
    config = document.convert((), document.value, Configuration)
    config.state_backend = config.state_backend or LocalBackend()
    whole = msgspec.to_builtins(config)
    del whole["extends"]
    return tuple(
        replace(value, origin=_relative(value.origin, settings.project_dir) if value.origin else None)
        for value in _values(document, (), whole, document.value)
    )


def _values(
    document: Document, path: DocumentPath, value: Value, written: object
) -> Iterator[ConfiguredValue]:
    """Yield the values inside a value; `written` is what the files say of it."""
    if isinstance(value, dict) and value:
        items: dict[str, Any] = document.texts(path, value) if path in _TEXTS else value
        for key, item in items.items():
            inner = written.get(key, _UNWRITTEN) if isinstance(written, dict) else _UNWRITTEN
            yield from _values(document, (*path, key), item, inner)
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield _value(document, (*path, position), item, written)
    else:
        yield _value(document, path, value, written)


def _value(document: Document, path: DocumentPath, value: Value, written: object) -> ConfiguredValue:
    shown = _changed(path, value, _without_secret)
    return ConfiguredValue(
        path=path,
        value=shown,
        spelled=_changed(path, shown, _spelled),
        origin=None if written is _UNWRITTEN else document.location(path),
    )


def _changed(path: DocumentPath, value: Value, change: Callable[[DocumentPath, str], str]) -> Value:
    match value:
        case str():
            return change(path, value)
        case list():
            return [_changed((*path, position), item, change) for position, item in enumerate(value)]
        case dict():
            return {key: _changed((*path, key), item, change) for key, item in value.items()}
    return value


def _without_secret(path: DocumentPath, text: str) -> str:
    """Return a text without secrets; references to environment variables stay."""
    key = f"{path[-1]}='x'"
    if redacted(key) == key or _REFERENCE(text):
        return redacted(text)
    return HIDDEN


def _spelled(path: DocumentPath, text: str) -> str:
    if path[0] == "variables":  # they take no variables themselves
        return text
    return escaped_but_secrets(text) if takes_secrets(path) else escaped(text)


def _relative(place: SourceLocation, project_dir: Path) -> SourceLocation:
    file = os.path.relpath(Path(place.file).absolute(), project_dir)
    return SourceLocation(Path(file).as_posix(), place.line)
