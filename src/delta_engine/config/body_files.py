"""Reads the bodies of functions and the queries of views from files beside their models.

They run with the rights of an owner, so they come from plain files inside the project: not from another folder, and not
through a link that may point anywhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from delta_engine.config.yaml_documents import decoded
from delta_engine.errors import ConfigError
from delta_engine.models import Function, Securable, subject
from delta_engine.models.views import View
from delta_engine.sql.function_bodies import MAX_BODY_BYTES

WithText: TypeAlias = Function | View
"""A model with a text that may have a file: `body` and `body_file`, `query` and `query_file`."""

_KEYS: Final[dict[type[WithText], str]] = {Function: "body", View: "query"}


def text_key(model: Securable | View) -> str | None:
    """Return the key of a model's text, which is also its attribute; None for a model without one."""
    return _KEYS.get(type(model))  # type: ignore[arg-type]  # any other type is no key


def text_file(model: Securable | View, project: Path) -> Path | None:
    """Return the absolute path of the file with a model's text; None without one.

    The written path starts at the folder of the declaration.

    Args:
        project: the folder of the project.
    """
    key = text_key(model)
    written = key and getattr(model, f"{key}_file")
    if written is None:
        return None
    declared_in = Path(model.declared_at.file).parent if model.declared_at else Path()
    return Path(os.path.normpath(project.absolute() / declared_in / written))


class FileText(NamedTuple):
    """The text in a model's file, with its key."""

    path: Path
    key: str
    text: str


def file_text(model: Securable | View, project: Path) -> FileText | None:
    """Return the text in a model's file; None without one.

    Raises:
        ConfigError: the model lacks a text, or the file is not a plain, small UTF-8 file inside the project.
    """
    key, path = text_key(model), text_file(model, project)
    if key is None or not isinstance(model, WithText):
        return None
    if path is not None:
        return FileText(path, key, _read(model, _inside(model, path, project)))
    if not getattr(model, key):
        fix = f"Write {key}, or {key}_file with the path of a file."
        raise _refused(model, f"{key} is missing", fix)
    return None


def refuse_two_texts(model: Securable | View, read: Securable | View) -> None:
    """Refuse a model whose inline text differs from that of its file; a loaded model, given again, has both.

    Args:
        read: the model with the text of its file.
    """
    key = text_key(model)
    if isinstance(model, WithText) and getattr(model, str(key)) not in ("", getattr(read, str(key))):
        raise _refused(model, f"{key} and {key}_file exclude each other", "Remove one of them.")


def read_body(file: Path) -> str:
    """Return the text in a file.

    Raises:
        ConfigError: it is not UTF-8.
        OSError: it is not a plain file.
    """
    return body_of(decoded(_bytes(file), str(file)))


def _inside(model: WithText, file: Path, project: Path) -> Path:
    """Return the absolute path of the file; refuse one that leads out of the project."""
    key, written = _file_key(model)
    if not written.strip() or "\0" in written or Path(written).is_absolute():
        reason = f"{key} {written!r} is not a relative path"
        fix = f"Write the path relative to the file that declares the {model.qualified_name.kind}."
        raise _refused(model, reason, fix)
    root = Path(os.path.normpath(project.absolute()))
    if not file.is_relative_to(root) or file == root:
        reason = f"{key} {written!r} is outside the project"
        raise _refused(model, reason, "Move the file into the project, next to the model.")
    for link in filter(Path.is_symlink, _below(root, file)):
        reason = f"{key} {written!r} goes through a symbolic link: {link.relative_to(root).as_posix()}"
        raise _refused(model, reason, "Replace the link with the file.")
    return file


def _below(root: Path, file: Path) -> Iterator[Path]:
    """Yield the folders between a folder and a file, and the file."""
    place = root
    for part in file.relative_to(root).parts:
        place /= part
        yield place


def _file_key(model: WithText) -> tuple[str, str]:
    """Return the key of the file, and the path as it is written."""
    key = f"{_KEYS[type(model)]}_file"
    return key, str(getattr(model, key))


def _read(model: WithText, file: Path) -> str:
    key, written = _file_key(model)
    try:
        data = _bytes(file)
    except OSError as error:
        reason = f"{key} {written!r} cannot be read: {error.strerror or error}"
        raise _refused(model, reason, "Correct the path, or make the file readable.") from None
    if len(data) > MAX_BODY_BYTES:
        reason = f"{key} {written!r} is larger than {MAX_BODY_BYTES >> 20} MiB"
        raise _refused(model, reason, "Put the data into a table.")
    place = model.declared_at.file if model.declared_at else ""
    return body_of(decoded(data, os.path.normpath(Path(place).parent / written)))


def body_of(text: str) -> str:
    """Return the body that a file's text holds: with line feeds as line ends, without a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _bytes(file: Path) -> bytes:
    """Return the bytes of a plain file up to one beyond the limit; OSError for a link, a folder or a pipe."""
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(None, "not a regular file")
        return opened.read(MAX_BODY_BYTES + 1)


def _refused(model: WithText, reason: str, fix: str) -> ConfigError:
    about = subject(model.qualified_name)
    return ConfigError(reason, **about, location=model.declared_at, way_out=fix)
