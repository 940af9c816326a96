"""`docs` killed with -9 while it writes: the place has a whole site, and the next run succeeds and cleans up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.projects.commandline import CommandLine

TABLES = 120
PATIENCE_SECONDS = 60
COMMAND = ["-e", "local", "docs", "--out", "site"]

Site = dict[str, bytes]

DYING = dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from delta_engine.cli.app import main

    left, rename = int(sys.argv.pop(1)), Path.replace

    def dying(path, target):
        global left
        renamed = rename(path, target)
        left -= ".site." in f"{path.name} {target.name}"
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return renamed

    Path.replace = dying
    main()
    """
)
"""A command line that kills itself after so many renames of the site's folders."""


def declare(project: Path, comment: str) -> None:
    """Declare tables whose pages all have the comment."""
    tables = (
        f"  - {{catalog: dev, schema: silver, name: t{number}, comment: {comment}, "
        "columns: [{name: id, type: int}]}\n"
        for number in range(TABLES)
    )
    (project / "conf" / "models" / "orders.yml").write_text(f"tables:\n{''.join(tables)}")


def site_in(folder: Path) -> Site:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def sites(project: Path, delta_engine: CommandLine) -> tuple[Site, Site]:
    """Return the site that is in its place, and the one that the next run writes."""
    both = []
    for comment, folder in (("first", "site"), ("second", "elsewhere/site")):
        declare(project, comment)
        assert delta_engine(*COMMAND[:-1], folder).code == 0
        both.append(site_in(project / folder))
    assert both[0].keys() == both[1].keys()
    return both[0], both[1]


def killed_when(is_reached: Callable[[], bool]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "delta_engine", *COMMAND],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while not is_reached():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.0005)
    finally:
        process.kill()
        process.wait()


def files_in(folder: Path) -> int:
    return sum(1 for path in folder.rglob("*.html"))


def assert_whole(project: Path, old: Site, new: Site) -> None:
    """Check that the place has a whole site, or that the old one waits beside it for the next run."""
    place = project / "site"
    site = site_in(place if place.exists() else project / ".site.old.tmp")
    assert site in (old, new)


def assert_recovers(project: Path, new: Site, delta_engine: CommandLine) -> None:
    assert delta_engine(*COMMAND).code == 0
    assert site_in(project / "site") == new
    left = sorted(path.name for path in project.iterdir())
    assert [name for name in left if name not in ("conf", "elsewhere", "site", ".delta-engine")] == []


@pytest.mark.parametrize("files", [1, TABLES // 2])
def test_killed_while_it_writes_pages(
    project: Path, sites: tuple[Site, Site], delta_engine: CommandLine, files: int
) -> None:
    killed_when(lambda: files_in(project / ".site.new.tmp") >= files)
    assert_whole(project, *sites)
    assert_recovers(project, sites[1], delta_engine)


@pytest.mark.parametrize("renames", [1, 2])
def test_killed_while_it_swaps_the_folders(
    project: Path, sites: tuple[Site, Site], delta_engine: CommandLine, renames: int
) -> None:
    command = [sys.executable, "-c", DYING, str(renames), *COMMAND]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert_whole(project, *sites)
    assert (project / "site").exists() == (renames == 2)
    assert_recovers(project, sites[1], delta_engine)


def test_a_killed_first_run_leaves_no_part_of_a_site(project: Path, delta_engine: CommandLine) -> None:
    declare(project, "first")
    killed_when(lambda: files_in(project / ".site.new.tmp") >= 1)
    assert not (project / "site").exists()
    assert delta_engine(*COMMAND).code == 0
    assert [path.name for path in project.iterdir() if path.name.startswith(".site")] == []
