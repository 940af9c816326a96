"""Files that commands write into a project: the skeleton of `init`, and what editors need to check YAML."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

from delta_engine.cli.terminal import say
from delta_engine.config.conf_folder import CONF_DIR
from delta_engine.config.editor_files import editor_files
from delta_engine.config.whole_files import StagedFiles, remove_unfinished_files
from delta_engine.deployment.local_files import only_writer
from delta_engine.errors import InvalidCommandError

_PACKAGE = Path(__file__).resolve().parents[1]
_SHARED = ("bundle", "notebooks", "resources")
_RENAMED = {"project.gitignore": ".gitignore", "project.README.md": "README.md"}
_GITIGNORE: Final = ".gitignore"

_EDIT: Final = re.compile(r"EDIT: (.+?)(?: -->)?$", re.MULTILINE)
"""The marker of a line that the user has to edit, with what it needs."""

_NEXT: Final = (
    ("-e local plan", "plans local tables; needs no edits"),
    ("-e local sync", "creates the local tables below .delta-engine"),
    ("-e dev doctor", "after the edits: checks login, rights and versions"),
    ("-e dev import CATALOG --to conf/models --per table", "writes models for existing tables"),
    ("-e dev plan", "shows what sync would do; README.md explains the job"),
)


class Existing(Enum):
    """What to do with files that exist."""

    REFUSE = auto()
    KEEP = auto()
    REPLACE = auto()


def init_project(directory: Path, existing: Existing) -> None:
    """Write the skeleton into a folder; print what was done, the lines to edit, and the next commands.

    Every file is written whole or not at all. Before the first one appears, all of them are on the disk.

    Raises:
        ConfigError: files exist already, or the folder cannot be written; nothing is written then.
    """
    parts = {name: source.read_bytes() for name, source in sorted(_parts())}
    named = [Path(name).stem for name in parts if Path(name).match("conf/*.yml")]
    parts |= {name: text.encode() for name, text in editor_files(CONF_DIR, named).items()}
    planned = _planned(directory, parts, existing)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with only_writer(directory), StagedFiles() as files:
            for folder in {(directory / name).parent for name in planned.written}:
                remove_unfinished_files(folder)
            for name, content in planned.written.items():
                files.add(directory / name, content, replaces=name in planned.verbs)
            files.publish()
    except OSError as error:
        raise InvalidCommandError(f"the project cannot be written: {error}") from None
    for name in planned.written:
        say(f"{planned.verbs.get(name, 'created')} {directory / name}")
    for name in planned.kept:
        say(f"kept {directory / name}")
    _print_next_steps(directory, parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """What `init` writes, with the verbs for files that exist, and what it keeps."""

    written: Mapping[str, bytes]
    verbs: Mapping[str, str]
    kept: tuple[str, ...]


def _planned(directory: Path, parts: Mapping[str, bytes], existing: Existing) -> _Planned:
    """Return what to write; ConfigError that names every file that prevents it."""
    written, verbs, kept = dict[str, bytes](), dict[str, str](), list[str]()
    present, refused = list[str](), list[str]()
    for name, content in parts.items():
        path = directory / name
        if obstacle := _obstacle(directory, path):
            refused.append(obstacle)
        elif not os.path.lexists(path):
            written[name] = content
        elif name == _GITIGNORE and not path.is_symlink():
            merged = merged_lines(path.read_bytes(), content)
            if merged is None:
                kept.append(name)
            else:
                written[name], verbs[name] = merged, "added lines to"
        elif existing is Existing.KEEP:
            kept.append(name)
        elif existing is Existing.REPLACE:
            written[name], verbs[name] = content, "replaced"
        else:
            present.append(str(path))
    if refused:
        reasons = "; ".join(dict.fromkeys(refused))
        raise InvalidCommandError(f"the project cannot be written: {reasons}", way_out="Move it away first.")
    if present:
        raise InvalidCommandError(
            f"these files exist already: {', '.join(present)}",
            way_out="Keep them with --skip-existing, replace them with --force, or choose an empty folder: "
            "delta-engine init DIR.",
        )
    return _Planned(written=written, verbs=verbs, kept=tuple(kept))


def _obstacle(directory: Path, path: Path) -> str:
    """Return why a file can never be written at a path; empty if it can."""
    if path.is_dir():
        return f"{path} is a folder"
    for folder in (
        parent for parent in path.parents if parent.is_relative_to(directory) and os.path.lexists(parent)
    ):
        if not folder.is_dir():
            return f"{folder} is no folder"
        if not folder.resolve().is_relative_to(directory.resolve()):
            return f"{folder} is a link out of the project"
    return ""


def merged_lines(present: bytes, needed: bytes) -> bytes | None:
    """Return a file with the wanted lines that it lacks at its end; None if it lacks none.

    The rest stays byte for byte, and added lines end as the file's lines do. A pattern that the file negates (`!dist/`)
    is not missing.
    """
    existing = {line.strip() for line in present.removeprefix(b"\xef\xbb\xbf").splitlines()}
    missing = [line for line in needed.splitlines() if line not in existing and b"!" + line not in existing]
    if not missing:
        return None
    end = b"\r\n" if b"\r\n" in present else b"\n"
    gap = end if present and not present.endswith((b"\n", b"\r")) else b""
    return present + gap + b"".join(line + end for line in missing)


def _print_next_steps(directory: Path, parts: Mapping[str, bytes]) -> None:
    edits = [place for name in parts for place in _edits(directory / name, name)]
    if edits:
        say("\nto edit:")
    width = max((len(place) for place, _ in edits), default=0)
    for place, text in edits:
        say(f"  {place:{width}}  {text}")
    say("\nnext:")
    if directory != Path():
        say(f"  cd {shlex.quote(str(directory))}")
    width = max(len(command) for command, _ in _NEXT)
    for command, meaning in _NEXT:
        say(f"  delta-engine {command:{width}}  # {meaning}")


def _edits(path: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file that are marked, each with its place and what to edit."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if match := _EDIT.search(line):
            yield f"{name}:{number}", match[1]


def _parts() -> Iterator[tuple[str, Path]]:
    """Yield the files of the skeleton by their place in the project.

    In a wheel the bundle lies inside the skeleton; in a checkout it is the project's own.
    """
    roots = [_PACKAGE / "skeleton"]
    if not (roots[0] / _SHARED[0]).is_dir():
        roots += [_PACKAGE.parents[1] / name for name in _SHARED]
    for root in roots:
        base = root if root.name == "skeleton" else root.parent
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                name = path.relative_to(base).as_posix()
                yield _RENAMED.get(name, name), path
