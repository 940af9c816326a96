"""Queries of views in files: read as the bodies of functions are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_engine.config.body_files import file_text
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models.views import View
from delta_engine.sql.view_queries import submitted_query


def revenue(project: Path, **changes: Any) -> View:
    arguments = {"query_file": "views/revenue.sql", **changes}
    return View(
        "dev", "gold", "revenue", declared_at=SourceLocation(str(project / "views.yml"), 7), **arguments
    )


def test_a_query_is_read_from_the_file_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "revenue.sql").write_bytes(b"\xef\xbb\xbf-- all\r\nSELECT 1 AS a;\r\n")
    read = file_text(revenue(tmp_path), tmp_path)
    assert read is not None
    assert read.key == "query"
    assert submitted_query(read.text) == "SELECT 1 AS a"
    assert read.path == tmp_path / "views" / "revenue.sql"


def test_an_inline_query_stays(tmp_path: Path) -> None:
    view = revenue(tmp_path, query_file=None, query="SELECT 1 AS a")
    assert file_text(view, tmp_path) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"query_file": None}, "query is missing"),
        ({"query_file": "missing.sql"}, "query_file 'missing.sql' cannot be read: No such file or directory"),
        ({"query_file": "../up.sql"}, "query_file '../up.sql' is outside the project"),
        ({"query_file": "/etc/passwd"}, "query_file '/etc/passwd' is not a relative path"),
    ],
)
def test_other_files_are_refused_with_the_place_of_the_view(
    tmp_path: Path, changes: Any, reason: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        file_text(revenue(tmp_path, **changes), tmp_path)
    assert refusal.value.reason == reason
    assert refusal.value.location is not None
    assert refusal.value.way_out
