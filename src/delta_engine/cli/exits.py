"""How a command ends: errors are printed on stderr, and the process exits with the matching code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import typer

from delta_engine.errors import DeltaEngineError, RefusalGroup, RefusedError

USAGE_ERROR: Any = typer.BadParameter.__base__
"""What wrong options raise. Typer carries its own copy of click and exports only this subclass."""


class ExitCode(IntEnum):
    """How a command ended, for scripts."""

    DONE = 0
    FAILED = 1
    PENDING = 2
    REFUSED = 3
    LOCKED = 4
    PARTIAL = 5
    INTERRUPTED = 130


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
        code = report_error(error)
    except BrokenPipeError:  # the reader of a pipe, such as head, has exited
        code = ExitCode.FAILED
    except OSError as error:
        code = report_io_error(error)
    _flush_stdout()
    sys.exit(int(code or 0))


def report_error(error: DeltaEngineError) -> ExitCode:
    """Print an error, one line for each refusal, and return its exit code."""
    from delta_engine.deployment.errors import LockHeld
    from delta_engine.execute.action_runner import ApplyFailedError, ApplyStoppedError

    match error:
        case RefusalGroup(refusals=refusals):
            for refusal in refusals:
                _print("refused", str(refusal))
            return ExitCode.REFUSED
        case RefusedError():
            _print("refused", str(error))
            return ExitCode.REFUSED
        case ApplyStoppedError():
            _print("stopped", str(error))
            return ExitCode.INTERRUPTED
        case ApplyFailedError():
            _print("failed", str(error))
            return ExitCode.PARTIAL if error.is_partial else ExitCode.FAILED
        case LockHeld():
            _print("locked", str(error))
            return ExitCode.LOCKED
    _print("failed", str(error))
    return ExitCode.FAILED


def report_io_error(error: OSError) -> ExitCode:
    """Print which file cannot be used and why, or that nothing can be printed, and return the exit code."""
    what = f"{error.filename} cannot be used" if error.filename else "input or output failed"
    _print("failed", f"{what}: {error.strerror or error}")
    return ExitCode.FAILED


def _print(word: str, message: str) -> None:
    from rich.text import Text

    from delta_engine.cli.terminal import stderr_console
    from delta_engine.telemetry.logs import log, logs_json_lines
    from delta_engine.telemetry.visible import visible

    if logs_json_lines():
        log(logging.ERROR, word, text=message)
        return
    stderr_console().print(Text.assemble((f"{word}: ", "bold red"), visible(message)), soft_wrap=True)


def _show_usage_error(error: Any) -> None:
    """Print what is wrong with the options; one of them is accepted only before the command."""
    error.show()
    if getattr(error, "option_name", None) == "--log-json":
        typer.echo("--log-json stands before the command: delta-engine --log-json … COMMAND", err=True)


def _flush_stdout() -> None:
    """Flush stdout; drop what cannot be printed, so that the interpreter does not fail at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
