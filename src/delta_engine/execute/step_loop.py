"""Starts the steps of a plan as they become free, many at once, and takes in what became of them.

Its own thread alone touches the progress, and tells of outcomes; the others do steps.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

from delta_engine.execute.apply_control import ApplyControl
from delta_engine.execute.plan_progress import PlanProgress, StepResult, TableOutcome
from delta_engine.execute.table_work import TableWork

OnOutcome: TypeAlias = Callable[[TableOutcome], object]
"""Told what became of a table."""

_Finished: TypeAlias = "tuple[int, Future[StepResult]]"


class StepLoop:
    """Does the steps of one apply.

    Args:
        progress: which steps there are.
        work: does one.
        control: of the apply.
        on_outcome: told of each table as it is done, or as far as it is to be.
        parallelism: how many steps to do at once, at most.
    """

    def __init__(
        self,
        progress: PlanProgress,
        work: TableWork,
        control: ApplyControl,
        on_outcome: OnOutcome,
        *,
        parallelism: int,
    ) -> None:
        self._progress = progress
        self._work = work
        self._control = control
        self._on_outcome = on_outcome
        self._parallelism = parallelism
        self._under_way = 0
        self._finished: SimpleQueue[_Finished | None] = SimpleQueue()
        self._outcomes: list[TableOutcome] = []

    def run(self) -> tuple[TableOutcome, ...]:
        """Do all steps that can be done; return what became of each table, sorted by name."""
        with self._control.stop.on_request(partial(self._finished.put, None)):
            try:
                with (
                    ThreadPoolExecutor(self._parallelism, thread_name_prefix="apply") as pool,
                    self._control.stop.requested_at_errors(),
                ):
                    while not self._progress.is_over:
                        self._start(pool)
                        self._await_one()
                        self._tell()
            except BaseException:
                self._take_in_the_rest()
                raise
        return tuple(sorted(self._outcomes, key=lambda outcome: outcome.table.key))

    def _start(self, pool: ThreadPoolExecutor) -> None:
        if self._control.stop.is_requested():
            self._progress.stop()
        for position, step in self._progress.start(self._parallelism - self._under_way):
            done_before = self._progress.statements_done(step.table)
            future = pool.submit(copy_context().run, self._work.do, step, done_before)
            future.add_done_callback(partial(self._put, position))
            self._under_way += 1

    def _put(self, position: int, future: Future[StepResult]) -> None:
        self._finished.put((position, future))

    def _await_one(self) -> None:
        if not self._under_way:
            assert self._progress.is_over, "steps wait for each other"
            return
        done = self._finished.get()
        if done is None:
            self._control.tell_stopping()
        else:
            self._under_way -= 1
            self._progress.finish(done[0], done[1].result())

    def _tell(self) -> None:
        for outcome in self._progress.take_outcomes():
            self._outcomes.append(outcome)
            self._on_outcome(outcome)

    def _take_in_the_rest(self) -> None:
        """After an error, tell what became of the steps that came to their end all the same: no thread works any more.

        Nothing is told of the table of the step with the error: nobody knows.
        """
        while not self._finished.empty():
            done = self._finished.get()
            if done is not None and done[1].exception() is None:
                self._progress.finish(done[0], done[1].result())
        self._progress.stop()
        for _ in self._progress.start(1):
            raise AssertionError("nothing starts any more")
        with ExitStack() as tellings:  # all of them, also if one ends with an error
            for outcome in reversed(list(self._progress.take_outcomes())):
                tellings.callback(self._on_outcome, outcome)
