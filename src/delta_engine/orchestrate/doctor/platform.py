"""The runtime or warehouse, and its clock."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.report.doctor_report import Check, Status, Topic

_RUNTIME = re.compile(r"databricks runtime (\d+)\.(\d+)")

_UNKNOWN_RUNTIME: Final = "databricks runtime unknown"

_ONE_BY_ONE: Final = "changes of several columns take a statement each"

_COSTS: Final = (
    ((16, 2), "a table is described with two statements instead of one (16.2)"),
    ((16, 3), f"{_ONE_BY_ONE} (16.3)"),
    ((17, 3), "keys are read from information_schema alone, which may lag (in DESCRIBE … AS JSON: 17.3)"),
)
"""What a runtime before each version costs (docs.databricks.com: "DESCRIBE TABLE", "ALTER TABLE … ALTER COLUMN")."""

_MOST_SKEW_SECONDS: Final = 60.0

CLOCK_QUESTION: Final = "SELECT unix_micros(current_timestamp()) AS micros"


def platform_check(version: str) -> Check:
    """Return the version of a platform, with what an older one costs; every runtime will do.

    Args:
        version: as the backend tells it; serverless, SQL warehouses and Spark have no runtime's version.
    """
    if version == _UNKNOWN_RUNTIME:  # the engine then sends what every runtime knows
        found = f"{version}; {_ONE_BY_ONE}"
        return Check(topic=Topic.PLATFORM, subject="version", status=Status.UNKNOWN, found=found)
    runtime = _RUNTIME.match(version)
    if runtime is None:
        return Check(topic=Topic.PLATFORM, subject="version", status=Status.OK, found=version)
    numbers = (int(runtime[1]), int(runtime[2]))
    costs = [cost for since, cost in _COSTS if numbers < since]
    found = "; ".join((version, *costs))
    return Check(topic=Topic.PLATFORM, subject="version", status=Status.OK, found=found)


def clock_check(runner: SqlRunner, now: Callable[[], float]) -> Check:
    """Return whether the platform's clock and the local one agree: histories and drift are compared by time.

    Args:
        runner: asks the platform.
        now: the local clock, in seconds since 1970.

    Raises:
        StatementError: the platform refused the question.
    """
    before = now()
    (row,) = runner.run(CLOCK_QUESTION)
    after = now()
    skew = int(str(row["micros"])) / 1_000_000 - (before + after) / 2
    error = (after - before) / 2
    found = f"the platform's clock is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}, ± {error:.1f} s"
    if abs(skew) - error > _MOST_SKEW_SECONDS:
        status, way_out = Status.MISSING, "Let this machine set its clock by NTP."
    elif error > _MOST_SKEW_SECONDS:
        status, way_out = Status.UNKNOWN, "Run it again: the answer took too long to tell."
    else:
        status, way_out = Status.OK, ""
    return Check(topic=Topic.CLOCK, subject="clock", status=status, found=found, way_out=way_out)
