"""Holds plain data against a declared shape, and tells everything that does not fit. Pure.

A shape is an annotation: a msgspec struct, a dataclass, a list or mapping of shapes, or a union. msgspec stops at the
first fault and suggests no similar key.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, TypeAlias, TypeGuard, Union, get_args, get_origin, get_type_hints

import msgspec

from delta_engine.errors import unknown

Path: TypeAlias = tuple[str | int, ...]
"""The path of a value from the root: keys and list positions."""


@dataclass(frozen=True, slots=True)
class ShapeProblem:
    """A value or a key that does not fit."""

    path: Path
    reason: str
    way_out: str = ""


def problems(value: object, shape: object, *, is_part: bool = False) -> Iterator[ShapeProblem]:
    """Yield every unknown key, missing key and wrong value, in the order of the data.

    Args:
        is_part: whether other data will add keys to the mappings, so that no key is missing yet.
    """
    yield from _problems(value, [shape], (), is_part)


def _problems(value: object, types: Sequence[object], path: Path, is_part: bool) -> Iterator[ShapeProblem]:
    misfits = [*(_unknown_keys(value, types, path) or (() if is_part else _missing_keys(value, types, path)))]
    for step, part in _parts(value):
        inner = _types_inside(types, step, _LISTS if isinstance(value, list) else (dict,))
        is_whole = isinstance(value, list) or not is_part
        misfits += _problems(part, inner, (*path, step), not is_whole) if inner else ()
    yield from misfits or (() if is_part and _may_grow(value, types) else _mismatch(value, types, path))


def problem_of(error: msgspec.ValidationError) -> ShapeProblem:
    """Return what msgspec says of data that has no other shape, in the words of `problems`."""
    reason, _, place = str(error).partition(" - at `$")
    steps = _STEP.findall(place.partition("[...]")[0])
    return _problem(tuple(int(number) if number else key for key, number in steps), *_type_error(reason, ()))


_STEP: Final = re.compile(r"\.([^.\[`]+)|\[(\d+)\]")


def _may_grow(value: object, types: Sequence[object]) -> bool:
    """Whether further keys may make data fit: it is a mapping, and its `type` chooses a shape if it has one."""
    if not isinstance(value, dict):
        return False
    if tags := _tags(types):
        return value.get("type", tags[0]) in tags
    return bool(_shapes(types)) or any(get_origin(member) is dict for kind in types for member in _flat(kind))


def _mismatch(value: object, types: Sequence[object], path: Path) -> Iterator[ShapeProblem]:
    try:
        msgspec.convert(value, Union[tuple(types)])  # noqa: UP007 - the types are known when it runs
    except msgspec.ValidationError as error:
        problem, _, inner = str(error).partition(" - at `$.")
        place = (*path, inner.rstrip("`")) if inner else path  # the key that chooses a shape
        reason, way_out = _type_error(problem, _tags(types) if inner else _choices(types))
        if str(value).lower() in _SWITCHES and "true or false" in way_out:
            meant = "true" if _SWITCHES[str(value).lower()] else "false"
            way_out = f"Write {meant}, because YAML 1.2 reads {value} as a string."
        yield _problem(place, reason, way_out)


def _unknown_keys(value: object, types: Iterable[object], path: Path) -> list[ShapeProblem]:
    shapes = _shapes(types)
    if not isinstance(value, dict) or not shapes:
        return []
    allowed = {key for shape in _chosen(value, shapes) for key in keys_of(shape)}
    others = {key for shape in shapes for key in keys_of(shape)}
    unknown_keys = []
    for key in value:
        if key in allowed:
            continue
        if key in others:
            reason, way_out = (
                f"{key} does not belong to type: {value['type']}",
                "Remove it, or change the type.",
            )
        else:
            reason, way_out = unknown("key", str(key), allowed)
        if value[key] is None and str(key).endswith(")"):  # {type: decimal(18,2)} is two keys
            way_out = 'Write the value in quotes, as in "decimal(18,2)", because a comma ends it here.'
        unknown_keys.append(ShapeProblem((*path, str(key)), reason, way_out))
    return unknown_keys


def _missing_keys(value: object, types: Iterable[object], path: Path) -> list[ShapeProblem]:
    chosen = _chosen(value, _shapes(types)) if isinstance(value, dict) else []
    if not isinstance(value, dict) or len(chosen) != 1:
        return []
    missing = [key for key in _required(chosen[0]) if key not in value]
    return [_problem(path, *_missing(key)) for key in missing]


def _missing(key: str) -> tuple[str, str]:
    """Return the reason and the fix of a missing key."""
    return f"the key {key!r} is missing", "Add the key."


def _problem(path: Path, reason: str, way_out: str) -> ShapeProblem:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return ShapeProblem(path, f"{text.removeprefix('.')}: {reason}" if path else reason, way_out)


def _chosen(value: Mapping[str, object], shapes: Sequence[Any]) -> Sequence[Any]:
    """Return the shape that the data's `type` chooses, or all of them."""
    return [shape for shape in shapes if _tag(shape) == ("type", value.get("type"))] or shapes


def _shapes(types: Iterable[object]) -> list[Any]:
    return [member for kind in types for member in _flat(kind) if is_class(member) and keys_of(member)]


def _parts(value: object) -> list[tuple[str | int, object]]:
    match value:
        case dict():
            return [*value.items()]
        case list():
            return [*enumerate(value)]
    return []


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys that data may have.

    Args:
        types: of the data.
        allowed: the keys of all its shapes; None if any key is.
        by_key: what is known of the parts under these keys.
        of_each: what is known of the items of a list, or of the values of a mapping with any keys.
        has_tags: whether the data's `type` chooses one of several shapes.
    """

    types: tuple[object, ...]
    allowed: frozenset[str] | None
    by_key: Mapping[str, _Keys]
    of_each: _Keys | None
    has_tags: bool


def has_unknown_keys(value: object, shape: object) -> bool:
    """Whether data has a key that its shape lacks; takes a fraction of the time of `problems`."""
    keys = _keys((shape,))
    return keys is not None and _has_unknown_keys(value, keys)


def _has_unknown_keys(value: object, keys: _Keys) -> bool:
    each = keys.of_each
    if isinstance(value, list):
        return each is not None and any(_has_unknown_keys(item, each) for item in value)
    if not isinstance(value, dict):
        return False
    if keys.allowed is None:
        return each is not None and any(_has_unknown_keys(item, each) for item in value.values())
    if not value.keys() <= keys.allowed or (keys.has_tags and _unknown_keys(value, keys.types, ())):
        return True
    if keys.by_key.keys().isdisjoint(value):  # most
        return False
    return any(_has_unknown_keys(value[key], inner) for key, inner in keys.by_key.items() if key in value)


@cache
def _keys(types: tuple[object, ...]) -> _Keys | None:
    """Return the keys of data of these types; None if it has no keys to check."""
    keys = {
        key
        for annotation in types
        for shape in _flat(annotation)
        if is_class(shape)
        for key in keys_of(shape)
    }
    by_key = {key: _keys(tuple(_types_inside(types, key))) for key in keys}
    each = tuple(
        _of_each(member) for kind in types for member in _flat(kind) if get_origin(member) in (*_LISTS, dict)
    )
    of_each = _keys(each) if each else None
    if not keys and of_each is None:
        return None
    inner = {key: part_keys for key, part_keys in by_key.items() if part_keys is not None}
    return _Keys(
        types=types,
        allowed=frozenset(keys) if keys else None,
        by_key=inner,
        of_each=of_each,
        has_tags=bool(_tags(types)),
    )


def _flat(annotation: object) -> list[object]:
    """Return the members of a union or a `Literal`, or the annotation alone."""
    if get_origin(annotation) in (*_LISTS, dict) or not get_args(annotation):
        return [annotation]
    return [member for part in get_args(annotation) for member in _flat(part)]


_LISTS: Final = (list, tuple)
"""What has items: `list[X]` and `tuple[X, ...]`."""


def _of_each(collection: object) -> object:
    """Return the type of the items of a list, or of the values of a mapping."""
    *others, last = get_args(collection)
    return others[0] if last is ... else last


def _types_inside(
    types: Iterable[object], step: str | int, collections: Sequence[type] = (dict,)
) -> list[object]:
    """Return the types of a part of data, under a key of a mapping or at a position of a list."""
    part_types: list[object] = []
    for member in (inner for annotation in types for inner in _flat(annotation)):
        if get_origin(member) in collections:
            part_types.append(_of_each(member))
        elif is_class(member) and str(step) in keys_of(member):
            part_types.append(keys_of(member)[str(step)])
    return part_types


def is_class(annotation: object) -> TypeGuard[Any]:
    """Whether an annotation is a class; Python 3.10 counts `list[int]` as one."""
    return isinstance(annotation, type) and get_origin(annotation) is None


@cache
def keys_of(shape: Any) -> Mapping[str, object]:
    """Return the types of a struct's or dataclass's fields by key, with a struct's tag; empty for other classes."""
    if issubclass(shape, msgspec.Struct):
        tag, _ = _tag(shape)
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(shape)}
        return {**fields, tag: str} if tag else fields
    return get_type_hints(shape) if is_dataclass(shape) else {}


@cache
def _required(shape: Any) -> tuple[str, ...]:
    if issubclass(shape, msgspec.Struct):
        return tuple(field.encode_name for field in msgspec.structs.fields(shape) if field.required)
    missing = dataclasses.MISSING
    return tuple(
        field.name
        for field in dataclasses.fields(shape)
        if field.default is missing and field.default_factory is missing
    )


def _tag(shape: type[Any]) -> tuple[str | None, str | int | None]:
    """Return the key and the value of a struct's tag in a union."""
    if not issubclass(shape, msgspec.Struct):
        return None, None
    return shape.__struct_config__.tag_field, shape.__struct_config__.tag


def _tags(types: Iterable[object]) -> list[str]:
    return sorted(str(tag) for _, tag in map(_tag, _shapes(types)) if tag is not None)


def _choices(types: Iterable[object]) -> list[str]:
    """Return the values that types allow, if they are a few words."""
    options = [option for annotation in types for option in _flat(annotation)]
    literals = [option for option in options if isinstance(option, str)]
    enums = [option for option in options if is_class(option) and issubclass(option, Enum)]
    return [*literals, *(str(member.value) for enum in enums for member in enum)]


_MISMATCH = re.compile(
    r"Expected `(?P<wanted>[^`]+)`(?P<bound>(?: of length)? [<>=]+ \S+)?(?:, got `(?P<found>[^`]+)`)?"
)
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]+)`")
_NO_CHOICE = re.compile(r"Invalid (?:enum )?value (?P<found>.+)")

_NO_DATE = "Invalid RFC3339 encoded date"

_SWITCHES = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}
"""Texts that YAML 1.1 reads as true or false."""

_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "date": "a date",
    "datetime": "a time",
    "float": "a number",
    "int": "an integer",
    "null": "null",
    "object": "a mapping",
    "str": "a string",
}


def _type_error(problem: str, choices: Sequence[str]) -> tuple[str, str]:
    """Return the reason and the fix of a msgspec message; unknown messages pass unchanged, without a fix."""
    no_choice = _NO_CHOICE.fullmatch(problem)
    if no_choice and choices:
        close = difflib.get_close_matches(no_choice["found"].strip("'"), choices, n=1)
        way_out = f"Did you mean {close[0]!r}?" if close else "Write one of these values."
        return f"{no_choice['found']} is not one of: {', '.join(choices)}", way_out
    if missing := _MISSING.fullmatch(problem):
        return _missing(missing["key"])
    if problem == _NO_DATE:
        return "expected a date", "Write a date such as 2026-12-31."
    mismatch = _MISMATCH.fullmatch(problem)
    if mismatch is None:
        return problem, ""
    kinds = [kind for kind in mismatch["wanted"].split(" | ") if kind != "null"]
    if not {*kinds, mismatch["found"] or "null"} <= _WORDS.keys():
        return problem, ""
    expected = " or ".join(_WORDS[kind] for kind in kinds) + (mismatch["bound"] or "")
    if mismatch["found"] is None:
        return "the value is out of range", f"Write {expected}."
    return f"expected {expected}, got {_WORDS[mismatch['found']]}", _way_out(kinds, mismatch["found"])


def _way_out(expected: list[str], given: str | None) -> str:
    match expected, given:
        case _, "null":
            return "Write a value, or remove the key."
        case ["bool"], "str":
            return "Write true or false, without quotes."
        case ["int" | "float"], "str":
            return "Write the value without quotes."
        case [*kinds], "bool" | "date" | "datetime" | "float" | "int" if "str" in kinds:
            return "Write the value in quotes."
        case ["array"], "object":
            return "Begin each item with a dash."
        case [*kinds], str() if "array" in kinds:
            return "Write [a, b]."
        case [*kinds], str() if "object" in kinds:
            return "Write {key: value}."
    return ""
