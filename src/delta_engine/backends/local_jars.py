"""Fetches jars once, with the Ivy that pyspark ships, into the user's cache.

Resolving them costs seconds in every session. `python -m delta_engine.backends.local_jars` fetches Delta's jars ahead.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from delta_engine.errors import MissingDependencyError

_OWN_GROUPS = ("delta-", "unitycatalog-")
"""Prefixes of the jars that Delta needs and pyspark lacks."""

_SIZE = ": about 91 MiB, usually less than a minute"

_JAR = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[^/]*)\.jar")
_UNITY_CATALOG = "io.unitycatalog"


def session_jars(own: Iterable[Path], settings: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the jars of a session with the user's Spark settings, and messages about replaced jars of Delta.

    The user's jars come first, so that they win. No artifact has two versions.
    """
    theirs = _listed(settings.get("spark.jars", ""))
    names = [jar.rsplit("/", 1)[-1] for jar in theirs]
    paths, replaced = list(theirs), list[str]()
    packages = _listed(settings.get("spark.jars.packages", ""))
    for jar in own:
        name = next((their_name for their_name in names if _is_of_same_artifact(their_name, jar.name)), None)
        name = name or next((package for package in packages if _brings(package, jar.name)), None)
        if name is None:
            paths.append(str(jar))
        elif name != jar.name:
            replaced.append(f"{name} of backend.spark replaces {jar.name}, which Delta brings")
    return paths, replaced


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_of_same_artifact(theirs: str, own: str) -> bool:
    """Whether two files hold one artifact; Ivy's cache prefixes the group: `group_artifact-1.0.jar`."""
    their_jar, own_jar = _JAR.fullmatch(theirs), _JAR.fullmatch(own)
    if their_jar is None or own_jar is None:
        return False
    return their_jar["artifact"] == own_jar["artifact"] or their_jar["artifact"].endswith(
        f"_{own_jar['artifact']}"
    )


def _brings(package: str, own: str) -> bool:
    """Whether a package, `group:artifact:version`, is one of Delta's jars or depends on its own version of it.

    Spark puts packages behind `spark.jars`, so Delta's jar would win over a package's dependency. Unity Catalog's
    connector depends on its own version of the client and the file system.
    """
    group, artifact = (*package.split(":"), "")[:2]
    jar = _JAR.fullmatch(own)
    is_of_family = group == _UNITY_CATALOG and own.startswith("unitycatalog-")
    return is_of_family or (jar is not None and jar["artifact"] == artifact)


def delta_jars() -> list[Path]:
    """Return the jars that a local Spark session needs for Delta; MissingDependencyError if they cannot be fetched."""
    delta, spark = _installed("delta-spark"), spark_version()
    artifact = f"delta-spark_{'.'.join(spark.split('.')[:2])}_2.13"
    jars = cached_jars(
        f"delta-spark-{delta}-spark-{spark}", ["-dependency", "io.delta", artifact, delta], _SIZE
    )
    return [jar for jar in jars if jar.name.startswith(_OWN_GROUPS)]


def cached_jars(name: str, what: Sequence[str], about: str) -> list[Path]:
    """Return jars from a cache folder, fetched with Ivy's arguments if missing; MissingDependencyError on failure.

    `about` tells in the message how much is fetched.
    """
    folder = _cache() / name
    if not folder.is_dir():
        print(f"fetching {name} from Maven Central into {folder.parent}, once{about} …", file=sys.stderr)
        started = time.monotonic()
        _retrieve(what, folder)
        print(f"fetched in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return sorted(folder.glob("*.jar"))


def spark_version() -> str:
    """Return the version of the installed pyspark; MissingDependencyError without one."""
    return _installed("pyspark")


def java() -> str:
    """Return the java program that Spark will start; MissingDependencyError if it is not installed."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if not path and home:
        raise MissingDependencyError(
            f"JAVA_HOME is {home}, and {Path(home, 'bin', 'java')} is not a program",
            way_out="set JAVA_HOME to a JDK 17, or unset it to use the java on PATH",
        )
    if not path:
        raise MissingDependencyError(
            "Spark needs Java and none was found",
            way_out="install a JDK 17 (Debian: openjdk-17-jdk-headless), or set JAVA_HOME",
        )
    return path


def _retrieve(what: Sequence[str], folder: Path) -> None:
    """Fill the folder completely or not at all, even if the process is killed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        jars = Path(scratch, "jars")
        pattern = f"{jars}/[artifact]-[revision](-[classifier]).[ext]"
        command = [java(), "-jar", str(_ivy()), *what, "-confs", "default"]
        command += ["-cache", str(_cache() / "ivy"), "-retrieve", pattern]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode or not any(jars.glob("*.jar")):
            last = "\n".join((finished.stdout + finished.stderr).splitlines()[-15:])
            raise MissingDependencyError(f"jars could not be fetched from Maven Central:\n{last}")
        try:
            jars.rename(folder)
        except OSError:  # another process was faster; its folder is equivalent
            if not folder.is_dir():
                raise


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root, "delta-engine")


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise _not_installed(package) from None


def _ivy() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise _not_installed("pyspark")
    return next(Path(spec.origin).parent.joinpath("jars").glob("ivy-*.jar"))


def _not_installed(package: str) -> MissingDependencyError:
    return MissingDependencyError.of_extra(f"{package} is not installed", "local")


if __name__ == "__main__":
    delta_jars()
