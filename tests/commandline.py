"""Runs the command line inside the test's process, as a terminal-less user would."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from delta_engine.cli.app import main


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str


class CommandLine:
    """Runs `delta-engine` with arguments.

    Args:
        monkeypatch: sets the arguments.
        capsys: catches the output.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Result:
        """Run one command and return its exit code and output."""
        self._monkeypatch.setattr(sys, "argv", ["delta-engine", *arguments])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        output = self._capsys.readouterr()
        code = stopped.value.code
        assert isinstance(code, int)
        return Result(code, output.out, output.err)
