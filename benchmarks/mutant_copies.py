"""The copy of the project that mutants are tried in, and the files beside it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

PROJECT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = Path("src", "delta_engine")

MOST_SECONDS: Final = 120
"""How much of one core the tests of a mutant, and the tests of a file, may take."""

PYTEST: Final = (
    "-q",
    "-p",
    "no:cacheprovider",
    "--hypothesis-profile=mutants",
    "-m",
    "not integration",
)
"""The options of pytest for tests that run in the process of pytest itself."""


class Work:
    """The folder with the copy and the results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        if self.folder.is_relative_to(PROJECT):
            raise SystemExit(f"--work {folder} is inside the project: give a folder outside of it.")
        self.copy = self.folder / "copy"
        self.contexts = self.folder / "contexts.jsonl"
        self.results = self.folder / "results.jsonl"
        self.copy.mkdir(parents=True, exist_ok=True)

    def renew_copy(self) -> None:
        """Make the copy equal to the project, without what git ignores."""
        listed = _output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        names = {name for name in listed.split("\0") if name and (PROJECT / name).is_file()}
        for file in self.copy.rglob("*"):
            is_cache = "__pycache__" in file.parts
            if file.is_file() and not is_cache and file.relative_to(self.copy).as_posix() not in names:
                file.unlink()
        for name in names:
            there, here = PROJECT / name, self.copy / name
            if not here.exists() or here.read_bytes() != there.read_bytes():
                here.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(there, here)

    def run(self, *command: str, seconds: int) -> subprocess.CompletedProcess[str] | None:
        """Run Python in the copy; return None if it needs more seconds of one core."""
        environment = {**os.environ, "PYTHONPATH": f"{self.copy / 'src'}:{self.copy}", "PYTHONHASHSEED": "0"}
        try:
            process = subprocess.run(
                [sys.executable, *command],
                check=False,
                cwd=self.copy,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=10 * seconds,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, seconds)),
            )
        except subprocess.TimeoutExpired:
            return None
        return None if process.returncode < 0 else process


def lines_in(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]


def append_to(file: Path, line: Mapping[str, Any]) -> None:
    with file.open("a") as opened:
        opened.write(json.dumps(line, ensure_ascii=False) + "\n")


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
