"""Runs the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.projects.commandline import Result

DELTA_ENGINE = str(Path(sys.executable).with_name("delta-engine"))


def started(*arguments: str, folder: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    """Start a command in the environment `local`, as a terminal's foreground group: Ctrl-C goes to the JVM too."""
    return subprocess.Popen(
        [DELTA_ENGINE, "-e", "local", *arguments],
        cwd=folder,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished(*arguments: str, **variables: str) -> Result:
    """Run a command in the environment `local` and in the current folder."""
    process = started(*arguments, folder=None, **variables)
    stdout, stderr = process.communicate()
    return Result(process.returncode, stdout, stderr)
