"""Who reviews what a plan changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine.actions import Align, Create, Drop, TablePlan
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.errors import SourceLocation
from delta_engine.models import QualifiedName
from delta_engine.tools.pull_requests.code_owners import owned, owners_of
from tests.builders.models import ORDERS, orders

GITHUB = """
# everything
*            @all
conf/        @data   # below any folder of this name
/conf/models/silver/*.yml  @silver jo@example.com
**/gold/**   @gold
secret\\ things/ @quiet
/conf/free.yml
"""

GITLAB = """
[Tables][2] @data
conf/models/*
*.yml @yaml
^[Reviews]
*.yml @review
"""


def owners_in(repository: Path, codeowners: str, file: str, place: str = "CODEOWNERS") -> tuple[str, ...]:
    for path, text in ((place, codeowners), (file, ""), (".git/HEAD", "")):
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text)
    model = replace(orders(), declared_at=SourceLocation(str(repository / file), 3))
    return owners_of(TablePlan((Create(model),))).get("dev.silver.orders", ())


def test_files_are_named_from_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owners_in(tmp_path, GITHUB, "teams/conf/dev.yml")
    model = replace(orders(), declared_at=SourceLocation("conf/dev.yml", 3))
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path / "notes")
    assert owners_of(TablePlan((Create(model),)), tmp_path / "teams") == {str(ORDERS): ("@data",)}


@pytest.mark.parametrize(
    ("file", "owners"),
    [
        ("readme.md", ("@all",)),
        ("conf/dev.yml", ("@data",)),
        ("teams/conf/dev.yml", ("@data",)),
        ("conf/models/silver/orders.yml", ("@silver", "jo@example.com")),
        ("conf/models/silver/deep/orders.yml", ("@data",)),
        ("conf/gold/a/b.yml", ("@gold",)),
        ("secret things/a.yml", ("@quiet",)),
        ("conf/free.yml", ()),
    ],
)
def test_the_last_line_of_github_counts(tmp_path: Path, file: str, owners: tuple[str, ...]) -> None:
    assert owners_in(tmp_path, GITHUB, file, ".github/CODEOWNERS") == owners


@pytest.mark.parametrize(
    ("file", "owners"),
    [
        ("conf/models/a.yml", ("@yaml", "@review")),
        ("conf/models/a.py", ("@data",)),
        ("a.py", ()),
    ],
)
def test_the_last_line_of_each_section_of_gitlab_counts(
    tmp_path: Path, file: str, owners: tuple[str, ...]
) -> None:
    assert owners_in(tmp_path, GITLAB, file, ".gitlab/CODEOWNERS") == owners


def test_what_has_no_file_in_a_repository_has_no_owners(tmp_path: Path) -> None:
    name = QualifiedName("dev", "silver", "orders")
    outside = replace(orders(), declared_at=SourceLocation(str(tmp_path / "orders.yml")))
    plan = TablePlan((Create(outside), Drop(QualifiedName("dev", "silver", "old"))))
    assert owners_of(plan) == {}
    assert owners_of(TablePlan((Align(name, (SetTableComment("a", "b"),)),))) == {}


def test_a_file_of_other_bytes_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "CODEOWNERS").write_bytes(b"\xff\xfe * [ @a\n[\n*.yml @b\n")
    (tmp_path / "a.yml").write_text("")
    model = replace(orders(), declared_at=SourceLocation(str(tmp_path / "a.yml")))
    assert owners_of(TablePlan((Create(model),))) == {str(ORDERS): ("@b",)}


def test_owners_notify_no_one() -> None:
    owners = {"a.b.c": ("@x",), "a.b.d": ("@x", "@y"), **{f"a.b.{number}": ("@z",) for number in range(4)}}
    assert owned(owners) == "`@x` (`a.b.c`, `a.b.d`); `@y` (`a.b.d`); `@z` (4 objects)"
