"""Stories of many numbers: no invariant is broken, and each number tells one story."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import SystemRandom

import pytest

from tests.simulation.found import FOUND
from tests.simulation.simulation import played, story_of

AT_ONCE = 100
FIXED, NEW, LONG = 1_000, 200, 50_000
PROJECT = Path(__file__).parents[2]
CLONED = ("src", "conf", "tests/simulation", "tests/builders", "tests/cases", "tests/fakes")
COMPARED = [14, 24, 35, 122, 253]


def require_unbroken(first: int, count: int) -> None:
    for seed in range(first, first + count):
        story = story_of(seed)
        assert story.finding is None, f"run: python -m tests.simulation --seed {seed}\n{story}"


@pytest.mark.parametrize("first", range(0, FIXED, AT_ONCE))
def test_no_invariant_is_broken(first: int) -> None:
    require_unbroken(first, AT_ONCE)


@pytest.mark.long
@pytest.mark.skipif("CI" in os.environ, reason="CI repeats the same stories")
@pytest.mark.parametrize("part", range(NEW // AT_ONCE))
def test_no_invariant_is_broken_in_new_stories(part: int) -> None:
    require_unbroken(SystemRandom().randrange(LONG, 2**31), AT_ONCE)


@pytest.mark.long
@pytest.mark.parametrize("first", range(FIXED, LONG, 10 * AT_ONCE))
def test_no_invariant_is_broken_in_many_stories(first: int) -> None:
    require_unbroken(first, 10 * AT_ONCE)


@pytest.mark.parametrize("fault", FOUND)
def test_what_a_story_found_is_mended(fault: str) -> None:
    story = played(FOUND[fault])
    assert story.finding is None, story


def test_a_number_tells_the_same_story_in_every_clone(tmp_path: Path) -> None:
    """Sets of strings have another order in each interpreter, and each clone has another path."""
    first = stories_told_in(clone(tmp_path / "clone"), hash_seed="1")
    assert first == stories_told_in(clone(tmp_path / "another folder" / "of another clone"), hash_seed="2")
    assert first.count(b"\n") > 20 * len(COMPARED)


def clone(folder: Path) -> Path:
    """Copy what the simulator needs into a folder."""
    for name in CLONED:
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def stories_told_in(folder: Path, *, hash_seed: str) -> bytes:
    told = f"from tests.simulation.simulation import story_of; [print(story_of(seed)) for seed in {COMPARED}]"
    return subprocess.run(
        [sys.executable, "-c", told],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder / 'src'}:{folder}", "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    ).stdout
