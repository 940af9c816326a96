"""Checks of what lies outside the catalogs: packages, the deployed commit, the platform, and the stores.

A store must honour conditional writes, or two runs could overwrite each other's documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Final
from uuid import uuid4

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.config.settings import Settings
from delta_engine.config.state_backend import DatabricksState, S3State
from delta_engine.deployment.deployment import Deployment
from delta_engine.deployment.errors import ConflictError, StoreError
from delta_engine.deployment.local_files import write_atomically
from delta_engine.deployment.stores.s3 import S3Folder
from delta_engine.deployment.stores.volume_files import VolumeFiles
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

SCRATCH_NAME: Final = ".delta-engine-doctor"
"""The name prefix of scratch files; each is deleted after it was read back."""

_CONTENT: Final = b"delta-engine doctor"
_CONDITIONS: Final = "runs could overwrite each other's files: the store cannot hold a deployment state"


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


def folder_check(topic: Topic, folder: Path) -> Check:
    """Return whether files of a folder can be replaced atomically; remove folders that had to be created."""
    created = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SCRATCH_NAME
    try:
        for content in (b"first", b"second"):
            write_atomically(path, content)
        is_replaced = path.read_bytes() == b"second"
    finally:
        path.unlink(missing_ok=True)
        with suppress(OSError):  # another process has begun to use it
            for one in created:
                one.rmdir()
    if is_replaced:
        return Check.ok(topic, str(folder), "files can be written and replaced")
    way_out = "Use a local disk: this file system does not replace files atomically."
    return Check.missing(topic, str(folder), "a replaced file has its old content", way_out)


def volume_check(files: VolumeFiles, volume: str) -> Check:
    """Return whether a volume can write, read, protect and delete a scratch file; may raise StoreError."""
    path = f"{volume}/{SCRATCH_NAME}-{uuid4().hex}"
    try:
        with suppress(ConflictError):  # a hidden retry of this very upload
            files.upload(path, _CONTENT, overwrite=False)
        fault = _volume_fault(files, path)
    except StoreError:
        with suppress(StoreError):
            files.delete(path)
        raise
    files.delete(path)
    if not fault:
        found = "a scratch file was written, read back, not overwritten, and deleted"
        return Check.ok(Topic.STATE, volume, found)
    way_out = "Use another volume, and report it: Unity Catalog's volumes refuse to overwrite."
    return Check.missing(Topic.STATE, volume, fault, way_out)


def _volume_fault(files: VolumeFiles, path: str) -> str:
    if files.read(path) != _CONTENT:
        return "a file that was written has another content when it is read back"
    try:
        files.upload(path, b"overwritten", overwrite=False)
    except ConflictError:
        return ""
    return f"a file was overwritten that must not be: {_CONDITIONS}"


def bucket_check(folder: S3Folder) -> Check:
    """Return whether a bucket honours conditional writes, using scratch objects; may raise StoreError."""
    ignored = folder.probe.ignored_condition()
    if not ignored:
        return Check.ok(Topic.STATE, folder.location(""), "conditional writes are honoured")
    found = f"the endpoint ignores {ignored}: {_CONDITIONS}"
    return Check.missing(Topic.STATE, folder.location(""), found, "Use another endpoint.")


def document_check(deployment: Deployment) -> Check:
    """Return whether the deployment state and its journals are readable; raises DeltaEngineError if they are not."""
    state = deployment.peek_replayed()
    found = f"serial {state.serial}" if state else "there is none yet; the first sync creates it"
    return Check.ok(Topic.STATE, deployment.repository.location, found)


def lock_check(deployment: Deployment) -> Check:
    """Return whether the lock is readable, without taking it; raises DeltaEngineError if it is not."""
    holder = deployment.lock.holder()
    return Check.ok(Topic.LOCK, deployment.lock.location, f"held by {holder}" if holder else "free")
