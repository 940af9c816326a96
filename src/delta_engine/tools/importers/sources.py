"""Reads sources from files: what kind they are, and the models that they declare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from delta_engine.errors import ConfigError, InvalidCommandError, RefusedError, SourceLocation
from delta_engine.models import Securable
from delta_engine.telemetry.visible import described_size
from delta_engine.tools.importers.catalog import Catalog
from delta_engine.tools.importers.scanning import Script, statements
from delta_engine.tools.importers.statements import apply
from delta_engine.tools.importers.variables import Variables

MAX_SCRIPT_BYTES: Final = 16 * 2**20
"""A larger script is data, such as a dump with rows."""

Home: TypeAlias = tuple[str | None, str | None]
"""The catalog and the schema of names that lack them."""

_SUFFIXES: Final = (".sql", ".ddl", ".hql", ".j2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a source declares.

    Args:
        models: with stand-ins for variables.
        refusals: what is left out, with the reasons.
        notes: what else to say.
    """

    models: tuple[Securable, ...]
    refusals: tuple[RefusedError, ...] = ()
    notes: tuple[str, ...] = ()


def read_source(paths: Sequence[Path], home: Home, variables: Variables) -> Source:
    """Return what files and folders declare.

    Raises:
        InvalidCommandError: a path is missing or has no file to read.
    """
    files = [file for path in paths for file in _files(path)]
    return _from_scripts(files, home, variables)


def _from_scripts(files: Iterable[Path], home: Home, variables: Variables) -> Source:
    catalog = Catalog(*home)
    refusals: list[RefusedError] = []
    for file in files:
        try:
            text = variables.rendered(read_text(file, MAX_SCRIPT_BYTES), str(file))
        except ConfigError as refusal:
            refusals.append(refusal)
            continue
        for statement in statements(Script(str(file), text, variables.shown)):
            refusals += apply(statement, catalog)
    return Source(models=catalog.models, refusals=tuple(refusals))


def _files(path: Path) -> Iterator[Path]:
    """Yield the scripts of a path, in the order of their names, in which runs of digits count as numbers."""
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise InvalidCommandError(f"--from {path} does not exist", way_out="Name a file or a folder.")
    files = [file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file()]
    files = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    if not files:
        raise InvalidCommandError(
            f"--from {path} has no files of SQL ({', '.join(_SUFFIXES)})",
            way_out="Name the folder with them.",
        )
    yield from sorted(files, key=lambda file: _numbered(file.relative_to(path).as_posix()))


def _numbered(name: str) -> list[tuple[int, str]]:
    """Return a key by which V2 comes before V10."""
    parts = re.split(r"(\d+)", name.lower())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def read_text(path: Path, most: int) -> str:
    """Return the text of a file without a byte-order mark, with line feeds at the ends of lines.

    Raises:
        ConfigError: it is too large, unreadable, or not UTF-8 (nor UTF-16 with a mark).
    """
    place = SourceLocation(str(path))
    try:
        size = path.stat().st_size
        if size > most:
            raise ConfigError(
                f"it has {described_size(size)}, and at most {described_size(most)} are read",
                location=place,
                way_out="Import the file without its rows, or split it.",
            )
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror}", location=place) from None
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"its byte {error.start:,} is no UTF-8",
            location=SourceLocation(str(path), line),
            way_out="Save it as UTF-8.",
        ) from None
    if "\0" in text:
        raise ConfigError("it is no text", location=place, way_out="Leave it out.")
    return text.replace("\r\n", "\n").replace("\r", "\n")
