"""The judge: tells every event to the invariants, and ends the story at the first one that is broken."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from delta_engine.cli.terminal import ExitCode
from delta_engine.deployment.document import DeploymentState
from delta_engine.plan_files.document import PlanFile
from delta_engine.state.function_states import FunctionState
from tests.cases.ownership_ledger import parts_of
from tests.fakes.unity_catalog.stored import Stored
from tests.simulation.invariants import ALL, Changed, Invariant, Parts

_PROJECT = f"{Path(__file__).parents[2]}{os.sep}"
"""Left out of findings, so that they are the same in every clone."""

if TYPE_CHECKING:
    from tests.simulation.processes import Process
    from tests.simulation.world import World


class Finding(NamedTuple):
    """A broken invariant, and how."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


class Judge:
    """Watches a story.

    Attributes:
        finding: the first broken invariant; None so far.
    """

    def __init__(self, world: World) -> None:
        self.finding: Finding | None = None
        self._world = world
        self._invariants = [invariant(world) for invariant in ALL]
        self._parts: dict[int, tuple[Stored, Parts]] = {}

    def find(self, invariant: str, text: str) -> None:
        """Note a broken invariant, and end the story."""
        if self.finding is None:
            self.finding = Finding(invariant, text.replace(_PROJECT, ""))
            self._world.stage.tell(str(self.finding), by="judge")
            self._world.stage.stop()

    def on_sent(self, process: Process, sql: str) -> None:
        self._tell(methodcaller("on_sent", process, sql))

    def on_journaled(self, process: Process) -> None:
        self._tell(methodcaller("on_journaled", process))

    def on_changed(
        self,
        process: Process | None,
        sql: str,
        tables: Mapping[str, Stored],
        functions: Mapping[str, FunctionState],
    ) -> None:
        """Tell what a statement changed, given the tables and functions before it."""
        now = self._world.catalog.tables
        for key in [key for key in {**tables, **now} if tables.get(key) is not now.get(key)]:
            change = Changed(key, self._parts_of(tables.get(key)), self._parts_of(now.get(key)), sql)
            self._tell(methodcaller("on_changed", process, change))
        if functions != self._world.catalog.functions:
            before, after = grants_on(functions), grants_on(self._world.catalog.functions)
            self._tell(methodcaller("on_granted", process, before - after, after, sql))

    def on_saved(self, process: Process, state: DeploymentState) -> None:
        self._tell(methodcaller("on_saved", process, state))

    def on_applied(self, process: Process, file: PlanFile) -> None:
        self._tell(methodcaller("on_applied", process, file))

    def on_ended(self, process: Process, code: ExitCode | None) -> None:
        self._tell(methodcaller("on_ended", process, code))

    def at_end(self) -> None:
        """Judge what is left after the last command."""
        self._tell(methodcaller("at_end"))

    def _tell(self, event: Callable[[Invariant], str | None]) -> None:
        for invariant in self._invariants:
            text = event(invariant)
            if text is not None:
                self.find(type(invariant).__name__, text)

    def _parts_of(self, stored: Stored | None) -> Parts | None:
        if stored is None:
            return None
        cached = self._parts.get(id(stored))
        if cached is None or cached[0] is not stored:
            cached = self._parts[id(stored)] = (stored, parts_of(stored.state))
        return cached[1]


def grants_on(functions: Mapping[str, FunctionState]) -> frozenset[str]:
    """Return the grants on functions as texts."""
    return frozenset(
        f"{right} on {key} to {who}"
        for key, function in functions.items()
        for who, rights in function.grants.items()
        for right in rights
    )
