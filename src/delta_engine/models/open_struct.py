"""Structs that keep unknown fields, so that the fields of a newer minor version survive a round trip.

Most documents have no unknown fields and are decoded in one pass. If the strict decoder finds one, the slow path
separates known from unknown fields.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar

import msgspec

UNKNOWN_KEY = "(unknown fields)"
"""Holds a struct's unknown fields in memory; no written document has this key."""


Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A point in time; in documents always UTC."""


class OpenStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base class of every part of a document."""

    unknown: dict[str, Any] | None = msgspec.field(default=None, name=UNKNOWN_KEY)


SomeStruct = TypeVar("SomeStruct", bound=OpenStruct)

_UNKNOWN_MARK = msgspec.json.encode(UNKNOWN_KEY)


def decode_open(data: bytes, shape: type[SomeStruct]) -> SomeStruct:
    """Parse JSON into a struct; msgspec.ValidationError for another shape, msgspec.DecodeError for other text."""
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError:
        return msgspec.convert(_set_apart(msgspec.json.decode(data), shape), shape, strict=True)


def encode_open(value: OpenStruct, *, sort_keys: bool = False) -> bytes:
    """Return a struct as compact JSON with its unknown fields; sorted keys make checksums stable."""
    order: Literal["sorted"] | None = "sorted" if sort_keys else None
    data = msgspec.json.encode(value, order=order)
    if _UNKNOWN_MARK not in data:
        return data
    return msgspec.json.encode(_put_back(msgspec.json.decode(data), type(value)), order=order)


def canonical_checksum(value: OpenStruct) -> str:
    """Return the SHA-256 of a struct: the same whatever the order of its keys."""
    return checksum_of(encode_open(value, sort_keys=True))


def checksum_of(data: bytes) -> str:
    """Return a checksum as documents have it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _set_apart(raw: object, annotation: object) -> object:
    """Move the unknown fields of every struct below into its `UNKNOWN_KEY`."""
    shape = _struct_of(annotation, raw)
    match raw:
        case dict() if shape:
            types = _field_types(shape)
            known = {key: _set_apart(item, types[key]) for key, item in raw.items() if key in types}
            unknown = {key: item for key, item in raw.items() if key not in types}
            return known | {UNKNOWN_KEY: unknown} if unknown else known
        case dict():
            return {key: _set_apart(item, _inner(annotation)) for key, item in raw.items()}
        case list():
            return [_set_apart(item, _inner(annotation)) for item in raw]
    return raw


def _put_back(raw: object, annotation: object) -> object:
    """Undo `_set_apart`; known fields win."""
    shape = _struct_of(annotation, raw)
    match raw:
        case dict() if shape:
            types = _field_types(shape)
            known = {key: _put_back(item, types[key]) for key, item in raw.items() if key != UNKNOWN_KEY}
            return {**(raw.get(UNKNOWN_KEY) or {}), **known}
        case dict():
            return {key: _put_back(item, _inner(annotation)) for key, item in raw.items()}
        case list():
            return [_put_back(item, _inner(annotation)) for item in raw]
    return raw


@cache
def _field_types(shape: type[OpenStruct]) -> dict[str, object]:
    types: dict[str, object] = {field.encode_name: field.type for field in msgspec.structs.fields(shape)}
    return types | {shape.__struct_config__.tag_field or UNKNOWN_KEY: None}


def _struct_of(annotation: object, raw: object) -> type[OpenStruct] | None:
    """Return the struct in an annotation such as `Definition | None`; among tagged ones, the one of the tag."""
    choices = annotation.__args__ if isinstance(annotation, UnionType) else (annotation,)
    for choice in choices:
        if isinstance(choice, type) and issubclass(choice, OpenStruct):
            config = choice.__struct_config__
            if config.tag is None or (isinstance(raw, dict) and raw.get(config.tag_field) == config.tag):
                return choice
    return None


def _inner(annotation: object) -> object:
    """Return the type of a container's items: the last parameter of `dict[str, X]` and `tuple[X, ...]`."""
    arguments = [choice for choice in getattr(annotation, "__args__", ()) if choice is not Ellipsis]
    return arguments[-1] if arguments else None
