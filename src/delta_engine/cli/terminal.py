"""What all commands print on a terminal: progress, notes and questions."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO, cast

import typer
from rich.console import Console
from rich.text import Text

from delta_engine.errors import RefusedError
from delta_engine.telemetry.logs import log, logs_json_lines
from delta_engine.telemetry.visible import visible


def stderr_console(*, width: int | None = None) -> Console:
    """Return a console for stderr. A closed stderr ends no run."""
    return Console(file=cast("TextIO", _Stderr()), highlight=False, width=width)


class _Stderr:
    """stderr, as rich uses it. Output to a closed pipe (`2>&1 | head`) or a full disk is lost."""

    def write(self, text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(sys.stderr, name)


@contextmanager
def status(message: str) -> Iterator[None]:
    """Show a message on a terminal while something runs."""
    console = stderr_console()
    if not console.is_terminal or logs_json_lines():
        yield
        return
    with console.status(message):
        yield


def say(text: str, *, err: bool = False) -> None:
    """Print a line, with invisible characters spelled out."""
    typer.echo(visible(text), err=err)


def print_note(note: str, console: Console | None = None) -> None:
    """Print a note on stderr, through the console of a live display if there is one."""
    if logs_json_lines():
        log(logging.WARNING, "note", text=note)
        return
    console = console or stderr_console()
    console.print(Text.assemble(("note: ", "bold yellow"), visible(note)), soft_wrap=True)


def asks(*, yes: bool) -> bool:
    """Whether `confirm` asks: on a terminal, wherever stdout goes, unless `--yes` was given."""
    return not yes and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, *, yes: bool) -> None:
    """Ask before anything is changed.

    Raises:
        RefusedError: there is no terminal, and `--yes` was not given.
        typer.Abort: the answer was no, or none (Ctrl-C, Ctrl-D).
    """
    if yes:
        return
    if not asks(yes=yes):
        raise RefusedError(
            f"{question} There is no terminal to ask on, and nothing was changed",
            way_out="Run the command with --yes to agree beforehand.",
        )
    if not _agreed(question):
        say("nothing was changed", err=True)
        raise typer.Abort


def _agreed(question: str) -> bool:
    try:
        with redirect_stdout(sys.stderr):  # input() writes to it
            return typer.confirm(visible(question), err=True)
    except typer.Abort:
        say("", err=True)  # the cursor stands behind the question still
        return False
