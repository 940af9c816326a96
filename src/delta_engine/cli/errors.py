"""Errors for people: one message each on stderr, and the exit code that fits."""

from __future__ import annotations

import logging

from rich.console import Console
from rich.text import Text

from delta_engine.cli.context import ExitCode
from delta_engine.deployment.errors import LockHeld
from delta_engine.errors import DeltaEngineError, RefusalGroup, RefusedError
from delta_engine.execute.action_runner import ApplyFailedError, ApplyStoppedError
from delta_engine.report.visible import visible
from delta_engine.telemetry.logs import log, logs_json_lines


def report_error(error: DeltaEngineError) -> ExitCode:
    """Print an error and return its exit code."""
    console = Console(stderr=True, highlight=False)
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


def _print(console: Console, word: str, message: str) -> None:
    if logs_json_lines():
        log(logging.ERROR, word, text=message)
        return
    console.print(Text.assemble((f"{word}: ", "bold red"), visible(message)), soft_wrap=True)
