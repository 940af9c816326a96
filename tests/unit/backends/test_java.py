"""A JAVA_HOME without Java is named as the reason, before Spark is started and by the setup."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from delta_engine.backends.local_jars import java
from delta_engine.backends.spark_sessions import utf8_file_names
from delta_engine.errors import MissingDependencyError
from tests.projects.commandline import CommandLine

SETUP = Path(__file__).parents[3] / "scripts" / "setup.sh"


def test_a_wrong_java_home(project: Path, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(project / "jdk"))
    assert delta_engine("-e", "local", "plan").code == 0  # runs no statement
    result = delta_engine("-e", "local", "sync", "--yes")
    assert result.code == 1
    assert result.stderr == (
        f"failed: JAVA_HOME is {project / 'jdk'}, and {project / 'jdk' / 'bin' / 'java'} is not a program: "
        "set JAVA_HOME to a JDK 17, or unset it to use the java on PATH\n"
        "more: delta-engine explain missing-dependency\n"
    )
    state = project / ".delta-engine" / "state"
    assert not any((state / "local.journal").glob("*"))  # nothing began
    assert not (state / "local.state.json").exists()


def test_without_any_java_the_way_to_one_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="none was found: install a JDK 17"):
        java()


def test_the_java_of_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java() == str(program)


@pytest.mark.parametrize(
    ("codeset", "python", "given"),
    [
        ("ANSI_X3.4-1968", "utf-8", "C.UTF-8"),
        ("UTF-8", "utf-8", "de_DE"),
        ("utf-8", "utf-8", "de_DE"),
        ("ISO-8859-1", "iso8859-1", "de_DE"),
    ],
)
def test_java_names_files_as_python_does(
    monkeypatch: pytest.MonkeyPatch, codeset: str, python: str, given: str
) -> None:
    monkeypatch.setattr("locale.nl_langinfo", lambda _item: codeset)
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: python)
    monkeypatch.setenv("LC_ALL", "de_DE")
    with utf8_file_names():
        assert os.environ["LC_ALL"] == given
    assert os.environ["LC_ALL"] == "de_DE"


def test_the_locale_of_java_is_not_that_of_later_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.nl_langinfo", lambda _item: "ANSI_X3.4-1968")
    monkeypatch.delenv("LC_ALL", raising=False)
    with pytest.raises(OSError, match="no Java"), utf8_file_names():
        raise OSError("no Java")
    assert "LC_ALL" not in os.environ


def test_the_setup_names_a_java_home_without_java(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(SETUP, tmp_path / "scripts")
    done = subprocess.run(
        ["sh", script],
        env={**os.environ, "JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("setup: JAVA_HOME is /nowhere, and /nowhere/bin/java is not a program: ")
