"""How long a process takes that only imports the package, or asks the command line its version; bare: Python alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measurement import Measurement, best_seconds

ROUNDS = 7


def measure() -> Iterator[Measurement]:
    """Yield what both add to the start of Python itself."""
    bare = _process(sys.executable, "-c", "pass")
    importing = _process(sys.executable, "-c", "import delta_engine")
    command_line = _process(str(Path(sys.executable).with_name("delta-engine")), "--version")
    yield Measurement(work="import delta_engine", value=importing, bare=bare)
    yield Measurement(work="start of the command line", value=command_line, bare=bare)


def _process(*command: str) -> float:
    return best_seconds(lambda: subprocess.run(command, check=True, capture_output=True), ROUNDS)
