"""Remembers that a project is valid, so that `validate` parses an unchanged project once.

A verdict is the SHA-256 of everything that was judged, and of the versions that judged it. Models and rules in Python
are always loaded, because no checksum covers what they read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from delta_engine.config.loading import model_files
from delta_engine.config.settings import Settings, load_settings
from delta_engine.config.yaml_documents import MAX_BYTES
from delta_engine.deployment.local_files import UNDECODABLE, write_atomically
from delta_engine.errors import ConfigError
from delta_engine.orchestrate.project import load_project

_JUDGES: Final = ("delta-engine", "msgspec", "pyyaml", "sqlglot")


class _Verdict(msgspec.Struct, forbid_unknown_fields=True):
    fingerprint: str
    models: int


def count_valid_models(conf_dir: Path, environment: str) -> int:
    """Return the number of a project's models, all of them valid. Errors as for `load_project`."""
    settings = load_settings(conf_dir, environment)
    path = settings.project_dir / ".delta-engine" / "cache" / f"{environment}.verdict.json"
    fingerprint = _fingerprint(settings)
    known = _read(path)
    if known is not None and known.fingerprint == fingerprint:
        return known.models
    project = load_project(conf_dir, environment)
    if fingerprint is not None and fingerprint == _fingerprint(project.settings):  # no file changed meanwhile
        _write(path, _Verdict(fingerprint, len(project.models)))
    return len(project.models)


def _fingerprint(settings: Settings) -> str | None:
    """Return the checksum of everything that the verdict depends on; None if no checksum covers it."""
    if settings.python_models or settings.policy.rules:
        return None
    judged = sha256()
    try:
        for text in _judged(settings):
            judged.update(f"{text}\0".encode())
    except (ConfigError, OSError):
        return None  # loading says why
    return judged.hexdigest()


def _judged(settings: Settings) -> Iterator[str]:
    yield sys.version
    yield from map(version, _JUDGES)
    yield repr(settings)
    for path in model_files(settings):
        with path.open("rb") as file:
            yield f"{path}: {sha256(file.read(MAX_BYTES + 1)).hexdigest()}"


def _read(path: Path) -> _Verdict | None:
    with suppress(OSError, *UNDECODABLE):
        return msgspec.json.decode(path.read_bytes(), type=_Verdict)
    return None


def _write(path: Path, verdict: _Verdict) -> None:
    """Write a verdict if the folder can be written; without it, the next run parses again."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / ".gitignore").write_text("*\n")
        write_atomically(path, msgspec.json.encode(verdict))
