"""The tutorial, from its first command to its last: what it shows is what is printed."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.cases.documentation import DOCS, Block, blocks, console_steps
from tests.projects.commandline import CommandLine

PAGE = DOCS / "tutorial.md"


class Reader:
    """A reader who does what the page says: writes its files, and runs its commands."""

    def __init__(self, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._delta_engine = delta_engine
        self._monkeypatch = monkeypatch

    def follow(self, block: Block) -> Iterator[tuple[str, str, str]]:
        """Write the file of a block, or run its commands; yield each with what it should print and what it printed."""
        if block.title:
            Path(block.title).write_text(block.text)
        if block.language == "console":
            for command, expected in console_steps(block):
                yield command, expected, self._run(*shlex.split(command))

    def _run(self, program: str, *arguments: str) -> str:
        match program:
            case "delta-engine":
                with self._monkeypatch.context() as patched:
                    patched.setattr(sys, "stderr", sys.stdout)  # as on a terminal, in the order of printing
                    return self._delta_engine(*arguments).stdout
            case "cd":
                self._monkeypatch.chdir(*arguments)
            case "cat":
                return Path(*arguments).read_text()
            case "python":
                (script,) = arguments
                runpy.run_path(script)
            case _:
                pytest.fail(f"the test does not know how to run {program}")
        return ""


def as_pattern(expected: str) -> str:
    """Return a pattern for what a page shows: `…` is any text, and on a line of its own any lines."""
    lines = expected.splitlines()
    return "".join(
        r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n" for line in lines
    )


def test_every_command_prints_what_the_page_shows(
    spark: SparkSession, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(delta_engine, monkeypatch)
    count = 0
    for block in blocks(PAGE):
        for command, expected, printed in reader.follow(block):
            assert re.fullmatch(as_pattern(expected), printed), (
                f"{PAGE.name}:{block.line}: {command}\n{printed}"
            )
            count += 1
    assert count > 20


@pytest.mark.parametrize(
    ("expected", "printed"), [("a\n…\nd\n", "a\nb\nc\nd\n"), ("at …: x\n", "at 10:00: x\n")]
)
def test_what_an_ellipsis_stands_for(expected: str, printed: str) -> None:
    assert re.fullmatch(as_pattern(expected), printed)
    assert not re.fullmatch(as_pattern(expected), printed + "e\n")
