"""Checks the engine's installation: packages, the deployed commit, the platform's version and clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.metadata import PackageNotFoundError
from typing import Final

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.config.settings import Settings
from delta_engine.config.state_backend import DatabricksState, S3State
from delta_engine.report.doctor_report import Check, Topic

_REQUIREMENT: Final = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^]]*])?\s*(?P<versions>[^;]*)(?:;.*extra == ['\"](?P<extra>\w+))?"
)
_VERSION: Final = re.compile(r"(>=|==)\s*([\d.]+)")

_RUNTIME: Final = re.compile(r"databricks runtime (\d+)\.(\d+)")
_UNKNOWN_RUNTIME: Final = "databricks runtime unknown"
_ONE_BY_ONE: Final = "changes of several columns take a statement each"
_COSTS: Final = (
    ((16, 2), "a table is described with two statements instead of one (16.2)"),
    ((16, 3), f"{_ONE_BY_ONE} (16.3)"),
    ((17, 3), "keys are read from information_schema alone, which may lag (in DESCRIBE … AS JSON: 17.3)"),
)
"""The costs of runtimes before each version (docs.databricks.com: "DESCRIBE TABLE", "ALTER TABLE … ALTER COLUMN")."""

_MOST_SKEW_SECONDS: Final = 60.0
CLOCK_QUERY: Final = "SELECT unix_micros(current_timestamp()) AS micros"


def extras_of(settings: Settings) -> frozenset[str]:
    """Return the engine's extras that an environment needs."""
    place = settings.state_backend.place
    is_databricks = settings.backend.is_databricks
    needed = {
        "databricks": is_databricks or isinstance(place, DatabricksState),
        "s3": isinstance(place, S3State),
        "local": not is_databricks,
    }
    return frozenset(extra for extra, is_needed in needed.items() if is_needed)


def package_checks(
    requirements: Iterable[str], extras: Collection[str], installed: Callable[[str], str]
) -> Iterator[Check]:
    """Yield whether required packages are installed; `installed` returns a version or raises PackageNotFoundError."""
    for text in requirements:
        requirement = _REQUIREMENT.match(text)
        if requirement is not None and requirement["extra"] in (None, *extras):
            yield _package_check(requirement["name"], requirement["versions"].strip(), installed)


def _package_check(name: str, versions: str, installed: Callable[[str], str]) -> Check:
    way_out = f"pip install '{name}{versions}'; in the bundle: the job's environment, `dependencies`."
    try:
        version = installed(name)
    except PackageNotFoundError:
        return Check.missing(Topic.PACKAGES, name, "it is not installed", way_out)
    is_right = all(
        _numbers(version) >= _numbers(limit) if sign == ">=" else _numbers(version) == _numbers(limit)
        for sign, limit in _VERSION.findall(versions)
    )
    if is_right:
        return Check.ok(Topic.PACKAGES, name, version)
    return Check.missing(Topic.PACKAGES, name, f"{version} is installed, and {versions} is needed", way_out)


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version's numbers without trailing zeros: 27.0 is 27."""
    numbers = [int(part) for part in re.split(r"[^\d.]", version, maxsplit=1)[0].split(".") if part]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def lineage_check(lineage: str) -> Check:
    """Return whether the deployed commit is known; `lineage` is `git:<commit>` or `unknown`."""
    if lineage.removeprefix("git:") not in ("", "unknown"):
        return Check.ok(Topic.LINEAGE, "project", lineage)
    return Check.unknown(
        Topic.LINEAGE,
        "project",
        "no commit: the project is in no git repository, or git is not installed",
        "Run it from a clone, or deploy the bundle from one: runs then record the commit.",
    )


def platform_check(version: str) -> Check:
    """Return the platform's version with the costs of an older one. Only runtimes have one; none is too old."""
    if version == _UNKNOWN_RUNTIME:  # the engine then sends what every runtime accepts
        return Check.unknown(Topic.PLATFORM, "version", f"{version}; {_ONE_BY_ONE}")
    runtime = _RUNTIME.match(version)
    costs = [
        cost for since, cost in _COSTS if runtime is not None and (int(runtime[1]), int(runtime[2])) < since
    ]
    return Check.ok(Topic.PLATFORM, "version", "; ".join((version, *costs)))


def clock_check(runner: SqlRunner, now: Callable[[], float]) -> Check:
    """Return whether the platform and `now` (seconds since 1970) agree: histories and drift are compared by time."""
    before = now()
    (row,) = runner.run(CLOCK_QUERY)
    after = now()
    skew = int(str(row["micros"])) / 1_000_000 - (before + after) / 2
    error = (after - before) / 2
    found = f"the platform's clock is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}, ± {error:.1f} s"
    if abs(skew) - error > _MOST_SKEW_SECONDS:
        return Check.missing(Topic.CLOCK, "clock", found, "Let this machine set its clock by NTP.")
    if error > _MOST_SKEW_SECONDS:
        return Check.unknown(Topic.CLOCK, "clock", found, "Run it again: the answer took too long.")
    return Check.ok(Topic.CLOCK, "clock", found)
