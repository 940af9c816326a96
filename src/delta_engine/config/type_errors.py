"""Explains msgspec's type errors in the terms of YAML."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeAlias, TypeGuard, get_args, get_origin, get_type_hints

import msgspec

Steps: TypeAlias = tuple[str | int, ...]
"""A path into a document: keys and list positions."""

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


def parse_path(text: str) -> Steps:
    """Parse a msgspec path such as `.columns[2].name`, up to the first unspecified position."""
    steps: list[str | int] = []
    for key, position in _STEP(text):
        if position == "...":
            break
        steps.append(key or int(position))
    return tuple(steps)


def types_at(annotation: object, steps: Steps) -> list[object]:
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


def choices_at(annotation: object, steps: Steps) -> list[str]:
    """Return the values that an annotation allows at a path, if they are a few words."""
    found = types_at(annotation, steps)
    literals = [kind for kind in found if isinstance(kind, str)]
    enums = [kind for kind in found if is_class(kind) and issubclass(kind, Enum)]
    if literals or enums or not steps:
        return [*literals, *(str(member.value) for enum in enums for member in enum)]
    tags = [tag_of(kind) for kind in types_at(annotation, steps[:-1]) if is_class(kind)]
    return sorted(str(tag) for key, tag in tags if key == steps[-1])
