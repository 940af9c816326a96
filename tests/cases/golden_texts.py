"""Texts that are compared whole with golden files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest


def assert_golden_lines(texts: Sequence[str], path: Path, request: pytest.FixtureRequest) -> None:
    """Compare texts with the lines of a golden file, control characters escaped; `--rewrite-golden` writes it."""
    lines = [re.sub(r"[\x00-\x1f]", lambda match: repr(match[0])[1:-1], text) for text in texts]
    if request.config.getoption("--rewrite-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert lines == path.read_text("utf-8").splitlines()


def assert_golden(text: str, path: Path, request: pytest.FixtureRequest) -> None:
    """Compare a text with a golden file; `--rewrite-golden` writes it."""
    if request.config.getoption("--rewrite-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")
