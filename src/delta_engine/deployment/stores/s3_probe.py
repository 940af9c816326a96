"""Detects whether an S3 endpoint honours conditional writes, alone and in a race.

garage, s3rver and s3s-fs accept the headers and ignore them, or check first and write later: two runs would then
overwrite each other without an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

PROBE_VERSION: Final = 1
"""The version of the probe; endpoints are probed again after it is raised because the probe detects more."""

_RACERS: Final = 8
_ROUNDS: Final = 3

Write = Callable[[str, bytes, "str | None"], bool]
"""Writes a name's bytes if the ETag is the expected one (None: no object); returns whether it did."""

Read = Callable[[str], "tuple[bytes, str] | None"]
"""Returns a name's bytes and ETag."""


def find_ignored_condition(scratch: str, write: Write, read: Read) -> str | None:
    """Return the header that the endpoint ignores, None if it honours both; `scratch` prefixes all written objects.

    After a lost answer, `write` may report its own write as refused, so only a read afterwards counts.
    """
    name = f"{scratch}-alone"
    write(name, b"first", None)
    if write(name, b"created again", None) or not _holds(name, b"first", read):
        return "If-None-Match"
    _, etag = read(name) or (b"", "")
    write(name, b"second", etag)
    if write(name, b"stale", etag) or not _holds(name, b"second", read):
        return "If-Match"
    for number in range(_ROUNDS):
        name = f"{scratch}-race-{number}"
        if not _has_one_winner(name, None, write, read):
            return "If-None-Match of several writers at once"
        _, etag = read(name) or (b"", "")
        if not _has_one_winner(name, etag, write, read):
            return "If-Match of several writers at once"
    return None


def _holds(name: str, data: bytes, read: Read) -> bool:
    found = read(name)
    return found is not None and found[0] == data


def _has_one_winner(name: str, expected: str | None, write: Write, read: Read) -> bool:
    start = threading.Barrier(_RACERS)

    def race(number: int) -> bytes | None:
        start.wait()
        data = f"{expected} {number}".encode()
        return data if write(name, data, expected) else None

    with ThreadPoolExecutor(_RACERS) as threads:
        winners = [data for data in threads.map(race, range(_RACERS)) if data is not None]
    return len(winners) <= 1 and all(_holds(name, data, read) for data in winners)
