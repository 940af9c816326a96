"""How thorough a run is: `make test` proves in minutes what changes need, `make test-long` what a release needs."""

import os
from typing import Final

IS_LONG: Final = os.environ.get("DELTA_ENGINE_TESTS") == "long"
"""Whether this run includes the tests marked `long`, and draws every example of the laws."""


def examples(short: int, long: int) -> int:
    """Return how many examples hypothesis draws for a law in this run."""
    return long if IS_LONG else short
