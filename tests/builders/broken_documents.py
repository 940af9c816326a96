"""Breaks a document in every place: what untrusted bytes may hold, for loaders that must refuse or take it."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

STRANGE: Final[tuple[object, ...]] = (
    None,
    True,
    0,
    -1,
    10**400,
    1.5,
    "",
    "x",
    ".",
    "a.b.c.d",
    "\x00\x1b[2J\u202e",
    "9" * 5_000,
    [],
    [[]],
    [None, 1, "x"],
    {},
    {"": None},
    {"x": {"y": []}},
)
"""Values of every type and size, most of which are wrong in any one place."""

Path = tuple[Any, ...]


def broken_copies(document: Any, strangers: Sequence[object] = STRANGE) -> Iterator[tuple[str, Any]]:
    """Yield copies that differ in one place each, with what was done to them.

    Values are replaced, keys and items taken away, doubled and renamed, and keys added.
    """
    for path in _paths(document):
        for strange in strangers:
            yield f"{_shown(path)} is {str(strange)[:20]!r}", _replaced(document, path, strange)
        if path:
            yield f"{_shown(path)} is gone", _changed(document, path, _remove)
        if path and isinstance(path[-1], str):
            for name in ("", "x", "A.B.C", "a.b", "a..c", "x" * 5_000, "\x1b\u202e"):
                yield f"{_shown(path)} is called {name[:20]!r}", _changed(document, path, _rename, name)
        elif path:
            yield f"{_shown(path)} stands there twice", _changed(document, path, _double)
        if isinstance(_at(document, path), dict):
            yield f"{_shown(path)} has a key more", _replaced(document, (*path, "stranger"), [None])


def nested(brackets: str, depth: int) -> str:
    """Return JSON of so many lists (`[]`) or objects (`{}`) within each other."""
    opening = brackets[0] if brackets == "[]" else '{"a":'
    return opening * depth + "0" + brackets[1] * depth


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, (*path, key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _paths(item, (*path, position))


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _replaced(document: Any, path: Path, value: object) -> Any:
    if not path:
        return value
    copy = deepcopy(document)
    _at(copy, path[:-1])[path[-1]] = value
    return copy


def _changed(document: Any, path: Path, change: Any, *arguments: object) -> Any:
    copy = deepcopy(document)
    change(_at(copy, path[:-1]), path[-1], *arguments)
    return copy


def _remove(parent: Any, step: Any) -> None:
    del parent[step]


def _rename(parent: Any, step: Any, name: str) -> None:
    parent[name] = parent.pop(step)


def _double(parent: Any, step: Any) -> None:
    parent.append(parent[step])


def _shown(path: Path) -> str:
    return ".".join(map(str, path)) or "the document"
