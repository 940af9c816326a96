"""The names of declared securables, found in the text of model files. Completion waits for them.

Parsing 1,000 models takes seconds. This module parses none, imports no aspects, and checks nothing. It finds a table,
a view or a function whose catalog, schema and name follow one another, in any order, and a policy whose scope follows
its name. Models in Python are not loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from delta_engine.config.extended import read_extended
from delta_engine.config.file_patterns import matching_files
from delta_engine.config.state_backend import LocalBackend, StateBackend, StateBackendDocument, state_backend
from delta_engine.config.yaml_documents import Document

_REFERENCE: Final = re.compile(r"\$\{([^}]*)\}")

_VALUE: Final = r"""["']?:[ \t]+("[^"\n]*"|'[^'\n]*'|[^\s"'#,\[\]{}]+)"""
_ENTRY: Final = rf"\b(catalog|schema|name){_VALUE}"
_BETWEEN: Final = r"(?:(?:[ \t]*(?:#[^\n]*)?\n)+[ \t]*|\s*,\s*)[\"']?"
_TABLE: Final = re.compile(_BETWEEN.join([_ENTRY] * 3))
_POLICY: Final = re.compile(
    rf"""\bname{_VALUE}{_BETWEEN}on["']?:\s*\{{?\s*["']?(?:catalog|schema|table){_VALUE}"""
)
_CATALOG: Final = re.compile("catalog")  # searching for a literal is fast
_POLICIES: Final = "policies"  # their key, in each file that declares any
_AROUND: Final = 300
"""The number of characters around it that may hold the rest of a name."""


class _ModelPatterns(msgspec.Struct):
    yaml: list[str] = []


class _Configuration(msgspec.Struct):
    """The keys that say where tables and the deployment state are."""

    models: _ModelPatterns
    variables: dict[str, Any] = {}
    state_backend: StateBackendDocument = msgspec.field(default_factory=LocalBackend)


def declared_names(conf_dir: Path, environment: str) -> list[str]:
    """Return the names of an environment's securables, as globs may have them, sorted.

    Raises:
        ConfigError, msgspec.ValidationError, OSError: the configuration or a model file cannot be read.
    """
    document, config = _read(conf_dir, environment)
    variables = document.texts(("variables",), config.variables)
    project = conf_dir.absolute().parent
    files = {path for pattern in config.models.yaml for path in matching_files(project, pattern)}
    texts = (with_variables(path.read_bytes().decode("utf-8", "replace"), variables) for path in files)
    return sorted({name for text in texts for name in names_in(text)})


def declared_state_backend(conf_dir: Path, environment: str) -> StateBackend:
    """Return the location of an environment's deployment state; errors as for `declared_names`."""
    document, config = _read(conf_dir, environment)
    return state_backend(document, config.state_backend, conf_dir.absolute().parent)


def names_in(text: str) -> Iterator[str]:
    """Yield the names in the text of a model file, some repeatedly; that of a policy follows its scope's."""
    for catalog in _CATALOG.finditer(text):
        for table in _TABLE.finditer(text, max(0, catalog.start() - _AROUND), catalog.end() + _AROUND):
            parts = dict(zip(table.groups()[::2], table.groups()[1::2], strict=True))
            if len(parts) == 3:
                yield ".".join(parts[key].strip("\"'") for key in ("catalog", "schema", "name"))
    for policy in _POLICY.finditer(text) if _POLICIES in text else ():
        yield ".".join(value.strip("\"'") for value in reversed(policy.groups()))


def with_variables(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with the known variables filled in."""
    return _REFERENCE.sub(lambda reference: variables.get(reference[1].strip(), reference[0]), text)


def _read(conf_dir: Path, environment: str) -> tuple[Document, _Configuration]:
    """Return a configuration with variables filled in. Unknown keys are accepted."""
    document = read_extended(conf_dir / f"{environment}.yml", object)
    config = msgspec.convert(document.value, _Configuration)
    variables = document.texts(("variables",), config.variables)
    document = document.with_texts(
        lambda path, text: text if path[0] == "variables" else with_variables(text, variables)
    )
    return document, msgspec.convert(document.value, _Configuration)
