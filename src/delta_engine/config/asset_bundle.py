"""Compares the deployment state of a configuration with the volume that the project's bundle creates.

The Databricks CLI and the engine read different files, so both name the catalog. This module only looks up the volume
`deployment_state`: what it cannot resolve, such as a lookup, it leaves to the CLI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from delta_engine.config.file_patterns import matching_files
from delta_engine.config.settings import Settings
from delta_engine.config.state_backend import DatabricksState
from delta_engine.config.yaml_documents import Document, DocumentPath, read_document
from delta_engine.errors import ConfigError, SourceLocation

BUNDLE_FILE: Final = "databricks.yml"
VOLUME: Final = "deployment_state"
"""The key of the volume in the bundle that `delta-engine init` writes."""

_OF_SHELL: Final = "BUNDLE_VAR_"
"""How environment variables begin that set a bundle's variables, before any file (docs: "Set a variable's value")."""

_REFERENCE: Final = re.compile(r"\$\{([^}]*)\}")
_PARTS: Final = {"catalog_name": "catalog", "schema_name": "schema", "name": "volume"}


def refuse_other_volume(settings: Settings) -> None:
    """Check that the bundle next to the configuration creates the volume that the configuration names.

    Raises:
        ConfigError: the target with the environment's name creates another volume.
    """
    place = settings.state_backend.place
    if settings.conf_dir is None or not isinstance(place, DatabricksState):
        return
    bundle = _read_bundle(settings.conf_dir.parent, settings.environment)
    volume = None if bundle is None else bundle.volume()
    if volume is None:
        return
    named = (place.catalog, place.schema, place.volume)
    for part, name, value in zip(_PARTS.values(), named, volume, strict=True):
        if value.text.lower() != name.lower():
            raise ConfigError(
                f"the deployment state is in {'.'.join(named)}, but the bundle's target {settings.environment} creates "
                f"{'.'.join(value.text for value in volume)} ({value.location})",
                location=settings.locate(("state_backend", "databricks", "schema")),
                way_out=f"Set {value.location} to {name}, or unset it."
                if value.location.file.startswith(_OF_SHELL)
                else f"Write the same {part} in both files.",
            )


@dataclass(frozen=True, slots=True)
class _Value:
    """A text of the bundle with its references filled in, and the place that decides it."""

    text: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class _Bundle:
    """The files of a bundle, as one of its targets uses them."""

    documents: tuple[Document, ...]
    target: str

    def volume(self) -> tuple[_Value, ...] | None:
        """Return catalog, schema and name of the deployment state's volume; None if they are not certain."""
        if not any(_at(document.value, ("targets", self.target)) for document in self.documents):
            return None
        values = []
        for key in _PARTS:
            path = ("resources", "volumes", VOLUME, key)
            value = self._first(("targets", self.target, *path), path)
            filled = None if value is None else self._filled(value, frozenset())
            if filled is None:
                return None
            values.append(filled)
        return tuple(values)

    def _filled(self, value: _Value, above: frozenset[str]) -> _Value | None:
        """Return a value with its references filled in, at the place of the first; None if one cannot be."""
        text, location = value.text, value.location
        for reference in _REFERENCE.findall(value.text):
            referenced = None if reference in above else self._referenced(reference, value.location)
            filled = None if referenced is None else self._filled(referenced, above | {reference})
            if filled is None:
                return None
            location = filled.location if location is value.location else location
            text = text.replace(f"${{{reference}}}", filled.text)
        return _Value(text, location)

    def _referenced(self, reference: str, location: SourceLocation) -> _Value | None:
        kind, _, name = reference.partition(".")
        match kind, name:
            case "var", _:
                return self._variable(name)
            case "bundle", "target":
                return _Value(self.target, location)
            case "bundle", "name":
                return self._first(("bundle", "name"))
        return None

    def _variable(self, name: str) -> _Value | None:
        """Return the value of a declared variable, in the order of the CLI."""
        in_shell = os.environ.get(f"{_OF_SHELL}{name}")
        is_declared = any(_at(document.value, ("variables", name)) is not None for document in self.documents)
        if in_shell is not None and is_declared:
            return _Value(in_shell, SourceLocation(f"{_OF_SHELL}{name}"))
        of_target = ("targets", self.target, "variables", name)
        return self._first(of_target, (*of_target, "default"), ("variables", name, "default"))

    def _first(self, *paths: DocumentPath) -> _Value | None:
        """Return the first scalar at one of these paths, in any file; None if it is not a text."""
        for path in paths:
            for document in self.documents:
                value = _at(document.value, path)
                if value is not None and not isinstance(value, Mapping):
                    return _Value(value, document.location(path)) if isinstance(value, str) else None
        return None


def _at(value: object, path: DocumentPath) -> object:
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _read_bundle(folder: Path, target: str) -> _Bundle | None:
    """Return the bundle in a folder; None if there is none, or if it cannot be read."""
    path = folder / BUNDLE_FILE
    if not path.is_file():
        return None
    try:
        root = read_document(path)
        return _Bundle((root, *map(read_document, _included(folder, root))), target)
    except (ConfigError, OSError):  # `databricks bundle validate` says why
        return None


def _included(folder: Path, root: Document) -> Iterator[Path]:
    patterns = _at(root.value, ("include",))
    for pattern in patterns if isinstance(patterns, list) else ():
        if isinstance(pattern, str) and pattern and not Path(pattern).is_absolute():
            yield from matching_files(folder, pattern)
