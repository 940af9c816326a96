"""What a YAML text means: the same to libyaml and the engine as to a reader of YAML 1.2 in pure Python."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_engine.config.yaml_documents import parse_document
from delta_engine.errors import ConfigError
from tests.builders.yaml_by_ruamel import Read, comparable, read
from tests.proofs import examples

ROOT = Path(__file__).parents[3]

SCALARS = (
    *("012", "no", "on", "yes", "0o14", "1_000", "1e3", "1.", ".5e+3", "0x1F", "-0b11", "+12", "1.2.3", "08"),
    *("2026-01-02", "2026-1-2", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05", "2026-01-02T03:04:05+02:00"),
    *("12:30", "190:20:30", "~", "", ".inf", "-.INF", ".nan", "_", "-_", "1__2", "TRUE", "tRue", "NULL"),
    *(
        "1e400",
        "9" * 30,
        "9" * 5000,
        "685.230_15e+03",
        "2001-02-30",
        "0b",
        "0x",
        "0o",
        "1e",
        "'it''s'",
        "-",
        "--- a",
    ),
    *(
        "!!str 5",
        "!!int '5'",
        "!!float 5",
        "!foo 5",
        "! 5",
        "!!python/name:os x",
        '"\\x41\\/\\U0001F600"',
        '"\\q"',
    ),
    *(
        "b #c",
        "b#c",
        "http://x:8/y",
        "@b",
        "`b",
        "%b",
        "?b",
        "-b",
        "- b",
        "*x",
        "*",
        "&x",
        "${x}",
        "{b: ${x}}",
    ),
    *(
        "{b}",
        "[b, c: d]",
        "{b: 1,c: 2}",
        "{'b':1}",
        "{b:1}",
        "{b: 1, b: 2}",
        "b: c",
        "'b",
        "[b",
        "|\n  b\n  c",
        ">-\n  b",
    ),
    *(
        '"x\\\n  y"',
        "b\n  c",
        "b\n c: d",
        "\n\t- b",
        "\n- b\n- c",
        "\n - b\n- c",
        "\x07",
        "\ud800",
        '"\\ud800"',
        '"\\ud83d\\uDE00 \\\\ud83d\\\\ude00"',
        "'\\ud83d\\ude00'",
        "\xa0b",
    ),
)
CHARACTERS = st.characters(exclude_characters="\x85\u2028\u2029", exclude_categories=["Cs"])
"""libyaml ends lines at these too: they count as YAML 1.1 says."""

TEXTS = (
    *(
        "",
        "# x",
        "a",
        "- a\n b",
        "a: 1\n---\nb: 2",
        "a: 1\n...\n",
        "\ufeffa: 1",
        "a: 1\na: 2",
        "1: a\ntrue: b\nnull: c",
    ),
    *(
        "<<: {a: 1}",
        "<<: 1",
        "<<: [1]",
        "x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3",
        "? a\n: b",
        "a : b",
        "a:b",
    ),
    *(
        "x: &x {a: 1}\nz: &z {a: 2, c: 3}\ny:\n  <<: [*x, *z]\n",
        "a: &x b\nc: *x",
        "a: &a [*a]",
        "a: &a {<<: [*a]}",
        "\ta: b",
    ),
)


BASES = tuple(text for text in TEXTS if not text.startswith("\ufeff"))


def corpus() -> Iterator[str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.yml", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split():
        text = (ROOT / name).read_text("utf-8")
        yield from [text] if name.endswith(".yml") else re.findall(r"```ya?ml\n(.*?)```", text, re.DOTALL)


def read_by_engine(text: str, expected: Read) -> Read:
    """Return what the engine reads, at the paths that are expected."""
    try:
        document = parse_document(text, "models.yml")
    except ConfigError:
        return Read(is_refused=True)
    lines = tuple((path, document.location(path).line or 0) for path, _ in expected.lines)
    texts = tuple((path, document.written(path) or "") for path, _ in expected.texts)
    return Read(comparable(document.value), lines, texts)


def assert_same(text: str) -> None:
    expected = read(text)
    assert read_by_engine(text, expected) == expected, text


def test_every_yaml_of_the_repository_is_read_alike() -> None:
    texts = [*corpus()]
    assert len(texts) > 200
    for text in texts:
        assert_same(text)


@pytest.mark.parametrize("text", [*(f"k: {scalar}\nl: 1" for scalar in SCALARS), *TEXTS], ids=repr)
def test_a_text_is_read_alike(text: str) -> None:
    assert_same(text)


@settings(max_examples=examples(100, 5_000))
@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(CHARACTERS),
            st.sampled_from(SCALARS[:40]),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.text(CHARACTERS, max_size=5), inner, max_size=4)
        ),
    ),
    st.booleans(),
)
def test_what_another_tool_writes_is_read_alike(value: Any, is_flow: bool) -> None:
    assert_same(yaml.safe_dump({"k": value}, default_flow_style=is_flow, allow_unicode=True))


@settings(max_examples=examples(100, 5_000))
@given(st.data())
def test_a_broken_file_that_both_take_is_read_alike(data: st.DataObject) -> None:
    text = data.draw(
        st.sampled_from([*BASES, "tables:\n  - {name: a, columns: [{name: id, type: bigint}]}\n"])
    )
    place = data.draw(st.integers(0, len(text)))
    inserted = data.draw(st.sampled_from([*"{}[]:,#|>'\"%@`?-\n\t ", "- ", ": ", "<<: ", " #"]))
    text = text[:place] + inserted + text[place:]
    expected = read(text)
    by_engine = read_by_engine(text, expected)
    assert by_engine == expected or by_engine.is_refused or expected.is_refused, text


@pytest.mark.parametrize("text", ["&a: 1", "x: {&a : 1}"])
def test_an_empty_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="a key is empty"):
        parse_document(text, "models.yml")
