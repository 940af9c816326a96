"""YAML documents that remember where everything stands, so that errors can say file and line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models.values import has_half_a_character

DocumentPath = tuple[str | int, ...]
"""Where a value stands in a document: keys and list positions from the root."""


class DocumentPart(msgspec.Struct, forbid_unknown_fields=True):
    """The base of every mapping that a document may contain: it refuses unknown keys."""


Part = TypeVar("Part", bound=DocumentPart)

MAX_NODES = 1_000_000
"""More nodes than this are an alias bomb, not a configuration."""

MAX_DEPTH = 64

_MOST_CHOICES = 20

_MISMATCH = re.compile(r"Expected `(?P<wanted>[^`]+)`(?P<bound> [<>=]+ \S+)?(?:, got `(?P<found>[^`]+)`)?")
_NO_CHOICE = re.compile(r"Invalid (?:enum )?value (?P<found>.+)")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]+)`")

_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "date": "a date",
    "datetime": "a time",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "a mapping",
    "str": "a text",
}


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

    def convert(self, path: DocumentPath, value: object, shape: type[Part]) -> Part:
        """Return a part of the document in a declared shape.

        Raises:
            ConfigError: an unknown key (with a suggestion), a missing one, or a value of another type.
        """
        try:
            return msgspec.convert(value, shape)
        except msgspec.ValidationError as error:
            problem, _, inner = str(error).partition(" - at `$")
            inner = inner.rstrip("`").lstrip(".")
            steps = _parse_path(f".{inner}")
            unknown_key = _unknown_key(_value_at(value, steps), _types_at(shape, steps))
            if unknown_key is not None:
                key, reason, way_out = unknown_key
                raise self.error((*path, *steps, key), reason, way_out) from None
            reason, way_out = type_error(problem, _choices(shape, steps))
            raise self.error((*path, *steps), f"{inner}: {reason}" if inner else reason, way_out) from None


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


def type_error(problem: str, choices: Sequence[str] = ()) -> tuple[str, str]:
    """Return the reason and the way out, which may be empty, for a message of msgspec.

    Args:
        problem: the message; an unfamiliar one stays as it is.
        choices: the values that are allowed there, if they are a few words.
    """
    no_choice = _NO_CHOICE.fullmatch(problem)
    if no_choice and choices:
        close = difflib.get_close_matches(no_choice["found"].strip("'"), choices, n=1)
        way_out = f"Did you mean {close[0]!r}?" if close else ""
        return f"{no_choice['found']} is not one of: {', '.join(choices)}", way_out
    missing = _MISSING.fullmatch(problem)
    if missing:
        return f"the key {missing['key']!r} is missing", "Write it."
    mismatch = _MISMATCH.fullmatch(problem)
    if mismatch is None:
        return problem, ""
    kinds = [kind for kind in mismatch["wanted"].split(" | ") if kind != "null"]
    if not {*kinds, mismatch["found"] or "null"} <= _WORDS.keys():
        return problem, ""
    wanted = " or ".join(_WORDS[kind] for kind in kinds) + (mismatch["bound"] or "")
    found = f", not {_WORDS[mismatch['found']]}" if mismatch["found"] else ""
    return f"{wanted} is wanted{found}", _type_way_out(kinds, mismatch["found"])


def _type_way_out(wanted: list[str], found: str | None) -> str:
    match wanted, found:
        case _, "null":
            return "Write it, or leave the key out."
        case ["bool"], "str":
            return "Write true or false, without quotes."
        case ["int" | "float"], "str":
            return "Write it without quotes."
        case [*kinds], "bool" | "date" | "datetime" | "float" | "int" if "str" in kinds:
            return "Write it in quotes."
        case ["array"], "object":
            return "Begin each item with a dash."
        case [*kinds], str() if "array" in kinds:
            return "Write [a, b]."
        case [*kinds], str() if "object" in kinds:
            return "Write {key: value}."
    return ""


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


def _unknown_key(value: object, types: Sequence[object]) -> tuple[str, str, str] | None:
    """Return the first key that a mapping must not contain, with the reason and the way out."""
    structs = _structs(types)
    if not structs or not isinstance(value, dict):
        return None
    tag = value.get("type")
    chosen = [struct for struct in structs if struct.__struct_config__.tag == tag] or structs
    allowed = {key for struct in chosen for key in _keys(struct)}
    key = next((key for key in value if key not in allowed), None)
    if key is None:
        return None
    if any(key in _keys(struct) for struct in structs):
        return key, f"{key} does not belong to type: {tag}", "Remove it, or change the type."
    reason, way_out = unknown("key", str(key), allowed)
    if value[key] is None and str(key).endswith(")"):  # {type: decimal(18,2)} is two keys
        way_out = 'A comma ends a value here: write it in quotes, as in "decimal(18,2)".'
    return str(key), reason, way_out


def _keys(struct: type[msgspec.Struct]) -> set[str]:
    tag_field = struct.__struct_config__.tag_field
    return {*struct.__struct_encode_fields__, *([tag_field] if tag_field else [])}


def _structs(types: Sequence[object]) -> list[type[msgspec.Struct]]:
    return [found for found in types if isinstance(found, type) and issubclass(found, msgspec.Struct)]


def _value_at(value: Any, steps: DocumentPath) -> Any:
    for step in steps:
        inner = value if isinstance(value, dict) else dict(enumerate(value))
        value = inner.get(step)
    return value


def _types_at(annotation: object, steps: DocumentPath) -> list[object]:
    """Return the types that may stand at a place within an annotation, such as `list[str] | Key | None`."""
    if get_origin(annotation) in (list, dict):
        return _types_at(get_args(annotation)[-1], steps[1:]) if steps else []
    if get_args(annotation):
        return [found for part in get_args(annotation) for found in _types_at(part, steps)]
    if not steps:
        return [annotation]
    fields = [field for struct in _structs([annotation]) for field in msgspec.structs.fields(struct)]
    return [
        found
        for field in fields
        if field.encode_name == steps[0]
        for found in _types_at(field.type, steps[1:])
    ]


def _choices(annotation: object, steps: DocumentPath) -> list[str]:
    """Return the values that may stand at a place within an annotation, if they are a few words."""
    found = _types_at(annotation, steps)
    enums = [kind for kind in found if isinstance(kind, type) and issubclass(kind, Enum)]
    if enums or not steps:
        return [str(member.value) for enum in enums for member in enum]
    configs = [struct.__struct_config__ for struct in _structs(_types_at(annotation, steps[:-1]))]
    return sorted(str(config.tag) for config in configs if config.tag_field == steps[-1])


_STEP: Callable[[str], list[tuple[str, str]]] = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]").findall


def _parse_path(text: str) -> DocumentPath:
    """Read msgspec's path (`.columns[2].name`); a position it does not know ends the path."""
    steps: list[str | int] = []
    for key, position in _STEP(text):
        if position == "...":
            break
        steps.append(key or int(position))
    return tuple(steps)
