"""Errors for people: one message each on stderr, and the exit code that fits."""

from __future__ import annotations

import logging

from rich.console import Console
from rich.text import Text

from delta_engine.cli.context import ExitCode
from delta_engine.cli.terminal import stderr_console
from delta_engine.deployment.errors import LockHeld
from delta_engine.errors import DeltaEngineError, RefusalGroup, RefusedError
from delta_engine.execute.action_runner import ApplyFailedError, ApplyStoppedError
from delta_engine.report.visible import visible
from delta_engine.telemetry.logs import log, logs_json_lines


def report_error(error: DeltaEngineError) -> ExitCode:
    """Print an error and return its exit code."""
    console = stderr_console()
    match error:
        case RefusalGroup(refusals=refusals):
            for refusal in refusals:
                _print(console, "refused", str(refusal))
            return ExitCode.REFUSED
        case RefusedError():
            _print(console, "refused", str(error))
            return ExitCode.REFUSED
        case ApplyStoppedError():
            _print(console, "stopped", str(error))
            return ExitCode.INTERRUPTED
        case ApplyFailedError():
            _print(console, "failed", str(error))
            return ExitCode.PARTIAL if error.is_partial else ExitCode.FAILED
        case LockHeld():
            _print(console, "locked", str(error))
            return ExitCode.LOCKED
    _print(console, "failed", str(error))
    return ExitCode.FAILED


def report_io_error(error: OSError) -> ExitCode:
    """Print which file cannot be used and why, or that nothing can be printed, and return the exit code."""
    what = f"{error.filename} cannot be used" if error.filename else "input or output failed"
    _print(stderr_console(), "failed", f"{what}: {error.strerror or error}")
    return ExitCode.FAILED


def _print(console: Console, word: str, message: str) -> None:
    if logs_json_lines():
        log(logging.ERROR, word, text=message)
        return
    console.print(Text.assemble((f"{word}: ", "bold red"), visible(message)), soft_wrap=True)
