"""Parses YAML documents with the line of every value, so that errors name file and line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from delta_engine.errors import ConfigError, SourceLocation, unknown
from delta_engine.models.parts import has_half_a_character

DocumentPath = tuple[str | int, ...]
"""The path of a value from the root: keys and list positions."""

Shape = TypeVar("Shape")

MAX_NODES = 1_000_000
"""A document with more nodes is an alias bomb, not a configuration."""

MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML file: plain data (None if empty), lines from 1 by path, and verbatim scalars without quotes."""

    file: str
    value: Any
    lines: Mapping[DocumentPath, int]
    scalars: Mapping[DocumentPath, str]

    def location(self, path: DocumentPath) -> SourceLocation:
        """Return the line of a value, or of its nearest ancestor with a known line."""
        while path and path not in self.lines:
            path = path[:-1]
        return SourceLocation(self.file, self.lines.get(path, 1))

    def error(self, path: DocumentPath, reason: str, way_out: str = "") -> ConfigError:
        """Return a refusal of the value at a path."""
        return ConfigError(reason, location=self.location(path), way_out=way_out)

    def texts(self, path: DocumentPath, values: Mapping[str, object]) -> dict[str, str]:
        """Return a mapping's scalars as text: `true` and `7` become "true" and "7", `1.10` stays "1.10"."""
        found: dict[str, str] = {}
        for key, value in values.items():
            place = (*path, key)
            if value is None or isinstance(value, (dict, list)):
                raise self.error(place, f"{key!r} must be a text", "Write it in quotes.")
            raw = self.scalars.get(place)
            if raw is None and not isinstance(value, str):
                raise self.error(
                    place, f"{key!r} comes from a merge key, and must be a text", "Write it in quotes."
                )
            text = str(value) if raw is None else raw
            found[key] = text.lower() if isinstance(value, bool) else text
        return found

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

        scalars = {path: change(path, text) for path, text in self.scalars.items()}
        return replace(self, value=changed((), self.value), scalars=scalars)

    def convert(self, path: DocumentPath, value: object, shape: type[Shape]) -> Shape:
        """Convert a part of the document to a declared shape; refuse unknown keys, missing keys and wrong types."""
        self._refuse_unknown_keys(path, value, [shape])
        try:
            return msgspec.convert(value, shape)
        except msgspec.ValidationError as error:
            problem, _, inner = str(error).partition(" - at `$")
            inner = inner.rstrip("`").lstrip(".")
            steps = parse_path(f".{inner}")
            reason, way_out = type_error(problem, choices_at(shape, steps))
            raise self.error((*path, *steps), f"{inner}: {reason}" if inner else reason, way_out) from None

    def _refuse_unknown_keys(self, path: DocumentPath, value: object, types: Sequence[object]) -> None:
        """Refuse keys that none of the types has; msgspec would not suggest a similar key."""
        parts: Iterable[tuple[str | int, object]] = ()
        if isinstance(value, dict):
            found = _unknown_key(value, [shape for shape in types if is_class(shape) and fields_of(shape)])
            if found is not None:
                key, reason, way_out = found
                raise self.error((*path, key), reason, way_out)
            parts = value.items()
        elif isinstance(value, list):
            parts = enumerate(value)
        for step, part in parts:
            inner = [found for annotation in types for found in types_at(annotation, (step,))]
            if inner and isinstance(part, (dict, list)):
                self._refuse_unknown_keys((*path, step), part, inner)


def read_document(path: Path, shown_as: str | None = None) -> Document:
    """Read a YAML file; `shown_as` is its name in messages. Refuse invalid UTF-8 and duplicate keys."""
    file = shown_as or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"it cannot be read: {reason}", location=SourceLocation(file)) from None
    return parse_document(text, file)


def parse_document(text: str, file: str) -> Document:
    """Parse a YAML text with line feeds as line ends; refuse duplicate keys."""
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


def _index(root: Any, file: str) -> tuple[dict[DocumentPath, int], dict[DocumentPath, str]]:
    """Return the lines and the scalars of a node tree by path."""
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
                            f"the key {key.value!r} is written twice",
                            location=SourceLocation(file, key.start_mark.line + 1),
                        )
                    lines[inner] = key.start_mark.line + 1
                    pending.append((inner, item))
    return lines, scalars


def _yaml_way_out(text: str, line: int, problem: str) -> str:
    (written,) = text.splitlines()[line - 1 : line] or [""]
    if "'\\t'" in problem:
        return "Indent with spaces: YAML takes no tabs."
    if "alias" in problem:  # *.yml reads as an alias
        return 'Write a text that begins with * in quotes, as in "*.yml".'
    if "${" in written and "{" in written.replace("${", ""):
        return 'Write variables within braces in quotes, as in "${catalog}".'
    return ""


def _half_a_character(location: SourceLocation) -> ConfigError:
    return ConfigError(
        r"\ud800 to \udfff are halves of characters, which no text may contain",
        location=location,
        way_out=r"Write the character itself, or \U and its eight digits.",
    )


def _unknown_key(value: Mapping[str, object], shapes: Sequence[Any]) -> tuple[str, str, str] | None:
    """Return the first unknown key of a mapping, its reason and its way out."""
    tag = value.get("type")
    chosen = [shape for shape in shapes if tag_of(shape) == ("type", tag)] or shapes
    allowed = {key for shape in chosen for key in fields_of(shape)}
    key = next((key for key in value if key not in allowed), None)
    if key is None or not shapes:
        return None
    if any(key in fields_of(shape) for shape in shapes):
        return key, f"{key} does not belong to type: {tag}", "Remove it, or change the type."
    reason, way_out = unknown("key", str(key), allowed)
    if value[key] is None and str(key).endswith(")"):  # {type: decimal(18,2)} is two keys
        way_out = 'A comma ends a value here: write it in quotes, as in "decimal(18,2)".'
    return str(key), reason, way_out


_MISMATCH = re.compile(
    r"Expected `(?P<wanted>[^`]+)`(?P<bound>(?: of length)? [<>=]+ \S+)?(?:, got `(?P<found>[^`]+)`)?"
)
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

_STEP: Callable[[str], list[tuple[str, str]]] = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]").findall


def type_error(problem: str, choices: Sequence[str] = ()) -> tuple[str, str]:
    """Return the reason and the way out of a msgspec message; unknown messages pass unchanged, without a way out."""
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
    return f"{wanted} is wanted{found}", _way_out(kinds, mismatch["found"])


def _way_out(wanted: list[str], found: str | None) -> str:
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


def parse_path(text: str) -> DocumentPath:
    """Parse a msgspec path such as `.columns[2].name`, up to the first unspecified position."""
    steps: list[str | int] = []
    for key, position in _STEP(text):
        if position == "...":
            break
        steps.append(key or int(position))
    return tuple(steps)


def types_at(annotation: object, steps: DocumentPath) -> list[object]:
    """Return the types that an annotation such as `list[str] | Key | None` allows at a path."""
    if get_origin(annotation) in (list, dict):
        return types_at(get_args(annotation)[-1], steps[1:]) if steps else [annotation]
    if get_args(annotation):
        return [found for part in get_args(annotation) for found in types_at(part, steps)]
    if not steps or not is_class(annotation):
        return [annotation]
    inner = fields_of(annotation).get(str(steps[0]))
    return [] if inner is None else types_at(inner, steps[1:])


def is_class(annotation: object) -> TypeGuard[Any]:
    """Whether an annotation is a class; Python 3.10 counts `list[int]` as one."""
    return isinstance(annotation, type) and get_origin(annotation) is None


@cache
def fields_of(shape: Any) -> Mapping[str, object]:
    """Return the field types of a struct or dataclass by key, with a struct's tag; empty for others."""
    if issubclass(shape, msgspec.Struct):
        tag, _ = tag_of(shape)
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(shape)}
        return {**fields, tag: str} if tag else fields
    return get_type_hints(shape) if is_dataclass(shape) else {}


def tag_of(shape: type[Any]) -> tuple[str | None, str | int | None]:
    """Return the key and the value of a struct's tag in a union."""
    if not issubclass(shape, msgspec.Struct):
        return None, None
    return shape.__struct_config__.tag_field, shape.__struct_config__.tag


def choices_at(annotation: object, steps: DocumentPath) -> list[str]:
    """Return the values that an annotation allows at a path, if they are a few words."""
    found = types_at(annotation, steps)
    literals = [kind for kind in found if isinstance(kind, str)]
    enums = [kind for kind in found if is_class(kind) and issubclass(kind, Enum)]
    if literals or enums or not steps:
        return [*literals, *(str(member.value) for enum in enums for member in enum)]
    tags = [tag_of(kind) for kind in types_at(annotation, steps[:-1]) if is_class(kind)]
    return sorted(str(tag) for key, tag in tags if key == steps[-1])
