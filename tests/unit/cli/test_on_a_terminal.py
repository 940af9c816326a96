"""On a terminal: questions are asked there, wherever the results go, and nowhere else; colours are shown."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from delta_engine.deployment.locks.file import FileLock
from tests.builders.deployment import HOLDER
from tests.projects.commandline import CommandLine
from tests.projects.plan_files import PlanProject
from tests.projects.processes import DELTA_ENGINE


@pytest.fixture
def project(plan_project: PlanProject) -> PlanProject:
    plan_project.declare(a="first")
    return plan_project


@pytest.mark.parametrize("options", [(), ("--json",), ("--timings",)])
@pytest.mark.parametrize("is_file", [False, True])
def test_a_run_asks_although_its_results_go_into_a_file(
    project: PlanProject, delta_engine: CommandLine, options: tuple[str, ...], is_file: bool
) -> None:
    project.plan()
    command = ("apply", "plan.json", *options) if is_file else ("sync", *options)
    questions = delta_engine.at_a_terminal(yes=False)
    refused = project.run(*command)
    assert refused.code == 130
    assert questions == ["Apply these changes?"]
    assert "dev.silver.a" in refused.stderr  # what is asked about is to be seen
    assert project.platform.statements == []
    if "--json" in options:
        assert refused.stdout == ""

    assert project.run(*command, "--yes").code == 0
    assert len(questions) == 1


def test_who_agrees_gets_the_results(project: PlanProject, delta_engine: CommandLine) -> None:
    questions = delta_engine.at_a_terminal(yes=True)
    done = project.run("sync", "--json")
    assert (done.code, len(questions)) == (0, 1)
    assert json.loads(done.stdout)["counts"]["created"] == 1
    assert project.run("sync").code == 0
    assert len(questions) == 1  # nothing to do, nothing to ask


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("is_file", [False, True])
def test_a_run_needs_prior_consent(project: PlanProject, options: tuple[str, ...], is_file: bool) -> None:
    project.plan()
    command = ("apply", "plan.json", *options) if is_file else ("sync", *options)
    refused = project.run(*command)
    assert refused.code == 3
    assert refused.stderr.endswith(
        "refused: Apply these changes? Without a terminal, the command cannot ask. Nothing was "
        "changed. Run the command with --yes to agree in advance.\n"
    )
    assert "dev.silver.a" in refused.stdout + refused.stderr
    assert project.platform.statements == []
    assert ("dev.silver.a" in refused.stdout) is (options == ())  # as JSON there are run reports alone
    assert not is_locked(project)

    assert project.run(*command, "--yes").code == 0
    assert project.run(*command).code == 0  # nothing to do, nothing to agree to


def test_without_a_terminal_nothing_is_repaired_unasked(project: PlanProject) -> None:
    project.sync()
    for option in ("--revert", "--accept"):
        assert project.run("drift", option).code == 0  # nothing to do, nothing to agree to
    observed = project.platform.states["dev.silver.a"]
    project.platform.states["dev.silver.a"] = replace(observed, table_comment="by hand")
    before = list(project.platform.statements)
    for option, question in (
        ("--revert", "Revert these changes?"),
        ("--accept", "Write these changes into the models?"),
    ):
        refused = project.run("drift", option)
        assert refused.code == 3
        assert f"refused: {question} Without a terminal, the command cannot ask" in refused.stderr
        assert "--yes" in refused.stderr
    assert project.platform.statements == before
    assert not is_locked(project)
    assert project.run("drift", "--revert", "--yes").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("rm", "dev.silver.a"),
        ("mv", "dev.silver.a", "dev.silver.b"),
        ("restore", "1"),
        ("start-over",),
        ("migrate",),
        ("unlock",),
    ],
)
def test_records_change_with_consent_alone(project: PlanProject, command: tuple[str, ...]) -> None:
    project.sync()
    document = project.folder / "state" / "local.state.json"
    if command == ("migrate",):
        old = Path(__file__).parents[1] / "deployment" / "documents" / "v0-first-release.in.json"
        document.write_bytes(old.read_bytes())
    if command == ("start-over",):
        document.write_bytes(b"{")
    before = document.read_bytes()
    lease = FileLock(document.parent, "local").acquire(HOLDER, timeout_seconds=0)
    if command != ("unlock",):
        lease.release()
    refused = project.run("state", *command)
    assert refused.code == 3
    assert (
        "Without a terminal, the command cannot ask. Nothing was changed. Run the command with --yes"
        in refused.stderr
    )
    assert document.read_bytes() == before
    assert project.run("state", *command, "--yes").code == 0
    lease.release()


def is_locked(project: PlanProject) -> bool:
    return FileLock(project.folder / "state", "local").holder() is not None


def read(control: int) -> bytes:
    """Return what a terminal shows next; nothing at its end, which Linux calls an error."""
    try:
        return os.read(control, 1_000)
    except OSError:
        return b""


@contextmanager
def in_a_terminal(
    folder: Path, *command: str, stdout: IO[bytes] | None = None, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a command in a terminal; yield its process, and the terminal's other end."""
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=terminal,
        stdout=stdout or terminal,
        stderr=terminal,
        cwd=folder,
        env={**inherited, "TERM": "xterm", **environment},
    )
    os.close(terminal)
    yield process, control
    os.close(control)


def shown_in_a_terminal(folder: Path, *command: str, **environment: str) -> str:
    with in_a_terminal(folder, *command, stdout=None, **environment) as (process, control):
        shown = b"".join(iter(partial(read, control), b""))
    assert process.wait(60) == 0
    return shown.decode()


LIST = (DELTA_ENGINE, "-e", "local", "state", "list")


def test_colours_only_where_they_are_wanted(project: PlanProject) -> None:
    project.sync()
    assert "\x1b[32mhealthy" in shown_in_a_terminal(project.folder, *LIST)
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in shown_in_a_terminal(project.folder, *LIST, **environment)


def test_an_explanation_is_laid_out(project: PlanProject) -> None:
    command = (DELTA_ENGINE, "explain", "missing-dependency")
    shown = shown_in_a_terminal(project.folder, *command, NO_COLOR="1", COLUMNS="90")
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert max(map(len, text.splitlines())) <= 90
    assert "pip install './delta_engine_uc-0.3.0-py3-none-any.whl'" in re.sub(r"\[\w+\]|\s*\n\s*", "", text)
    assert not re.search(r"[`|…]", text)


def ask_in_a_terminal(project: PlanProject, answer: bytes) -> tuple[int, str, str]:
    """Forget a table with stdout in a file; return the exit code, the file, and what the terminal shows."""
    command = (DELTA_ENGINE, "-e", "local", "state", "rm", "dev.silver.a")
    results = project.folder / "results"
    with (
        results.open("wb") as stdout,
        in_a_terminal(project.folder, *command, stdout=stdout) as (process, control),
    ):
        shown = b""
        while b"[y/N]: " not in shown:
            shown += os.read(control, 1_000)
        os.write(control, answer)
        while piece := read(control):
            shown += piece
        code = process.wait(60)
    return code, results.read_text(), shown.decode()


def test_the_question_stays_out_of_the_results(project: PlanProject) -> None:
    project.sync()
    refused = ask_in_a_terminal(project, b"n\n")
    assert refused[:2] == (130, "- table.dev.silver.a\n")
    assert refused[2].startswith("Forget 1 resource? The tables themselves do not change. [y/N]: ")
    assert refused[2].endswith("\r\nnothing was changed\r\n")
    assert ask_in_a_terminal(project, b"\x04")[:2] == refused[:2]  # Ctrl-D
    assert ask_in_a_terminal(project, b"y\n")[:2] == (0, "- table.dev.silver.a\nforgot 1 resource\n")


SHOWS = """
import time
from delta_engine.actions import CreateTable, TablePlan
from delta_engine.cli.run_view import TerminalView
from delta_engine.cli.terminal import print_note, status
from delta_engine.execute.outcomes import Outcome, OutcomeKind
from delta_engine.models import Column, Table

print("first", flush=True)
with status("starting …"):
    time.sleep(0.3)
    print_note("what is noted meanwhile is broken between its words, and `a command --that stays` whole")
    time.sleep(0.3)
tables = [Table("dev", "silver", name, [Column("a", "int")]) for name in "abc"]
with TerminalView(environment="dev").applying(TablePlan(tuple(map(CreateTable, tables)))) as (_, on_outcome):
    time.sleep(0.3)
    for table, kind in zip(tables, (OutcomeKind.CREATED, OutcomeKind.STOPPED, OutcomeKind.STOPPED)):
        on_outcome(Outcome(name=table.qualified_name, kind=kind))
    time.sleep(0.3)
print("last", flush=True)
"""


def left_on_the_screen(raw: str) -> list[str]:
    """Return the lines that a terminal shows in the end, as far as spinners use one."""
    lines, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", raw):
        if piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece == "\r":
            column = 0
        elif piece.endswith("A"):
            row -= int(piece[2:-1])
        elif piece.endswith("K"):
            lines[row] = ""
        elif not piece.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + piece + lines[row][column + len(piece) :]
            column += len(piece)
    return lines


def test_a_spinner_leaves_nothing_behind_and_messages_break_between_words(tmp_path: Path) -> None:
    raw = shown_in_a_terminal(tmp_path, sys.executable, "-c", SHOWS, COLUMNS="60")
    assert "starting …" in raw
    assert "applying 1/3 tables" in raw
    assert left_on_the_screen(raw) == [
        "first",
        "note: what is noted meanwhile is broken between its words,",
        "  and `a command --that stays` whole",
        "created dev.silver.a (0 statements)",
        "not begun 2 tables",
        "last",
        "",
    ]
