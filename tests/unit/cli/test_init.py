"""`init` into folders that are not empty: what is merged, kept, replaced or refused, and what is left after a kill."""

import os
import re
from pathlib import Path

import pytest

from delta_engine.cli.project_files import merged_lines
from delta_engine.cli.terminal import ExitCode
from delta_engine.config import whole_files
from delta_engine.deployment.local_files import only_writer
from tests.builders.worlds import Kill
from tests.projects.commandline import CommandLine

WANTED = b".venv/\n.delta-engine/\ndist/\n"


@pytest.fixture
def project(delta_engine: CommandLine, here: Path) -> Path:
    """Return the folder of a new project."""
    assert delta_engine("init", "retail").code == 0
    return here / "retail"


MORE = "more: delta-engine explain invalid-command\n"


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    ("present", "merged"),
    [
        (b"", WANTED),
        (b"mine", b"mine\n" + WANTED),
        (b"mine\n", b"mine\n" + WANTED),
        (b"a\r\ndist/\r\nb", b"a\r\ndist/\r\nb\r\n.venv/\r\n.delta-engine/\r\n"),
        (b"\xef\xbb\xbf.venv/\n.delta-engine/ \n!dist/\n", None),
        (b"\xff\xfe\x00", b"\xff\xfe\x00\n" + WANTED),
        (WANTED.replace(b"\n", b"\r\n").rstrip(), None),
    ],
    ids=["empty", "no final newline", "final newline", "CRLF", "all there", "binary", "all there, CRLF"],
)
def test_missing_lines_are_added_at_the_end(present: bytes, merged: bytes | None) -> None:
    assert merged_lines(present, WANTED) == merged
    if merged is not None:
        assert merged_lines(merged, WANTED) is None


def test_what_the_documented_commands_write_is_not_in_git(delta_engine: CommandLine, tmp_path: Path) -> None:
    assert delta_engine("init", str(tmp_path / "made")).code == 0
    ignored = (tmp_path / "made" / ".gitignore").read_text().splitlines()
    assert {"/plan.json", "/drift.html", "/site/", ".delta-engine/"} <= {*ignored}


def test_an_existing_gitignore_is_merged_once(delta_engine: CommandLine, here: Path) -> None:
    ignore = here / ".gitignore"
    ignore.write_bytes(b"secret.txt\n.venv/")
    ignore.chmod(0o440)
    made = delta_engine("init")
    assert (made.code, made.stderr) == (0, "")
    assert "added lines to .gitignore\n" in made.stdout
    merged = ignore.read_bytes()
    assert merged.startswith(b"secret.txt\n.venv/\n.delta-engine/\n")
    assert merged.count(b".venv/") == 1
    assert ignore.stat().st_mode & 0o777 == 0o440
    again = delta_engine("init", "--skip-existing")
    assert again.code == 0
    assert "created" not in again.stdout
    assert ignore.read_bytes() == merged


def test_existing_files_are_refused_and_nothing_is_written(delta_engine: CommandLine, here: Path) -> None:
    (here / "README.md").write_text("mine")
    (here / ".gitignore").write_text("mine")
    before = contents(here)
    refused = delta_engine("init")
    assert refused.code == ExitCode.REFUSED
    assert refused.stderr == (
        "refused: these files exist already: README.md. Keep them with --skip-existing, replace them with --force, or "
        "choose an empty folder: delta-engine init DIR.\n"
        "more: delta-engine explain invalid-command\n"
    )
    assert contents(here) == before


def test_files_are_kept_or_replaced_as_asked(delta_engine: CommandLine, project: Path) -> None:
    whole = contents(project)
    (project / "conf" / "dev.yml").write_text("mine")
    (project / "README.md").unlink()
    kept = delta_engine("init", "retail", "--skip-existing")
    assert kept.code == 0
    assert "created retail/README.md\n" in kept.stdout
    assert "kept retail/conf/dev.yml\n" in kept.stdout
    assert contents(project) == whole | {"conf/dev.yml": b"mine"}
    replaced = delta_engine("init", "retail", "--force")
    assert "replaced retail/conf/dev.yml\n" in replaced.stdout
    assert contents(project) == whole
    both = delta_engine("init", "retail", "--force", "--skip-existing")
    assert (both.code, contents(project)) == (ExitCode.REFUSED, whole)


def test_a_link_is_replaced_and_never_written_through(
    delta_engine: CommandLine, project: Path, tmp_path: Path
) -> None:
    whole = contents(project)
    outside = tmp_path / "outside"
    outside.write_text("not yours")
    for name in ("conf/dev.yml", ".gitignore"):
        (project / name).unlink()
        (project / name).symlink_to(outside)
    (project / "README.md").unlink()
    (project / "README.md").symlink_to("nowhere")
    refused = delta_engine("init", "retail")
    assert refused.code == ExitCode.REFUSED
    for name in ("retail/conf/dev.yml", "retail/.gitignore", "retail/README.md"):
        assert name in refused.stderr
    kept = delta_engine("init", "retail", "--skip-existing")
    assert kept.code == 0
    assert (project / "README.md").is_symlink()
    assert delta_engine("init", "retail", "--force").code == 0
    assert outside.read_text() == "not yours"
    assert contents(project) == whole


@pytest.mark.parametrize("option", [[], ["--force"], ["--skip-existing"]])
@pytest.mark.parametrize(
    ("obstacle", "message"),
    [
        ("a folder as a file", "conf/dev.yml is a folder"),
        ("a file as a folder", "conf is no folder"),
        ("a link out", "conf is a link out of the project"),
    ],
)
def test_what_is_in_the_way_is_refused_whole(
    delta_engine: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    obstacle: str,
    message: str,
    option: list[str],
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    conf = Path("conf")
    if obstacle == "a folder as a file":
        (conf / "dev.yml").mkdir(parents=True)
    elif obstacle == "a file as a folder":
        conf.write_text("")
    else:
        conf.symlink_to(tmp_path / "elsewhere")
    refused = delta_engine("init", *option)
    assert refused.code == ExitCode.REFUSED
    assert refused.stderr == f"refused: the project cannot be written: {message}. Move it away first.\n{MORE}"
    assert contents(tmp_path).keys() <= {"here/conf"}


@pytest.mark.parametrize("after", [0, 1, 12])
def test_a_killed_init_is_completed(
    delta_engine: CommandLine, here: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    assert delta_engine("init", "whole").code == 0
    moved = iter(range(100))

    def killed(self: whole_files.StagedFiles, *_: object) -> None:
        """Leave everything as it is: a killed process cleans nothing up."""

    def move(temporary: Path, path: Path) -> None:
        if next(moved) == after:
            raise Kill
        temporary.replace(path)

    with monkeypatch.context() as patched:
        patched.setattr(whole_files, "move_without_replacing", move)
        patched.setattr(whole_files.StagedFiles, "__exit__", killed)
        with pytest.raises(Kill):
            delta_engine("init", "killed")
    killed_files = contents(here / "killed")
    assert len([name for name in killed_files if ".delta-engine-" not in name]) == after
    assert len(killed_files) > after
    assert delta_engine("init", "killed", "--skip-existing").code == 0
    assert contents(here / "killed") == contents(here / "whole")


def test_a_disk_that_is_full_leaves_nothing(
    delta_engine: CommandLine, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = iter(range(100))

    def fsync(_descriptor: int) -> None:
        if next(synced) == 9:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    refused = delta_engine("init", "retail")
    assert refused.code == ExitCode.REFUSED
    assert "the project cannot be written: [Errno 28] No space left on device" in refused.stderr
    assert [*(here / "retail").rglob("*")] == []


def test_two_at_once_are_refused(delta_engine: CommandLine, project: Path) -> None:
    with only_writer(project):
        refused = delta_engine("init", "retail", "--force")
    assert refused.code == ExitCode.REFUSED
    assert "another command is writing to retail" in refused.stderr


def test_each_line_to_edit_is_listed_with_its_place(delta_engine: CommandLine, project: Path) -> None:
    shown = delta_engine("init", "retail", "--skip-existing").stdout
    listed = shown.partition("\nto edit:\n")[2].partition("\n\n")[0].splitlines()
    places = [re.match(r"  (\S+):(\d+) +(.+)", line) for line in listed]
    assert len(places) > 8
    for place in places:
        assert place is not None
        lines = (project / place[1]).read_text("utf-8").splitlines()
        assert lines[int(place[2]) - 1].endswith(f"# EDIT: {place[3]}")
    marked = [name for name, data in contents(project).items() for _ in re.findall(b"# EDIT: ", data)]
    assert sorted(marked) == sorted(place[1] for place in places if place)
    dev = project / "conf" / "dev.yml"
    dev.write_text(re.sub("# EDIT: .*", "", dev.read_text("utf-8")), "utf-8")
    assert "conf/dev.yml:" not in delta_engine("init", "retail", "--skip-existing").stdout


def test_the_readme_names_what_is_there(project: Path) -> None:
    text = (project / "README.md").read_text("utf-8")
    for path in re.findall(r"`([\w./-]+)`", text.partition("## Before")[0]):
        if path not in (".delta-engine/", "dev.yml", "stage.yml", "prod.yml"):
            assert (project / path).exists(), path
