"""YAML documents that remember where everything stands, so that errors can say file and line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from delta_engine.config.wrong_kinds import wrong_kind
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models.values import has_half_a_character

DocumentPath = tuple[str | int, ...]
"""Where a value stands in a document: keys and list positions from the root."""

Shape = TypeVar("Shape", bound=msgspec.Struct)

MAX_NODES = 1_000_000
"""More nodes than this are an alias bomb, not a configuration."""

MAX_DEPTH = 64

_MOST_CHOICES = 20


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML file.

    Args:
        file: the file as the user knows it.
        value: plain Python data; None for an empty file.
        lines: the line of every key and list item, counted from 1.
        scalars: every scalar as it was written, without its quotes.
    """

    file: str
    value: Any
    lines: Mapping[DocumentPath, int]
    scalars: Mapping[DocumentPath, str]

    def location(self, path: DocumentPath) -> SourceLocation:
        """Return where a value stands, or the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return SourceLocation(self.file, self.lines.get(path, 1))

    def error(self, path: DocumentPath, reason: str, way_out: str = "") -> ConfigError:
        """Return a refusal of what stands at a path."""
        return ConfigError(reason, location=self.location(path), way_out=way_out)

    def texts(self, path: DocumentPath, values: Mapping[str, object]) -> dict[str, str]:
        """Return a mapping's values as text: `true` and `7` are "true" and "7", `1.10` stays "1.10".

        Raises:
            ConfigError: a value is not a scalar.
        """
        found: dict[str, str] = {}
        for key, value in values.items():
            place = (*path, key)
            if value is None or isinstance(value, (dict, list)):
                raise self.error(place, f"{key!r} must be a text", "Write it in quotes.")
            raw = self.scalars.get(place)
            if raw is None and not isinstance(value, str):
                raise self.error(
                    place, f"{key!r} comes from a merge, and has to be a text", "Write it in quotes."
                )
            text = str(value) if raw is None else raw
            found[key] = text.lower() if isinstance(value, bool) else text
        return found

    def convert(self, path: DocumentPath, value: object, shape: type[Shape]) -> Shape:
        """Return a part of the document in a declared shape.

        Raises:
            ConfigError: an unknown key (with a suggestion), a missing one, or a value of a wrong kind.
        """
        self._refuse_unknown_keys(path, value, shape)
        try:
            return msgspec.convert(value, shape)
        except msgspec.ValidationError as error:
            problem, _, inner = str(error).partition(" - at `$")
            inner = inner.rstrip("`").lstrip(".")
            where = f"{inner}: " if inner else ""
            steps = _parse_path(f".{inner}")
            reason, way_out = wrong_kind(problem, _choices(shape, steps))
            raise self.error((*path, *steps), where + reason, way_out) from None

    def _refuse_unknown_keys(self, path: DocumentPath, value: object, shape: Any) -> None:
        if not isinstance(value, dict):
            return
        fields = _fields(shape)
        for key, item in value.items():
            if key not in fields:
                reason, way_out = unknown("key", str(key), fields)
                if item is None and str(key).endswith(")"):  # {type: decimal(18,2)} is two keys
                    way_out = 'A comma ends a value here: write it in quotes, as in "decimal(18,2)".'
                raise self.error((*path, str(key)), reason, way_out)
            for nested in _struct_types(fields[key], in_lists=isinstance(item, list)):
                parts = dict(enumerate(item)) if isinstance(item, list) else {None: item}
                for position, part in parts.items():
                    inner = (*path, key) if position is None else (*path, key, position)
                    self._refuse_unknown_keys(inner, part, nested)


def read_document(path: Path, shown_as: str | None = None) -> Document:
    """Read a YAML file.

    Args:
        path: the file.
        shown_as: the file's name in messages; its path by default.

    Raises:
        ConfigError: it cannot be read, is not UTF-8, is not YAML, or names a key twice.
    """
    file = shown_as or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"it cannot be read: {reason}", location=SourceLocation(file)) from None
    return parse_document(text, file)


def parse_document(text: str, file: str) -> Document:
    """Read a YAML text.

    Args:
        text: the text, its lines ended by line feeds alone.
        file: the file's name in messages.

    Raises:
        ConfigError: it is not YAML, or names a key twice.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text)
        lines, scalars = _index(root, file)
        value = yaml.constructor.construct_document(root) if root is not None else None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        reason = f"it is not valid YAML: {error.problem or error.context}"
        way_out = _yaml_way_out(text, line, error.problem or "")
        raise ConfigError(reason, location=SourceLocation(file, line), way_out=way_out) from None
    except (YAMLError, ValueError, RecursionError) as error:
        reason = f"it is not valid YAML: {error}"
        raise ConfigError(reason, location=SourceLocation(file)) from None
    return Document(file, value, lines, scalars)


def unknown(what: str, name: str, known: Iterable[str]) -> tuple[str, str]:
    """Return the reason and the way out for a name that is not among the known ones."""
    choices = sorted(known)
    close = difflib.get_close_matches(name, choices, n=1)
    shown = ", ".join(choices[:_MOST_CHOICES]) + (", …" if len(choices) > _MOST_CHOICES else "")
    way_out = f"Known: {shown}." if choices else "None is known."
    way_out = f"Did you mean {close[0]!r}?" if close else way_out
    return f"unknown {what} {name!r}", way_out


def _index(root: Any, file: str) -> tuple[dict[DocumentPath, int], dict[DocumentPath, str]]:
    """Walk the node tree once and note lines and scalars by path."""
    lines: dict[DocumentPath, int] = {}
    scalars: dict[DocumentPath, str] = {}
    pending: list[tuple[DocumentPath, Any]] = [] if root is None else [((), root)]
    while pending:
        path, node = pending.pop()
        if len(lines) > MAX_NODES or len(path) > MAX_DEPTH:
            raise ConfigError("it is too large or too deep", location=SourceLocation(file))
        lines.setdefault(path, node.start_mark.line + 1)
        match node.id:
            case "scalar":
                if has_half_a_character(node.value):
                    raise _half_a_character(SourceLocation(file, lines[path]))
                scalars[path] = node.value
            case "sequence":
                pending += [((*path, i), item) for i, item in enumerate(node.value)]
            case "mapping":
                for key, item in node.value:
                    if has_half_a_character(str(key.value)):
                        raise _half_a_character(SourceLocation(file, key.start_mark.line + 1))
                    inner = (*path, str(key.value))
                    if inner in lines:
                        raise ConfigError(
                            f"key {key.value!r} stands here twice",
                            location=SourceLocation(file, key.start_mark.line + 1),
                        )
                    lines[inner] = key.start_mark.line + 1
                    pending.append((inner, item))
    return lines, scalars


def _yaml_way_out(text: str, line: int, problem: str) -> str:
    """Return what to do about what people write most often that is no YAML; empty for all else."""
    (written,) = text.splitlines()[line - 1 : line] or [""]
    if "'\\t'" in problem:
        return "Indent with spaces: YAML takes no tabs."
    if "alias" in problem:  # *.yml names a place elsewhere in the document
        return 'Write a text that begins with * in quotes, as in "*.yml".'
    if "${" in written and "{" in written.replace("${", ""):
        return 'Write variables within braces in quotes, as in "${catalog}".'
    return ""


def _half_a_character(location: SourceLocation) -> ConfigError:
    return ConfigError(
        r"\ud800 to \udfff are halves of characters, which no text may have",
        location=location,
        way_out=r"Write the character itself, or \U and its eight digits.",
    )


def _struct_types(annotation: object, *, in_lists: bool) -> list[type]:
    """Return the struct types within an annotation such as `list[Column]` or `list[str] | Key | None`.

    Args:
        annotation: the annotation.
        in_lists: those of the items of lists; otherwise those that stand there themselves.
    """
    if get_origin(annotation) is list:
        return _struct_types(get_args(annotation)[0], in_lists=False) if in_lists else []
    if not in_lists and isinstance(annotation, type) and _is_shape(annotation):
        return [annotation]
    return [found for part in get_args(annotation) for found in _struct_types(part, in_lists=in_lists)]


def _is_shape(annotation: type[Any]) -> bool:
    return issubclass(annotation, msgspec.Struct) or is_dataclass(annotation)


@cache
def _fields(shape: type[Any]) -> Mapping[str, Any]:
    """Return the types of a struct's or dataclass's fields by their keys."""
    if issubclass(shape, msgspec.Struct):
        return {field.encode_name: field.type for field in msgspec.structs.fields(shape)}
    return get_type_hints(shape)


def _choices(annotation: object, steps: DocumentPath) -> list[str]:
    """Return what may stand at a place within an annotation, if that is one of a few words."""
    if get_args(annotation):
        is_item = get_origin(annotation) is list
        inner = steps[1:] if is_item else steps
        return [found for part in get_args(annotation) for found in _choices(part, inner)]
    if not isinstance(annotation, type):
        return []
    if issubclass(annotation, Enum):
        return [str(member.value) for member in annotation]
    if _is_shape(annotation) and steps:
        shape: Any = annotation
        return _choices(_fields(shape).get(str(steps[0])), steps[1:])
    return []


_STEP: Callable[[str], list[tuple[str, str]]] = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]").findall


def _parse_path(text: str) -> DocumentPath:
    """Read msgspec's path (`.columns[2].name`); a position it does not know ends the path."""
    steps: list[str | int] = []
    for key, position in _STEP(text):
        if position == "...":
            break
        steps.append(key or int(position))
    return tuple(steps)
