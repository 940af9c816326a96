"""Options and fixtures that all tests share. Nothing here starts Spark."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let golden files be rewritten on purpose."""
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write what is found into the golden files"
    )
