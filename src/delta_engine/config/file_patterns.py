"""Finds the files that patterns such as `models/**/*.yml` name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import takewhile
from pathlib import Path

_IS_PATTERN = re.compile(r"[*?\[]").search


def matching_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files that a pattern relative to a folder names, sorted; `**` stands for any folders, also none.

    Names that begin with a dot match only patterns that do. `**` follows links to folders, but not to those around
    them. Links to nothing count as files: reading them says what is missing.

    Raises:
        OSError: a folder cannot be read. Its files would be missing silently.
    """
    root = Path(pattern)
    parts = root.parts[1:] if root.is_absolute() else root.parts
    start = Path(root.anchor) if root.is_absolute() else folder
    return sorted({*_matching(start, parts, frozenset())}) if parts else []


def folder_of_pattern(folder: Path, pattern: str) -> Path:
    """Return the path that all files of a pattern relative to a folder start with."""
    return folder.joinpath(*takewhile(lambda part: not _IS_PATTERN(part), Path(pattern).parts))


def matches_pattern(path: Path, pattern: str) -> bool:
    """Whether a pattern names a path, also if no file is there."""
    return _matches(path.parts, Path(pattern).parts)


def _matches(names: Sequence[str], parts: Sequence[str]) -> bool:
    if not (names and parts):
        return not (names or parts)
    part, *others = parts
    if part == "**":
        inside = not names[0].startswith(".") and _matches(names[1:], parts)
        return inside or _matches(names, others or ["*"])
    return _is_named(names[0], part) and _matches(names[1:], others)


def _is_named(name: str, part: str) -> bool:
    return fnmatch(name, part) and (part.startswith(".") or not name.startswith("."))


def _matching(folder: Path, parts: Sequence[str], above: frozenset[str]) -> Iterator[Path]:
    part, *others = parts
    if part == "**":
        yield from _matching(folder, others or ["*"], above)
        for inner in _folders(folder, above):
            yield from _matching(inner, parts, above | {os.path.realpath(folder)})
    elif not _IS_PATTERN(part):
        yield from _inside(folder / part, others, above)
    elif folder.is_dir():
        for path in folder.iterdir():
            if _is_named(path.name, part):
                yield from _inside(path, others, above)


def _inside(path: Path, parts: Sequence[str], above: frozenset[str]) -> Iterator[Path]:
    if parts:
        yield from _matching(path, parts, above)
    elif path.is_file() or (path.is_symlink() and not path.exists()):
        yield path


def _folders(folder: Path, above: frozenset[str]) -> Iterator[Path]:
    """Yield the folders in a folder, without links to the folders around it."""
    if not folder.is_dir():
        return
    around = above | {os.path.realpath(folder)}
    for path in folder.iterdir():
        if not path.name.startswith(".") and path.is_dir() and os.path.realpath(path) not in around:
            yield path
