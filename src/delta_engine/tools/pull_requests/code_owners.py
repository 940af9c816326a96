"""The code owners of what a plan changes: who reviews the model file, as `CODEOWNERS` says it.

The file's places and patterns are those of GitHub and GitLab: the last matching line counts, on GitLab the last of each
section, whose heading may name owners for lines without any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from delta_engine.actions import Align, Create, TablePlan
from delta_engine.config.conf_folder import repository_root
from delta_engine.telemetry.visible import counted
from delta_engine.tools.pull_requests.blocks import code_span
from delta_engine.tools.pull_requests.repository import file_of

_PLACES: Final = (".github/CODEOWNERS", ".gitlab/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
_LONGEST: Final = 3_000_000
"""Bytes; GitHub reads no longer file."""

_SECTION: Final = re.compile(r"\^?\[(?P<name>[^\]]*)\](?:\[\d+\])?(?P<owners>(?:\s.*)?)$")
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_PIECES: Final = re.compile(r"\*\*/|/\*\*|\*|\?|\\.|.")
_MOST_TABLES: Final = 3


@dataclass(frozen=True, slots=True)
class _Line:
    section: str
    pattern: re.Pattern[str]
    owners: tuple[str, ...]


def owners_of(plan: TablePlan, project_dir: Path = Path()) -> dict[str, tuple[str, ...]]:
    """Return the code owners of what a plan creates and changes, by name; dropped securables have no file."""
    root_of, lines = cache(repository_root), cache(lambda folder: [*_lines(_text(folder))])
    owners = {}
    for change in plan.changes:
        place = change.declared_at if isinstance(change, Create | Align) else None
        file = file_of(place, project_dir) if place else None
        if file and (root := root_of(file.parent)):
            owners[str(change.name)] = _owners(lines(root), file.relative_to(root).as_posix())
    return {name: each for name, each in owners.items() if each}


def owned(owners: Mapping[str, Sequence[str]]) -> str:
    """Return the owners with what is theirs as Markdown; in code, so that the comment notifies no one."""
    tables: dict[str, list[str]] = {}
    for name, each in owners.items():
        for owner in each:
            tables.setdefault(owner, []).append(code_span(name))
    return "; ".join(f"{code_span(owner)} ({_first(names)})" for owner, names in sorted(tables.items()))


def _first(names: Sequence[str]) -> str:
    if len(names) <= _MOST_TABLES:
        return ", ".join(names)
    return counted(len(names), "object")


def _text(root: Path) -> str:
    for place in _PLACES:
        try:
            with (root / place).open("rb") as file:
                return file.read(_LONGEST).decode("utf-8", errors="replace")
        except OSError:
            continue
    return ""


def _lines(text: str) -> Iterator[_Line]:
    section, inherited = "", tuple[str, ...]()
    for line in text.splitlines():
        if heading := _SECTION.match(line.strip()):
            section, inherited = heading["name"].lower(), tuple(heading["owners"].split())
            continue
        pattern, *owners = _COMMENT.sub("", line).replace("\\ ", "\0").split() or [""]
        if pattern:
            yield _Line(section, _compiled(pattern.replace("\0", " ")), tuple(owners) or inherited)


def _owners(lines: Iterable[_Line], file: str) -> tuple[str, ...]:
    last = {line.section: line.owners for line in lines if line.pattern.fullmatch(file)}
    return tuple(dict.fromkeys(owner for owners in last.values() for owner in owners))


def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of git's kind: one with a slash inside counts from the root, one without at any depth."""
    anchored = "/" in pattern.rstrip("/")
    start = "" if anchored else "(?:.*/)?"
    body = "".join(map(_piece, _PIECES.findall(pattern.lstrip("/").rstrip("/"))))
    is_folder = pattern.endswith("/")
    is_shallow = pattern.endswith("/*")  # the files of a folder, not those below it
    end = "/.*" if is_folder else "" if is_shallow else "(?:/.*)?"
    return re.compile(f"{start}{body}{end}")


def _piece(text: str) -> str:
    match text:
        case "**/":
            return "(?:.*/)?"
        case "/**":
            return "/.*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
    return re.escape(text.removeprefix("\\")) if len(text) > 1 else re.escape(text)
