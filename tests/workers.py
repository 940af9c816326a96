"""Which tests keep to one worker, where several run at the same time: those that share what is started once.

xdist's own way, `--dist loadgroup`, groups nothing under pytest 9.2 (pytest-xdist issue 1386).
"""

from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("browser", "integration", "servers")
"""The folders whose tests share a Spark session, servers or a browser."""


class SharedStarts(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Hands out tests one by one, and those of such a folder as a whole, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.split("/")[1]
        return folder if folder in TOGETHER else nodeid
