"""Shortens a story that fails: leaves out actors, steps, faults and edits as long as the same invariant is broken."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.scenarios import Command, Scenario, Step
from tests.simulation.simulation import Story, played


def shrunk(story: Story) -> Story:
    """Return the shortest story that breaks the same invariant; the story itself if it breaks none."""
    if story.finding is None:
        return story
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for scenario in _shorter(story.scenario):
            shorter = played(scenario)
            if shorter.finding is not None and shorter.finding.invariant == story.finding.invariant:
                story, is_shorter = shorter, True
                break
    return story


def _shorter(scenario: Scenario) -> Iterator[Scenario]:
    """Yield the scenarios with one thing less, the largest first."""
    parts = scenario.parts
    for place in range(len(parts)):
        yield scenario._replace(parts=parts[:place] + parts[place + 1 :])
    for place, part in enumerate(parts):
        for steps in _shorter_steps(part.steps):
            yield scenario._replace(parts=(*parts[:place], part._replace(steps=steps), *parts[place + 1 :]))
    for place in range(len(scenario.lags)):
        yield scenario._replace(lags=scenario.lags[:place] + scenario.lags[place + 1 :])
    for place in range(len(scenario.last_edits)):
        edits = scenario.last_edits
        yield scenario._replace(last_edits=edits[:place] + edits[place + 1 :])
    for place in range(len(scenario.last_changes)):
        changes = scenario.last_changes
        yield scenario._replace(last_changes=changes[:place] + changes[place + 1 :])


def _shorter_steps(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    for place in range(len(steps)):
        yield steps[:place] + steps[place + 1 :]
    for place, step in enumerate(steps):
        if isinstance(step, Command):
            for command in _simpler(step):
                yield (*steps[:place], command, *steps[place + 1 :])


def _simpler(command: Command) -> Iterator[Command]:
    for place in range(len(command.faults)):
        yield command._replace(faults=command.faults[:place] + command.faults[place + 1 :])
    for place in range(len(command.edits)):
        yield command._replace(edits=command.edits[:place] + command.edits[place + 1 :])
