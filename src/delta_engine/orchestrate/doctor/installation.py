"""What is installed, which commit it is, and whether local folders can be written."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Final

from delta_engine.config.settings import Settings
from delta_engine.config.state_backend import DatabricksState, S3State
from delta_engine.deployment.local_files import write_atomically
from delta_engine.report.doctor_report import Check, Status, Topic

SCRATCH_NAME: Final = ".delta-engine-doctor"
"""What the names of scratch files begin with; each is deleted right after it was read back."""

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^]]*])?\s*(?P<versions>[^;]*)(?:;.*extra == ['\"](?P<extra>\w+))?"
)
_VERSION = re.compile(r"(>=|==)\s*([\d.]+)")


def extras_of(settings: Settings) -> frozenset[str]:
    """Return the extras of the engine that an environment needs."""
    place = settings.state_backend.place
    is_databricks = settings.backend.is_databricks
    wanted = {
        "databricks": is_databricks or isinstance(place, DatabricksState),
        "s3": isinstance(place, S3State),
        "local": not is_databricks,
    }
    return frozenset(extra for extra, is_wanted in wanted.items() if is_wanted)


def package_checks(
    engine_version: str,
    requirements: Iterable[str],
    extras: Collection[str],
    installed: Callable[[str], str],
) -> Iterator[Check]:
    """Yield whether the packages are there that the engine and an environment need.

    Args:
        engine_version: the engine's own version.
        requirements: what the engine requires, as the metadata of its wheel has it.
        extras: the extras that are needed.
        installed: returns the version of an installed package.
    """
    found = Check(topic=Topic.PACKAGES, subject="delta-engine", status=Status.OK, found=engine_version)
    yield found
    for text in requirements:
        requirement = _REQUIREMENT.match(text)
        if requirement is not None and requirement["extra"] in (None, *extras):
            yield _package_check(requirement["name"], requirement["versions"].strip(), installed)


def _package_check(name: str, versions: str, installed: Callable[[str], str]) -> Check:
    wanted = f"{name}{versions}"
    way_out = f"pip install '{wanted}'; in the bundle: the job's environment, `dependencies`."
    try:
        version = installed(name)
    except PackageNotFoundError:
        return Check(
            topic=Topic.PACKAGES,
            subject=name,
            status=Status.MISSING,
            found="it is not installed",
            way_out=way_out,
        )
    is_right = all(
        _numbers(version) >= _numbers(limit) if sign == ">=" else _numbers(version) == _numbers(limit)
        for sign, limit in _VERSION.findall(versions)
    )
    return Check(
        topic=Topic.PACKAGES,
        subject=name,
        status=Status.OK if is_right else Status.MISSING,
        found=version if is_right else f"{version} is installed, and {versions} is needed",
        way_out="" if is_right else way_out,
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version's numbers, without zeros at the end: 27.0 is 27."""
    numbers = [int(part) for part in re.split(r"[^\d.]", version, maxsplit=1)[0].split(".") if part]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def lineage_check(lineage: str) -> Check:
    """Return whether the commit that is deployed is known.

    Args:
        lineage: as runs record it: `git:<commit>`, or `unknown`.
    """
    is_known = lineage.removeprefix("git:") not in ("", "unknown")
    return Check(
        topic=Topic.LINEAGE,
        subject="project",
        status=Status.OK if is_known else Status.UNKNOWN,
        found=lineage
        if is_known
        else "no commit: the project is in no git repository, or git is not installed",
        way_out=""
        if is_known
        else "Run it from a clone, or deploy the bundle from one: runs then record the commit.",
    )


def folder_checks(topic: Topic, folder: Path) -> Iterator[Check]:
    """Yield whether files of a folder can be replaced atomically; a folder that has to be made is removed again.

    Raises:
        OSError: it cannot be written.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SCRATCH_NAME
    try:
        for content in (b"first", b"second"):
            write_atomically(path, content)
        is_replaced = path.read_bytes() == b"second"
    finally:
        path.unlink(missing_ok=True)
        with suppress(OSError):  # another process has begun to use it
            for made in missing:
                made.rmdir()
    yield Check(
        topic=topic,
        subject=str(folder),
        status=Status.OK if is_replaced else Status.MISSING,
        found="files can be written and replaced" if is_replaced else "a replaced file has its old content",
        way_out=""
        if is_replaced
        else "Use a local disk: this file system does not replace files atomically.",
    )
