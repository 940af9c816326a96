"""The command `fmt`: which files it formats, what it prints and writes, and its exit codes."""

import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects.commandline import CommandLine, Result

FORMATTED = """\
tables:
  - catalog: ${catalog}
    schema: s
    name: t   # the table
    columns: [{name: id, type: int}]
"""
UNORDERED = """\
tables:
  - schema: s
    catalog: ${catalog}
    name: t   # the table
    columns: [{type: int, name: id}]
"""
DIFF = """\
--- a/m.yml
+++ b/m.yml
@@ -1,5 +1,5 @@
 tables:
-  - schema: s
-    catalog: ${catalog}
+  - catalog: ${catalog}
+    schema: s
     name: t   # the table
-    columns: [{type: int, name: id}]
+    columns: [{name: id, type: int}]
"""


@pytest.fixture
def folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DELTA_ENGINE_ENV", raising=False)
    return here


def make(path: Path, text: str = UNORDERED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def make_project(folder: Path) -> None:
    config = "environment: {}\nbackend: {{type: oss}}\nmodels: {{yaml: [{}]}}\n"
    make(folder / "conf" / "dev.yml", config.format("dev", "conf/models/*.yml"))
    make(folder / "conf" / "prod.yml", config.format("prod", "conf/models/*.yml, more/*.yml"))


def texts(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_bytes().decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_named_files_are_formatted(delta_engine: CommandLine, folder: Path) -> None:
    make(folder / "m.yml")
    make(folder / "n.yml", FORMATTED)
    done = delta_engine("fmt", "m.yml", "n.yml")
    assert done == Result(0, "formatted m.yml\n1 of 2 model files formatted\n", "")
    assert texts(folder) == {"m.yml": FORMATTED, "n.yml": FORMATTED}
    assert delta_engine("fmt", "m.yml").stdout == "0 of 1 model file formatted\n"


def test_a_check_writes_nothing_and_tells_by_its_exit_code(delta_engine: CommandLine, folder: Path) -> None:
    make(folder / "m.yml")
    done = delta_engine("fmt", "--check", "m.yml")
    assert done == Result(2, "would change m.yml\n1 of 1 model file would change\n", "")
    assert texts(folder) == {"m.yml": UNORDERED}
    make(folder / "m.yml", FORMATTED)
    assert delta_engine("fmt", "--check", "m.yml") == Result(0, "0 of 1 model file would change\n", "")


def test_a_diff_writes_nothing_and_applies(delta_engine: CommandLine, folder: Path) -> None:
    make(folder / "m.yml")
    assert delta_engine("fmt", "--diff", "m.yml") == Result(0, DIFF, "1 of 1 model file would change\n")
    assert delta_engine("fmt", "--diff", "--check", "m.yml").code == 2
    assert texts(folder) == {"m.yml": UNORDERED}
    for text in (UNORDERED, UNORDERED.replace("\n", "\r\n"), UNORDERED.removesuffix("\n")):
        make(folder / "m.yml", text)
        diff = delta_engine("fmt", "--diff", "m.yml").stdout
        subprocess.run(["git", "apply", "-"], input=diff.encode(), check=True, cwd=folder)
        assert delta_engine("fmt", "--check", "m.yml").code == 0


@pytest.mark.parametrize("options", [(), ("--check",), ("--diff",)])
def test_refused_files_do_not_stop_the_others(
    delta_engine: CommandLine, folder: Path, options: tuple[str, ...]
) -> None:
    make(folder / "a.yml", "tables:\n  - {name: [}\n")
    make(folder / "b.yml")
    make(folder / "c.yml", "environment: dev\n")
    done = delta_engine("fmt", *options, "a.yml", "b.yml", "c.yml", "missing.yml")
    assert done.code == 3
    assert "b.yml" in done.stdout
    for refused in (
        "a.yml:2: invalid YAML: ",
        "c.yml:1: unknown key 'environment': a model file contains lists of models: schemas, ",
        "missing.yml: the file cannot be read: No such file or directory.",
    ):
        assert refused in done.stderr
    assert texts(folder)["b.yml"] == (UNORDERED if options else FORMATTED)


def test_folders_stand_for_their_files(delta_engine: CommandLine, folder: Path) -> None:
    for name in ("a.yml", "in/b.yaml", "in/c.txt", "in/.hidden.yml"):
        make(folder / "models" / name)
    done = delta_engine("fmt", "models")
    assert done.stdout == (
        "formatted models/a.yml\nformatted models/in/b.yaml\n2 of 2 model files formatted\n"
    )


def test_without_files_the_projects_models_are_formatted(delta_engine: CommandLine, folder: Path) -> None:
    make_project(folder)
    for name in ("conf/models/a.yml", "more/b.yml", "other.yml"):
        make(folder / name)
    done = delta_engine("fmt", "--check", "-e", "dev")
    assert done.stdout == "would change conf/models/a.yml\n1 of 1 model file would change\n"
    done = delta_engine("fmt")
    assert done.stdout == (
        "formatted conf/models/a.yml\nformatted more/b.yml\n2 of 2 model files formatted\n"
    )
    assert texts(folder)["other.yml"] == UNORDERED


def test_without_files_and_without_a_project_there_is_a_way_out(
    delta_engine: CommandLine, folder: Path
) -> None:
    done = delta_engine("fmt")
    assert (done.code, done.stdout) == (3, "")
    assert (
        "conf contains no configuration. Run the command in the project's folder, or name the folder"
        in done.stderr
    )
    make(folder / "conf" / "dev.yml", "environment: dev\nbackend: {type: oss}\n")
    done = delta_engine("fmt")
    assert (done.code, done.stdout) == (3, "")


def test_many_projects(delta_engine: CommandLine, folder: Path) -> None:
    for team in ("a", "b"):
        make_project(folder / "teams" / team)
        make(folder / "teams" / team / "conf" / "models" / "m.yml")
    done = delta_engine("fmt", "-p", "teams/*", "-e", "dev")
    assert done.stdout.splitlines() == [
        "formatted teams/a/conf/models/m.yml",
        "formatted teams/b/conf/models/m.yml",
        "2 of 2 model files formatted",
    ]


def from_stdin(
    delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch, text: str, *options: str
) -> Result:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return delta_engine("fmt", "-", *options)


def test_a_dash_formats_stdin_to_stdout(
    delta_engine: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert from_stdin(delta_engine, monkeypatch, UNORDERED) == Result(0, FORMATTED, "")
    assert from_stdin(delta_engine, monkeypatch, FORMATTED) == Result(0, FORMATTED, "")
    done = from_stdin(delta_engine, monkeypatch, UNORDERED, "--check")
    assert done == Result(2, "would change <stdin>\n1 of 1 model file would change\n", "")
    done = from_stdin(delta_engine, monkeypatch, UNORDERED, "--diff")
    assert done.stdout == DIFF.replace("m.yml", "<stdin>")
    done = from_stdin(delta_engine, monkeypatch, "tables: [")
    assert (done.code, done.stdout) == (3, "")
    assert "<stdin>:2: invalid YAML: did not find expected" in done.stderr
    done = delta_engine("fmt", "-", "m.yml")
    assert done.code == 3
    assert "- means stdin and cannot be combined with files. Remove the files, or remove -" in done.stderr


def test_stdin_keeps_its_bytes(folder: Path) -> None:
    text = f"\ufeff{UNORDERED}".replace("\n", "\r\n").encode()
    command = [sys.executable, "-m", "delta_engine", "fmt", "-"]
    done = subprocess.run(command, input=text, capture_output=True, check=True)
    assert done.stdout == f"\ufeff{FORMATTED}".replace("\n", "\r\n").encode()


def test_modes_and_links_stay(delta_engine: CommandLine, folder: Path) -> None:
    real = make(folder / "real.yml")
    real.chmod(0o640)
    link = folder / "link.yml"
    link.symlink_to("real.yml")
    assert delta_engine("fmt", "link.yml").code == 0
    assert link.is_symlink()
    assert real.read_text() == FORMATTED
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(path.name for path in folder.iterdir()) == ["link.yml", "real.yml"]


def test_formatted_files_are_not_written(delta_engine: CommandLine, folder: Path) -> None:
    path = make(folder / "m.yml", FORMATTED)
    os.utime(path, (1, 1))
    assert delta_engine("fmt", "m.yml").code == 0
    assert path.stat().st_mtime == 1


def test_a_file_that_cannot_be_written_stays(
    delta_engine: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(folder / "m.yml")

    def full(_path: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    done = delta_engine("fmt", "m.yml")
    assert done.code == 3
    assert "m.yml: it cannot be written: No space left on device." in done.stderr
    assert texts(folder) == {"m.yml": UNORDERED}


def test_invisible_characters_are_spelled_out_in_names(delta_engine: CommandLine, folder: Path) -> None:
    make(folder / "a\x1b.yml")
    assert delta_engine("fmt", "--check", "a\x1b.yml").stdout.startswith("would change a\\u001b.yml\n")


def test_it_needs_no_spark(folder: Path) -> None:
    make(folder / "m.yml")
    code = (
        "import sys; from delta_engine.cli.app import app; app(['fmt', 'm.yml'], standalone_mode=False); "
        "assert not {'pyspark', 'deltalake', 'databricks', 'sqlglot'} & sys.modules.keys(), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (folder / "m.yml").read_text() == FORMATTED
