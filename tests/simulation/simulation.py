"""Plays the story of a scenario: its parts, then its end without faults."""

from __future__ import annotations

from functools import cache
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest.mock import patch

from delta_engine.config import whole_files
from tests.simulation.finale import play_finale
from tests.simulation.judge import Finding
from tests.simulation.scenarios import Scenario, drawn
from tests.simulation.stage import Over
from tests.simulation.world import World

_NUMBERS = count()


@cache
def _folder() -> TemporaryDirectory[str]:
    """Return the folder of this process for what stories write, in a folder for each story."""
    return TemporaryDirectory()


class Story(NamedTuple):
    """A story, line by line, and what is wrong with it; None if nothing is."""

    scenario: Scenario
    lines: tuple[str, ...]
    finding: Finding | None

    def __str__(self) -> str:
        ending = "no invariant is broken" if self.finding is None else f"BROKEN: {self.finding}"
        return "\n".join((*self.lines, f"seed {self.scenario.seed}: {ending}"))


def story_of(seed: int) -> Story:
    """Play the story of a number."""
    return played(drawn(seed))


def played(scenario: Scenario) -> Story:
    """Play the story of a scenario."""
    folder = Path(_folder().name) / str(next(_NUMBERS))
    world = World(scenario, folder)
    with world.stage.in_its_time(), patch.object(whole_files, "move_without_replacing", world.imports.move):
        try:
            world.play()
            if world.judge.finding is None:
                play_finale(world)
        except Over:
            pass
        finally:
            rmtree(folder, ignore_errors=True)
    return Story(scenario, tuple(world.stage.lines), world.judge.finding)
