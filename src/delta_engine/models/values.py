"""Converts the arguments of models made in Python; refuses wrong ones at the line that gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

Item = TypeVar("Item")

_LISTS = (tuple, list)
_NO_LISTS = (str, bytes, dict, set, frozenset)
"""Iterables that are no lists: texts, and collections without an order."""

NOTHING: Mapping[str, str] = MappingProxyType({})

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""Surrogates: JSON and Java write a character beyond U+FFFF as a pair; Python reads each as a character."""


def has_half_a_character(text: str) -> bool:
    """Whether a text has an unpaired surrogate, which UTF-8 cannot encode, so no file and no statement can hold it."""
    return not text.isascii() and _HALF_CHARACTER.search(text) is not None


def to_text(value: object, what: str, of: str = "") -> str:
    """Return a text; TypeError for others, ValueError for an unpaired surrogate; messages name `what` and `of`."""
    if type(value) is str and value.isascii():  # most
        return value
    if not isinstance(value, str):
        raise _wrong(value, what, of, "a text")
    if has_half_a_character(value):
        raise ValueError(
            rf"{_subject(what, of)} has half a character (\ud800 to \udfff), which no text may have: {value!r}. "
            r"Write the character itself, or \U and its eight digits"
        )
    return str.__str__(value)


def to_optional_text(value: object, what: str, of: str = "") -> str | None:
    """Return a text or None; arguments and errors as in `to_text`."""
    return None if value is None else to_text(value, what, of)


def to_flag(value: object, what: str, of: str = "") -> bool:
    """Return a bool; arguments and errors as in `to_text`."""
    if value is True or value is False:
        return value
    raise _wrong(value, what, of, "True or False")


def to_whole_number(value: object, what: str) -> int:
    """Return an int; arguments and errors as in `to_text`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise _wrong(value, what, "", "a whole number")


def to_optional(value: Item | None, kind: type[Item], what: str, of: str = "") -> Item | None:
    """Return an object of a class, or None; other arguments and errors as in `to_text`."""
    if value is None or isinstance(value, kind):
        return value
    raise _wrong(value, what, of, f"None or {kind.__name__}(…)")


def to_items(values: Iterable[Item], kind: type[Item], what: str, of: str = "") -> tuple[Item, ...]:
    """Return objects of a class as a tuple; other arguments and errors as in `to_text`."""
    if type(values) not in _LISTS and not _is_list(values):
        raise _wrong(values, what, of, f"a list of {kind.__name__}s")
    found = tuple(values)
    for one in found:
        if not isinstance(one, kind):
            raise _wrong(one, what, of, f"{kind.__name__}s")
    return found


def to_names(what: str, value: Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple; TypeError for a text, such as `("id")` without the comma, and for unordered values."""
    if isinstance(value, str):
        raise TypeError(f"{what} takes a tuple or list of names, not the string {value!r}")
    if type(value) not in _LISTS and not _is_list(value):
        raise _wrong(value, what, "", "a tuple or list of names")
    return tuple([to_text(one, what) for one in value])


def to_texts(what: str, values: Mapping[str, object]) -> Mapping[str, str]:
    """Return texts by name, read-only; the TypeError for a value of another type shows how to write it as text."""
    if values == {}:
        return NOTHING
    if not isinstance(values, Mapping):
        raise _wrong(values, what, "", "a mapping of texts")
    found = {}
    for key, value in values.items():
        if not isinstance(value, str):
            spelled = str(value).lower() if isinstance(value, bool) else str(value)
            hint = f": write {spelled!r}" if isinstance(value, (int, float)) else ""
            raise TypeError(f"{what} takes texts, and has {value!r} for {key!r}{hint}")
        found[to_text(key, what)] = to_text(value, what)
    return read_only(found)


def to_grants(grants: Mapping[str, Iterable[str]]) -> Mapping[str, tuple[str, ...]]:
    """Return privileges by principal, in upper case, sorted, without duplicates; TypeError for other shapes."""
    if not isinstance(grants, Mapping):
        raise _wrong(grants, "grants", "", "a mapping of privileges by principal")
    found = {to_text(principal, "grants"): granted for principal, granted in grants.items()}
    return MappingProxyType({principal: _privileges(found[principal]) for principal in sorted(found)})


def read_only(mapping: Mapping[str, str]) -> Mapping[str, str]:
    """Return a read-only copy, sorted by key, so that the input's order has no effect."""
    return MappingProxyType({key: mapping[key] for key in sorted(mapping)})


def set_fields(target: object, **values: object) -> None:
    """Set the fields of a frozen object during its construction."""
    for name, value in values.items():
        object.__setattr__(target, name, value)


def _is_list(values: object) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, _NO_LISTS)


def _privileges(granted: Iterable[str]) -> tuple[str, ...]:
    in_no_order = sorted(granted, key=str) if isinstance(granted, (set, frozenset)) else granted
    return tuple(sorted({one.upper().replace("_", " ") for one in to_names("grants", in_no_order)}))


def _wrong(value: object, what: str, of: str, wanted: str) -> TypeError:
    return TypeError(f"{_subject(what, of)} takes {wanted}, not {value!r}")


def _subject(what: str, of: str) -> str:
    return f"{what} of {of!r}" if of else what
