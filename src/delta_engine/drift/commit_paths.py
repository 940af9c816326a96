"""The columns and fields that commits name, and their paths before and after renames. Pure.

Commits are newest first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from delta_engine.aspects.conversions import is_reserved_name
from delta_engine.models.nested_types import Path, lower_path
from delta_engine.state.table_queries import Commit

_RECREATIONS: Final = ("CREATE", "REPLACE TABLE", "CLONE", "RESTORE")
_STEP: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def recreates(commit: Commit) -> bool:
    """Whether a commit may change any part of a table. The first one creates it, even if it is a write."""
    return commit.operation.startswith(_RECREATIONS) or commit.version == 0


def renames(commits: Sequence[Commit]) -> dict[Path, Path]:
    """Return the renamed columns and fields: present paths by former ones, outer fields first.

    Leave out those that were dropped or are back at their former names, and those that conversions of the engine move.
    """
    paths: dict[Path, Path] = {}
    for place, commit in reversed(list(enumerate(commits))):
        if commit.operation == "RENAME COLUMN":
            old, new = renamed(commit)
            former = path_before(old, commits[place + 1 :])
            present = path_after(new, commits[:place])
            if former and present and lower_path(former) != lower_path(present):
                paths.setdefault(former, present)
    paths = {old: new for old, new in paths.items() if not any(map(is_reserved_name, (old[0], new[0])))}
    return dict(sorted(paths.items(), key=lambda item: len(item[0])))


def path_after(path: Path, later: Sequence[Commit]) -> Path | None:
    """Return where later commits left a column or field; None if they dropped it."""
    for commit in reversed(later):
        if recreates(commit) or any(_is_inside(path, dropped) for dropped in _named(commit, "DROP COLUMNS")):
            return None
        if commit.operation == "RENAME COLUMN":
            path = _moved(path, *renamed(commit))
    return path


def path_before(path: Path, earlier: Sequence[Commit]) -> Path | None:
    """Return where a column or field was before earlier commits; None if they added it."""
    for commit in earlier:
        if recreates(commit) or any(_is_inside(path, dropped) for dropped in _named(commit, "DROP COLUMNS")):
            break  # what was there before was another one of that name
        if any(_is_inside(path, added) for added in _named(commit, "ADD COLUMNS")):
            return None
        if commit.operation == "RENAME COLUMN":
            old, new = renamed(commit)
            path = _moved(path, new, old)
    return path


def renamed(commit: Commit) -> tuple[Path, Path]:
    """Return the former and the new path of a RENAME COLUMN."""
    old, new = (commit.parameters.get(key, "") for key in ("oldColumnPath", "newColumnPath"))
    return _path(old), _path(new)


def columns(commit: Commit) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """Yield the columns and fields of ADD, DROP, CHANGE and REPLACE, with their definitions if the commit has them.

    They are names, structs, or structs within `{"column": …}`.
    """
    entries = parsed(commit.parameters.get("columns", "[]"))
    for entry in [
        *(entries if isinstance(entries, list) else []),
        parsed(commit.parameters.get("column", "")),
    ]:
        match entry:
            case {"column": {"name": str(name)} as definition} | ({"name": str(name)} as definition):
                yield _path(name), definition
            case str(name) if name:
                yield _path(name), {}


def parsed(text: str) -> object:
    """Return the value of a JSON text, or the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _named(commit: Commit, operation: str) -> Iterator[Path]:
    if commit.operation == operation:
        yield from (path for path, _ in columns(commit))


def _moved(path: Path, old: Path, new: Path) -> Path:
    return (*new, *path[len(old) :]) if _is_inside(path, old) else path


def _is_inside(path: Path, outer: Path) -> bool:
    return bool(outer) and lower_path(path[: len(outer)]) == lower_path(outer)


def _path(text: str) -> Path:
    """Return the steps of a dotted path. A name with dots stands in backticks."""
    steps = list(_STEP.finditer(text))
    if ".".join(step[0] for step in steps) != text:
        return (text,)
    return tuple(
        (quoted or "").replace("``", "`") or plain for quoted, plain in (step.groups() for step in steps)
    )
