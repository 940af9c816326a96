"""Parses YAML documents with the line of every value, so that errors name file and line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from yaml import Node, ScalarNode, SequenceNode

from delta_engine.config.shapes import has_unknown_keys, problems
from delta_engine.config.yaml_nodes import (
    HALF_A_CHARACTER,
    Reader,
    child,
    compose,
    file_of,
    line_of,
)
from delta_engine.errors import ConfigError, SourceLocation, raise_all
from delta_engine.telemetry.visible import has_half_a_character

DocumentPath = tuple[str | int, ...]
"""The path of a value from the root: keys and list positions."""

Shape = TypeVar("Shape")

MAX_BYTES: Final = 32 * 2**20
"""A larger file is not a configuration, and would take a hundred times as much memory."""

_USUAL_BYTES: Final = 64 * 2**10
"""Most files have less. Python reserves memory for what it is asked to read: 32 MiB take longer than the file."""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML file, or one with the files that it extends.

    Args:
        value: plain data; None if the file is empty.
        root: the nodes of the data, with their files and lines.
        fill: changes texts on their way out: gets the path and the text of a value.
        extended_by: the places that name the other files, by the names of these files.
        has_lines: whether the text is the user's, so that its lines say something.
    """

    file: str
    value: Any
    root: Node | None
    fill: Callable[[DocumentPath, str], str] = lambda _path, text: text
    extended_by: Mapping[str, SourceLocation] = field(default_factory=dict)
    has_lines: bool = True

    def without_lines(self) -> Document:
        """Return a document whose places have no lines, because the engine wrote its text."""
        return replace(self, has_lines=False)

    def location(self, path: DocumentPath) -> SourceLocation:
        """Return the file and line of a value or of its key, or of its nearest ancestor in the text."""
        if not self.has_lines:
            return SourceLocation(self.file)
        node, _ = self._place(path)
        if node is None:
            return SourceLocation(self.file, 1, self.extended_by.get(self.file))
        return self._location(node)

    def item_locations(self, path: DocumentPath, items: int) -> list[SourceLocation]:
        """Return the lines of a list's items."""
        _, node = self._place(path)
        if not isinstance(node, SequenceNode):  # a merge key gives the list
            return [self.location(path)] * items
        start = self._location(node)  # a list stands in one file
        return [SourceLocation(start.file, line_of(item), start.extended_by) for item in node.value]

    def written(self, path: DocumentPath) -> str | None:
        """Return a scalar as it is written, without quotes; None for others, and for those of merge keys."""
        _, node = self._place(path)
        return self.fill(path, node.value) if isinstance(node, ScalarNode) else None

    def _place(self, path: DocumentPath) -> tuple[Node | None, Node | None]:
        """Return the node of a value's key or of its nearest ancestor, and the node of the value itself."""
        place = node = self.root
        for step in path:
            nodes = None if node is None else child(node, step)
            if nodes is None:
                return place, None
            place, node = nodes
        return place, node

    def _location(self, node: Node) -> SourceLocation:
        file = file_of(node)
        return SourceLocation(file, line_of(node), self.extended_by.get(file))

    def error(self, path: DocumentPath, reason: str, way_out: str = "") -> ConfigError:
        """Return a refusal of the value at a path."""
        return ConfigError(reason, location=self.location(path), way_out=way_out)

    def texts(self, path: DocumentPath, values: Mapping[str, object]) -> dict[str, str]:
        """Return a mapping's scalars as text: `true` and `7` become "true" and "7", `1.10` stays "1.10"."""
        texts: dict[str, str] = {}
        for key, value in values.items():
            place = (*path, key)
            if value is None or isinstance(value, (dict, list)):
                way_out = (
                    "Write a value, or remove the key." if value is None else "Write the value in quotes."
                )
                raise self.error(place, f"{key!r} must be a string", way_out)
            raw = self.written(place)
            if raw is None and not isinstance(value, str):
                raise self.error(
                    place,
                    f"{key!r} comes from a merge key, and must be a string",
                    "Write the value in quotes.",
                )
            text = str(value) if raw is None else raw
            texts[key] = text.lower() if isinstance(value, bool) else text
        return texts

    def with_texts(self, change: Callable[[DocumentPath, str], str]) -> Document:
        """Return the document with all its texts changed; `change` gets the path and the text of a value."""

        def changed(path: DocumentPath, value: object) -> object:
            match value:
                case str():
                    return change(path, value)
                case list():
                    return [changed((*path, position), item) for position, item in enumerate(value)]
                case dict():
                    return {key: changed((*path, key), item) for key, item in value.items()}
            return value

        return replace(self, value=changed((), self.value), fill=change)

    def convert(self, path: DocumentPath, value: object, shape: type[Shape], subject: str = "") -> Shape:
        """Convert a part of the document to a declared shape; refuse all unknown keys, missing keys and wrong types.

        Args:
            subject: what each reason begins with, such as `rule TableNames: `.
        """
        if not has_unknown_keys(value, shape):
            try:
                return msgspec.convert(value, shape)
            except msgspec.ValidationError:
                pass
        raise_all(
            self.error((*path, *problem.path), f"{subject}{problem.reason}", problem.way_out)
            for problem in problems(value, shape)
        )
        raise AssertionError(f"{shape} refused a value without a problem")


def read_document(path: Path) -> Document:
    """Read a YAML file; errors as for `read_text` and `parse_document`."""
    return parse_document(read_text(path, str(path)), str(path))


def read_text(path: Path, shown_as: str) -> str:
    """Return the text of a file with line feeds as line ends; arguments and errors as for `read_untouched`."""
    return read_untouched(path, shown_as).replace("\r\n", "\n").replace("\r", "\n")


def read_untouched(path: Path, shown_as: str) -> str:
    """Return the text of a file; ConfigError if it is not a file, is too large, or is not UTF-8.

    Args:
        shown_as: the name of the file in messages.
    """
    return decoded(read_bytes(path, shown_as), shown_as)


def read_bytes(path: Path, shown_as: str, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file, at most one more than `most`; ConfigError if it is not a file."""
    try:
        with path.open("rb") as file:
            data = file.read(_USUAL_BYTES)
            return data + file.read(most + 1 - _USUAL_BYTES) if len(data) == _USUAL_BYTES else data
    except OSError as error:
        raise _unreadable(shown_as, error.strerror or str(error)) from None


def decoded(data: bytes, shown_as: str, encoding: str = "utf-8", most: int = MAX_BYTES) -> str:
    """Return the text of a file's bytes; ConfigError if they are too many, or of another encoding."""
    if len(data) > most:
        raise _unreadable(shown_as, f"it is larger than {most >> 20} MiB", way_out="Split it.")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _unreadable(shown_as, "it is not UTF-8", line, "Save it as UTF-8.") from None


def _unreadable(file: str, reason: str, line: int | None = None, way_out: str = "") -> ConfigError:
    return ConfigError(
        f"the file cannot be read: {reason}", location=SourceLocation(file, line), way_out=way_out
    )


def parse_document(text: str, file: str) -> Document:
    """Parse a YAML text with line feeds as line ends; refuse duplicate keys."""
    if has_half_a_character(text):
        raise ConfigError(HALF_A_CHARACTER, location=SourceLocation(file))
    root = compose(text, file)
    return Document(file, None if root is None else Reader().value(root), root)
