"""Reads the bodies of functions from files beside their models.

A body runs with the rights of a function's owner, so it comes from a plain file inside the project: not from another
folder, and not through a link that may point anywhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from delta_engine.config.yaml_documents import decoded
from delta_engine.errors import ConfigError
from delta_engine.models import Function, subject
from delta_engine.sql.function_bodies import MAX_BODY_BYTES


def with_body(function: Function, project: Path) -> Function:
    """Return a function with its body, read from `body_file` if it names one.

    Args:
        project: the folder of the project.

    Raises:
        ConfigError: it has neither of `body` and `body_file`, or two bodies, or the file is not a plain, small UTF-8
            file inside the project.
    """
    if function.body_file is None:
        if function.body:
            return function
        raise _refused(function, "it has no body", "Write body, or body_file with the path of a file.")
    body = _text(function, _inside(function, project))
    if function.body not in ("", body):  # a loaded function, given again, has both
        raise _refused(function, "it has body and body_file", "Remove one of the two.")
    return replace(function, body=body)


def body_path(function: Function, project: Path) -> Path:
    """Return the absolute path of a function's body file; `body_file` starts at the folder of the declaration."""
    declared_in = Path(function.declared_at.file).parent if function.declared_at else Path()
    return Path(os.path.normpath(project.absolute() / declared_in / str(function.body_file)))


def read_body(file: Path) -> str:
    """Return the body in a file.

    Raises:
        ConfigError: it is not UTF-8.
        OSError: it is not a plain file.
    """
    return body_of(decoded(_bytes(file), str(file)))


def _inside(function: Function, project: Path) -> Path:
    """Return the absolute path of the body file; refuse one that leads out of the project."""
    written = str(function.body_file)
    if not written.strip() or "\0" in written or Path(written).is_absolute():
        reason = f"body_file {written!r} is no relative path"
        raise _refused(
            function, reason, "Write the path from the folder of the file that declares the function."
        )
    root, file = Path(os.path.normpath(project.absolute())), body_path(function, project)
    if not file.is_relative_to(root) or file == root:
        reason = f"body_file {written!r} is outside of the project"
        raise _refused(function, reason, "Move the file into the project, beside the model.")
    for link in filter(Path.is_symlink, _below(root, file)):
        reason = f"body_file {written!r} leads through a link: {link.relative_to(root).as_posix()}"
        raise _refused(function, reason, "Replace the link by the file.")
    return file


def _below(root: Path, file: Path) -> Iterator[Path]:
    """Yield the folders between a folder and a file, and the file."""
    place = root
    for part in file.relative_to(root).parts:
        place /= part
        yield place


def _text(function: Function, file: Path) -> str:
    try:
        data = _bytes(file)
    except OSError as error:
        reason = f"body_file {function.body_file!r} cannot be read: {error.strerror or error}"
        raise _refused(function, reason, "Correct the path, or make the file readable.") from None
    if len(data) > MAX_BODY_BYTES:
        reason = f"body_file {function.body_file!r} is larger than {MAX_BODY_BYTES >> 20} MiB"
        raise _refused(function, reason, "Put the data into a table.")
    place = function.declared_at
    shown = os.path.normpath(Path(place.file if place else "").parent / str(function.body_file))
    return body_of(decoded(data, shown))


def body_of(text: str) -> str:
    """Return the body that a file's text holds: with line feeds as line ends, without a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _bytes(file: Path) -> bytes:
    """Return the bytes of a plain file up to one beyond the limit; OSError for a link, a folder or a pipe."""
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(None, "it is no plain file")
        return opened.read(MAX_BODY_BYTES + 1)


def _refused(function: Function, reason: str, fix: str) -> ConfigError:
    return ConfigError(reason, **subject(function.qualified_name), location=function.declared_at, way_out=fix)
