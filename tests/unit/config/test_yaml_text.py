"""Written YAML: whatever reads it, in YAML 1.1 or 1.2, finds the same values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from delta_engine.config.yaml_documents import parse_document
from delta_engine.config.yaml_text import block, in_lines, list_item, one_line, pair
from tests.projects.models import HOSTILE
from tests.proofs import examples
from tests.unit.config.test_yaml_meaning import SCALARS

TEXTS = sorted({text for text in (*HOSTILE, *SCALARS) if "\ud800" not in text})
PIECES = (*TEXTS, "x:y", "http://x:8/y?z", "id > 0", "#", "? ", ", ", "{", "}", "[", "]", "1", ".", "_", "e3")

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(
    st.sampled_from(PIECES), min_size=1, max_size=3
).map("".join)
values = st.recursive(
    texts | st.booleans() | st.integers(-(10**20), 10**20) | st.dates(date(1000, 1, 1)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


def readings(text: str) -> Iterator[Any]:
    """Yield what the engine reads, and PyYAML and ruamel.yaml in pure Python."""
    yield parse_document(text, "m.yml").value
    yield yaml.load(text, yaml.SafeLoader)
    yield YAML(typ="safe", pure=True).load(text)


def documents(value: Any, quote: str | None) -> Iterator[tuple[str, Any]]:
    """Yield YAML texts that hold a value, each with what it is to be read as."""
    in_flow = one_line(value, in_flow=True, quote=quote)
    yield f"k: {one_line(value, quote=quote)}\nl: 1\n", {"k": value, "l": 1}
    yield f"k: [{in_flow}, {in_flow}]\n", {"k": [value, value]}
    yield f"{{{pair('k', value, in_flow=True, quote=quote)}, l: 1}}\n", {"k": value, "l": 1}
    yield (
        f"k:{block(list_item(one_line(line, quote=quote)) for line in (value, value))}\n",
        {"k": [value] * 2},
    )


@pytest.mark.parametrize("quote", [None, "'", '"'])
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_a_text_is_read_back_by_every_reader(text: str, quote: str | None) -> None:
    for document, expected in documents(text, quote):
        assert [*readings(document)] == [expected] * 3, document
    for document in (pair(text, 1), f"{{{pair(text, 1, in_flow=True, quote=quote)}, }}"):
        assert [*readings(document)] == [{text: 1}] * 3, document


@settings(max_examples=examples(100, 10_000))
@given(values, st.sampled_from([None, "'", '"']))
def test_a_value_is_read_back_by_every_reader(value: Any, quote: str | None) -> None:
    for document, expected in documents(value, quote):
        assert [*readings(document)] == [expected] * 3, document


@pytest.mark.parametrize("length", [200, 999, 1_001, 5_000])
def test_a_long_key_is_read_back(length: int) -> None:
    key = "k" * length
    for document in (f"a:{block([pair(key, 'x'), pair('b', 1)])}", f"a: {one_line({key: 'x', 'b': 1})}"):
        assert [*readings(document)] == [{"a": {key: "x", "b": 1}}] * 3


def test_lines_are_read_back() -> None:
    assert [*readings(f"a:{block([f'k: {in_lines(chr(10).join(HOSTILE[1:9]))}', 'l: 1'])}")] == [
        {"a": {"k": "\n".join(HOSTILE[1:9]), "l": 1}}
    ] * 3


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Order ID", "Order ID"),
        ("id > 0 and x <> ''", "id > 0 and x <> ''"),
        ("it's", "it's"),
        ("${catalog}.x", "${catalog}.x"),
        ("12:30", '"12:30"'),
        ("yes", '"yes"'),
        ("1e3", '"1e3"'),
        ("2024-01-01", '"2024-01-01"'),
        ("a: 'b'\n🎉", "\"a: 'b'\\n🎉\""),
    ],
)
def test_a_text_has_quotes_only_if_it_needs_them(text: str, written: str) -> None:
    assert one_line(text) == written
