"""The files that a pattern names: those of Python's `glob`, each folder once, and no folder left out silently."""

import glob
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_engine.config.file_patterns import matches_pattern, matching_files
from tests.unit.config.projects import Write, refusal

FILES = ("a.yml", "b.yml", ".hidden.yml", "x/a.yml", "x/y/a.yml", "x/y/b.yaml", "x/.h/a.yml", "z[1]/a.yml")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


PARTS = ("**", "*", "?", "x", "y", "a.yml", "*.yml", "[a-b].y*ml", ".h", ".*", "z[[]1]")


@given(st.lists(st.sampled_from(PARTS)), st.sampled_from(PARTS[1:]))
def test_a_pattern_names_what_glob_finds(tree: Path, folders: list[str], name: str) -> None:
    pattern = "/".join([*folders, name])
    expected = {tree / name for name in glob.glob(pattern, root_dir=tree, recursive=True)}  # noqa: PTH207 - the oracle
    assert matching_files(tree, pattern) == sorted(path for path in expected if path.is_file())
    assert matching_files(Path("/"), f"{tree}/{pattern}") == matching_files(tree, pattern)
    named = [tree / file for file in FILES if matches_pattern(Path(file), pattern)]
    assert sorted(named) == matching_files(tree, pattern)


def test_links_in_circles_end(tmp_path: Path) -> None:
    (tmp_path / "a.yml").touch()
    for name in ("x", "y"):
        (tmp_path / name).symlink_to(tmp_path, target_is_directory=True)
    assert matching_files(tmp_path, "**/*.yml") == [tmp_path / "a.yml"]


def test_a_linked_folder_is_visited(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.yml").touch()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "x").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert matching_files(tmp_path, "models/**/*.yml") == [tmp_path / "models" / "x" / "a.yml"]


def test_a_link_to_nothing_is_refused(write: Write, tmp_path: Path) -> None:
    write("conf/models/m.yml", "tables: []")
    (tmp_path / "conf" / "models" / "lost.yml").symlink_to("nowhere.yml")
    write(
        "conf/dev.yml", "environment: dev\nbackend: {type: oss}\nmodels: {yaml: ['conf/models/**/*.yml']}\n"
    )
    assert refusal(tmp_path) == "conf/models/lost.yml: the file cannot be read: No such file or directory."


@pytest.mark.parametrize("pattern", ["", ".", "/"])
def test_a_pattern_without_a_name_finds_nothing(tmp_path: Path, pattern: str) -> None:
    assert matching_files(tmp_path, pattern) == []


def test_a_folder_without_rights_is_refused(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("conf/models/secret/m.yml", "tables: []")
    listed = Path.iterdir

    def refusing(path: Path) -> Iterator[Path]:
        if path.name == "secret":  # root may read everything
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refusing)
    write(
        "conf/dev.yml", "environment: dev\nbackend: {type: oss}\nmodels: {yaml: ['conf/models/**/*.yml']}\n"
    )
    assert refusal(tmp_path).startswith(
        "conf/dev.yml:3: conf/models/secret cannot be read: Permission denied. Give"
    )
