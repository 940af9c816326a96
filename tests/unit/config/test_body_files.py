"""Bodies of functions in files: plain files inside the project, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from delta_engine.config.body_files import file_text
from delta_engine.errors import ConfigError, SourceLocation
from delta_engine.models.functions import Function
from delta_engine.sql.function_bodies import MAX_BODY_BYTES

BODY = "if iban is None:\n    return None\nreturn iban.replace(' ', '')\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "conf" / "models" / "functions").mkdir(parents=True)
    (folder / "conf" / "models" / "functions" / "clean_iban.py").write_text(BODY, "utf-8")
    return folder


def clean_iban(project: Path, **changes: Any) -> Function:
    arguments = {"body_file": "functions/clean_iban.py", "language": "python", **changes}
    place = SourceLocation(str(project / "conf" / "models" / "functions.yml"), 7)
    return Function("dev", "governance", "clean_iban", "string", declared_at=place, **arguments)


def text_of(function: Function, project: Path) -> str:
    read = file_text(function, project)
    assert read is not None
    return read.text


def refusal_of(project: Path, **changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        file_text(clean_iban(project, **changes), project)
    error = caught.value
    assert error.location is not None
    assert error.way_out or "cannot be read" in error.reason
    return error.reason


def test_a_body_is_read_from_the_file_beside_the_model(project: Path) -> None:
    path = project / "conf" / "models" / "functions" / "clean_iban.py"
    assert file_text(clean_iban(project), project) == (path, "body", BODY)


def test_an_inline_body_stays(project: Path) -> None:
    function = clean_iban(project, body_file=None, body="return iban")
    assert file_text(function, project) is None


def test_a_path_may_lead_up_inside_the_project(project: Path) -> None:
    (project / "shared").mkdir()
    (project / "shared" / "f.sql").write_bytes(b"upper(x)\r\n|| 'a'")
    assert text_of(clean_iban(project, body_file="../../shared/./f.sql"), project) == "upper(x)\n|| 'a'"


def test_a_project_may_be_reached_through_a_link(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    assert text_of(clean_iban(link), link) == BODY


def test_the_folder_may_be_the_current_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert text_of(clean_iban(Path()), Path()) == BODY


def test_a_model_without_a_text_is_refused(project: Path) -> None:
    assert refusal_of(project, body_file=None) == "body is missing"


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("", "is not a relative path"),
        (" ", "is not a relative path"),
        ("a\0b", "is not a relative path"),
        ("/etc/hostname", "is not a relative path"),
        ("../../../outside.sql", "is outside the project"),
        ("../..", "is outside the project"),
        ("functions/../../../../project2/f.sql", "is outside the project"),
        ("functions/missing.sql", "cannot be read: No such file or directory"),
        ("functions", "cannot be read: "),
        ("functions/clean_iban.py/more", "cannot be read: Not a directory"),
    ],
)
def test_other_paths_are_refused(project: Path, file: str, reason: str) -> None:
    (project.parent / "outside.sql").write_text("1", "utf-8")
    assert refusal_of(project, body_file=file).startswith(f"body_file {file!r} {reason}")


def test_links_are_refused_also_to_files_inside_the_project(project: Path) -> None:
    functions = project / "conf" / "models" / "functions"
    (functions / "link.py").symlink_to(functions / "clean_iban.py")
    (functions.parent / "elsewhere").symlink_to(functions)
    assert refusal_of(project, body_file="functions/link.py") == (
        "body_file 'functions/link.py' goes through a symbolic link: conf/models/functions/link.py"
    )
    assert refusal_of(project, body_file="elsewhere/clean_iban.py") == (
        "body_file 'elsewhere/clean_iban.py' goes through a symbolic link: conf/models/elsewhere"
    )
    (functions / "dangling.py").symlink_to(functions / "nowhere")
    assert "body_file 'functions/dangling.py' goes through a symbolic" in refusal_of(
        project, body_file="functions/dangling.py"
    )


def test_a_pipe_is_refused_without_waiting_for_it(project: Path) -> None:
    os.mkfifo(project / "conf" / "models" / "functions" / "pipe")
    assert refusal_of(project, body_file="functions/pipe") == (
        "body_file 'functions/pipe' cannot be read: not a regular file"
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"return '\xff'\n", "the file cannot be read: it is not UTF-8"),
        (b"a" * (MAX_BODY_BYTES + 1), "body_file 'functions/clean_iban.py' is larger than 1 MiB"),
    ],
)
def test_other_contents_are_refused(project: Path, data: bytes, reason: str) -> None:
    (project / "conf" / "models" / "functions" / "clean_iban.py").write_bytes(data)
    assert refusal_of(project) == reason


def test_the_largest_body_is_read(project: Path) -> None:
    body = "return '" + "a" * (MAX_BODY_BYTES - 9) + "'"
    (project / "conf" / "models" / "functions" / "clean_iban.py").write_text(body, "utf-8")
    assert text_of(clean_iban(project), project) == body
