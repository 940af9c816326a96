"""What git knows of a repository: which files changed since a commit, and the files of that commit.

Nothing is checked out. No filter and no hook of the repository runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from subprocess import CalledProcessError, run
from typing import Final

from delta_engine.errors import ConfigError, InvalidCommandError

_LINK: Final = "120000"
_SUBMODULE: Final = "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRepository:
    """A git repository next to the common ancestor of HEAD and another commit.

    Args:
        root: the repository's folder, without links.
        ancestor: the id of the common ancestor.
        changed: the files and submodules that differ from it, committed or not, links both as they are and resolved.
    """

    root: Path
    ancestor: str
    changed: frozenset[Path]

    def write_to(self, folder: Path, is_wanted: Callable[[str], bool]) -> None:
        """Write files of the ancestor below a folder, and all links. A submodule that is unchanged is linked.

        Args:
            is_wanted: whether a file is written, by its path in the repository.
        """
        entries = [entry for entry in self._entries() if _stays_inside(entry.path)]
        files = [
            entry for entry in entries if entry.mode not in (_LINK, _SUBMODULE) and is_wanted(entry.path)
        ]
        links = [entry for entry in entries if entry.mode == _LINK]
        for entry, content in zip(files, self._contents(files), strict=True):
            path = folder / entry.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for entry, content in zip(
            links, self._contents(links), strict=True
        ):  # last: no file is written through one
            _link(folder / entry.path, os.fsdecode(content))
        for entry in entries:
            if entry.mode == _SUBMODULE and self.root / entry.path not in self.changed:
                _link(folder / entry.path, str(self.root / entry.path))

    def _entries(self) -> list[_Entry]:
        lines = _git(self.root, "ls-tree", "-r", "-z", "--full-tree", self.ancestor, separator="\0")
        return [_Entry.parse(line) for line in lines]

    def _contents(self, entries: Sequence[_Entry]) -> Iterator[bytes]:
        if not entries:
            return
        ids = "".join(f"{entry.object_id}\n" for entry in entries)
        answer = _run(self.root, "cat-file", "--batch", content=ids.encode())
        start = 0
        for entry in entries:
            end = answer.index(b"\n", start)
            size_or_missing = answer[start:end].split()[-1]
            if size_or_missing == b"missing":
                raise ConfigError(
                    f"git has no content of {entry.path}",
                    way_out="Fetch it, such as with `git fetch --refetch`.",
                )
            size = int(size_or_missing)
            yield answer[end + 1 : end + 1 + size]
            start = end + 1 + size + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A file, link or submodule of a commit."""

    mode: str
    object_id: str
    path: str

    @classmethod
    def parse(cls, line: str) -> _Entry:
        """Parse what `git ls-tree` prints of it."""
        facts, _, path = line.partition("\t")
        mode, _, object_id = facts.split()
        return cls(mode=mode, object_id=object_id, path=path)


def compared_with(since: str, folder: Path) -> ComparedRepository:
    """Compare the repository of a folder with its common ancestor with a commit.

    Args:
        since: a commit, a branch or a tag. Its changes since the common ancestor do not count.

    Raises:
        ConfigError: the folder is not in a git repository, or the commit does not exist.
    """
    root = Path(_git(folder, "rev-parse", "--show-toplevel")[0])
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{since}^{{commit}}")
    if not commit:
        way_out = "Fetch it: a checkout in CI may have the last commit only (actions/checkout needs fetch-depth: 0)."
        raise InvalidCommandError(f"git knows no commit {since!r}", way_out=way_out)
    ancestor = _git(folder, "merge-base", commit[0], "HEAD")
    if not ancestor:
        reason = f"git finds no common ancestor of {since!r} and HEAD"
        raise InvalidCommandError(
            reason, way_out="Fetch the whole history (actions/checkout needs fetch-depth: 0)."
        )
    return ComparedRepository(root=root, ancestor=ancestor[0], changed=_changed_files(root, ancestor[0]))


def real_path(path: Path) -> Path:
    """Return a path with all links resolved, also if they form a circle."""
    return Path(os.path.realpath(path))


def _changed_files(root: Path, ancestor: str) -> frozenset[Path]:
    names = _git(root, "diff", "--name-only", "--no-renames", "-z", ancestor, separator="\0")
    names += _git(root, "ls-files", "--others", "--exclude-standard", "-z", separator="\0")
    paths = [Path(root, name) for name in names]
    return frozenset((*paths, *map(real_path, paths)))


def _stays_inside(path: str) -> bool:
    """Whether a path of a commit names a file inside the repository, as git itself demands."""
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _git(folder: Path, *arguments: str, separator: str = "\n") -> list[str]:
    """Return the parts of what git prints; none if it finds nothing, which exit code 1 says."""
    return [part for part in os.fsdecode(_run(folder, *arguments)).split(separator) if part]


def _run(folder: Path, *arguments: str, content: bytes | None = None) -> bytes:
    try:
        return run(["git", "-C", folder, *arguments], capture_output=True, check=True, input=content).stdout
    except FileNotFoundError:
        raise ConfigError(
            "git is not installed, and only git knows which files changed",
            way_out="Install git, or leave --changed-since out.",
        ) from None
    except CalledProcessError as error:
        if error.returncode == 1:
            return b""
        reason = os.fsdecode(error.stderr).strip().removeprefix("fatal: ")
        raise ConfigError(
            f"git cannot tell which files have changed: {reason}",
            way_out="Run the command in a clone of the repository, or leave --changed-since out.",
        ) from None
