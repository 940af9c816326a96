"""Composes YAML texts with libyaml, and reads their values as YAML 1.2 does: `no` and `on` are texts, `012` is 12.

Nodes keep their files and lines. A text that would exhaust memory is refused before it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final, TypeAlias

from yaml import MappingNode, Node, ScalarNode, SequenceNode, YAMLError
from yaml._yaml import CParser
from yaml.constructor import SafeConstructor
from yaml.error import MarkedYAMLError
from yaml.reader import ReaderError

from delta_engine.config.surrogate_pairs import mask_of
from delta_engine.errors import ConfigError, SourceLocation

Value: TypeAlias = "str | int | float | bool | date | list[Value] | dict[object, Value] | None"
"""Plain data."""

MAX_NODES: Final = 1_000_000
"""A document with more nodes is an alias bomb, not a configuration."""

MAX_DEPTH: Final = 64

MERGE: Final = "<<"
"""The key whose mappings give a mapping more keys."""

HALF_A_CHARACTER: Final = r"\ud800 to \udfff are surrogates, which no string may contain"

_PLAIN, _TEXT, _COLLECTION = "plain", "text", "collection"
_TAGS: Final = "tag:yaml.org,2002:"


class _Composer(CParser):
    """Composes nodes. A scalar's tag tells whether it is plain or in quotes, unless the text has one."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(_NamedText(text, file))
        self._nodes = 0
        self._around: list[object] = []
        self.ascend_resolver = self._around.pop

    def descend_resolver(self, parent: Node | None, _index: object) -> None:
        self._nodes += 1
        self._around.append(parent)
        if self._nodes > MAX_NODES or len(self._around) > MAX_DEPTH:
            raise _TooLargeError

    def resolve(self, kind: type[Node], value: str, implicit: tuple[bool, bool]) -> str:
        if kind is not ScalarNode:
            return _COLLECTION
        is_text = not implicit[0] or (value[:1] not in _NUMERIC and value not in _WORDS and value != MERGE)
        return _TEXT if is_text else _PLAIN


class _NamedText:
    """A text as libyaml reads a file: all its marks get the file's name."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._rest = text

    def read(self, _bytes: int = -1, /) -> str:
        text, self._rest = self._rest, ""
        return text


class _TooLargeError(Exception):
    pass


def compose(text: str, file: str) -> Node | None:
    """Return the root of a YAML text, None if it is empty; ConfigError if it is invalid or too large."""
    mask = mask_of(text)
    try:
        root = _Composer(text if mask is None else mask.put_on(text), file).get_single_node()
    except _TooLargeError:
        raise too_large(file) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "its structure is broken"
        raise _invalid(text, file, mark.line + 1 if mark else 1, problem) from None
    except ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise _invalid(text, file, line, "it contains a control character") from None
    except (YAMLError, ValueError) as error:
        raise _invalid(text, file, 1, str(error)) from None
    if root is not None and mask is not None:
        mask.take_off(root)
    return root


def line_of(node: Node) -> int:
    """Return the line of a node, from 1."""
    return int(node.start_mark.line) + 1


def file_of(node: Node) -> str:
    """Return the name of a node's file."""
    return str(node.start_mark.name)


def child(node: Node, step: str | int) -> tuple[Node, Node] | None:
    """Return an item of a list, twice, or a mapping's own key and its value; None if missing."""
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, MappingNode):
        return next(((key, item) for key, item in node.value if key.value == str(step)), None)
    return None


def too_large(file: str) -> ConfigError:
    """Return the refusal of a document that would exhaust memory."""
    return ConfigError("it is too large or too deep", location=SourceLocation(file))


class Reader:
    """Reads the values of nodes, aliases expanded and merge keys applied; ConfigError names the line of a refusal."""

    def __init__(self) -> None:
        self._nodes = 0

    def value(self, node: Node, depth: int = 0) -> Any:
        """Return the value of a node; refuse duplicate keys, keys that are collections, and unknown tags."""
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        self._nodes += len(node.value)
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise too_large(file_of(node))
        if node.tag not in (_COLLECTION, f"{_TAGS}seq", f"{_TAGS}map"):
            raise self._error(node, f"the tag {_shown(node.tag)} is not supported", "Remove the tag.")
        if isinstance(node, SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        assert isinstance(node, MappingNode)
        return self._mapping(node, depth)

    def _mapping(self, node: MappingNode, depth: int) -> dict[object, Any]:
        written, merged = dict[object, Any](), None
        for key, item in node.value:
            name = key.value if key.tag == _TEXT else self._key(key)
            if name in written or (name == MERGE and merged is not None):
                raise self._error(
                    key, f"the key {key.value!r} is written twice", "Remove one of the two lines."
                )
            if name == MERGE and key.tag == _PLAIN:
                merged = self._merged(item, depth)
            else:
                written[name] = item.value if item.tag == _TEXT else self.value(item, depth + 1)
        return {**merged, **written} if merged else written

    def pairs(self, node: MappingNode) -> dict[object, tuple[Node, Node]]:
        """Return the nodes of a mapping's keys and values by key, merge keys applied; `value` must accept the node."""
        written, merged = dict[object, tuple[Node, Node]](), dict[object, tuple[Node, Node]]()
        for key, item in node.value:
            if key.tag == _PLAIN and key.value == MERGE:
                for source in item.value if isinstance(item, SequenceNode) else [item]:
                    merged = {**self.pairs(source), **merged}
            else:
                written[self._key(key)] = (key, item)
        return {**merged, **written}

    def _key(self, node: Node) -> object:
        if isinstance(node, ScalarNode):
            if node.tag == _PLAIN and not node.value:
                raise self._error(
                    node, "a key is empty", "Write the key, or put the value with the colon in quotes."
                )
            return self._scalar(node)
        raise self._error(node, "a key is a list or a mapping", "Put variables inside braces in quotes.")

    def _merged(self, node: Node, depth: int) -> dict[object, Any]:
        nodes = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[object, Any] = {}
        for mapping in nodes:
            if not isinstance(mapping, MappingNode):
                raise self._error(node, f"{MERGE} needs a mapping or a list of mappings")
            merged = {**self.value(mapping, depth + 1), **merged}
        return merged

    def _scalar(self, node: ScalarNode) -> object:
        if node.tag == _TEXT:
            return node.value
        read = _plain if node.tag == _PLAIN else _BY_TAG.get(node.tag)
        if read is None:
            raise self._error(
                node, f"the tag {_shown(node.tag)} is not supported", "Write the value in quotes."
            )
        try:
            return read(node.value)
        except (ValueError, OverflowError, AttributeError) as error:
            raise self._error(
                node, f"{node.value!r} cannot be read: {error}", "Write the value in quotes."
            ) from None

    def _error(self, node: Node, reason: str, way_out: str = "") -> ConfigError:
        location = SourceLocation(file_of(node), line_of(node))
        return ConfigError(reason, location=location, way_out=way_out)


_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

_NUMERIC: Final = frozenset("+-.0123456789")
"""The first characters of numbers, dates and times."""

_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9_]+)").fullmatch
_FLOAT = re.compile(
    r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|[-+]?\.[0-9_]+(?:[eE][-+][0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
).fullmatch
_TIME = SafeConstructor.timestamp_regexp.match
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch


def _plain(text: str) -> object:
    """Return the value of a text without quotes, by the core schema of YAML 1.2, with dates and times."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if _INTEGER(text):
        return _integer(text)
    if _FLOAT(text):
        return _float(text)
    if _DATE(text) or (_TIME(text) and ":" in text):
        return _moment(text)
    return text


def is_read_as_text(text: str) -> bool:
    """Whether a text without quotes is read as that text, and not as a number, a date, a truth value or null."""
    try:
        return isinstance(_plain(text), str) and text != MERGE
    except (ValueError, OverflowError, AttributeError):
        return False


def _integer(text: str) -> int:
    digits = text.replace("_", "").lstrip("+-")
    base = {"0b": 2, "0o": 8, "0x": 16}.get(digits[:2], 10)
    number = int(digits[2:] if base != 10 else digits, base)
    return -number if text.startswith("-") else number


def _float(text: str) -> float:
    return float(re.sub(r"\.(?=inf|nan)", "", text.replace("_", "").lower()))


def _moment(text: str) -> object:
    return SafeConstructor().construct_yaml_timestamp(ScalarNode("", text))


_BY_TAG: Final[Mapping[str, Callable[[str], object]]] = {
    f"{_TAGS}str": str,
    f"{_TAGS}int": _integer,
    f"{_TAGS}float": _float,
    f"{_TAGS}bool": lambda text: _WORDS[text],
    f"{_TAGS}null": lambda _text: None,
    f"{_TAGS}timestamp": _moment,
    "!": str,
}


def _shown(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAGS)}" if tag.startswith(_TAGS) else tag


_PROBLEMS: Final[Mapping[str, tuple[str, str]]] = {
    "mapping values are not allowed in this context": (
        "a value without quotes contains a colon and a space, or a line has the wrong indentation",
        'Write the value in quotes, as in comment: "id: the key", or align the line with its neighbours.',
    ),
    "could not find expected ':'": (
        "a key lacks its colon, or a value continues on a line with the wrong indentation",
        "Write key: value, and write values of several lines in quotes.",
    ),
    "did not find expected key": (
        "the line has the wrong indentation, or a quote or a comma is missing",
        "Align the line with the keys above.",
    ),
    "did not find expected '-' indicator": (
        "the list continues on a line without a dash or with the wrong indentation",
        "Begin each item with a dash, all in one column.",
    ),
    "found undefined alias": (
        "a value that begins with * is an alias, but no & defines it",
        'Write a string that begins with * in quotes, as in "*.yml".',
    ),
    "did not find expected alphabetic or numeric character": (
        "a value that begins with * or & is an alias or an anchor, but its name is missing",
        'Write a string that begins with * in quotes, as in "*.yml".',
    ),
    "found unexpected end of stream": ("a quote is not closed", "Close it."),
    "did not find expected ',' or ']'": (
        "a list in brackets is not closed, or a value in it contains a brace",
        'Close the list with ], put commas between values, and write such values in quotes, as in "${group}".',
    ),
    "did not find expected ',' or '}'": (
        "a mapping in braces is not closed, or a value in it contains a colon or a brace",
        'Close the mapping with }, and write such values in quotes, as in "${catalog}".',
    ),
}
"""What libyaml's problems mean, and their ways out."""

_SECOND_DOCUMENT: Final = ("but found another document", "did not find expected <document start>")


def _invalid(text: str, file: str, line: int, problem: str) -> ConfigError:
    if "Unicode character escape" in problem:
        return ConfigError(
            HALF_A_CHARACTER,
            location=SourceLocation(file, line),
            way_out=r"Write the character itself, or \U and its eight digits.",
        )
    if problem in _SECOND_DOCUMENT:
        return ConfigError(
            "a second YAML document begins here, but a file may contain only one",
            location=SourceLocation(file, line),
            way_out="Merge it into the first, or move it to another file.",
        )
    (written,) = text.split("\n")[line - 1 : line] or [""]
    if written.strip(" ").startswith("\t"):
        reason, way_out = "a tab indents the line", "Indent with spaces: YAML allows no tabs."
    elif "cannot start any token" in problem:
        reason, way_out = "a value begins with a character that YAML reserves", "Write the value in quotes."
    else:
        reason, way_out = _PROBLEMS.get(problem, (problem, ""))
    return ConfigError(f"invalid YAML: {reason}", location=SourceLocation(file, line), way_out=way_out)
