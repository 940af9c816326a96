"""Files that are no documents, or would exhaust memory."""

import json
from pathlib import Path

import pytest

from delta_engine.config.model_format import formatted
from delta_engine.config.yaml_documents import parse_document, read_document
from delta_engine.config.yaml_nodes import MAX_DEPTH
from delta_engine.errors import ConfigError


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the file cannot be read"):
        read_document(tmp_path / "nope.yml")
    latin = tmp_path / "latin.yml"
    latin.write_bytes("ä: ö".encode("latin-1"))
    with pytest.raises(ConfigError, match="the file cannot be read"):
        read_document(latin)


def test_documents_that_would_exhaust_memory_are_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.yml"
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    bomb.write_text("\n".join(layers))
    with pytest.raises(ConfigError, match="too large or too deep"):
        read_document(bomb)
    deep = tmp_path / "deep.yml"
    deep.write_text("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2))
    with pytest.raises(ConfigError, match="too large or too deep"):
        read_document(deep)


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yml"
    with huge.open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(ConfigError, match="it is larger than 32 MiB"):
        read_document(huge)


def test_the_line_of_a_wrong_byte_is_named(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yml"
    latin.write_bytes("a: b\nc: ä".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"latin\.yml:2: the file cannot be read: it is not UTF-8"):
        read_document(latin)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\n---\nb: 2\n", 2),
        ("a: 1\n---\n", 2),
        ("---\na: 1\n\n--- # another\nb: 2\n", 4),
        ("---\n---\na: 1\n", 2),
        ("a: 1\n...\n---\nb: 2\n", 3),
        ("a: 1\n...\nb: 2\n", 3),
    ],
)
def test_a_second_document_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_document(text, "m.yml")
    assert str(refused.value) == (
        f"m.yml:{line}: a second YAML document begins here, but a file may contain only one. "
        "Merge it into the first, or move it to another file."
    )


PAIRS = {
    r'"\ud83d\ude00"': "😀",
    r'"a\uD83D\uDE00\ud83d\ude00\n"': "a😀😀\n",
    r'"\\\ud83d\ude00"': "\\😀",
    r'"\\ud83d\\ude00"': r"\ud83d\ude00",
    r"'\ud83d\ude00'": r"\ud83d\ude00",
    r"\uD83d\ude00": r"\uD83d\ude00",
    "|-\n  \\ud83d\\ude00": r"\ud83d\ude00",
    '"x\\ud83d\\ude00\n  y"': "x😀 y",
}
"""Scalars of YAML with surrogate pairs as JSON escapes them, and their values: only double quotes have escapes."""


@pytest.mark.parametrize(("written", "value"), PAIRS.items())
def test_surrogate_pairs_are_the_character_that_they_spell(written: str, value: str) -> None:
    document = parse_document(f'a: {written}\nb: &b "\\ud83d\\ude01"\nc: [*b, *b]\n', "m.yml")
    assert document.value == {"a": value, "b": "😁", "c": ["😁", "😁"]}


def test_surrogate_pairs_are_read_in_keys_and_keep_the_places_of_their_values() -> None:
    document = parse_document('{"a": 1,\n "\\ud83d\\ude00": {"\\ud83d\\ude00": [2]}}', "m.yml")
    assert document.value == {"a": 1, "😀": {"😀": [2]}}
    assert document.location(("😀", "😀", 0)).line == 2


@pytest.mark.parametrize(
    "half",
    [r"\ud83d", r"\ude00", r"\ude00\ud83d", r"\ud83d \ude00", r"\ud83d\ud83d\ude00", r"\U0000d83d\U0000de00"],
)
def test_halves_of_surrogate_pairs_are_refused_with_their_line(half: str) -> None:
    text = f'a: "\\ud83d\\ude00"\nb: "{half}"\n'
    with pytest.raises(ConfigError, match=r"^m\.yml:2: .* are surrogates, which no string may contain"):
        parse_document(text, "m.yml")


@pytest.mark.parametrize("digits", ["e", "ea", "eab"])
@pytest.mark.parametrize("is_escaped", [False, True])
def test_pairs_stand_next_to_characters_that_could_stand_for_them(digits: str, *, is_escaped: bool) -> None:
    others = "".join(chr(int(f"{digit}83d", 16)) + chr(int(f"{digit}e00", 16)) for digit in digits)
    written = json.dumps(others) if is_escaped else f'"{others}"'
    text = f'a: {written}\nb: "\\ud83d\\uDE00"\nc: \\ud83d\\uDE00\n'
    assert parse_document(text, "m.yml").value == {"a": others, "b": "😀", "c": r"\ud83d\uDE00"}


def test_pairs_are_refused_next_to_all_characters_that_could_stand_for_them() -> None:
    others = "".join(map(chr, (0xE83D, 0xA83D, 0xB83D, 0xC83D)))
    with pytest.raises(ConfigError, match=r"^m\.yml:2: .* Write the character itself"):
        parse_document(f'a: "{others}"\nb: "\\ud83d\\ude00"\n', "m.yml")


def test_formatting_keeps_surrogate_pairs_as_they_are_written() -> None:
    table = (
        "tables:\n  - schema: s\n    {}catalog: dev\n    name: t\n    columns: [{{name: id, type: int}}]\n"
    )
    comment = r'comment: "\ud83d\ude00 \ud83d\ude00"'
    result = formatted(table.format(f"{comment}\n    "), "m.yml")
    assert comment in result
    assert result.index("catalog: dev") < result.index("schema: s") < result.index(comment)
