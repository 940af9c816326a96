"""Writes values as YAML that reads back exactly, the way people here write it.

Plain where that is safe, double quotes where it is not, and nothing ever broken over lines. What is
written is decided elsewhere.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import Emitter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString

Value: TypeAlias = "str | int | Sequence[Value] | Mapping[str, Value]"
"""What a model file holds: texts, numbers, true and false, lists and mappings."""

_BOOLEANS_ELSEWHERE = frozenset({"yes", "no", "on", "off"})
"""Plain, these are texts in YAML 1.2, and true or false to the many readers of YAML 1.1."""

_NUMBER = re.compile(r"-?[0-9]+").fullmatch
"""What is plain in a document and a number; a text that looks like one is quoted before this is asked."""

_QUOTED = {"'": SingleQuotedScalarString, '"': DoubleQuotedScalarString}


class _Emitter(Emitter):
    """Prefers double quotes, and uses them where ruamel.yaml's own choice does not read back."""

    def choose_scalar_style(self) -> str:
        style = str(super().choose_scalar_style() or "")
        text = self.event.value
        # Plain and single quotes lose U+0085 and friends; `{k: ? a}` and `{"k": v, :a: b}` are not read back.
        is_misread = style == "" and (
            (text.startswith(("?", ":", "-")) and not _NUMBER(text)) or text.lower() in _BOOLEANS_ELSEWHERE
        )
        is_unsafe = is_misread or not text.isprintable()
        is_unwanted = style == "'" and self.event.style != "'"
        return '"' if is_unsafe or is_unwanted else style


def emit_block(value: Mapping[str, object]) -> str:
    """Return a document: mappings and lists in blocks, except those that `flow` made.

    Args:
        value: the root mapping; ends with a line break as text.
    """
    yaml = YAML()
    yaml.Emitter = _Emitter
    yaml.width = sys.maxsize
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()


def flow(value: Value) -> object:
    """Return a value that `emit_block` writes on one line, such as `{name: id, type: bigint}`."""
    if isinstance(value, (str, int)):
        return value
    collection: CommentedMap | CommentedSeq
    if isinstance(value, Mapping):
        collection = CommentedMap((key, flow(item)) for key, item in value.items())
    else:
        collection = CommentedSeq([flow(item) for item in value])
    collection.fa.set_flow_style()
    return collection


def emit_pair(key: str, value: Value, *, in_flow: bool) -> str:
    """Return `key: value` without a line break at its end.

    Args:
        key: the key.
        value: its value; collections come out in flow style.
        in_flow: whether it will stand between braces, where more must be quoted.
    """
    if in_flow:
        return emit_block(_as_root({key: value}))[1:-2]
    return emit_block({key: flow(value)})[:-1]


def emit_value(value: Value, *, in_flow: bool, style: str | None = None) -> str:
    """Return a value on one line.

    Args:
        value: the value; collections come out in flow style.
        in_flow: whether it will stand between braces or brackets.
        style: the quotes to use, if they can hold the text: `'`, `"`, or None for as few as possible.
    """
    if isinstance(value, str) and style in _QUOTED:
        value = _QUOTED[style](value)
    return emit_pair("k", value, in_flow=in_flow).removeprefix("k: ")


def _as_root(value: Mapping[str, Value]) -> CommentedMap:
    root = flow(value)
    assert isinstance(root, CommentedMap)
    return root
