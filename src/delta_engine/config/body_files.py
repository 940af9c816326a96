"""Reads the bodies of functions and the queries of views from files beside their models.

They run with the rights of an owner, so they come from plain files inside the project: not from another folder, and not
through a link that may point anywhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from delta_engine.config.yaml_documents import decoded
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models import Function, FunctionName, subject
from delta_engine.models.views import View, ViewName
from delta_engine.sql.function_bodies import MAX_BODY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A text that a model has inline or in a file.

    Args:
        key: the key of the inline text; that of its file has `_file` appended.
        file: the path as it is written; None without a file.
    """

    name: FunctionName | ViewName
    key: str
    inline: str
    file: str | None
    declared_at: SourceLocation | None

    @property
    def shown_path(self) -> str:
        """The path for messages: that of the declaration's folder and the written one."""
        place = self.declared_at.file if self.declared_at else ""
        return os.path.normpath(Path(place).parent / str(self.file))

    def path(self, project: Path) -> Path:
        """Return the absolute path of the file; the written one starts at the folder of the declaration."""
        declared_in = Path(self.declared_at.file).parent if self.declared_at else Path()
        return Path(os.path.normpath(project.absolute() / declared_in / str(self.file)))


def with_body(function: Function, project: Path) -> Function:
    """Return a function with its body, read from `body_file` if it names one.

    Args:
        project: the folder of the project.

    Raises:
        ConfigError: it has neither of `body` and `body_file`, or two bodies, or the file is not a plain, small UTF-8
            file inside the project.
    """
    body = _read(_body(function), project)
    return function if body == function.body else replace(function, body=body)


def with_query(view: View, project: Path) -> View:
    """Return a view with its query, read from `query_file` if it names one; arguments and errors as in `with_body`."""
    query = _read(_query(view), project)
    return view if query == view.query else replace(view, query=query)


def body_path(function: Function, project: Path) -> Path:
    """Return the absolute path of a function's body file; `body_file` starts at the folder of the declaration."""
    return _body(function).path(project)


def query_path(view: View, project: Path) -> Path:
    """Return the absolute path of a view's query file; `query_file` starts at the folder of the declaration."""
    return _query(view).path(project)


def read_body(file: Path) -> str:
    """Return the body in a file.

    Raises:
        ConfigError: it is not UTF-8.
        OSError: it is not a plain file.
    """
    return body_of(decoded(_bytes(file), str(file)))


def _body(function: Function) -> _Text:
    return _Text(
        name=function.qualified_name,
        key="body",
        inline=function.body,
        file=function.body_file,
        declared_at=function.declared_at,
    )


def _query(view: View) -> _Text:
    return _Text(
        name=view.qualified_name,
        key="query",
        inline=view.query,
        file=view.query_file,
        declared_at=view.declared_at,
    )


def _read(text: _Text, project: Path) -> str:
    if text.file is None:
        if text.inline:
            return text.inline
        fix = f"Write {text.key}, or {text.key}_file with the path of a file."
        raise _refused(text, f"it has no {text.key}", fix)
    read = _text(text, _inside(text, project))
    if text.inline not in ("", read):  # a loaded model, given again, has both
        raise _refused(text, f"it has {text.key} and {text.key}_file", "Remove one of the two.")
    return read


def _inside(text: _Text, project: Path) -> Path:
    """Return the absolute path of the file; refuse one that leads out of the project."""
    written = str(text.file)
    if not written.strip() or "\0" in written or Path(written).is_absolute():
        reason = f"{text.key}_file {written!r} is no relative path"
        fix = f"Write the path from the folder of the file that declares the {text.name.kind}."
        raise _refused(text, reason, fix)
    root, file = Path(os.path.normpath(project.absolute())), text.path(project)
    if not file.is_relative_to(root) or file == root:
        reason = f"{text.key}_file {written!r} is outside of the project"
        raise _refused(text, reason, "Move the file into the project, beside the model.")
    for link in filter(Path.is_symlink, _below(root, file)):
        reason = f"{text.key}_file {written!r} leads through a link: {link.relative_to(root).as_posix()}"
        raise _refused(text, reason, "Replace the link by the file.")
    return file


def _below(root: Path, file: Path) -> Iterator[Path]:
    """Yield the folders between a folder and a file, and the file."""
    place = root
    for part in file.relative_to(root).parts:
        place /= part
        yield place


def _text(text: _Text, file: Path) -> str:
    try:
        data = _bytes(file)
    except OSError as error:
        reason = f"{text.key}_file {text.file!r} cannot be read: {error.strerror or error}"
        raise _refused(text, reason, "Correct the path, or make the file readable.") from None
    if len(data) > MAX_BODY_BYTES:
        reason = f"{text.key}_file {text.file!r} is larger than {MAX_BODY_BYTES >> 20} MiB"
        raise _refused(text, reason, "Put the data into a table.")
    return body_of(decoded(data, text.shown_path))


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


def _refused(text: _Text, reason: str, fix: str) -> ConfigError:
    about = subject(text.name)  # type: ignore[arg-type]  # until views are securables
    return ConfigError(reason, **about, location=text.declared_at, way_out=fix)
