"""Remembers that a project is valid, so that `validate` parses an unchanged project once.

A verdict is the SHA-256 of everything that was judged, and of the versions that judged it. Models and rules in Python
are always loaded, because no checksum covers what they read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from delta_engine.config.asset_bundle import refuse_other_volume
from delta_engine.config.loading import read_contents
from delta_engine.config.settings import Settings, load_settings
from delta_engine.config.whole_files import write_atomically
from delta_engine.deployment.local_files import UNDECODABLE
from delta_engine.errors import ConfigError, engine_version
from delta_engine.models.open_struct import checksum_of
from delta_engine.orchestrate.project import load_project
from delta_engine.validation.model_doubts import model_doubts

_JUDGES: Final = ("msgspec", "pyyaml", "sqlglot")


class Verdict(msgspec.Struct, forbid_unknown_fields=True):
    """The verdict on a valid project.

    Args:
        models: their number.
        bodies: the files of bodies and queries, relative to the project.
        doubts: why the platform may refuse bodies and queries.
    """

    fingerprint: str
    models: int
    bodies: list[str]
    doubts: list[str]


def valid_models(conf_dir: Path, environment: str) -> Verdict:
    """Return the verdict on a project whose models are all valid. Errors as for `load_project`."""
    settings = load_settings(conf_dir, environment)
    refuse_other_volume(settings)
    path = settings.project_dir / ".delta-engine" / "cache" / f"{environment}.verdict.json"
    verdict = _read(path)
    if verdict is not None and verdict.fingerprint == _fingerprint(settings, verdict.bodies):
        return verdict
    project = load_project(conf_dir, environment)
    settings = project.settings
    verdict = Verdict(
        _checksum(settings, project.contents),
        len(project.selectable),
        sorted(Path(os.path.relpath(file, settings.project_dir)).as_posix() for file in project.bodies),
        [*model_doubts(project.models)],
    )
    if not settings.python_models and not settings.policy.rules:
        _write(path, verdict)
    return verdict


def _fingerprint(settings: Settings, bodies: Iterable[str]) -> str | None:
    """Return the checksum of a project as it is now; None if a file cannot be read."""
    try:
        return _checksum(settings, read_contents(settings, map(settings.project_dir.joinpath, bodies)))
    except (ConfigError, OSError):
        return None  # loading says why


def _checksum(settings: Settings, contents: Mapping[Path, str]) -> str:
    judges = [sys.version, engine_version(), *map(version, _JUDGES)]
    files = {str(path): contents[path] for path in sorted(contents)}
    return checksum_of(repr([judges, settings, files]).encode())


def _read(path: Path) -> Verdict | None:
    with suppress(OSError, *UNDECODABLE):
        return msgspec.json.decode(path.read_bytes(), type=Verdict)
    return None


def _write(path: Path, verdict: Verdict) -> None:
    """Write a verdict if the folder can be written; without it, the next run parses again."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / ".gitignore").write_text("*\n")
        write_atomically(path, msgspec.json.encode(verdict))
