"""Remembers what was said of a valid project, so that `validate` and `lint` parse an unchanged project once.

An answer has the SHA-256 of everything that was judged, and of the versions that judged it. Models and rules in Python
are always loaded, because no checksum covers what they read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from delta_engine.config.asset_bundle import refuse_other_volume
from delta_engine.config.loading import load_declared, read_contents
from delta_engine.config.settings import Settings, load_settings
from delta_engine.config.whole_files import write_atomically
from delta_engine.deployment.local_files import UNDECODABLE
from delta_engine.errors import ConfigError, engine_version
from delta_engine.models.open_struct import checksum_of
from delta_engine.orchestrate.project import Project, make_project
from delta_engine.validation.model_doubts import model_doubts

_JUDGES: Final = ("msgspec", "pyyaml", "sqlglot")


class Remembered(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What was said of a valid project.

    Args:
        fingerprint: the checksum of what was judged.
        bodies: the files of bodies and queries, relative to the project.
    """

    fingerprint: str = ""
    bodies: list[str] = msgspec.field(default_factory=list)


Answer = TypeVar("Answer", bound=Remembered)


class Verdict(Remembered):
    """The verdict on a valid project.

    Args:
        models: their number.
        doubts: why the platform may refuse bodies and queries.
    """

    models: int
    doubts: list[str]


def valid_models(conf_dir: Path, environment: str) -> Verdict:
    """Return the verdict on a project whose models are all valid. Errors as for `load_project`."""

    def judge(project: Project) -> Verdict:
        return Verdict(models=len(project.selectable), doubts=[*model_doubts(project.models)])

    return remembered(load_settings(conf_dir, environment), "verdict", Verdict, judge)


def remembered(
    settings: Settings,
    name: str,
    kind: type[Answer],
    judge: Callable[[Project], Answer],
    asked: object = None,
) -> Answer:
    """Return what a judge says of a valid project, or what it said when all was the same. Errors as for `load_project`.

    Args:
        name: of the answer's file.
        asked: what else decides the answer, with a `repr` that says all.
    """
    refuse_other_volume(settings)
    path = settings.project_dir / ".delta-engine" / "cache" / f"{settings.environment}.{name}.json"
    answer = _read(path, kind)
    if answer is not None and answer.fingerprint == _fingerprint(settings, answer.bodies, asked):
        return answer
    project = make_project(settings, load_declared)
    answer = judge(project)
    answer.fingerprint = _checksum(settings, project.contents, asked)
    answer.bodies = sorted(
        Path(os.path.relpath(file, settings.project_dir)).as_posix() for file in project.bodies
    )
    if not settings.python_models and not settings.policy.rules:
        _write(path, answer)
    return answer


def _fingerprint(settings: Settings, bodies: Iterable[str], asked: object) -> str | None:
    """Return the checksum of a project as it is now; None if a file cannot be read."""
    try:
        return _checksum(settings, read_contents(settings, map(settings.project_dir.joinpath, bodies)), asked)
    except (ConfigError, OSError):
        return None  # loading says why


def _checksum(settings: Settings, contents: Mapping[Path, str], asked: object) -> str:
    judges = [sys.version, engine_version(), *map(version, _JUDGES)]
    files = {str(path): contents[path] for path in sorted(contents)}
    return checksum_of(repr([judges, settings, files, asked]).encode())


def _read(path: Path, kind: type[Answer]) -> Answer | None:
    with suppress(OSError, *UNDECODABLE):
        return msgspec.json.decode(path.read_bytes(), type=kind)
    return None


def _write(path: Path, answer: Remembered) -> None:
    """Write an answer if the folder can be written, and names of files are UTF-8; else the next run parses again."""
    with suppress(OSError, UnicodeEncodeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / ".gitignore").write_text("*\n")
        write_atomically(path, msgspec.json.encode(answer))
