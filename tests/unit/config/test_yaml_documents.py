"""Files that are no documents, or would exhaust memory."""

from pathlib import Path

import pytest

from delta_engine.config.yaml_documents import read_document
from delta_engine.config.yaml_nodes import MAX_DEPTH
from delta_engine.errors import ConfigError


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it cannot be read"):
        read_document(tmp_path / "nope.yml")
    latin = tmp_path / "latin.yml"
    latin.write_bytes("ä: ö".encode("latin-1"))
    with pytest.raises(ConfigError, match="it cannot be read"):
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
    with pytest.raises(ConfigError, match=r"latin\.yml:2: it cannot be read: it is not UTF-8"):
        read_document(latin)
