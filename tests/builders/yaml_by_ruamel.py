"""Reads YAML by ruamel.yaml, in pure Python: slow, and the oracle of the engine's own reader."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError


@dataclass(frozen=True)
class Read:
    """The value of a text, and the line and the text of its parts by path; or the line that is refused."""

    value: Any = None
    lines: tuple[tuple[tuple[str | int, ...], int], ...] = ()
    texts: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    is_refused: bool = False


def read(text: str) -> Read:
    """Read a text."""
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text)
        lines, texts = _index(root)
        value = None if root is None else yaml.constructor.construct_document(root)
    except (MarkedYAMLError, YAMLError, TypeError, ValueError, RecursionError):
        return Read(is_refused=True)
    return Read(
        comparable(value), tuple(sorted(lines.items(), key=str)), tuple(sorted(texts.items(), key=str))
    )


def comparable(value: Any) -> Any:
    """Return a value that is equal to those of the same meaning: NaN is NaN, and time zones have no names."""
    match value:
        case dict():
            return {comparable(key): comparable(item) for key, item in value.items()}
        case list():
            return [*map(comparable, value)]
        case date():
            return value.isoformat()
    return f"{type(value).__name__} {value!r}"


def _index(root: Any) -> tuple[dict[tuple[str | int, ...], int], dict[tuple[str | int, ...], str]]:
    lines: dict[tuple[str | int, ...], int] = {}
    texts: dict[tuple[str | int, ...], str] = {}
    pending: list[tuple[tuple[str | int, ...], Any]] = [] if root is None else [((), root)]
    while pending:
        path, node = pending.pop()
        if len(path) > 64:
            raise ValueError("it contains itself")
        lines.setdefault(path, node.start_mark.line + 1)
        if node.id == "scalar":
            node.value = _joined(node.value)
            texts[path] = node.value
        elif node.id == "sequence":
            pending += [((*path, place), item) for place, item in enumerate(node.value)]
        else:
            for key, item in node.value:
                key.value = _joined(key.value) if key.id == "scalar" else key.value
                inner = (*path, str(key.value))
                if inner in lines:
                    raise ValueError(f"{key.value!r} is written twice")
                lines[inner] = key.start_mark.line + 1
                pending.append((inner, item))
    return lines, texts


def _joined(value: str) -> str:
    """Return a text with pairs of surrogates joined, which ruamel.yaml keeps apart; a half alone is a ValueError."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16")
