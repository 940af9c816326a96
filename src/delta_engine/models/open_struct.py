"""Structs that keep unknown fields, so that the fields of a newer minor version survive a round trip.

Most documents have no unknown fields and are decoded in one pass. If the strict decoder finds one, the slow path
separates known from unknown fields.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from typing_extensions import Self

UNKNOWN_KEY = "(unknown fields)"
"""Holds a struct's unknown fields in memory; no written document has this key."""


Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A point in time; in documents always UTC."""

Count = Annotated[int, msgspec.Meta(ge=0)]


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """The base class of the parts of documents."""

    def with_values(self, **values: Any) -> Self:
        """Return the part with other values; an open one keeps the fields that this engine does not know."""
        return msgspec.structs.replace(self, **values)


class OpenStruct(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base class of every part of a document that newer engines may extend."""

    unknown: dict[str, Any] | None = msgspec.field(default=None, name=UNKNOWN_KEY)


SomeStruct = TypeVar("SomeStruct", bound=OpenStruct)

_Change = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]

_UNKNOWN_MARK = msgspec.json.encode(UNKNOWN_KEY)


def decode_open(data: bytes, shape: type[SomeStruct]) -> SomeStruct:
    """Parse JSON into a struct; msgspec.ValidationError for another shape, msgspec.DecodeError for other text."""
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError:
        return msgspec.convert(_changed(msgspec.json.decode(data), shape, _set_apart), shape, strict=True)


def encode_open(value: OpenStruct, *, sort_keys: bool = False) -> bytes:
    """Return a struct as compact JSON with its unknown fields; sorted keys make checksums stable."""
    order: Literal["sorted"] | None = "sorted" if sort_keys else None
    data = msgspec.json.encode(value, order=order)
    if _UNKNOWN_MARK not in data:
        return data
    return msgspec.json.encode(_changed(msgspec.json.decode(data), type(value), _put_back), order=order)


def canonical_checksum(value: OpenStruct) -> str:
    """Return the SHA-256 of a struct: the same whatever the order of its keys."""
    return checksum_of(encode_open(value, sort_keys=True))


def checksum_of(data: bytes) -> str:
    """Return a checksum as documents have it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _changed(raw: Any, annotation: object, change: _Change) -> Any:
    """Return raw data with the fields of all structs changed; `change` gets a struct's fields, and the known ones."""
    shape = _struct_of(annotation, raw)
    match raw:
        case dict() if shape:
            types = _field_types(shape)
            known_fields = {
                key: _changed(item, types[key], change) for key, item in raw.items() if key in types
            }
            return change(raw, known_fields)
        case dict():
            return {key: _changed(item, _inner(annotation), change) for key, item in raw.items()}
        case list():
            return [_changed(item, _inner(annotation), change) for item in raw]
    return raw


def _set_apart(raw: dict[str, Any], known_fields: dict[str, Any]) -> dict[str, Any]:
    unknown = {key: item for key, item in raw.items() if key not in known_fields}
    return known_fields | {UNKNOWN_KEY: unknown} if unknown else known_fields


def _put_back(raw: dict[str, Any], known_fields: dict[str, Any]) -> dict[str, Any]:
    return (raw.get(UNKNOWN_KEY) or {}) | known_fields


@cache
def _field_types(shape: type[OpenStruct]) -> dict[str, object]:
    fields = msgspec.structs.fields(shape)
    types: dict[str, object] = {field.encode_name: field.type for field in fields}
    types.pop(UNKNOWN_KEY)
    tag = shape.__struct_config__.tag_field
    return types | ({tag: None} if tag else {})


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
