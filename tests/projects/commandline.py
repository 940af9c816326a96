"""Runs the command line inside the test's process, as a terminal-less user would, and reads commands as it would."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import typer

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.cli.app import app, main
from delta_engine.orchestrate.backend import Backend, databricks_backend
from delta_engine.telemetry.logs import LOGGER


@dataclass(frozen=True)
class Result:
    code: int
    stdout: str
    stderr: str


class CommandLine:
    """Runs `delta-engine` with arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Result:
        self._monkeypatch.setattr(sys, "argv", ["delta-engine", *arguments])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as stopped, _logging_kept():
            main()
        output = self._capsys.readouterr()
        code = stopped.value.code
        assert isinstance(code, int)
        return Result(code, output.out, output.err)

    def at_a_terminal(self, *, yes: bool) -> list[str]:
        """Answer questions at a terminal; return them as they come."""
        questions: list[str] = []

        def answer(question: str, **_options: object) -> bool:
            questions.append(question)
            return yes

        for stream in (sys.stdin, sys.stderr):
            self._monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        self._monkeypatch.setattr(typer, "confirm", answer)
        return questions

    def reach(self, runner: Callable[[], SqlRunner]) -> None:
        """Let commands reach a Unity Catalog, over the runner that there is when they open it."""

        def opened(
            *_arguments: object,
            decorate: Callable[[SqlRunner], SqlRunner] = lambda runner: runner,
            **_options: object,
        ) -> Backend:
            return databricks_backend(decorate(runner()))

        for module in ("cli.commands", "cli.state_commands", "cli.doctor_commands", "job"):
            self._monkeypatch.setattr(f"delta_engine.{module}.open_backend", opened)


@contextmanager
def _logging_kept() -> Iterator[None]:
    """Leave logging as it was: `--log-json` sets it up for a process."""
    handlers, level, propagate = LOGGER.handlers, LOGGER.level, LOGGER.propagate
    try:
        yield
    finally:
        LOGGER.handlers, LOGGER.propagate = handlers, propagate
        LOGGER.setLevel(level)


def parsed(command: str) -> str:
    """Return the name of a command that somebody wrote down, once its options and arguments were understood."""
    group: Any = typer.main.get_command(app)
    _, *arguments = shlex.split(command, comments=True)
    names: list[str] = []
    while hasattr(group, "commands"):
        context = group.make_context(group.name, arguments)
        name, group, arguments = group.resolve_command(context, [*context._protected_args, *context.args])
        names.append(name)
    group.make_context(group.name, arguments)
    return " ".join(names)
