"""How a command ends: what it raised is said on stderr, and the process exits with the code that fits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from delta_engine.cli.context import ExitCode
from delta_engine.errors import DeltaEngineError

USAGE_ERROR: Any = typer.BadParameter.__base__
"""What wrong options raise. Typer carries its own copy of click and exports only this subclass."""


def run_and_exit(command: Callable[[], int | None]) -> None:
    """Run a command, report what it raises, and exit with a code of `ExitCode`."""
    from delta_engine.backends.cancellation import terminated_as_interrupted

    try:
        with terminated_as_interrupted():
            code = command()
    except USAGE_ERROR as error:
        _show_usage_error(error)  # not click's own exit code 2, which means pending changes here
        code = ExitCode.REFUSED
    except (typer.Abort, KeyboardInterrupt):
        code = ExitCode.INTERRUPTED
    except DeltaEngineError as error:
        from delta_engine.cli.errors import report_error

        code = report_error(error)
    except BrokenPipeError:  # the reader of a pipe, such as head, has gone
        code = ExitCode.FAILED
    except OSError as error:
        from delta_engine.cli.errors import report_io_error

        code = report_io_error(error)
    _flush_stdout()
    sys.exit(int(code or 0))


def _show_usage_error(error: Any) -> None:
    """Print what is wrong with the options, and where the one belongs that stands before the command alone."""
    error.show()
    if getattr(error, "option_name", None) == "--log-json":
        typer.echo("--log-json stands before the command: delta-engine --log-json … COMMAND", err=True)


def _flush_stdout() -> None:
    """Print what is left; what cannot be printed is dropped, so that the interpreter does not fail over it."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
