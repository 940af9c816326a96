"""The texts of files that an import writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.config.model_writer import python_models
from delta_engine.config.yaml_documents import MAX_BYTES
from delta_engine.errors import InvalidCommandError
from delta_engine.models import Column, Table, View
from delta_engine.orchestrate.import_folder import file_texts


def test_two_views_never_share_the_file_of_a_query(tmp_path: Path) -> None:
    views = [View(catalog, "s", "v", f"SELECT {catalog!r} AS a") for catalog in ("dev", "raw")]
    with pytest.raises(
        InvalidCommandError, match=r"s\.v\.sql would have the query of dev\.s\.v, and that of raw\.s\.v"
    ):
        file_texts(views, tmp_path / "models.yml", {}, None)


def test_only_files_of_yaml_have_a_limit(tmp_path: Path) -> None:
    large = Table("dev", "s", "t", [Column("id", "bigint")], "a" * (MAX_BYTES + 1))
    with pytest.raises(
        InvalidCommandError, match=r"models\.yml would be larger than 32 MiB, .* name one schema or table"
    ):
        file_texts([large], tmp_path / "models.yml", {}, None)
    assert len(file_texts([large], tmp_path / "models.py", {}, None, write=python_models)) == 1


def test_the_line_for_editors_counts_as_part_of_a_model_file(tmp_path: Path) -> None:
    path, table = tmp_path / "models.yml", Table("dev", "s", "t", [Column("id", "bigint")], "a")
    short = file_texts([table], path, {}, None)[path]
    largest = replace(table, comment="a" * (1 + MAX_BYTES - len(short)))
    assert len(file_texts([largest], path, {}, None)[path]) == MAX_BYTES
    with pytest.raises(InvalidCommandError, match="larger than 32 MiB"):
        file_texts([largest], path, {}, tmp_path)
