"""The stage: actors take turns under a seed, in simulated time, and each event is a line of the story.

An actor is a thread that runs only while it holds the baton. It may pass the baton on at every turn, which it takes
before each call of a port; the seed decides who goes on. Time passes only here: a little at each turn, and as much
as the next sleeper needs when all actors sleep.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import partial
from random import Random
from types import SimpleNamespace
from unittest.mock import patch

from delta_engine.backends import sql_runner
from delta_engine.deployment.stores import databricks, files
from delta_engine.deployment.stores.delta_row import DeltaRow
from delta_engine.execute import action_runner
from delta_engine.telemetry import context
from tests.fakes.unity_catalog import catalog as fake_catalog
from tests.simulation.inline import InlineExecutor

SECONDS_OF_A_TURN = 0.5
_BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
_REAL_PATIENCE_SECONDS = 120
"""After this time without a turn, real threads wait for each other: a fault of the simulator."""


class Over(BaseException):
    """Ends an actor because the story is over."""


@dataclass(eq=False)
class Actor:
    """A thread that waits at its gate until it gets the baton."""

    name: str
    gate: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    wakes_at: float = 0.0
    is_done: bool = False


@dataclass(eq=False)
class Timer:
    """An action that is due again and again until it returns False."""

    seconds: float
    due: float
    action: Callable[[], bool]
    is_over: bool = False

    def end(self) -> None:
        self.is_over = True


class Stage:
    """Lets actors act in turn.

    Attributes:
        now: the simulated time in seconds.
        lines: the story.
    """

    def __init__(self, random: Random, stickiness: float) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self._random = random
        self._stickiness = stickiness
        self._actors: list[Actor] = []
        self._timers: list[Timer] = []
        self._current = Actor("stage")
        self._is_over = False
        self.is_beating = False
        self._crash: BaseException | None = None
        self._ids = 0

    def tell(self, text: str, *, by: str | None = None) -> None:
        """Add a line to the story, unless it repeats the last one, as of an actor that waits."""
        event = f"{by or self._current.name:<6} {text}"
        if not self._is_over and not (self.lines and self.lines[-1].endswith(event)):
            self.lines.append(f"{self.now:8.1f}s  {event}")

    def play(self, parts: Mapping[str, Callable[[], None]]) -> None:
        """Let actors act to their ends; raise what one of them raised."""
        self._actors = [Actor(name, wakes_at=self.now) for name in parts]
        finished = threading.Semaphore(0)
        threads = [
            threading.Thread(target=self._act, args=(actor, part, finished), daemon=True)
            for actor, part in zip(self._actors, parts.values(), strict=True)
        ]
        for thread in threads:
            thread.start()
        if threads:
            self._give_baton(self._chosen())
            for _ in threads:
                _await(finished)
        if self._crash is not None:
            raise self._crash

    def turn(self) -> None:
        """Let a moment pass, and maybe another actor go on."""
        if self.is_beating:
            return
        if self._is_over:
            raise Over
        self.now += SECONDS_OF_A_TURN
        self._beat()
        self._pass_baton()

    def sleep(self, seconds: float) -> None:
        """Let the current actor wait while others act."""
        self._current.wakes_at = self.now + seconds
        self._pass_baton()

    def repeat(self, seconds: float, action: Callable[[], bool]) -> Callable[[], None]:
        """Repeat an action in simulated time; a `Repeat` of leases."""
        timer = Timer(seconds, self.now + seconds, action)
        self._timers.append(timer)
        return timer.end

    def stop(self) -> None:
        """End the story: no actor takes another turn."""
        self._is_over = True

    def moment(self) -> datetime:
        """Return the simulated time."""
        return _BEGIN + timedelta(seconds=self.now)

    @contextmanager
    def in_its_time(self) -> Iterator[None]:
        """Let engine and catalog read the simulated clock, count ids in place of drawing them, and start no threads.

        Documents are not compressed, and files are not flushed to disk.
        """
        clock = SimpleNamespace(now=lambda _zone: self.moment())
        ids = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=self._new_id()))
        with (
            patch.object(context, "datetime", clock),
            patch.object(context, "uuid", ids),
            patch.object(fake_catalog, "datetime", clock),
            patch.object(action_runner, "ThreadPoolExecutor", InlineExecutor),
            patch.object(sql_runner, "ThreadPoolExecutor", InlineExecutor),
            patch.object(os, "fsync", lambda _descriptor: None),
            patch.object(files, "compressed", lambda data: data),
            patch.object(files, "decompressed", lambda data, *_: data),
            patch.object(files, "ThreadPoolExecutor", InlineExecutor),
            patch.object(databricks, "compressed", lambda data: data),
            patch.object(databricks, "decompressed", lambda data, *_: data),
            patch.object(databricks, "DeltaRow", partial(DeltaRow, pause=self.sleep)),
        ):
            yield

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:08x}"

    def _act(self, actor: Actor, part: Callable[[], None], finished: threading.Semaphore) -> None:
        _await(actor.gate)
        try:
            if not self._is_over:
                part()
        except Over:
            pass
        except BaseException as error:  # noqa: BLE001 - `play` raises it again
            self._crash, self._is_over = error, True
        actor.is_done = True
        if not all(other.is_done for other in self._actors):
            self._give_baton(self._chosen())
        finished.release()

    def _pass_baton(self) -> None:
        giver, taker = self._current, self._chosen()
        if taker is not giver:
            self._give_baton(taker)
            _await(giver.gate)
        if self._is_over:
            raise Over

    def _give_baton(self, taker: Actor) -> None:
        self._current = taker
        taker.gate.release()

    def _chosen(self) -> Actor:
        """Choose who goes on: mostly the same actor, so that stories are readable and threads seldom switch."""
        left = [actor for actor in self._actors if not actor.is_done]
        if self._is_over:
            return left[0]
        while not (awake := [actor for actor in left if actor.wakes_at <= self.now]):
            alarms = [timer.due for timer in self._timers if not timer.is_over]
            self.now = min([*alarms, *(actor.wakes_at for actor in left)])
            self._beat()
        if self._current in awake and self._random.random() < self._stickiness:
            return self._current
        return self._random.choice(awake)

    def _beat(self) -> None:
        """Run the timers that are due."""
        self._timers = [timer for timer in self._timers if not timer.is_over]
        self.is_beating = True
        for timer in self._timers:
            if timer.due <= self.now:
                timer.due = self.now + timer.seconds
                timer.is_over = timer.is_over or not timer.action()
        self.is_beating = False


def _await(gate: threading.Semaphore) -> None:
    if not gate.acquire(timeout=_REAL_PATIENCE_SECONDS):
        raise RuntimeError("no actor goes on: threads wait for each other")
