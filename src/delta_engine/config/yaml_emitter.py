"""Writes values as YAML that round-trips: each scalar on one line, plain if safe, else in double quotes."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import Emitter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString

Value: TypeAlias = "str | int | Sequence[Value] | Mapping[str, Value]"
"""A value of a model file: a text, a number, true or false, a list or a mapping."""

_BOOLEANS_ELSEWHERE = frozenset({"yes", "no", "on", "off"})
"""Plain texts of YAML 1.2 that YAML 1.1 readers parse as booleans."""

_NUMBER = re.compile(r"-?[0-9]+").fullmatch
"""Matches plain numbers; texts that look like numbers are quoted first."""

_QUOTED = {"'": SingleQuotedScalarString, '"': DoubleQuotedScalarString}


class _Emitter(Emitter):
    """Prefers double quotes, and forces them where ruamel.yaml's choice does not round-trip."""

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
    """Return a document with mappings and lists in blocks, except those that `flow` returned."""
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
    """Return `key: value` on one line, with flow collections; `in_flow` quotes for use in braces."""
    if in_flow:
        return emit_block(cast("Mapping[str, object]", flow({key: value})))[1:-2]
    return emit_block({key: flow(value)})[:-1]


def emit_value(value: Value, *, in_flow: bool, style: str | None = None) -> str:
    """Return a value on one line; `style` is the preferred quote of a text, None for as few quotes as possible."""
    if isinstance(value, str) and style in _QUOTED:
        value = _QUOTED[style](value)
    return emit_pair("k", value, in_flow=in_flow).removeprefix("k: ")
