"""Laws run without coverage: they repeat what other tests cover hundreds of times, and tracing trebles their time."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the laws, and nothing else, out of what coverage traces."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.no_cover)
