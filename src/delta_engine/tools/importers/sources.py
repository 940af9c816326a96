"""Reads sources from files: what kind they are, and the models that they declare."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from delta_engine.config.file_patterns import matching_files
from delta_engine.config.yaml_documents import MAX_BYTES, decoded, read_bytes
from delta_engine.errors import ConfigError, InvalidCommandError, RefusedError, SourceLocation
from delta_engine.tools.importers.catalog import Catalog, Wanted
from delta_engine.tools.importers.dbt import read_manifest
from delta_engine.tools.importers.odcs import read_contract
from delta_engine.tools.importers.scanning import Script, statements
from delta_engine.tools.importers.statements import apply
from delta_engine.tools.importers.variables import Variables

MAX_SCRIPT_BYTES: Final = 16 * 2**20
"""A larger script is data, such as a dump with rows."""

MAX_MANIFEST_BYTES: Final = 512 * 2**20
_SCRIPTS: Final = (".sql", ".ddl", ".hql", ".j2")
_CONTRACTS: Final = (".yml", ".yaml")
_LONGEST_HEAD: Final = 2**16


def read_source(paths: Sequence[Path], wanted: Wanted, variables: Variables) -> Catalog:
    """Return what files and folders declare.

    Raises:
        InvalidCommandError: a path is missing or has no file to read.
    """
    catalog = Catalog(*wanted.home)
    for file in [file for path in paths for file in _files(path)]:
        try:
            _read(file, catalog, wanted, variables)
        except RefusedError as refusal:
            catalog.refusals += refusal.refusals
    return catalog


def _read(file: Path, catalog: Catalog, wanted: Wanted, variables: Variables) -> None:
    match file.suffix.lower():
        case ".yml" | ".yaml":
            text = variables.rendered(_text(file, MAX_BYTES), str(file), is_template=False)
            read_contract(text, str(file), wanted, catalog)
        case ".json":
            read_manifest(_text(file, MAX_MANIFEST_BYTES), str(file), catalog)
        case _:
            text = variables.rendered(_text(file, MAX_SCRIPT_BYTES), str(file))
            for statement in statements(Script(str(file), text, variables.shown)):
                catalog.refusals += apply(statement, catalog)


def _files(path: Path) -> Iterator[Path]:
    """Yield the scripts of a path once each, in the order of their names, in which runs of digits count as numbers."""
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise InvalidCommandError(f"--from {path} does not exist", way_out="Name a file or a folder.")
    try:
        files = [*filter(_is_read, matching_files(path, "**/*"))]
    except OSError as error:
        raise InvalidCommandError(
            f"--from {error.filename} cannot be read: {error.strerror}",
            way_out="Give this user the right to read it, or move it away.",
        ) from None
    if not files:
        raise InvalidCommandError(
            f"--from {path} has no scripts ({', '.join(_SCRIPTS)}) and no data contracts",
            way_out="Name the folder with them, or the manifest.json of dbt.",
        )
    yield from sorted(_distinct(files, path), key=lambda file: _numbered(file.relative_to(path).as_posix()))


def _distinct(files: Sequence[Path], folder: Path) -> Iterable[Path]:
    """Return files to which several paths lead once each, by the path without links if the folder has that."""
    root, by_place = Path(os.path.realpath(folder)), dict[Path, Path]()
    for file in files:
        place = Path(os.path.realpath(file))
        if place not in by_place or place == root / file.relative_to(folder):
            by_place[place] = file
    return by_place.values()


def _is_read(file: Path) -> bool:
    """Whether a file of a folder is a script or a contract; other files of YAML are not meant."""
    suffix = file.suffix.lower()
    if suffix not in _CONTRACTS:
        return suffix in _SCRIPTS
    try:
        with file.open("rb") as head:
            return b"DataContract" in head.read(_LONGEST_HEAD)
    except OSError:
        return True  # reading it says why


def _numbered(name: str) -> list[tuple[int, str]]:
    """Return a key by which V2 comes before V10."""
    parts = re.split(r"(\d+)", name.lower())
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _text(path: Path, most: int) -> str:
    """Return the text of a file without a byte-order mark, with line feeds at the ends of lines.

    Raises:
        ConfigError: it is too large, unreadable, no text, or neither UTF-8 nor UTF-16 with a mark.
    """
    data = read_bytes(path, str(path), most)
    is_wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = decoded(data, str(path), "utf-16" if is_wide else "utf-8-sig", most)
    if "\0" in text:
        raise ConfigError("it is no text", location=SourceLocation(str(path)), way_out="Leave it out.")
    return text.replace("\r\n", "\n").replace("\r", "\n")
